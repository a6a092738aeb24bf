"""Ids of sessions that say themselves what was negotiated, so that any process of a gate serves any
session, and one that ends takes none with it.

An id is what `initialize` agreed on, whose session it is and until when it holds, with a MAC
(HMAC-SHA256) under a key that all processes have. It hides nothing: its client knows what is in it,
and each request proves by its token who sends it. So no cipher is imported for it. What is in it
can neither be changed nor be used by another actor.
"""

from __future__ import annotations

import hmac
import os
import time
from base64 import b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidegate.protocol.model import Info
from tidegate.protocol.revisions import REVISIONS

LIFETIME_S = 2_592_000.0
"""Thirty days: a client that has been away for longer has to begin again."""
MOST_BYTES = 2_048
"""Of what is in an id: proxies take about 8,000 bytes of headers."""
MOST_NAMES = 16
MOST_NAME = 64
MOST_ENDED = 100_000
"""Ended sessions that are remembered."""
_MAC_BYTES = 16
_DIGEST_BYTES = 12


class Agreed(msgspec.Struct, frozen=True, array_like=True):
    """What a session began with. `nonce` makes each id another one, `expires_at` is Unix time."""

    nonce: bytes
    expires_at: int
    actor: str
    revision: str
    name: str
    version: str
    capabilities: dict[str, Any]

    @property
    def client(self) -> Info:
        return Info(self.name, self.version)


class SessionIds:
    """Makes ids and reads them. `ended` are those that hold no longer. `key` gives 32 bytes, and is
    called once. Ids of another `purpose` are not read: each endpoint has sessions of its own."""

    def __init__(
        self,
        key: Callable[[], bytes],
        purpose: str = "",
        ended: EndedSessions | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ended = ended or EndedSessions()
        self._make_key = key
        self._purpose = f"tidegate session {purpose}".encode()
        self._key: bytes | None = None
        self._clock = clock
        self._decoder = msgspec.msgpack.Decoder(Agreed)

    def make(self, actor: str, revision: str, client: Info, capabilities: Mapping[str, Any]) -> str:
        """The id of a new session of this actor."""
        agreed = Agreed(
            os.urandom(12),
            int(self._clock() + LIFETIME_S),
            actor,
            revision,
            client.name[:MOST_NAME],
            client.version[:MOST_NAME],
            _shorten(capabilities),
        )
        body = msgspec.msgpack.encode(agreed)
        return _text_of(body + self._mac(body))

    def read(self, id: str, actor: str) -> Agreed | None:
        """What is in an id of this actor; None for any other, and for one that holds no longer."""
        try:
            sealed = b64decode(id + "=" * (-len(id) % 4), b"-_", validate=True)
        except ValueError:
            return None
        body, mac = sealed[:-_MAC_BYTES], sealed[-_MAC_BYTES:]
        if _text_of(sealed) != id or not hmac.compare_digest(mac, self._mac(body)):
            return None
        try:
            agreed = self._decoder.decode(body)
        except msgspec.DecodeError:  # of another release
            return None
        if agreed.actor != actor or agreed.expires_at <= self._clock():
            return None
        known = agreed.revision in REVISIONS and digest_of(id) not in self.ended
        return agreed if known else None

    def _mac(self, body: bytes) -> bytes:
        if self._key is None:
            self._key = hmac.digest(self._make_key(), self._purpose, "sha256")
        return hmac.digest(self._key, body, "sha256")[:_MAC_BYTES]


def _text_of(sealed: bytes) -> str:
    return urlsafe_b64encode(sealed).decode().rstrip("=")


class EndedSessions:
    """The sessions that were ended before their ids expire, by digest: those of all processes, as
    far as this one knows. The oldest is forgotten first: until its id expires its own client, and
    no one else, could use it again."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._drops: list[Callable[[bytes], None]] = []
        self.tell: Callable[[bytes], None] = _tell_no_one
        """Lets the other processes know of one."""

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._known

    def follow(self, drop: Callable[[bytes], None]) -> None:
        """Have `drop` called with each session that ends."""
        self._drops.append(drop)

    def end(self, digest: bytes) -> None:
        """End a session everywhere."""
        self.note(digest)
        self.tell(digest)

    def note(self, digest: bytes) -> None:
        """A session was ended, here or by another process."""
        self._known[digest] = None
        if len(self._known) > MOST_ENDED:
            self._known.popitem(last=False)
        for drop in self._drops:
            drop(digest)


def _tell_no_one(digest: bytes) -> None:
    """There is no other process."""


def digest_of(id: str) -> bytes:
    """By which processes name a session to each other: the id itself lets its client in."""
    return hmac.digest(b"tidegate session", id.encode("utf-8", "replace"), "sha256")[:_DIGEST_BYTES]


def _shorten(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities, of a client that says very much of them by their names alone."""
    kept = dict(capabilities)
    if len(msgspec.msgpack.encode(kept)) <= MOST_BYTES:
        return kept
    return _names_of(kept, deeper=1)


def _names_of(found: Mapping[str, Any], deeper: int) -> dict[str, Any]:
    names = [name for name in found if len(name) <= MOST_NAME][:MOST_NAMES]
    return {
        name: _names_of(found[name], deeper - 1) if deeper and isinstance(found[name], dict) else {}
        for name in names
    }
