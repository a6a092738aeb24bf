"""Answers requests that run nothing on a database: about sources, their connections, results that
are kept, and our own records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from tidegate.config.model import Config
from tidegate.engines.registry import entry_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import NO_SOURCE, CallContext, Handler
from tidegate.gateway.decision import bind_caller
from tidegate.gateway.execution import fetch_more
from tidegate.gateway.source_connections import SourceConnections
from tidegate.model.profiles import Profiles
from tidegate.model.replies import ConnectionState, SourceEntry
from tidegate.model.requests import (
    Call,
    Connect,
    Disconnect,
    FetchMore,
    ListSources,
    ReadProfiles,
    ReleaseResult,
    Request,
    ShowStatus,
    Switch,
)
from tidegate.model.sources import Source
from tidegate.product import load
from tidegate.store.api import QuestionStore


class HandlerParts(NamedTuple):
    """What handlers of a product's requests are made of. `directory` is that of the state; `kept`
    holds what a product keeps for this process, under its own name."""

    connections: SourceConnections
    config: Config
    directory: Path
    state: HandlerState
    kept: dict[str, Any]


class HandlerState(Protocol):
    """What a product's handlers may use of the state."""

    @property
    def questions(self) -> QuestionStore:
        """Answers, pairs of questions and statements, and counters of use."""
        ...


RequestHandler = Callable[[Call, tuple[Source, ...]], Awaitable[Any]]
"""Answers a request about our own records, within the sources that it is given."""


async def prepare_source(
    parts: HandlerParts, source: Source, report: Callable[[str], None] | None = None
) -> Source:
    """The source as its engine opens it, such as with the driver that it needs; `report` gets a
    line for each download. Raises: TidegateError."""
    entry = entry_of(source)
    if entry is None or not entry.preparer:
        return source
    prepared: Source = await load(entry.preparer)(parts, source, report)
    return prepared


async def list_sources(ctx: CallContext) -> tuple[SourceEntry, ...]:
    request = ctx.call.request
    wanted = request if isinstance(request, ListSources) else ListSources()
    call = ctx.call
    return ctx.services.connections.list_for(call.actor, call.session, wanted, call.surface)


async def open_connection(ctx: CallContext) -> ConnectionState:
    await ctx.services.connections.engine(ctx.connection)
    await ctx.services.connections.try_login(ctx.connection)
    return ctx.connection.state(ctx.call.actor, ctx.call.surface)


async def close_connection(ctx: CallContext) -> ConnectionState:
    await ctx.services.connections.disconnect(ctx.connection)
    return ctx.connection.state(ctx.call.actor, ctx.call.surface)


async def switch_database(ctx: CallContext) -> ConnectionState:
    request = ctx.call.request
    if isinstance(request, Switch):
        ctx.connection.switch(ctx.call.actor, ctx.call.surface, request)
        if ctx.services.choices is not None:
            await ctx.services.choices.keep_target(ctx)
    return ctx.connection.state(ctx.call.actor, ctx.call.surface)


async def show_status(ctx: CallContext) -> ConnectionState:
    return ctx.connection.state(ctx.call.actor, ctx.call.surface)


def from_records(answer: RequestHandler) -> Handler:
    """The handler that calls `answer` with the sources which the call is about."""

    def handle(ctx: CallContext) -> Awaitable[Any]:
        return answer(ctx.call, ctx.sources)

    return handle


async def release_result(ctx: CallContext) -> None:
    """Raises: TidegateError RESULT_GONE if a source, or what its caller may see of it, is another
    one by now; SOURCE_UNKNOWN, POLICY_SOURCE."""
    request, call = ctx.call.request, ctx.call
    if not isinstance(request, ReleaseResult):
        raise TypeError(type(request).__name__)
    for basis in request.basis:
        if basis.source is NO_SOURCE:
            continue
        try:
            now = ctx.services.connections.find(basis.source.name, call.actor, basis.session).source
        except TidegateError:
            if not basis.source.temporary:
                raise
            continue  # its caller opened it, with a login of its own, and it ended with the call
        under = CallContext.begin(ctx.services, call, ctx.call_id)
        under.source = now
        bind_caller(under)
        if (now, under.identity, under.data_rules) != basis[:3]:
            raise TidegateError(
                Code.RESULT_GONE,
                f"The source {now.name}, or what this caller may see of it, was changed after the"
                " result was read",
            )


async def read_profiles(ctx: CallContext) -> Profiles:
    from tidegate.gateway import profiles  # imported lazily: only calls for profiles need it

    return await profiles.read_profiles(ctx)


HANDLERS: dict[type[Request], Handler] = {
    ListSources: list_sources,
    Connect: open_connection,
    Disconnect: close_connection,
    Switch: switch_database,
    ShowStatus: show_status,
    FetchMore: fetch_more,
    ReadProfiles: read_profiles,
    ReleaseResult: release_result,
}
"""By the class of request. `Handlers` adds those that the application gives."""


class Handlers:
    """What answers requests that need no engine: those above, those that the application gives, and
    those of products, which are made of `parts` when the first request comes."""

    def __init__(
        self,
        given: Mapping[type[Request], RequestHandler] = MappingProxyType({}),
        parts: HandlerParts | None = None,
    ) -> None:
        self._parts = parts
        self._known = HANDLERS | {
            request: from_records(answer) for request, answer in given.items()
        }

    def find(self, request: type[Request]) -> Handler:
        """The handler of a class of requests. Raises: TidegateError UNSUPPORTED."""
        handler = self._known.get(request)
        if handler is None and request.handler and self._parts is not None:
            answer: RequestHandler = load(request.handler)(self._parts, request)
            handler = self._known[request] = from_records(answer)
        if handler is None:
            raise TidegateError(
                Code.UNSUPPORTED, f"This server has no handler for {request.__name__} requests"
            )
        return handler


def find_handler(ctx: CallContext) -> None:
    """Find what answers the request. Raises: TidegateError UNSUPPORTED."""
    ctx.handler = ctx.services.handler_of(type(ctx.call.request))


async def answer(ctx: CallContext) -> None:
    """Have the handler answer: `ctx.payload`. Raises: TidegateError."""
    if ctx.handler is None:
        raise TidegateError(Code.INTERNAL, "The handler of the request was not found before")
    ctx.payload = await ctx.handler(ctx)
