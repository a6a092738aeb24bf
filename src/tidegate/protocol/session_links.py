"""What processes that serve the same sessions say to each other about them.

A request of a session may come to any process, and so may what belongs to a call that another one
answers: that it is cancelled, the client's answer to a question of ours, the end of the session. A
process that has nothing to do with it tells the others. They name a session by the digest of its
id, as the id itself lets its client in.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

import msgspec

from tidegate.typed_values import msgpack_decoder

MOST_ENDED = 100_000
"""Ended sessions that are remembered. The oldest is forgotten first: until its id expires its own
client, and no one else, could use it again."""
MOST_LEVELS = 10_000
_DIGEST_BYTES = 12

Kind = Literal["ended", "cancel", "answer", "failed", "level", "event"]
"""`cancel`: the request `id` is cancelled, for the reason `body`. `answer`, `failed`: to our
request `id`. `level`: what the client wants to be logged. `event`: a message for the stream that
belongs to no request, which the process that has it sends."""


class SessionMessage(msgspec.Struct, frozen=True, array_like=True):
    """One message about the session of `digest`."""

    kind: str
    digest: bytes
    id: bytes = b""
    body: bytes = b""


class LinkedSessions(Protocol):
    """The sessions of one endpoint in this process."""

    def take(self, message: SessionMessage) -> None:
        """Do what another process says, if the session is here."""
        ...


def _tell_no_one(kind: Kind, body: bytes) -> None:
    """There is no other process."""


async def _keep_nothing(digest: bytes) -> None:
    """No process starts later."""


async def _was_not(digest: bytes) -> bool:
    return False


class SessionLinks:
    """The way to the other processes, and what they have said of sessions that are not here. Used
    on the event loop."""

    def __init__(self) -> None:
        self.tell: Callable[[Kind, bytes], None] = _tell_no_one
        """Gives the others a message, soon."""
        self.keep_ended: Callable[[bytes], Awaitable[None]] = _keep_nothing
        """Keeps the digest of a session that was ended, for processes that start later. Raises:
        TidegateError STATE_FAILED."""
        self.was_kept: Callable[[bytes], Awaitable[bool]] = _was_not
        """Whether a digest was kept so. Raises: TidegateError STATE_FAILED."""
        self._ended: OrderedDict[bytes, None] = OrderedDict()
        self._levels: OrderedDict[bytes, bytes] = OrderedDict()
        self._linked: list[LinkedSessions] = []
        self._decoder = msgpack_decoder(SessionMessage)

    def link(self, sessions: LinkedSessions) -> None:
        """Have these sessions take what others say."""
        self._linked.append(sessions)

    def has_ended(self, digest: bytes) -> bool:
        """Whether the session of this digest was ended."""
        return digest in self._ended

    def level_of(self, digest: bytes) -> str | None:
        """What the client of a session wants to be logged, as far as another process has said."""
        found = self._levels.get(digest)
        return None if found is None else found.decode()

    def send(self, kind: Kind, digest: bytes, id: bytes = b"", body: bytes = b"") -> None:
        """Tell the others, and note it here."""
        message = SessionMessage(kind, digest, id, body)
        self._note(message)
        self.tell(kind, msgspec.msgpack.encode(message))

    def take(self, body: bytes) -> None:
        """Another process has sent this. What is not understood, as of another release, is
        ignored."""
        try:
            message = self._decoder.decode(body)
        except msgspec.DecodeError:
            return
        self._note(message)
        for sessions in self._linked:
            sessions.take(message)

    def _note(self, message: SessionMessage) -> None:
        if message.kind == "ended":
            self._ended[message.digest] = None
            if len(self._ended) > MOST_ENDED:
                self._ended.popitem(last=False)
        elif message.kind == "level":
            self._levels[message.digest] = message.body
            if len(self._levels) > MOST_LEVELS:
                self._levels.popitem(last=False)


def digest_of(id: str) -> bytes:
    """By which processes name a session to each other."""
    return hmac.digest(b"tidegate session", id.encode("utf-8", "replace"), "sha256")[:_DIGEST_BYTES]


def state_id_of(id: str) -> str:
    """The id of the state of a session, the same at every process; only its client can know it."""
    return hmac.digest(b"tidegate state", id.encode("utf-8", "replace"), "sha256").hex()[:32]
