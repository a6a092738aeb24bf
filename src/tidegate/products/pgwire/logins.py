"""Which token a client may log in as: its SCRAM verifier, or its client certificate."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.identity.authenticator import Authenticator
from tidegate.identity.scram import ScramVerifier, parse_verifier
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Actor
from tidegate.model.sources import Source
from tidegate.store.calls import read_state
from tidegate.store.records import TokenEntry


class Login(NamedTuple):
    """A client that has logged in: as `actor`, to `source`, the database of its connection, from
    the IP `address`."""

    actor: Actor
    source: Source
    address: str


class Logins:
    """The tokens of a server as users of the wire protocol."""

    def __init__(
        self,
        tokens: Tokens,
        authenticator: Authenticator,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tokens = tokens
        self._authenticator = authenticator
        self._clock = clock

    async def find(self, user: str, address: str) -> tuple[ScramVerifier | None, Actor | None]:
        """The verifier and the actor of the active token of that name; neither if there is none.

        Raises: TidegateError AUTH_INVALID for a token that has no verifier, STATE_FAILED.
        """
        try:
            actor, entry = await read_state(self._find, user)
        except TidegateError as error:
            if error.code in (Code.ARGUMENT_INVALID, Code.AUTH_EXPIRED):
                return None, None
            raise
        if entry.scram_verifier is None:
            raise await self.rejected(
                TidegateError(
                    Code.AUTH_INVALID,
                    f"The token `{user[:80]}` was made without a verifier for this protocol.",
                    hint="Make another one: `tidegate token create NAME`.",
                ),
                address,
            )
        return parse_verifier(entry.scram_verifier), actor

    def _find(self, user: str) -> tuple[Actor, TokenEntry]:
        return self._tokens.holder(user), self._tokens.find(user)

    async def of_certificate(self, user: str) -> Actor:
        """The active token of the name that a verified client certificate has. Raises:
        TidegateError AUTH_INVALID, AUTH_EXPIRED, STATE_FAILED."""
        try:
            return await read_state(self._tokens.holder, user)
        except TidegateError as error:
            if error.code is not Code.ARGUMENT_INVALID:
                raise
            raise TidegateError(
                Code.AUTH_INVALID,
                f"There is no active token of the certificate's name `{user[:80]}`.",
                hint="Make one of that name: `tidegate token create NAME`.",
            ) from None

    async def rejected(self, error: TidegateError, address: str) -> TidegateError:
        """What a failed login answers: the error, or that the address is locked out."""
        try:
            await self._authenticator.reject(error, address)
        except TidegateError as locked:
            return locked
        return error
