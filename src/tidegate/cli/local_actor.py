"""Calls of the local operator, which pass through the gateway like those of any agent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from tidegate.cli.terminal import print_status
from tidegate.engines.common.errors import ACCOUNT, LOGIN
from tidegate.engines.common.url import UNREADABLE
from tidegate.engines.registry import locate
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Call, Progress, Request
from tidegate.system.processes import forget_notices, on_notice

if TYPE_CHECKING:
    from tidegate.app import App

_LATE = (
    "note: the audit log cannot be written now; the event goes on record when it can be, with the"
    " time of now"
)

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
    progress: Progress | None = None,
) -> PayloadT:
    """Send a request through the gateway; Ctrl-C cancels it in the database.

    Raises: TidegateError, KeyboardInterrupt.
    """
    cancellation = Cancellation()
    on_notice({"interrupt": cancellation.cancel})
    call = Call(
        *(cli(), "cli", tool, request, source),
        cancellation=cancellation,
        reads_only=reads_only,
        progress=progress,
    )
    try:
        payload = (await app.gateway.handle(call)).payload
    except TidegateError as error:
        if cancellation.cancelled and error.code is Code.CALL_CANCELLED:
            raise KeyboardInterrupt from None
        shown = located(app, error, source)
        if shown is error:
            raise
        raise shown from None
    finally:
        forget_notices("interrupt")
    if not isinstance(payload, expected):
        raise TidegateError(Code.INTERNAL, f"Unexpected reply: {type(payload).__name__}.")
    return payload


def located(app: App, error: TidegateError, source: str | None) -> TidegateError:
    """The failure of a connection with host and port, and with the user whose login was refused:
    only the operator may see them."""
    if error.code not in (Code.SOURCE_UNREACHABLE, Code.SOURCE_BUSY):
        return error
    found = next((each for each in app.connections.sources() if each.name == source), None)
    where = UNREADABLE if found is None else locate(found.url)
    if not where.port:
        return error  # a file, or nothing is known
    user = where.user or dict(found.options if found else ()).get("user", "")
    who = f", user {user}" if user and error.details.get("cause") in (ACCOUNT, LOGIN) else ""
    is_near = not where.host or where.host.startswith("/")
    place = "this machine" if is_near else f"{where.host}:{where.port}"
    shown = TidegateError(
        error.code,
        f"{place}{who}: {error.message}",
        hint=error.hint,
        retry_after_s=error.retry_after_s,
        details=error.details,
    )
    shown.call_id = error.call_id
    return shown


class LocalCaller:
    """The local operator as a `model.gate_client.Caller`."""

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
            if app.server_audit.late:
                print_status(_LATE)

    return asyncio.run(whole())
