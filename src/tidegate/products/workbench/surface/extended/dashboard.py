"""`get_server_dashboard`: what a server is busy with, from its own views, through the gate.

The statements of the first four panels are the gate's to judge like any other. The others are
`ReadServer` requests, whose statements are the gate's own, and come when they are asked for.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidegate.errors import Code, TidegateError
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Query, ShowStatus
from tidegate.model.results import Limits, Page
from tidegate.model.server_requests import ReadServer
from tidegate.model.statements import Statement
from tidegate.products.workbench.surface.calls import OnConnection, answer, dialect_of, hints
from tidegate.products.workbench.surface.execution import Executed, executed
from tidegate.protocol.model import ToolResult
from tidegate.sql.dialects import find
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.tool_context import ToolContext

Panel = Literal[
    "sessions", "metrics", "slow_queries", "errors", "blocking", "sizes", "memory", "rights"
]
_LIMITS = Limits(max_rows=1_000, timeout_s=10.0)
_OF_ONE_VIEW = frozenset(
    {
        Code.LIMIT_TIME,
        Code.POLICY_DENIED,
        Code.POLICY_MASKED,
        Code.SQL_FAILED,
        Code.SQL_FUNCTION,
        Code.SQL_UNKNOWN,
        Code.UNSUPPORTED,
    }
)
"""What may be wrong with one panel and not with the others."""


class Wanted(OnConnection, frozen=True, kw_only=True):
    panels: (
        Annotated[list[Panel], Meta(description="Panels; the first four if left out")] | None
    ) = None


class Failure(msgspec.Struct, frozen=True):
    panel: str
    reason: str


class Dashboard(msgspec.Struct, frozen=True):
    """The panels that were asked for; `unavailable` says which could not be had, and why."""

    sessions: Executed | UnsetType = UNSET
    metrics: Executed | UnsetType = UNSET
    slow_queries: Executed | UnsetType = UNSET
    errors: Executed | UnsetType = UNSET
    blocking: Executed | UnsetType = UNSET
    sizes: Executed | UnsetType = UNSET
    memory: Executed | UnsetType = UNSET
    rights: Executed | UnsetType = UNSET
    unavailable: tuple[Failure, ...] = ()


async def _dashboard(context: ToolContext, args: Wanted) -> ToolResult:
    # The gate has its say on the source itself, also where there is no statement to run.
    await context.handle(ShowStatus(), args.source, ConnectionState)
    known = find(await dialect_of(context, args.source)).server_views
    shown: dict[str, Executed] = {}
    missing: list[Failure] = []
    panels: list[Panel] = ["sessions", "metrics", "slow_queries", "errors"]
    for panel in args.panels if args.panels is not None else panels:
        request: Query | ReadServer
        if panel in ("blocking", "sizes", "memory", "rights"):
            request = ReadServer(panel=panel)
        elif panel in known:
            request = Query(Statement(known[panel]), limits=_LIMITS, cells="text")
        else:
            missing.append(Failure(panel, "This database has no such view"))
            continue
        try:
            page = await context.handle(request, args.source, Page, reads_only=True, quiet=True)
            shown[panel] = executed(page)
        except TidegateError as error:
            is_part = isinstance(request, ReadServer) and error.code is Code.POLICY_TABLE
            if error.code not in _OF_ONE_VIEW and not is_part:
                raise
            # One view that the account may not read must not hide the others.
            missing.append(Failure(panel, error.message))
    return answer(Dashboard(**shown, unavailable=tuple(missing)))


TOOLS = (
    SurfaceTool(
        name="get_server_dashboard",
        title="Server Dashboard",
        description="Show sessions, figures, long statements and failures of a database server.",
        args=Wanted,
        run=_dashboard,
        output=Dashboard,
        annotations=hints(reads=True, open_world=True),
    ),
)
