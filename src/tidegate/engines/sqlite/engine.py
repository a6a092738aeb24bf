"""Decides where a statement runs: at once on the event loop, or on a worker's thread.

A hop to a thread costs ten times what a point query costs. So a statement whose program is tame is
first tried here, within a budget of about a millisecond; what does not end well in it runs on a
worker and is remembered. `docs/explanation/decisions/0003-sqlite-fast-lane.md` has the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

import apsw

from tidegate.calls import Explain
from tidegate.cancellation import NEVER, Cancellation
from tidegate.engines.api import Capabilities, Cursor
from tidegate.engines.faults import closed
from tidegate.engines.identities import refuse_identity
from tidegate.engines.rehearsal import UNREAD, unfit
from tidegate.engines.requests import check_wanted, describable, rehearsable, runnable
from tidegate.engines.sqlite import catalog
from tidegate.engines.sqlite.brake import Brake
from tidegate.engines.sqlite.cursor import ReadyCursor, StreamCursor
from tidegate.engines.sqlite.errand import Errand
from tidegate.engines.sqlite.execution import Execution
from tidegate.engines.sqlite.lane import Lane
from tidegate.engines.sqlite.plan import Plan, Plans
from tidegate.engines.sqlite.rehearsal import rehearse
from tidegate.engines.sqlite.session import Session
from tidegate.engines.sqlite.source import check_writable, identity_of, read_url
from tidegate.engines.sqlite.spill import SpillWatch
from tidegate.engines.sqlite.study import study
from tidegate.engines.sqlite.worker import Pool
from tidegate.engines.url import FileUrl
from tidegate.errors import Code, GateError
from tidegate.metadata import Databases, Description, Status
from tidegate.permits import Permit
from tidegate.sources import Source
from tidegate.sql.outline import outline
from tidegate.statements import Effect, Judgement, Rehearsal, Statement

READERS = 8
CACHED_TEXT = 32_768
QUICK_S = 0.0003
SLOW_S = 0.002
WAIT_S = 10.0

Answer = TypeVar("Answer")


class SqliteEngine:
    """One SQLite file, or one database in memory."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        explains_as_json=False, inspects=True, schemas=False, rehearses=True
    )

    def __init__(self, file: FileUrl, lane: Session, readers: Pool, writer: Pool) -> None:
        self._file = file
        self._identity = identity_of(file)
        self._readers = readers
        self._writer = writer
        self._plans = Plans()
        self._lane = Lane(file, lane, self._plans)
        self._running: set[Errand] = set()
        self._spills = SpillWatch(self._running)
        self._closed = False
        self._status = Status(
            database=file.name,
            schema="main",
            server_version=f"SQLite {apsw.sqlite_lib_version()}",
        )

    @classmethod
    async def open(cls, source: Source) -> SqliteEngine:
        file = read_url(source.url)
        name = f"sqlite-{source.name}"
        readers = Pool(lambda: Session(file), READERS, name)
        writer = Pool(lambda: Session(file, writes=True), 1, f"{name}-writer")
        worker = await readers.take(WAIT_S)
        try:
            lane = await worker.submit(lambda _: Session(file, lane=True))
        except BaseException:
            await readers.close()
            raise
        readers.give(worker)
        return cls(file, lane, readers, writer)

    @property
    def status(self) -> Status:
        return self._status

    async def inspect(self, statement: Statement) -> Judgement | None:
        """SQLite's opinion, from its authorizer; None if it cannot prepare the text."""
        plan = self._plans.get(statement.text)
        if plan is not None:
            return plan.judgement  # `run` sees whether the file is still the one it was made for
        self._check_open()
        try:
            return (await self._plan(statement.text)).judgement
        except GateError as error:
            if error.code is Code.SQL_MULTIPLE:
                return Judgement(
                    effect=Effect.UNKNOWN,
                    rule="sqlite.one_statement",
                    reason=error.message,
                    code=error.code.value,
                )
            return None

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        refuse_identity(permit)
        request = runnable(permit)
        self._check_open()
        check_wanted(cancellation)
        statement = request.statement
        plan = self._plans.get(statement.text) or await self._plan(statement.text)
        explain = isinstance(request, Explain)
        _check_permit(permit, plan, explain)
        statement = _check_parameters(plan, statement, explain)
        if plan.inline and not explain and self._lane.ready:
            done = self._lane.attempt(plan, statement)
            if done is not None:
                columns, rows, seconds = done
                if seconds > SLOW_S:
                    plan.inline = False
                return ReadyCursor(columns, rows)
            plan.inline = False
            await self._lane.renew(self._readers)
        return await self._run_in_worker(permit, plan, statement, cancellation, explain)

    async def _run_in_worker(
        self,
        permit: Permit,
        plan: Plan,
        statement: Statement,
        cancellation: Cancellation,
        explain: bool,
    ) -> StreamCursor:
        writes = not explain and not plan.reads
        if writes:
            check_writable(self._file)
        pool = self._writer if writes else self._readers
        brake = Brake(permit.limits.timeout_s)
        worker = await pool.take(permit.limits.timeout_s)
        cursor = StreamCursor(pool, worker, brake, cancellation, self._running)
        if not writes:
            self._spills.wake()
        await cursor.begin(
            lambda session: Execution(
                session, plan, statement, brake, writes=writes, explain=explain
            ),
            permit.limits.max_rows + 1,
        )
        if writes:
            self._plans.clear()
        elif cursor.seconds is not None and cursor.seconds < QUICK_S and not explain:
            plan.inline = plan.tame or plan.steady
        return cursor

    async def rehearse(self, permit: Permit, cancellation: Cancellation) -> Rehearsal:
        refuse_identity(permit)
        request = rehearsable(permit)
        self._check_open()
        check_writable(self._file)
        text = request.statement.text
        found = outline(text, "sqlite")
        if isinstance(found, str):
            return Rehearsal(reason=found)
        refused = unfit(found, request.statement.params)
        if refused is not None:
            return refused
        plan = self._plans.get(text) or await self._plan(text)
        _check_permit(permit, plan, False)
        if found.query.text and not (await self._plan(found.query.text)).reads:
            return UNREAD
        brake = Brake(permit.limits.timeout_s)
        worker = await self._writer.take(permit.limits.timeout_s)
        errand = Errand(self._writer, worker, brake, cancellation, self._running)
        answer = await errand.do(
            lambda session: rehearse(
                session, brake, request.statement, found, permit.limits.max_rows
            )
        )
        errand.done()
        return answer

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        refuse_identity(permit)
        request = describable(permit)
        self._check_open()
        if request.aspect == "status":
            return self._status
        if request.aspect == "databases":
            return Databases((self._status.database,))
        brake = Brake(permit.limits.timeout_s)

        def work(session: Session) -> Description:
            return catalog.describe(session, brake, request, self._status, self._identity)

        return await self._ask(brake, cancellation, work)

    async def stamp(self) -> str:
        self._check_open()
        stamp = self._lane.stamp(self._identity)
        if stamp is not None:
            return stamp
        brake = Brake(WAIT_S)
        identity = self._identity

        def work(session: Session) -> str:
            with session.stepping(brake):
                return catalog.stamp(session, identity)

        return await self._ask(brake, NEVER, work)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._spills.close()
        for errand in list(self._running):
            errand.stop("closed")
        await self._readers.close()
        await self._writer.close()
        self._lane.close()

    async def _ask(
        self, brake: Brake, cancellation: Cancellation, work: Callable[[Session], Answer]
    ) -> Answer:
        """Have a worker answer one question."""
        worker = await self._readers.take(brake.timeout_s)
        errand = Errand(self._readers, worker, brake, cancellation, self._running)
        answer = await errand.do(work)
        errand.done()
        return answer

    async def _plan(self, text: str) -> Plan:
        """What the text is: from the cache, or by having SQLite prepare it."""
        plan = self._plans.get(text)
        if plan is not None:
            return plan
        plan = self._lane.study(text)
        if plan is None:
            await self._lane.renew(self._readers)
            brake = Brake(WAIT_S)

            def work(session: Session) -> Plan:
                with session.stepping(brake):
                    return study(session, text)

            plan = await self._ask(brake, NEVER, work)
        if len(text) <= CACHED_TEXT:
            self._plans.put(text, plan)
        return plan

    def _check_open(self) -> None:
        """See that the file is still the one that was opened; open a new one in its place."""
        if self._closed:
            raise closed()
        identity = identity_of(self._file)
        if identity == self._identity and self._lane.present:
            return
        self._plans.clear()
        self._readers.renew()
        self._writer.renew()
        self._lane.reopen()
        self._identity = identity


def _check_permit(permit: Permit, plan: Plan, explain: bool) -> None:
    """Fail closed if SQLite sees more than the permit allows. Raises: GateError POLICY_*."""
    judgement = plan.judgement
    if judgement.code is None and (explain or judgement.effect <= permit.effect):
        return
    if judgement.code == Code.SQL_FUNCTION.value:
        code = Code.SQL_FUNCTION
    else:
        code = Code.POLICY_READ_ONLY if permit.effect is Effect.READ else Code.POLICY_DENIED
    raise GateError(code, judgement.reason, details={"effect": judgement.effect.label})


def _check_parameters(plan: Plan, statement: Statement, explain: bool) -> Statement:
    given = 0 if statement.params is None else len(statement.params)
    if given == plan.parameters:
        return statement
    if explain and given == 0:
        return Statement(statement.text, (None,) * plan.parameters)
    raise GateError(
        Code.ARGUMENT_INVALID,
        f"The statement has {plan.parameters} placeholders, and {given} parameters were given.",
    )
