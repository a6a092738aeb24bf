"""Decides where a statement runs: at once on the event loop, or on a worker's thread.

A hop to a thread costs ten times what a point query costs. So a statement whose program is tame is
first tried here, within a budget of about a millisecond; what does not end well in it runs on a
worker and is remembered. `docs/explanation/decisions/0003-sqlite-fast-lane.md` has the figures.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from typing import ClassVar, TypeVar

import apsw

from tidegate.engines.api import Capabilities, Cursor
from tidegate.engines.faults import closed, stopped
from tidegate.engines.sqlite import catalog
from tidegate.engines.sqlite.brake import Brake
from tidegate.engines.sqlite.cursor import ReadyCursor, StreamCursor
from tidegate.engines.sqlite.errand import Errand
from tidegate.engines.sqlite.execution import Execution
from tidegate.engines.sqlite.plan import Plan, Plans
from tidegate.engines.sqlite.session import Session
from tidegate.engines.sqlite.spill import SpillWatch
from tidegate.engines.sqlite.study import study
from tidegate.engines.sqlite.worker import Pool
from tidegate.engines.url import FileUrl, parse_file_url
from tidegate.errors import Code, GateError
from tidegate.sql.template import template
from tidegate.types import (
    NEVER,
    Browse,
    Cancellation,
    Databases,
    Description,
    Effect,
    Explain,
    Judgement,
    Permit,
    Query,
    Rehearsal,
    Source,
    Statement,
    Status,
)

OPTIONS = ("immutable", "mode", "timeout")
"""`timeout`: seconds to wait for a lock; `mode=ro`: never open for changes; `immutable=1`: the file
cannot change (a read-only disk)."""

READERS = 8
LANE_TEXT = 2_048
LANE_TERMS = 10_000
CACHED_TEXT = 32_768
QUICK_S = 0.0003
SLOW_S = 0.002
WAIT_S = 10.0

_names = count(1)

Answer = TypeVar("Answer")


class SqliteEngine:
    """One SQLite file, or one database in memory."""

    capabilities: ClassVar[Capabilities] = Capabilities(inspects=True, schemas=False)

    def __init__(self, file: FileUrl, lane: Session, readers: Pool, writer: Pool) -> None:
        self._file = file
        self._identity = _identity(file)
        self._lane: Session | None = lane
        self._renewing = False
        self._readers = readers
        self._writer = writer
        self._plans = Plans()
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
        file = _file_of(source.url)
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
        request = permit.request
        if not isinstance(request, (Query, Explain)):
            raise GateError(Code.UNSUPPORTED, "Only a query or an explanation can be run.")
        self._check_open()
        if cancellation.cancelled:
            raise stopped(cancellation.reason or "cancelled")
        statement = request.statement
        plan = self._plans.get(statement.text) or await self._plan(statement.text)
        explain = isinstance(request, Explain)
        _check_permit(permit, plan, explain)
        statement = _check_parameters(plan, statement, explain)
        if plan.inline and not explain and self._lane is not None:
            done = self._lane.attempt(plan, statement)
            if done is not None:
                columns, rows, seconds = done
                if seconds > SLOW_S:
                    plan.inline = False
                return ReadyCursor(columns, rows)
            plan.inline = False
            await self._renew_lane()
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
            _check_writable(self._file)
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
        raise GateError(Code.UNSUPPORTED, "SQLite here rehearses nothing")

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        request = permit.request
        if not isinstance(request, Browse):
            raise GateError(Code.UNSUPPORTED, "Only metadata can be described.")
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
        try:
            if self._lane is not None:
                self._lane.allow_lane()
                return catalog.stamp(self._lane, self._identity)
        except apsw.Error:
            pass  # locked or busy: a worker can wait
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
        if self._lane is not None:
            self._lane.close()
            self._lane = None

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
        plan = self._study_here(text) if _is_short(text) else None
        if plan is None:
            await self._renew_lane()
            brake = Brake(WAIT_S)

            def work(session: Session) -> Plan:
                with session.stepping(brake):
                    return study(session, text)

            plan = await self._ask(brake, NEVER, work)
        if len(text) <= CACHED_TEXT:
            self._plans.put(text, plan)
        return plan

    async def _renew_lane(self) -> None:
        """Open the lane anew, off the event loop, if its schema is out of date.

        To load a large schema takes longer than the lane's budget: there it would never succeed.
        """
        lane = self._lane
        if lane is None or lane.is_current():
            return
        self._lane, self._renewing = None, True
        lane.close()
        try:
            worker = await self._readers.take(WAIT_S)
            try:
                fresh = await worker.submit(lambda _: Session(self._file, lane=True))
            finally:
                self._readers.give(worker)
        finally:
            self._renewing = False
        if self._closed or self._lane is not None:
            fresh.close()
        else:
            self._plans.clear()
            self._lane = fresh

    def _study_here(self, text: str) -> Plan | None:
        """Study a short text on the event loop, or one like it; None if that did not go well.

        A tame read is what all texts like it are: SQLite checks the text itself when it runs, and
        the lane's budget holds whatever its values make of it.
        """
        alike = template(text)
        if alike == text:
            return self._study_now(text)
        known = self._plans.get(alike)
        if known is None:
            known = self._study_now(alike)
            if known is not None:
                self._plans.put(alike, known)
        if known is not None and known.reads and known.tame:
            return known.for_likeness()
        return self._study_now(text)

    def _study_now(self, text: str) -> Plan | None:
        if self._lane is None:
            return None
        self._lane.allow_lane()
        try:
            return study(self._lane, text)
        except (apsw.Error, ValueError, TypeError, OverflowError):
            return None

    def _check_open(self) -> None:
        """See that the file is still the one that was opened; open a new one in its place."""
        if self._closed:
            raise closed()
        identity = _identity(self._file)
        if identity == self._identity and (self._lane is not None or self._renewing):
            return
        self._plans.clear()
        self._readers.renew()
        self._writer.renew()
        if self._lane is not None:
            self._lane.close()
            self._lane = None
        self._lane = Session(self._file, lane=True)
        self._identity = identity


def _identity(file: FileUrl) -> str:
    if file.path is None:
        return "memory"
    try:
        found = os.stat(file.path)  # noqa: PTH116 - a third of the cost of Path.stat, on each call
    except OSError as error:
        raise GateError(
            Code.SOURCE_UNREACHABLE,
            f"There is no database file at {file.path} any more.",
            details={"path": file.path},
        ) from error
    return f"{found.st_dev:x}.{found.st_ino:x}"


def _is_short(text: str) -> bool:
    """Whether preparing a text takes little time, whatever it says. SQLite writes out what nested
    queries repeat of each other, so its work can grow with the power of their number."""
    if len(text) > LANE_TEXT:
        return False
    queries = text.lower().count("select") or 1
    return (len(text) / (2 * queries)) ** queries <= LANE_TERMS


def _file_of(url: str) -> FileUrl:
    file = parse_file_url(url, OPTIONS)
    options = dict(file.options)
    allowed = {"mode": ("ro", "rw"), "immutable": ("0", "1")}
    for name, values in allowed.items():
        if options.get(name, values[0]) not in values:
            raise GateError(Code.SOURCE_URL, f"The option `{name}` is one of {', '.join(values)}.")
    timeout = options.get("timeout", "5")
    if not timeout.replace(".", "", 1).isdecimal():
        raise GateError(Code.SOURCE_URL, "The option `timeout` is a number of seconds.")
    if file.path is None:
        options["memory"] = f"tidegate-{next(_names)}"
    return FileUrl(file.path, options)


def _check_writable(file: FileUrl) -> None:
    """Raises: GateError POLICY_READ_ONLY if the source's URL says that it is never written."""
    if file.options.get("mode") == "ro" or file.options.get("immutable") == "1":
        raise GateError(Code.POLICY_READ_ONLY, "The source's URL opens it for reading only.")


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
