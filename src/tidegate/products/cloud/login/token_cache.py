"""Keeps short-lived tokens until shortly before they end, and gets each once.

A token is kept for as long as the secret that it was got with stays the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.secret_values import unavailable
from tidegate.products.cloud.http.requests import ApiRequest
from tidegate.products.cloud.login.token_requests import Token, TokenRequest

_EARLY_S: Final = 60.0
"""How long before its end a token is renewed: requests take time, and clocks differ."""
_MOST_TOKENS: Final = 1_000
_ERROR_CODE: Final = re.compile(
    rb'"(?:error|code|__type)"\s*:\s*"([\w.-]{1,60})"|<Code>([\w.-]{1,60})</Code>'
)

Exchange = Callable[[ApiRequest], Awaitable[tuple[int, bytes]]]
"""Sends a request for a token and gives the status and the body of the reply. It follows no
redirect and checks the host as for any other request."""


class TokenCache:
    """The tokens of all providers. Belongs to one event loop."""

    def __init__(self, exchange: Exchange, clock: Callable[[], float]) -> None:
        self._exchange = exchange
        self._clock = clock
        self._tokens: OrderedDict[str, Token] = OrderedDict()
        self._waiting: dict[str, asyncio.Task[Token]] = {}

    async def token(
        self, inputs: tuple[Any, ...], request: Callable[[], TokenRequest], origin: str
    ) -> Token:
        """A token that is kept, or a new one. Those that need the same one wait for it together.
        `inputs` are all that decides which token it is, `origin` names in errors where its secret
        came from.

        Raises: TidegateError CREDENTIAL_UNAVAILABLE, CREDENTIAL_REFUSED, PROVIDER_REPLY; those of
        the exchange.
        """
        kept = self.find(inputs)
        if kept is not None:
            return kept
        key = _digest(inputs)
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.create_task(self._fetch(request, origin))
            self._waiting[key] = task
            task.add_done_callback(lambda done: self._settle(key, done))
        # One caller that goes away must not take the token from the others.
        return await asyncio.shield(task)

    def _settle(self, key: str, done: asyncio.Task[Token]) -> None:
        self._waiting.pop(key, None)
        if not done.cancelled() and done.exception() is None:
            self._keep(key, done.result())

    async def _fetch(self, make: Callable[[], TokenRequest], origin: str) -> Token:
        try:
            wanted = make()
        except ValueError as error:
            raise unavailable(f"the credential of {origin} cannot be used: {error}") from None
        status, body = await self._exchange(wanted.request)
        host = urlsplit(wanted.request.url).netloc
        if status != 200:
            raise TidegateError(
                Code.CREDENTIAL_REFUSED,
                f"{host} gave no token for the credential of {origin} (HTTP status {status})"
                f"{_reason(body)}.",
                hint="Check whether the credential has expired, and what it is allowed to do.",
                details={"http_status": status},
            )
        try:
            return wanted.read(body, self._clock())
        except ValueError as error:
            raise TidegateError(
                Code.PROVIDER_REPLY, f"The reply of {host} with a token cannot be used: {error}."
            ) from None

    def find(self, inputs: tuple[Any, ...]) -> Token | None:
        """The token that is kept for these inputs; None if there is none, or it ends soon."""
        token = self._tokens.get(_digest(inputs))
        if token is None or token.expires_at - _EARLY_S <= self._clock():
            return None
        return token

    def keep(self, inputs: tuple[Any, ...], token: Token) -> None:
        """Keep a token that was got without a request."""
        self._keep(_digest(inputs), token)

    def clear(self) -> None:
        """Forget all tokens: the next request gets new ones."""
        self._tokens.clear()

    def _keep(self, key: str, token: Token) -> None:
        self._tokens[key] = token
        self._tokens.move_to_end(key)
        while len(self._tokens) > _MOST_TOKENS:
            self._tokens.popitem(last=False)


def _digest(inputs: tuple[Any, ...]) -> str:
    """The secrets themselves are not kept as keys."""
    return hashlib.sha256(repr(inputs).encode()).hexdigest()


def _reason(body: bytes) -> str:
    """The code of an error (RFC 6749, section 5.2, or AWS's): never its text, which may repeat what
    was sent."""
    match = _ERROR_CODE.search(body[:65_536])
    return f": {(match[1] or match[2]).decode()}" if match else ""
