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
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidegate.protocol.model import Info
from tidegate.protocol.revisions import REVISIONS
from tidegate.protocol.session_links import SessionLinks, digest_of
from tidegate.typed_values import msgpack_decoder

LIFETIME_S = 2_592_000.0
"""Thirty days: a client that has been away for longer has to begin again."""
MOST_BYTES = 2_048
"""Of what is in an id: proxies take about 8,000 bytes of headers."""
MOST_NAMES = 16
MOST_NAME = 64
_MAC_BYTES = 16


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
    """Makes ids and reads them. `links` knows which of them were ended. `key` gives 32 bytes, and
    is called once. Ids of another `purpose` are not read: each endpoint has its own sessions."""

    def __init__(
        self,
        key: Callable[[], bytes],
        purpose: str = "",
        links: SessionLinks | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.links = links or SessionLinks()
        self._make_key = key
        self._purpose = f"tidegate session {purpose}".encode()
        self._key: bytes | None = None
        self._clock = clock
        self._decoder = msgpack_decoder(Agreed)

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
        known = agreed.revision in REVISIONS and not self.links.has_ended(digest_of(id))
        return agreed if known else None

    def _mac(self, body: bytes) -> bytes:
        if self._key is None:
            self._key = hmac.digest(self._make_key(), self._purpose, "sha256")
        return hmac.digest(self._key, body, "sha256")[:_MAC_BYTES]


def _text_of(sealed: bytes) -> str:
    return urlsafe_b64encode(sealed).decode().rstrip("=")


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
