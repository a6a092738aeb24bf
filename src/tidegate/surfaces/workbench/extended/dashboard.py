"""`get_server_dashboard`: what a server is busy with, from its own views, through the gate.

The statements are the gate's to judge like any other. A source that is a file has no server.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidegate.calls import Browse, Query
from tidegate.errors import Code, GateError
from tidegate.pages import Limits, Page
from tidegate.protocol.model import ToolResult
from tidegate.replies import ConnectionState
from tidegate.statements import Statement
from tidegate.surfaces.tool import SurfaceTool
from tidegate.surfaces.turn import Turn
from tidegate.surfaces.workbench.calls import OnConnection, answer, dialect_of, hints
from tidegate.surfaces.workbench.execution import Executed, executed

Panel = Literal["sessions", "metrics", "slow_queries", "errors"]
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

_POSTGRES: dict[Panel, str] = {
    "sessions": (
        "SELECT pid, usename, datname, application_name, state, wait_event_type,"
        " query_start FROM pg_stat_activity WHERE backend_type = 'client backend'"
        " ORDER BY query_start DESC NULLS LAST"
    ),
    "metrics": (
        "SELECT datname, numbackends, xact_commit, xact_rollback, blks_read, blks_hit,"
        " tup_returned, tup_fetched, tup_inserted, tup_updated, tup_deleted, deadlocks,"
        " temp_bytes FROM pg_stat_database WHERE datname IS NOT NULL ORDER BY datname"
    ),
    "slow_queries": (
        "SELECT pid, usename, datname, state, now() - query_start AS running_for"
        " FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend'"
        " ORDER BY query_start"
    ),
    "errors": (
        "SELECT datname, conflicts, deadlocks, checksum_failures FROM pg_stat_database"
        " WHERE datname IS NOT NULL ORDER BY datname"
    ),
}
# No list of sessions: MySQL's holds the text of everybody's statements, and the gate refuses it.
_MYSQL: dict[Panel, str] = {
    "sessions": "SHOW GLOBAL STATUS LIKE 'Threads%'",
    "metrics": "SHOW GLOBAL STATUS",
    "slow_queries": "SHOW GLOBAL STATUS LIKE 'Slow%'",
    "errors": "SHOW GLOBAL STATUS LIKE 'Aborted%'",
}
_PANELS = {"postgres": _POSTGRES, "mysql": _MYSQL, "mariadb": _MYSQL}


class Wanted(OnConnection, frozen=True, kw_only=True):
    panels: Annotated[list[Panel], Meta(description="Panels to show; all if left out")] | None = (
        None
    )


class Failure(msgspec.Struct, frozen=True):
    panel: str
    reason: str


class Dashboard(msgspec.Struct, frozen=True):
    """The panels that were asked for; `unavailable` says which could not be had, and why."""

    sessions: Executed | UnsetType = UNSET
    metrics: Executed | UnsetType = UNSET
    slow_queries: Executed | UnsetType = UNSET
    errors: Executed | UnsetType = UNSET
    unavailable: tuple[Failure, ...] = ()


async def _dashboard(turn: Turn, args: Wanted) -> ToolResult:
    # The gate has its say on the source itself, also where there is no statement to run.
    await turn.handle(Browse("status"), args.source, ConnectionState)
    known = _PANELS.get(await dialect_of(turn, args.source), {})
    shown: dict[str, Executed] = {}
    missing: list[Failure] = []
    panels: list[Panel] = ["sessions", "metrics", "slow_queries", "errors"]
    for panel in args.panels if args.panels is not None else panels:
        text = known.get(panel)
        if text is None:
            missing.append(Failure(panel, "This database has no such view"))
            continue
        request = Query(Statement(text), _LIMITS, "text")
        try:
            page = await turn.handle(request, args.source, Page, reads_only=True, quiet=True)
            shown[panel] = executed(page)
        except GateError as error:
            if error.code not in _OF_ONE_VIEW:
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
