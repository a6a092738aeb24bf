"""Messages from one process to others on the same state.

They carry what concerns a moment: that a call is to end, or what is under way. What has to last is
state of its own. A message is kept for `KEPT_S`, and is not synced to a disk.

Where gates have a key (`secrets/cluster_key.py`), each message carries a MAC: the answer of a
person to a question comes this way, and who can write the state's tables must not give one. The
MAC is also over when it was sent and its place among those of its sender, so that one that is put
into the table again is not received again. What holds texts of callers is encrypted as well: who
can read the tables must not read statements.
"""

from __future__ import annotations

import asyncio
import hmac
import struct
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

import msgspec

from tidegate.errors import TidegateError
from tidegate.store.calls import change_state, read_state
from tidegate.store.encryption import decrypt, encrypt
from tidegate.store.versions import Versions

KEPT_S = 300.0
MOST_BYTES = 262_144
MOST_BODY = MOST_BYTES - 64
"""What the body of a message may have; the rest is for what gates with a key add to it."""
_FORGET_S = 60.0
_SURE_S = 30.0
_RETRY_S = 1.0
_APART_S = 2.0
"""By how much two processes may differ about the state's clock, which each of them estimates."""
_MAC_BYTES = 16
_PLACE = struct.Struct(">dQ")
"""When a message was sent, and how many its sender had sent before."""
_MOST_LATE = 4_096
"""A message counts that comes after so many of the same sender: they are committed by threads."""


class Message(NamedTuple):
    """One message. `n` is its number in order of commit, `sender` the process that sent it, `to`
    the one that is to read it, empty for all others. `kind` says what `body` is."""

    n: int
    sender: str
    to: str
    kind: str
    body: bytes


class MessageStore(Protocol):
    """The messages that processes have sent lately.

    Their number is the counter of the topic `messages` (`versions.py`), raised in the transaction
    that keeps the message: who has read up to a number misses none with a lower one.
    """

    def send(self, sender: str, to: str, kind: str, body: bytes, now: float) -> int:
        """Keep a message and return its number. Raises: TidegateError LIMIT_BYTES if its body is
        longer than `MOST_BYTES`."""
        ...

    def read(self, reader: str, after: int, most: int) -> tuple[Message, ...]:
        """Messages of others to this reader or to all, of numbers above `after`, oldest first, and
        `most` of them."""
        ...

    def forget(self, before: float) -> None:
        """Remove what was sent before that time."""
        ...


Handle = Callable[[str, bytes], None]
"""Takes the sender and the body of a message, on the event loop. A body may be of another version
of Tidegate: what cannot be read is ignored, and ends no one's reading."""


class _Received:
    """Which messages of one sender were received; `at` is when the last one was sent."""

    def __init__(self) -> None:
        self.at = float("-inf")
        self._places: set[int] = set()
        self._lowest = -1

    def is_new(self, place: int) -> bool:
        """Take note of a message; False if it was received, or is too late to know."""
        if place <= self._lowest or place in self._places:
            return False
        self._places.add(place)
        if len(self._places) > 2 * _MOST_LATE:
            kept = sorted(self._places)
            self._lowest = kept[-_MOST_LATE - 1]
            self._places = set(kept[-_MOST_LATE:])
        return True


class Mailbox:
    """The messages of this process, `me`. On the event loop only."""

    def __init__(
        self,
        store: MessageStore,
        versions: Versions,
        me: str,
        clock: Callable[[], float] = time.time,
        key: bytes | None = None,
    ) -> None:
        """With a `key`, what others have sent without it is as if it had not come. `clock` is the
        same at all processes."""
        self.me = me
        self._key = key
        self._store = store
        self._versions = versions
        self._clock = clock
        self._handlers: dict[str, tuple[Handle, bool]] = {}
        self._forgot_at = 0.0
        self._sent = 0
        self._received: OrderedDict[str, _Received] = OrderedDict()
        self._began: float | None = None

    def handle(self, kind: str, handle: Handle, *, encrypted: bool = False) -> None:
        """Have messages of that kind handled so; with a key only those that are encrypted, or
        not."""
        self._handlers[kind] = handle, encrypted

    async def send(self, kind: str, body: bytes, to: str = "", *, encrypted: bool = False) -> None:
        """Send a message to one process, or to all others; `encrypted` where there is a key.
        Raises: TidegateError STATE_FAILED, LIMIT_BYTES."""
        now = self._clock()
        if encrypted and self._key is not None:
            body = encrypt(_body_key(self._key), body, _bound(self.me, to, kind))
        sent = body
        if self._key is not None:
            sent = _PLACE.pack(now, self._sent) + body
            self._sent += 1
            sent = self._mac(self.me, to, kind, sent) + sent
        await change_state(self._store.send, self.me, to, kind, sent, now)
        if not 0 <= now - self._forgot_at < _FORGET_S:
            self._forgot_at = now
            with suppress(TidegateError):  # they are removed at another time
                await change_state(self._store.forget, now - KEPT_S)

    async def run(self, most: int = 100) -> None:
        """Handle what comes from now on, until cancelled."""
        after = seen = self._versions.of("messages")
        self._began = self._clock() - _APART_S
        while True:
            await self._versions.changed("messages", seen, _SURE_S)
            try:
                seen = self._versions.of("messages")
                after = min(after, seen)  # a state that lost its last moments counts from less
                while found := await read_state(self._store.read, self.me, after, most):
                    for message in found:
                        after = message.n
                        self._take(message)
            except TidegateError:  # a state that cannot be read is read again
                await asyncio.sleep(_RETRY_S)

    def _take(self, message: Message) -> None:
        found = self._handlers.get(message.kind)
        if found is None:
            return
        (handle, encrypted), (_, sender, to, kind, body) = found, message
        if self._key is not None:
            mac, sent = body[:_MAC_BYTES], body[_MAC_BYTES:]
            if not hmac.compare_digest(mac, self._mac(sender, to, kind, sent)):
                return
            body = sent[_PLACE.size :]
            if not self._is_new(sender, *_PLACE.unpack_from(sent)):
                return
            if encrypted:
                plain = decrypt(_body_key(self._key), body, _bound(sender, to, kind))
                if plain is None:  # of another version of Tidegate
                    return
                body = plain
        with suppress(msgspec.MsgspecError, UnicodeError):  # of another release
            handle(sender, body)

    def _is_new(self, sender: str, at: float, place: int) -> bool:
        """Whether a message was sent since this process listens, and was not received."""
        now = self._clock()
        self._began = now if self._began is None else min(self._began, now)  # it was set back
        if at < max(self._began, now - KEPT_S):
            return False
        received = self._received.pop(sender, None) or _Received()
        self._received[sender] = received
        received.at = max(received.at, at)
        first = next(iter(self._received))  # of whom nothing was received for the longest time
        if self._received[first].at < now - KEPT_S:
            del self._received[first]
        return received.is_new(place)

    def _mac(self, sender: str, to: str, kind: str, sent: bytes) -> bytes:
        content = msgspec.msgpack.encode((sender, to, kind, sent))
        return hmac.digest(self._key or b"", content, "sha256")[:_MAC_BYTES]


def _body_key(key: bytes) -> bytes:
    """The key of encrypted bodies: not that of MACs."""
    return hmac.digest(key, b"encrypted bodies", "sha256")


def _bound(sender: str, to: str, kind: str) -> bytes:
    return msgspec.msgpack.encode((sender, to, kind))
