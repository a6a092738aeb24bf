"""The bridge's own token: short-lived, renewed before its end, kept in no store.

It belongs to one running server and dies with it. The identity behind it stays the same when the
secret changes, so that a session survives; a token that bears its name has another id. A bridge may
ask for less than the settings let bridges do, and says so behind the secret.
"""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Literal

import msgspec

from tidegate.config.addresses import LOOPBACK
from tidegate.config.model import BridgeSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.sources import Source
from tidegate.policy.allowlist import admits

NAME = "bridge"
PREFIX = "tg_bridge_"
SEPARATOR = "~"
"""Between the secret and what is asked for; RFC 6750 has it in tokens."""
LIFE_S = 3_600.0
RENEW_S = 900.0
"""A new secret comes so long before the old one ends."""

_KEPT = 3

Note = Callable[[str, Mapping[str, str]], None]


class BridgeTokens:
    """The secrets that open the door to bridges, the newest and those not long ended.

    `settings` may be replaced and then hold from the next call. `sources` gives those that there
    are: a bridge may want to see some of those that the settings let it see by their tags.
    """

    def __init__(
        self,
        settings: BridgeSettings,
        note: Note,
        clock: Callable[[], float] = time.time,
        sources: Callable[[], Iterable[Source]] = tuple,
    ) -> None:
        self._note = note
        self._clock = clock
        self._sources = sources
        self._ends: dict[bytes, float] = {}
        self.settings = settings

    def renew(self) -> tuple[str, float]:
        """A new secret and when it ends; those before it hold until their own end.

        Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        ends = self._clock() + LIFE_S
        details = {"scope": self.settings.scope, "expires_at": str(round(ends))}
        self._note("bridge.admitted", details)
        secret = PREFIX + urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()
        self._ends[_digest(secret)] = ends
        while len(self._ends) > _KEPT:
            del self._ends[next(iter(self._ends))]
        return secret, ends

    def verify(self, bearer: str, address: str) -> Actor:
        """The bridge, if it calls from this machine, with what the settings say now and no more
        than it asks for. Raises: TidegateError AUTH_INVALID, AUTH_EXPIRED."""
        secret, _, asked = bearer.partition(SEPARATOR)
        ends = self._ends.get(_digest(secret))
        if ends is None or address not in LOOPBACK:
            raise TidegateError(Code.AUTH_INVALID, "The token is not valid.")
        if self._clock() >= ends:
            raise TidegateError(Code.AUTH_EXPIRED, "The token has expired.")
        sources = self._sources()  # which looks whether there are other settings
        settings = self.settings
        actor = Actor(
            id=NAME,
            name=NAME,
            scope=Scope(settings.scope),
            sources=_some(settings.sources),
            expires_at=ends,
            tags=_some(settings.tags),
            tables=_some(settings.tables),
        )
        return restrict(actor, asked, sources)


class Share(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a bridge asks for, of what the settings let bridges do; None stands for all of it."""

    scope: Literal["readOnly", "readWrite", "fullAccess"] | None = None
    sources: tuple[str, ...] | None = None
    tables: tuple[str, ...] | None = None


def bearer_for(secret: str, share: Share) -> str:
    """The token of a bridge that asks for a share: its own secret and, after it, what of it.

    Who holds the secret could leave that out. It keeps the agent at the other end of the bridge
    within its share, who sees neither.
    """
    if share == Share():
        return secret
    asked = urlsafe_b64encode(msgspec.json.encode(share)).rstrip(b"=").decode()
    return f"{secret}{SEPARATOR}{asked}"


def restrict(actor: Actor, asked: str, sources: Iterable[Source] = ()) -> Actor:
    """The actor with no more than what is asked for, as `bearer_for` wrote it; under an id of its
    own, so that no session or approval of one share serves another.

    Raises: TidegateError AUTH_INVALID if that cannot be read.
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
        return msgspec.json.decode(text, type=Share)
    except (ValueError, msgspec.DecodeError):
        raise TidegateError(Code.AUTH_INVALID, "The token is not valid.") from None


def _some(names: Collection[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()
