"""Answers requests that run nothing on a database: about sources, their connections, results that
are kept, and our own records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from tidegate.config.model import Config
from tidegate.gateway.context import CallContext
from tidegate.gateway.execution import fetch_more
from tidegate.gateway.source_connections import SourceConnections
from tidegate.model.replies import ConnectionState, SourceEntry
from tidegate.model.requests import (
    Call,
    Connect,
    Disconnect,
    FetchMore,
    ListSources,
    Request,
    ShowStatus,
    Switch,
)
from tidegate.model.sources import Source


class HandlerParts(NamedTuple):
    """What the handler of a product's request is made of."""

    connections: SourceConnections
    config: Config


RequestHandler = Callable[[Call, tuple[Source, ...]], Awaitable[Any]]
"""Answers a request about our own records, within the sources that it is given."""
Handler = Callable[[CallContext], Awaitable[Any]]


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
    return ctx.connection.state(ctx.call.actor, ctx.call.surface)


async def show_status(ctx: CallContext) -> ConnectionState:
    return ctx.connection.state(ctx.call.actor, ctx.call.surface)


def from_records(answer: RequestHandler) -> Handler:
    """The handler that calls `answer` with the sources which the call is about."""

    def handle(ctx: CallContext) -> Awaitable[Any]:
        return answer(ctx.call, ctx.sources)

    return handle


HANDLERS: dict[type[Request], Handler] = {
    ListSources: list_sources,
    Connect: open_connection,
    Disconnect: close_connection,
    Switch: switch_database,
    ShowStatus: show_status,
    FetchMore: fetch_more,
}
"""By the class of request. `Gateway` adds those that the application gives it."""
