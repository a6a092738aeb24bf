"""The person at the command line as an actor: their calls pass the gate like any agent's."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from tidegate.calls import Call, Request
from tidegate.cancellation import Cancellation
from tidegate.edges.cli.application import Application
from tidegate.errors import Code, GateError
from tidegate.identity.actors import cli
from tidegate.replies import Payload

PayloadT = TypeVar("PayloadT", bound=Payload)
T = TypeVar("T")


async def ask(
    app: Application, tool: str, request: Request, source: str, expected: type[PayloadT]
) -> PayloadT:
    """Send a request through the gate; Ctrl-C ends it in the database.

    Raises: GateError, KeyboardInterrupt.
    """
    cancellation = Cancellation()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # a loop without signals: Ctrl-C then ends the process
        loop.add_signal_handler(signal.SIGINT, cancellation.cancel)
    call = Call(cli(), "cli", tool, request, source, cancellation=cancellation)
    try:
        payload = (await app.gateway.handle(call)).payload
    except GateError as error:
        if cancellation.cancelled and error.code is Code.CALL_CANCELLED:
            raise KeyboardInterrupt from None
        raise
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
    if not isinstance(payload, expected):
        raise GateError(Code.INTERNAL, f"The gate answered {type(payload).__name__}.")
    return payload


def with_app(app: Application, work: Callable[[Application], Awaitable[T]]) -> T:
    """Run `work` on an event loop and close the application, whatever happened."""

    async def whole() -> T:
        try:
            return await work(app)
        finally:
            await app.close()

    return asyncio.run(whole())
