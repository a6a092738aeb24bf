"""The pipeline: one door through which every request passes, from whatever edge and tool.

Read `Gateway.handle` from top to bottom. A request is looked up, judged, decided on, put on record,
run, shaped, put on record again. A `Permit` is made here and nowhere else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import structs

from tidegate.approvals.approvals import Approvals
from tidegate.approvals.petition import Petition
from tidegate.audit.log import AuditLog
from tidegate.connections import Connection, Connections
from tidegate.engines.api import Cursor, Engine, Row
from tidegate.errors import Code, GateError
from tidegate.history import History
from tidegate.policy.decide import decide
from tidegate.policy.requests import JUDGEMENTS, METADATA
from tidegate.results.page import PageBuilder
from tidegate.results.transcript import Transcript
from tidegate.shelf import SHELVED_ROWS, Rest, Shelf, Shelved
from tidegate.sql.judge import judge
from tidegate.trail import Trail
from tidegate.types import (
    Browse,
    Call,
    Catalog,
    Connect,
    Disconnect,
    Effect,
    Explain,
    HistoryFound,
    Judgement,
    Limits,
    ListSources,
    More,
    Page,
    Payload,
    Permit,
    Query,
    Reply,
    Request,
    Source,
    Statement,
    Switch,
    Tabs,
    Truncation,
    Verdict,
)

Keeper = Callable[[Call, tuple[Source, ...]], Awaitable[Payload]]
"""Answers a request about state of our own, within the sources it is given."""

_METADATA_LIMITS = Limits()


class Gateway:
    """The gate. `keepers` answer, by kind of request, what no engine is needed for."""

    def __init__(
        self,
        connections: Connections,
        audit: AuditLog,
        history: History,
        *,
        approvals: Approvals | None = None,
        keepers: Mapping[type[Request], Keeper] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connections = connections
        self._audit = audit
        self._history = history
        self._approvals = approvals or Approvals()
        self._keepers = keepers or {}
        self._shelf = Shelf()
        self._clock = clock
        self._calls = 0
        self._run_id = f"{int(clock()):x}"

    async def handle(self, call: Call) -> Reply:
        """Answer one call. Raises: GateError, whatever is refused or fails."""
        self._calls += 1
        trail = Trail(
            self._audit, self._history, self._clock, call, f"{self._run_id}-{self._calls:x}"
        )
        try:
            payload = await self._answer(call, trail)
        except GateError as error:
            trail.fail(error)
            if call.actor.kind == "agent":
                raise error.discreet() from None
            raise
        except asyncio.CancelledError:
            trail.fail(GateError(Code.CALL_CANCELLED, "The call was cancelled"))
            raise
        except BaseException as fault:
            trail.fail(GateError(Code.INTERNAL, f"A fault: {type(fault).__name__}"))
            raise
        return Reply(payload, trail.call_id)

    async def consider(self, call: Call) -> tuple[Judgement, Verdict]:
        """What the gate would say to a call, with the database's opinion of a query that passes
        the others. Runs nothing and records nothing.

        Raises: GateError SOURCE_UNKNOWN, and what opening the source raises.
        """
        connection = self._connections.find(call.source, call.actor)
        judgement = self._judge(call, connection.source)
        verdict = _weigh(call, connection.source, judgement)
        if verdict.kind != "deny" and isinstance(call.request, Query):
            engine = await self._connections.engine(connection)
            judgement = await _inspect(engine, call.request, judgement)
            verdict = _weigh(call, connection.source, judgement)
        return judgement, verdict

    async def _answer(self, call: Call, trail: Trail) -> Payload:
        request = call.request
        if isinstance(request, ListSources):
            entries = self._connections.entries(call.actor)
            trail.judgement = METADATA
            await trail.succeed(rows=len(entries))
            return entries
        if call.source is None and type(request) in self._keepers:
            trail.judgement = JUDGEMENTS[type(request)]
            entries = self._connections.entries(call.actor)
            return await self._keep(call, tuple(entry.source for entry in entries), trail)
        connection = self._connections.find(call.source, call.actor)
        trail.source = source = connection.source
        judgement = self._judge(call, source)
        verdict = self._decide(call, source, judgement, trail)
        if not isinstance(request, (Query, Explain, Browse)):
            return await self._serve(call, connection, trail)
        if isinstance(request, Browse) and request.aspect == "status":
            await trail.succeed()
            return connection.state(call.actor)
        _report(call, 0.0, "Connecting")
        engine = connection.engine or await self._connections.engine(connection)
        if isinstance(request, Query):
            opinion = await _inspect(engine, request, judgement)
            if opinion is not judgement:
                judgement = opinion
                verdict = self._decide(call, source, judgement, trail)
        if connection.places:
            request = connection.place(call.actor).applied(request)
        if verdict.kind == "ask" and not isinstance(request, Browse):
            self._approve(call, request, source, trail)
        if call.cancellation.cancelled:
            raise GateError(Code.CALL_CANCELLED, "The call was cancelled")
        await trail.permit()
        permit = Permit(
            trail.call_id,
            call.actor,
            source,
            request,
            judgement.effect,
            _METADATA_LIMITS if isinstance(request, Browse) else request.limits,
        )
        connection.last_active_at = trail.started_at
        shares, actor_id = connection.shares, call.actor.id
        if not shares.enter_now(actor_id):
            await shares.enter(actor_id, permit.limits.timeout_s, call.cancellation)
        try:
            if isinstance(request, Browse):
                return await self._describe(call, request, permit, engine, connection, trail)
            return await self._run(call, request, permit, engine, trail)
        finally:
            shares.leave(actor_id)

    def _judge(self, call: Call, source: Source) -> Judgement:
        """What the request would do, as far as its text tells."""
        request = call.request
        if isinstance(request, Query):
            return judge(request.statement.text, source.dialect)
        if isinstance(request, Explain):
            # Judged as what will run: what follows could turn an EXPLAIN into an execution.
            return judge(f"EXPLAIN {request.statement.text}", source.dialect)
        return JUDGEMENTS[type(request)]

    def _decide(self, call: Call, source: Source, judgement: Judgement, trail: Trail) -> Verdict:
        """The verdict, if it is allow or ask.

        Raises: GateError with the code and the rule of any other.
        """
        verdict = _weigh(call, source, judgement)
        trail.judgement, trail.verdict = judgement, verdict
        if verdict.kind in ("deny", "confirm"):
            code = Code(verdict.code) if verdict.code else Code.POLICY_DENIED
            raise GateError(
                code,
                verdict.reason,
                hint=verdict.hint,
                details={"rule": verdict.rule, "effect": judgement.effect.label},
            )
        return verdict

    def _approve(self, call: Call, request: Query | Explain, source: Source, trail: Trail) -> None:
        """Return if a person approved exactly this, or nobody can be asked and need not be.

        Raises: GateError APPROVAL_NEEDED, APPROVAL_DECLINED.
        """
        judgement, verdict = trail.judgement, trail.verdict
        assert judgement is not None and verdict is not None  # noqa: S101 - decided before
        statement = request.statement
        if isinstance(request, Explain):
            statement = Statement(f"EXPLAIN {statement.text}", statement.params)
        petition = Petition(
            call.actor, source, statement, judgement, verdict, request.database, request.schema,
            call.surface, call.tool, call.client,
        )  # fmt: skip
        grant = self._approvals.redeem(petition)
        if grant is None and (call.can_ask or source.unattended != "allow"):
            raise self._approvals.ask(petition)

    async def _serve(self, call: Call, connection: Connection, trail: Trail) -> Payload:
        """Answer what is about a source and is no statement."""
        request = call.request
        if isinstance(request, More):
            return await self._more(call, request, connection.source, trail)
        if type(request) in self._keepers:
            return await self._keep(call, (connection.source,), trail)
        if isinstance(request, Connect):
            await self._connections.engine(connection)
        elif isinstance(request, Disconnect):
            await self._connections.disconnect(connection)
        elif isinstance(request, Switch):
            connection.switch(call.actor, request)
        else:
            raise GateError(Code.UNSUPPORTED, f"Nobody here answers {type(request).__name__}")
        await trail.succeed()
        return connection.state(call.actor)

    async def _keep(self, call: Call, sources: tuple[Source, ...], trail: Trail) -> Payload:
        """Let the keeper of our own state answer, within the sources that the caller may see."""
        payload = await self._keepers[type(call.request)](call, sources)
        await trail.succeed(rows=_size(payload))
        return payload

    async def _describe(
        self,
        call: Call,
        request: Browse,
        permit: Permit,
        engine: Engine,
        connection: Connection,
        trail: Trail,
    ) -> Payload:
        kept = connection.catalog if request.database is None else None
        if request.aspect != "catalog":
            description: Payload = await engine.describe(permit, call.cancellation)
        elif kept is not None and kept.stamp == await engine.stamp():
            description = kept
        else:
            description = await engine.describe(permit, call.cancellation)
            if request.database is None and isinstance(description, Catalog):
                connection.catalog = description
        schema = connection.place(call.actor).schema
        if schema is not None and isinstance(description, Catalog):
            description = structs.replace(description, default_schema=schema)
        await trail.succeed()
        return description

    async def _run(
        self, call: Call, request: Query | Explain, permit: Permit, engine: Engine, trail: Trail
    ) -> Page:
        _report(call, 0.2, "Executing")
        began = time.perf_counter()
        cursor = await engine.run(permit, call.cancellation)
        more = None
        try:
            if isinstance(request, Query) and request.writer is not None:
                sheet = Transcript(cursor.columns, permit.limits, request.writer)
            else:
                cells = request.cells if isinstance(request, Query) else "json"
                sheet = PageBuilder(cursor.columns, permit.limits, cells)
            await cursor.pour(sheet)
            _report(call, 0.8, "Formatting result")
            if isinstance(sheet, PageBuilder) and isinstance(request, Query) and request.shelve:
                more = await self._shelve(permit, request, cursor, sheet)
            if permit.effect > Effect.READ:
                await _drain(cursor)
        finally:
            await cursor.close()
        elapsed_ms = (time.perf_counter() - began) * 1000
        page = sheet.page(affected=cursor.affected, elapsed_ms=elapsed_ms)
        if more is not None:
            page = structs.replace(page, more=more)
        await trail.succeed(page)
        _report(call, 1.0, "Done")
        return page

    async def _shelve(
        self, permit: Permit, request: Query, cursor: Cursor, builder: PageBuilder
    ) -> str | None:
        """Read on, within bounds, and keep what was not shown; None if everything was."""
        if not builder.rest:
            return None
        rest = Rest(request, builder.rest)
        await cursor.pour(rest)
        if not rest.chunks:
            return None
        shelved = Shelved(permit.actor.id, permit.source.id, request, cursor.columns, rest)
        return self._shelf.put(shelved)

    async def _more(self, call: Call, request: More, source: Source, trail: Trail) -> Page:
        """Show more of a result that was read under a permit of its own."""
        shelved = self._shelf.take(request.handle, call.actor.id, source.id)
        builder = PageBuilder(
            shelved.columns, shelved.limits(request.max_rows), shelved.query.cells
        )
        while wanted := builder.wanted:
            builder.add(shelved.take(wanted))
        shelved.put_back(builder.rest)
        more = None if shelved.is_empty else self._shelf.put(shelved)
        page = builder.page(more=more)
        if more is None and not shelved.complete:
            cut = Truncation("rows", SHELVED_ROWS, page.row_count)
            page = structs.replace(page, truncations=(*page.truncations, cut))
        await trail.succeed(page)
        return page


def _weigh(call: Call, source: Source, judgement: Judgement) -> Verdict:
    return decide(
        call.actor,
        source,
        call.scope,
        judgement,
        confirmed=call.confirmed,
        reads_only=call.reads_only,
    )


async def _inspect(engine: Engine, request: Query, judgement: Judgement) -> Judgement:
    """The judgement, or the database's own if that is the graver."""
    opinion = await engine.inspect(request.statement)
    return judgement if opinion is None or opinion.effect <= judgement.effect else opinion


def _size(payload: Payload) -> int | None:
    if isinstance(payload, HistoryFound):
        return len(payload.entries)
    return len(payload.tabs) if isinstance(payload, Tabs) else None


async def _drain(cursor: Cursor) -> None:
    """Read what a change returns to its end: only then is it committed."""
    await cursor.pour(_Nowhere())


class _Nowhere:
    """Takes rows that nobody asked for (`engines.api.Sink`)."""

    wanted = 128

    def add(self, rows: Sequence[Row]) -> None:
        if not rows:
            self.wanted = 0


def _report(call: Call, share: float, stage: str) -> None:
    if call.progress is not None:
        call.progress(share, stage)
