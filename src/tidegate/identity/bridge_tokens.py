"""The token of bridges: short-lived, renewed before it expires, never stored in the state.

It belongs to one running server and ends with it. The actor's id stays the same when the secret
changes, so that a session survives; a stored token of the same name has another id. A bridge may
ask for less access than the settings give to bridges, with a suffix to the secret.
"""

from __future__ import annotations

import hmac
import os
import struct
import time
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Literal

import msgspec

from tidegate.config.addresses import is_loopback_address
from tidegate.config.model import BridgeSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.sources import Source
from tidegate.policy.allowlist import admits
from tidegate.typed_values import decode_json

NAME = "bridge"
PREFIX = "tg_bridge_"
SEPARATOR = "~"
"""Separates the secret and the requested access; RFC 6750 allows it in tokens."""
LIFE_S = 3_600.0
RENEW_S = 900.0
"""The time before the end of a secret at which a new one is created."""

_PARTS = struct.Struct(">d16s")
"""Of a secret: until when it is valid, as Unix time, and chance."""
_MAC_BYTES = 32

Note = Callable[[str, Mapping[str, str]], None]


class BridgeTokens:
    """Creates and verifies the secrets of bridges.

    A change of `settings` takes effect on the next call. `sources` returns the configured sources,
    to combine the tags in the settings with the sources that a bridge asks for. Processes with the
    same `key` take each other's secrets.
    """

    def __init__(
        self,
        settings: BridgeSettings,
        note: Note,
        clock: Callable[[], float] = time.time,
        sources: Callable[[], Iterable[Source]] = tuple,
        key: bytes = b"",
    ) -> None:
        self._note = note
        self._clock = clock
        self._sources = sources
        self._key = hmac.digest(key or os.urandom(32), b"tidegate bridge", "sha256")
        self.settings = settings
        self.listens_at = ""
        """The address at which bridges find the server. A caller from there is on this machine."""

    def renew(self) -> tuple[str, float]:
        """Create a secret; return it and its end in Unix seconds. Earlier ones stay valid until
        their own end.

        Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        ends = self._clock() + LIFE_S
        details = {"scope": self.settings.scope, "expires_at": str(round(ends))}
        self._note("bridge.admitted", details)
        parts = _PARTS.pack(ends, os.urandom(16))
        signed = parts + hmac.digest(self._key, parts, "sha256")
        return PREFIX + urlsafe_b64encode(signed).rstrip(b"=").decode(), ends

    def _end_of(self, secret: str) -> float | None:
        """Until when a secret is valid; None if it is none of ours."""
        try:
            text = secret.removeprefix(PREFIX)
            signed = b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        except ValueError:
            return None
        parts, mac = signed[:-_MAC_BYTES], signed[-_MAC_BYTES:]
        good = hmac.compare_digest(mac, hmac.digest(self._key, parts, "sha256"))
        if not good or len(parts) != _PARTS.size:
            return None
        ends: float = _PARTS.unpack(parts)[0]
        return ends

    def verify(self, bearer: str, address: str) -> Actor:
        """The actor of a bridge that calls from this machine, with the access in the settings,
        restricted to what it asks for. Raises: TidegateError AUTH_INVALID, AUTH_EXPIRED."""
        secret, _, asked = bearer.partition(SEPARATOR)
        ends = self._end_of(secret)
        is_here = is_loopback_address(address) or address == self.listens_at != ""
        if ends is None or not is_here:
            raise TidegateError(Code.AUTH_INVALID, "The token is not valid.")
        if self._clock() >= ends:
            raise TidegateError(Code.AUTH_EXPIRED, "The token has expired.")
        sources = self._sources()  # also applies changed settings, so it comes before reading them
        return restrict(self.actor(ends), asked, sources)

    def actor(self, ends: float | None = None) -> Actor:
        """A bridge that asks for all that the settings let it have."""
        settings = self.settings
        return Actor(
            id=NAME,
            name=NAME,
            scope=Scope(settings.scope),
            sources=_some(settings.sources),
            expires_at=ends,
            tags=_some(settings.tags),
            tables=_some(settings.tables),
        )


class Share(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The access that a bridge asks for, within the settings; None means all of it."""

    scope: Literal["readOnly", "readWrite", "fullAccess"] | None = None
    sources: tuple[str, ...] | None = None
    tables: tuple[str, ...] | None = None


def bearer_for(secret: str, share: Share) -> str:
    """The bearer token of a bridge: its secret, followed by the requested access.

    A holder of the secret could leave out the request. It restricts the agent that uses the bridge,
    which sees neither.
    """
    if share == Share():
        return secret
    asked = urlsafe_b64encode(msgspec.json.encode(share)).rstrip(b"=").decode()
    return f"{secret}{SEPARATOR}{asked}"


def restrict(actor: Actor, asked: str, sources: Iterable[Source] = ()) -> Actor:
    """The actor with the access in `asked`, as written by `bearer_for`, and no more than its own.

    It has an id of its own, so that sessions and approvals are not shared between different
    requests. Raises: TidegateError AUTH_INVALID if `asked` cannot be decoded.
    """
    if not asked:
        return actor
    share = _share(asked)
    seen = actor.sources
    if share.sources is not None:
        if actor.tags is not None:
            seen = frozenset(source.name for source in sources if admits(actor, source))
        seen = frozenset(share.sources) if seen is None else seen & set(share.sources)
    tables = actor.tables
    if share.tables is not None:
        tables = frozenset(share.tables) if tables is None else tables & set(share.tables)
    scope = Scope(share.scope or actor.scope)
    return msgspec.structs.replace(
        actor,
        id=f"{actor.id}-{sha256(asked.encode()).hexdigest()[:12]}",
        scope=scope if actor.scope.covers(scope) else actor.scope,
        sources=seen,
        tags=actor.tags if share.sources is None else None,
        tables=tables,
    )


@lru_cache(maxsize=64)
def _share(asked: str) -> Share:
    try:
        text = urlsafe_b64decode(asked + "=" * (-len(asked) % 4))
        if urlsafe_b64encode(text).rstrip(b"=").decode() != asked:
            raise ValueError(asked)
        return decode_json(text, Share)
    except (ValueError, msgspec.DecodeError):
        raise TidegateError(Code.AUTH_INVALID, "The token is not valid.") from None


def _some(names: Collection[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)
