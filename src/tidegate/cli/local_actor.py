"""Calls of the local operator, which pass through the gateway like those of any agent."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Call, Request

if TYPE_CHECKING:
    from tidegate.app import App

PayloadT = TypeVar("PayloadT")
T = TypeVar("T")


async def ask(
    app: App,
    tool: str,
    request: Request,
    source: str | None,
    expected: type[PayloadT],
    *,
    reads_only: bool = False,
) -> PayloadT:
    """Send a request through the gateway; Ctrl-C cancels it in the database.

    Raises: TidegateError, KeyboardInterrupt.
    """
    cancellation = Cancellation()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # a loop without signals: Ctrl-C then ends the process
        loop.add_signal_handler(signal.SIGINT, cancellation.cancel)
    call = Call(
        cli(), "cli", tool, request, source, cancellation=cancellation, reads_only=reads_only
    )
    try:
        payload = (await app.gateway.handle(call)).payload
    except TidegateError as error:
        if cancellation.cancelled and error.code is Code.CALL_CANCELLED:
            raise KeyboardInterrupt from None
        raise
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
    if not isinstance(payload, expected):
        raise TidegateError(Code.INTERNAL, f"Unexpected reply: {type(payload).__name__}.")
    return payload


class LocalCaller:
    """The local operator as a `model.caller.Caller`."""

    def __init__(self, app: App, tool: str) -> None:
        self._app = app
        self._tool = tool

    @property
    def actor(self) -> Actor:
        return cli()

    async def handle(
        self,
        request: Request,
        source: str | None,
        expected: type[PayloadT],
        *,
        reads_only: bool = False,
        quiet: bool = False,
        asks: bool = True,
    ) -> PayloadT:
        return await ask(self._app, self._tool, request, source, expected, reads_only=reads_only)


def with_app(app: App, work: Callable[[App], Awaitable[T]]) -> T:
    """Run `work` on an event loop and then close the application, also after an error."""

    # The command says itself what failed, on one line; the log is for servers.
    logging.getLogger("tidegate").addHandler(logging.NullHandler())

    async def whole() -> T:
        try:
            return await work(app)
        finally:
            await app.close()

    return asyncio.run(whole())
