"""Reads the tables of other sources that a statement names, for an engine that joins them.

Each read is a call of its own through the gate, with the rights of the statement's caller: the
policy, masks, row filters and lists of tables of the other source hold for it, and it is recorded.
All of them are prepared, and so decided on, before anything is read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import structs

from tidegate.engines.api import can_join
from tidegate.engines.common.errors import stopped
from tidegate.engines.registry import language_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import CallContext
from tidegate.model.joined_tables import JoinedTable, OtherTable, OtherTables
from tidegate.model.replies import Prepared, Reply
from tidegate.model.requests import (
    Call,
    EngineRequest,
    Explain,
    JoinedRead,
    ListSources,
    Prepare,
    Query,
)
from tidegate.model.results import Column, Limits, Page
from tidegate.model.statements import Effect, Statement
from tidegate.policy.data_rules import verdict_of
from tidegate.results.json_values import text
from tidegate.results.row_stream import WriterSink

_SCALARS = frozenset({type(None), bool, int, float, str, bytes})


class Joins(NamedTuple):
    """What a statement reads of other sources, in the order of `ctx.joined`. `masked` are masked
    columns of them, as (table, column), that it names."""

    needs: OtherTables
    reads: tuple[Statement, ...]
    masked: tuple[tuple[str, str], ...]
    budgets: list[str]
    """What the replies to reading them said of budgets that are nearly used up."""

    def applied_to(self, request: EngineRequest) -> EngineRequest:
        """The request that runs. It names the masked columns of the other sources as well, and
        keeps no rest of its result: the rules of these sources may be others when it is shown."""
        if not isinstance(request, (Query, Prepare)):
            return request
        masked = (*request.masked, *self.masked)
        if isinstance(request, Query):
            return structs.replace(request, masked=masked, keep_rest=False)
        return structs.replace(request, masked=masked)


async def find_joined(ctx: CallContext) -> None:
    """Find the tables of other sources that the statement names, and whether its caller may read
    each. `ctx.joined` then has their columns.

    Raises: TidegateError TABLE_UNKNOWN; UNSUPPORTED for a source without tables; what the gate says
    to reading the table.
    """
    needs = await other_tables(ctx)
    if needs is None:
        return
    joined: list[JoinedTable] = []
    reads: list[Statement] = []
    masked: list[tuple[str, str]] = []
    for table in needs.tables:
        found, read, hidden = await _prepared(ctx, table)
        joined.append(found)
        reads.append(read)
        masked += hidden
    ctx.joined = tuple(joined)
    ctx.joins = Joins(needs, tuple(reads), tuple(masked), [])


def rewrite_joined(ctx: CallContext) -> None:
    """Have the request that runs know what it reads of other sources."""
    if ctx.joins is not None:
        ctx.rewritten = ctx.joins.applied_to(ctx.rewritten)


async def other_tables(ctx: CallContext) -> OtherTables | None:
    """The tables of other sources that the statement names. Raises: TidegateError TABLE_UNKNOWN."""
    request, engine = ctx.request, ctx.engine
    if not can_join(engine) or ctx.judgement.effect is not Effect.READ:
        return None
    if not isinstance(request, (Query, Explain, Prepare)):
        return None
    call, connections = ctx.call, ctx.services.connections

    def is_source(name: str) -> bool:
        found = connections.list_for(call.actor, call.session, ListSources(keys=(name,)))
        return any(entry.source.name == name for entry in found)

    return await engine.other_tables(request.statement, is_source)


def call_for(ctx: CallContext, source: str, request: EngineRequest) -> Call:
    """A call that reads from another source for the same caller. A person who approves it answers
    in the inbox: the client's question is about another source."""
    return structs.replace(
        ctx.call,
        source=source,
        request=request,
        progress=None,
        reads_only=True,
        can_ask=False,
        by_person=False,
        plan="",
    )


def whole_read(ctx: CallContext, table: OtherTable) -> Statement:
    """What reads all of a table. Raises: TidegateError UNSUPPORTED."""
    return _read(ctx, table, (), with_conditions=False)


def _read(
    ctx: CallContext, table: OtherTable, columns: Sequence[Column], *, with_conditions: bool
) -> Statement:
    call = ctx.call
    source = ctx.services.connections.find(table.source, call.actor, call.session).source
    conditions = table.conditions if with_conditions else ()
    read = language_of(source).read_table(table.names, columns, conditions, source)
    if read is None:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"{table.shown} is of the source {table.source!r}, which has no tables in SQL that a"
            " statement of another source could join.",
            hint="Ask that source by a statement of its own.",
        )
    return read


