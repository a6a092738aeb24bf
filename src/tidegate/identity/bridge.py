"""The bridge's own token: short-lived, renewed before its end, kept in no store.

It belongs to one running server and dies with it. The identity behind it stays the same when the
secret changes, so that a session survives; a token that bears its name has another id.
"""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256

from tidegate.actors import Actor, Scope
from tidegate.config.addresses import LOOPBACK
from tidegate.config.model import BridgeSettings
from tidegate.errors import Code, GateError

NAME = "bridge"
PREFIX = "tg_bridge_"
LIFE_S = 3_600.0
RENEW_S = 900.0
"""A new secret comes so long before the old one ends."""

_KEPT = 3

Note = Callable[[str, Mapping[str, str]], None]


class BridgePass:
    """The secrets that open the door to bridges, the newest and those not long ended."""

    def __init__(
        self, settings: BridgeSettings, note: Note, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._note = note
        self._clock = clock
        self._holders: dict[bytes, Actor] = {}

    def renew(self) -> tuple[str, float]:
        """A new secret and when it ends; those before it hold until their own end.

        Raises: GateError AUDIT_UNAVAILABLE.
        """
        settings, ends = self._settings, self._clock() + LIFE_S
        self._note("bridge.admitted", {"scope": settings.scope, "expires_at": str(round(ends))})
        secret = PREFIX + urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()
        self._holders[_digest(secret)] = Actor(
            id=NAME,
            name=NAME,
            scope=Scope(settings.scope),
            sources=None if settings.sources is None else frozenset(settings.sources),
            expires_at=ends,
            tags=None if settings.tags is None else frozenset(settings.tags),
        )
        while len(self._holders) > _KEPT:
            del self._holders[next(iter(self._holders))]
        return secret, ends

    def verify(self, bearer: str, address: str) -> Actor:
        """The bridge, if it calls from this machine. Raises: GateError AUTH_INVALID,
        AUTH_EXPIRED."""
        holder = self._holders.get(_digest(bearer))
        if holder is None or address not in LOOPBACK:
            raise GateError(Code.AUTH_INVALID, "The token is not valid.")
        if holder.expires_at is not None and self._clock() >= holder.expires_at:
            raise GateError(Code.AUTH_EXPIRED, "The token has expired.")
        return holder


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()
