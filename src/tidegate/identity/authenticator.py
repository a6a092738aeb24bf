"""Authentication over HTTP: who a caller is, and how failed attempts are counted and refused.

Tells the kinds of credential apart and counts failures by address. What a caller may do is
the policy's business.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from tidegate.errors import Code, TidegateError
from tidegate.identity.bridge_tokens import PREFIX as BRIDGE_PREFIX
from tidegate.identity.bridge_tokens import BridgeTokens
from tidegate.identity.lockout import Lockout
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Actor
from tidegate.store.api import SharedStore
from tidegate.store.calls import change_state, read_state

Tell = Callable[[str, Mapping[str, str]], None]
"""Puts on record what callers without a token can cause: (name, details). Never raises."""

_TURNED_AWAY = frozenset({Code.AUTH_INVALID, Code.AUTH_EXPIRED})


class Verifier(Protocol):
    """Knows the bearer tokens of an authorization server (`identity.oauth.OAuth`)."""

    def known(self, bearer: str) -> Actor | None:
        """The actor, if this very token was verified before and still holds."""
        ...

    async def verify(self, bearer: str) -> Actor:
        """Raises: TidegateError AUTH_*, POLICY_SCOPE."""
        ...


class Authenticator:
    """Authenticates holders of our tokens or, with a `verifier`, of the authorization server."""

    def __init__(
        self,
        tokens: Tokens,
        tell: Tell,
        *,
        verifier: Verifier | None = None,
        bridge: BridgeTokens | None = None,
        shared: SharedStore | None = None,
        clock: Callable[[], float] = time.time,
        lockout: Lockout | None = None,
    ) -> None:
        self._tokens = tokens
        self._tell = tell
        self._verifier = verifier
        self._bridge = bridge
        self._clock = clock
        self._lockout = lockout or Lockout(shared=shared, kind="login")

    def authenticate(self, bearer: str | None, address: str) -> Actor | Awaitable[Actor]:
        """The actor of a bearer token; awaitable if it was not seen before, or is refused.

        Raises: TidegateError AUTH_*, POLICY_SCOPE, STATE_FAILED.
        """
        if bearer is None:
            raise TidegateError(Code.AUTH_MISSING, "This server needs a token")
        if self._verifier is not None and not self._tokens.holds(bearer):
            return self._verifier.known(bearer) or self._verify(self._verifier, bearer, address)
        try:
            if self._bridge is not None and bearer.startswith(BRIDGE_PREFIX):
                return self._bridge.verify(bearer, address)
            return self._tokens.known(bearer) or self._load(bearer, address)
        except TidegateError as error:
            return self._refuse(error, address)

    async def _load(self, bearer: str, address: str) -> Actor:
        try:
            while (actor := self._tokens.known(bearer)) is None:
                await read_state(self._tokens.load, bearer)
        except TidegateError as error:
            return await self._refuse(error, address)
        return actor

    async def _verify(self, verifier: Verifier, bearer: str, address: str) -> Actor:
        try:
            return await verifier.verify(bearer)
        except TidegateError as error:
            return await self._refuse(error, address)

    async def _refuse(self, error: TidegateError, address: str) -> Actor:
        await self.reject(error, address)
        raise error

    async def reject(self, error: TidegateError, address: str) -> None:
        """Count a failed attempt. Raises: TidegateError AUTH_LOCKED_OUT instead of the other."""
        if error.code in _TURNED_AWAY:
            await change_state(self._count_failure, error, address)

    def _count_failure(self, error: TidegateError, address: str) -> None:
        now = self._clock()
        # A valid token is accepted: clients share an address, and one of them may have a stale
        # token.
        self._lockout.check(address, now)
        self._tell("login.failed", {"address": address, "code": error.code.value})
        if self._lockout.failed(address, now):
            self._tell("login.locked_out", {"address": address})