async def _prepared(
    ctx: CallContext, table: OtherTable
) -> tuple[JoinedTable, Statement, list[tuple[str, str]]]:
    """The table with the columns that the statement needs, what reads them, and which of them are
    masked."""
    prepare = Prepare(whole_read(ctx, table), limits=ctx.request.limits)
    payload = (await _answer(ctx, table, prepare)).payload
    if not isinstance(payload, Prepared):
        raise TypeError(type(payload).__name__)
    columns = payload.columns or ()
    masked = {name.lower() for _, name in payload.masked}
    sure = tuple([each for each in table.conditions if each.column not in masked])
    if table.columns is not None:
        wanted = [each for each in columns if each.name.lower() in table.columns]
        columns = tuple(wanted) or columns[:1]
    table = structs.replace(table, conditions=sure)
    read = _read(ctx, table, columns, with_conditions=True)
    named = {each.name.lower() for each in columns}
    touched = [each for each in payload.masked if each[1].lower() in named]
    return JoinedTable(table.source, table.names, columns, read.text), read, touched


async def read_joined(ctx: CallContext) -> None:
    """Read the tables, once each. `ctx.joined` then has their rows. Nothing is read for a statement
    that is not run.

    Raises: TidegateError LIMIT_ROWS, LIMIT_BYTES if they are too large; what reading them raises.
    """
    joins = ctx.joins
    if joins is None or not isinstance(ctx.request, Query) or not joins.needs.is_run:
        return
    limits, began = ctx.request.limits, time.monotonic()
    rows_left, sink_budget = joins.needs.most_rows, _Budget(joins.needs.most_bytes)
    joined: list[JoinedTable] = []
    for table, read, known in zip(joins.needs.tables, joins.reads, ctx.joined, strict=True):
        left_s = limits.timeout_s - (time.monotonic() - began)
        if left_s <= 0:
            raise stopped("time", limits.timeout_s)
        rows = _Rows(table, sink_budget)
        request = JoinedRead(
            read,
            sink=WriterSink(rows),
            limits=Limits(rows_left, joins.needs.most_bytes, left_s),
            is_whole=True,
        )
        page = (await _answer(ctx, table, request)).payload
        if not isinstance(page, Page):
            raise TypeError(type(page).__name__)
        if page.truncations:
            raise _too_large(
                table, f"{joins.needs.most_rows:,} rows", "join_rows", joins.needs.most_rows
            )
        if page.budget:
            joins.budgets.append(page.budget)
        rows_left -= len(rows.rows)
        joined.append(structs.replace(known, columns=rows.columns, rows=rows.rows))
    ctx.joined = tuple(joined)


def tell_budgets(ctx: CallContext) -> None:
    """Have the answer say what reading the tables has left of their budgets."""
    payload = ctx.payload
    if ctx.joins is not None and ctx.joins.budgets and isinstance(payload, Page):
        said = dict.fromkeys(filter(None, (payload.budget, *ctx.joins.budgets)))
        ctx.payload = structs.replace(payload, budget="; ".join(said))


async def _answer(ctx: CallContext, table: OtherTable, request: EngineRequest) -> Reply:
    """The reply to a call of its own. An error says which table it is about."""
    try:
        return await ctx.services.handle(call_for(ctx, table.source, request))
    except TidegateError as error:
        error.details.pop("position", None)  # in a text that the caller did not write
        error.details["table"] = table.shown
        if "rule" in error.details:
            ctx.verdict = verdict_of(error)
        raise


class _Budget:
    """The bytes that all tables of a statement may still have."""

    def __init__(self, most: int) -> None:
        self.most = self.left = most


class _Rows:
    """Keeps the rows of one table (`model.results.RowWriter`). Called in one thread at a time."""

    def __init__(self, table: OtherTable, budget: _Budget) -> None:
        self._table = table
        self._budget = budget
        self.columns: tuple[Column, ...] = ()
        self.rows: list[tuple[Any, ...]] = []

    def begin(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Raises: TidegateError LIMIT_BYTES."""
        budget = self._budget
        for row in rows:
            kept = tuple([value if type(value) in _SCALARS else text(value) for value in row])
            budget.left -= 64 + sum([_size(value) for value in kept])
            if budget.left < 0:
                raise _too_large(
                    self._table, f"about {budget.most:,} bytes", "join_bytes", budget.most
                )
            self.rows.append(kept)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes)) else 8


def _too_large(table: OtherTable, limit: str, option: str, most: int) -> TidegateError:
    return TidegateError(
        Code.LIMIT_BYTES,
        f"What the statement reads of other sources for its joins has more than {limit}, which"
        f" `{option}` allows; {table.shown} was being read.",
        hint="Narrow that table by conditions on its own columns, such as id = 7, name fewer of"
        f" its columns, or have the operator raise the option `{option}` of the source.",
        details={"table": table.shown, option: most},
    )
