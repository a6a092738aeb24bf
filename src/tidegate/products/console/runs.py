"""Runs: statements that a person sends from the Data page, and their results.

A run begins at once and goes on without its page. Where a person must approve it, it waits for the
answer and then sends the same call again. Its rows are held for the page to scroll through
(`stored_rows.py`); what is held is bounded, for each run and in all; the oldest goes first. A run
belongs to the session that began it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta, structs

from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Operators, SignedIn
from tidegate.judging_thread import compute
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.products.console.advice import advice
from tidegate.products.console.awaited_answers import await_answer
from tidegate.products.console.cells import column_fields
from tidegate.products.console.data_calls import Caller, DataCalls, Place, speaks_sql
from tidegate.products.console.data_rows import MOST_CELL
from tidegate.products.console.live import LiveFeed
from tidegate.products.console.result_quota import ResultQuota
from tidegate.products.console.statement_parts import Utf16
from tidegate.products.console.stored_rows import StoredRows, result_gone
from tidegate.products.console.typed_values import Value, typed_values
from tidegate.results.notes import page_notes, pages_note
from tidegate.results.row_stream import WriterSink
from tidegate.sql.dialects import find
from tidegate.sql.named_parameters import bind_names
from tidegate.store.calls import read_state
from tidegate.store.saved_queries import ParameterType

MOST_ROWS = 100_000
DEFAULT_ROWS = 10_000
MOST_STATEMENT = 102_400
"""Characters of a statement: the gate refuses a longer one."""
MOST_RUNNING = 8
MOST_KEPT = 50
"""Runs of one session that go on at once, and that are kept."""
TELL_S = 0.5
SWEEP_S = 2.0
"""How often progress is sent, and what has ended is let go, in seconds."""
_UNKNOWN = frozenset({Code.SQL_OUTCOME, Code.AUDIT_OUTCOME})
_MISSES = frozenset({Code.SQL_FAILED, Code.TABLE_UNKNOWN})
"""Errors after which the nearest names may help."""
_UNKNOWN_TABLE = "masking.unknown_table"
_NAMED = re.compile(r"`([^`]+)`")

State = Literal["running", "asking", "done", "failed", "cancelled", "unknown"]


class NewRun(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `runs`."""

    statement: Annotated[str, Meta(max_length=2 * MOST_STATEMENT)]
    tab: str = ""
    params: dict[str, Value] | list[Value] | None = None
    types: dict[str, ParameterType] | None = None
    reason: Annotated[str, Meta(max_length=500)] = ""
    max_rows: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = DEFAULT_ROWS
    transaction: Annotated[str, Meta(max_length=64)] = ""


class Run:
    """One statement on its way, and what became of it."""

    def __init__(
        self, body: NewRun, caller: Caller, source: Source, rows: StoredRows, now: float
    ) -> None:
        self.id = secrets.token_urlsafe(12)
        self.body = body
        self.caller = caller
        self.source = source
        self.rows = rows
        self.state: State = "running"
        self.started_at = now
        self.ended_at: float | None = None
        self.cancellation = Cancellation()
        self.began = time.perf_counter()
        self.elapsed_ms: float | None = None
        self.progress: dict[str, Any] | None = None
        self.page: Page | None = None
        self.truncated = False
        self.effect = ""
        self.code = self.message = self.hint = self.approval = self.call_id = ""
        self.at: int | None = None
        self.warnings: list[str] = []
        self.task: asyncio.Task[None] | None = None

    @property
    def session(self) -> str:
        return self.caller.signed_in.session.id

    @property
    def gone(self) -> bool:
        """Whether its rows were let go."""
        return self.rows.gone

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    def fields(self) -> dict[str, Any]:
        """The run as JSON, without its rows."""
        page = self.page
        now = (time.perf_counter() - self.began) * 1000
        cuts = () if page is None else page.truncations
        is_limited = not cuts or any(cut.kind == "rows" for cut in cuts)
        masked = {column.lower() for _, column in page.masked} if page else set[str]()
        return {
            "id": self.id,
            "tab": self.body.tab,
            "source": self.source.name,
            "state": self.state,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "progress": self.progress,
            "columns": [
                column_fields(each, masked=each.name.lower() in masked)
                for each in self.rows.columns
            ],
            "row_count": self.rows.count,
            "truncated": self.truncated,
            "limit": self.body.max_rows if is_limited else None,
            "affected": None if page is None or self.effect == "read" else page.affected,
            "elapsed_ms": round(now if self.elapsed_ms is None else self.elapsed_ms, 1),
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "at": self.at,
            "approval": self.approval or None,
            "change_id": (page.change or None) if page else None,
            "call_id": self.call_id,
            "effect": self.effect,
            "warnings": self.warnings,
            "rows_gone": self.gone,
        }


class Runs:
    """The runs of one server. `space` is the room for their rows."""

    def __init__(
        self,
        calls: DataCalls,
        approvals: Approvals,
        operators: Operators,
        feed: LiveFeed,
        space: ResultQuota,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls = calls
        self._approvals = approvals
        self._operators = operators
        self._feed = feed
        self._space = space
        self._clock = clock
        self._runs: dict[str, Run] = {}
        self._swept_at = 0.0
        self._sweeping: asyncio.Task[None] | None = None

    async def begin(self, body: NewRun, caller: Caller) -> dict[str, Any]:
        """Begin a statement. Raises: TidegateError POLICY_SOURCE, LIMIT_RATE, ARGUMENT_INVALID."""
        source = self._calls.source(caller, body.source)
        text = body.statement
        params = typed_values(body.params, body.types, source)
        statement = await compute(text, statement_of, text, params, source)
        own = [each for each in self._runs.values() if each.session == caller.signed_in.session.id]
        if sum(not each.is_over for each in own) >= MOST_RUNNING:
            raise TidegateError(
                Code.LIMIT_RATE,
                f"{MOST_RUNNING} of your statements are running.",
                hint="Wait for one of them, or cancel it.",
            )
        ended = [each for each in own if each.is_over]
        for old in ended[: max(0, len(own) - MOST_KEPT + 1)]:
            self._forget(old)
        untyped = speaks_sql(source) and find(source.dialect).untyped_columns
        rows = StoredRows(self._space, untyped=untyped)
        run = Run(body, caller, source, rows, self._clock())
        self._runs[run.id] = run
        run.task = asyncio.get_running_loop().create_task(self._work(run, statement))
        self._sweep_soon()
        return run.fields()

    def find(self, id: str, signed_in: SignedIn) -> Run:
        """The run of that id, if this session began it and may still see its source.

        Raises: TidegateError RESULT_GONE.
        """
        run = self._runs.get(id)
        if run is None or run.session != signed_in.session.id:
            raise result_gone()
        if signed_in.operator.roles != run.caller.signed_in.operator.roles:
            self._forget(run)  # it was read with other rights
            raise result_gone()
        return run

    def list(self, tab: str, signed_in: SignedIn) -> dict[str, Any]:
        """The session's runs of a tab, oldest first, each with what it needs to run again."""
        own: list[dict[str, Any]] = []
        for run in list(self._runs.values()):
            if run.body.tab == tab and run.session == signed_in.session.id:
                with suppress(TidegateError):
                    fields = self.find(run.id, signed_in).fields()
                    again = {
                        "statement": run.body.statement,
                        "params": run.body.params,
                        "types": run.body.types,
                    }
                    own.append({**fields, **again})
        return {"runs": own}

    async def held(self, id: str, caller: Caller) -> Run:
        """The run with rows that may be shown: its source is as it was. Raises: TidegateError
        RESULT_GONE."""
        run = self.find(id, caller.signed_in)
        if self._calls.source(caller, run.source.name) != run.source:
            run.rows.close()  # other masks may bind by now
        if run.gone:
            raise result_gone()
        return run

    async def rows(self, id: str, offset: int, limit: int, caller: Caller) -> bytes:
        """Rows of a run as the JSON of the reply."""
        run = await self.held(id, caller)
        rows = await asyncio.to_thread(run.rows.page, max(0, offset), limit)
        return b'{"rows":%s,"row_count":%d}' % (rows, run.rows.count)

    async def cell(self, id: str, row: int, column: int, caller: Caller) -> dict[str, Any]:
        """A whole cell of a run. Raises: TidegateError ARGUMENT_INVALID, RESULT_GONE."""
        run = await self.held(id, caller)
        found = await asyncio.to_thread(run.rows.cell, row, column)
        if found is None:
            raise TidegateError(Code.ARGUMENT_INVALID, "The result has no such cell")
        data, binary = found
        if data is None:
            return {"text": None, "bytes": 0, "binary": False}
        text = data[: MOST_CELL // 2].hex() if binary else data.decode("utf-8", "replace")
        return {"text": text[:MOST_CELL], "bytes": len(data), "binary": binary}

    def cancel(self, id: str, signed_in: SignedIn) -> dict[str, Any]:
        """End a run that goes on."""
        run = self.find(id, signed_in)
        run.cancellation.cancel("a person cancelled it")
        return run.fields()

    def close(self, id: str, signed_in: SignedIn) -> None:
        """End a run and let its rows go."""
        self._forget(self.find(id, signed_in))

    # A run on its way

    async def _work(self, run: Run, statement: Statement) -> None:
        teller = asyncio.get_running_loop().create_task(self._tell(run))
        try:
            await self._run(run, statement)
        except TidegateError as error:
            self._fail(run, await self._advised(run, error))
        except Exception:
            self._fail(run, TidegateError(Code.INTERNAL, "A fault of the server"))
            raise
        finally:
            teller.cancel()
            run.ended_at = run.ended_at or self._clock()
            run.elapsed_ms = run.elapsed_ms or (time.perf_counter() - run.began) * 1000
            run.progress = None
            run.rows.over = True
            self._publish(run)

    async def _run(self, run: Run, statement: Statement) -> None:
        body, limits = run.body, self._calls.limits
        request = Query(
            statement,
            limits=Limits(body.max_rows, limits.max_bytes, limits.max_timeout_s),
            database=body.database,
            schema=body.schema,
            sink=WriterSink(run.rows, lambda: run.rows.size),
        )
        call = self._calls.call(run.caller, request, body.source, tool="run")
        judgement, explanation = await self._calls.judge(call)
        run.effect = judgement.effect.label
        confirmed = explanation.verdict.kind == "confirm"
        while True:
            call = structs.replace(
                call,
                confirmed=confirmed,
                reason=body.reason,
                transaction=body.transaction,
                cancellation=run.cancellation,
                progress=partial(_report, run),
            )
            try:
                reply = await self._calls.handle(call)
            except ApprovalNeeded as needed:
                await self._await_answer(run, needed)
            except TidegateError as error:
                if error.code is not Code.POLICY_CONFIRM or confirmed:
                    raise
                confirmed = True  # the database knows it to do more than its text says
            else:
                break
        run.call_id = reply.call_id
        page: Page = reply.payload
        run.page, run.state = page, "done"
        run.elapsed_ms = page.elapsed_ms
        run.truncated = bool(page.truncations)
        run.warnings += [
            f"The rows are {pages_note(cut)}." for cut in page.truncations if cut.kind == "pages"
        ]
        if run.rows.cut is not None:
            run.warnings.append(
                f"The first {run.rows.count:,} rows are shown: more would take too much room."
            )
        run.warnings += page_notes(page)

    async def _advised(self, run: Run, error: TidegateError) -> TidegateError:
        """The error, with the nearest names where the database missed one: of those that the
        operator may see."""
        unknown = error.details.get("rule") == _UNKNOWN_TABLE
        if not (error.code in _MISSES or unknown) or not speaks_sql(run.source):
            return error
        from tidegate.search.suggestions import hint_on  # imported at the first mistake

        try:
            catalog = await self._calls.catalog(run.caller, run.body)
        except TidegateError:
            return error
        text = run.body.statement
        hint = hint_on(error.message, text, catalog)
        advised = error if hint is None else error.with_hint(hint)
        if unknown and (at := _only_place(error.message, text)) is not None:
            advised.details["position"] = at + 1
        return advised

    async def _await_answer(self, run: Run, needed: ApprovalNeeded) -> None:
        """Wait until the question has an answer, and tell the page of it."""
        run.state, run.approval = "asking", needed.question.id
        self._publish(run)
        await await_answer(self._approvals, needed, run.cancellation)
        run.state = "running"
        self._publish(run)

    def _fail(self, run: Run, error: TidegateError) -> None:
        shown = error.without_secrets()
        run.call_id = error.call_id or run.call_id
        run.code, run.message, run.hint = error.code.value, shown.message, advice(shown)
        run.state = "failed"
        if error.code is Code.CALL_CANCELLED:
            run.state = "cancelled"
        elif error.code in _UNKNOWN:
            run.state = "unknown"
        position = error.details.get("position")
        if isinstance(position, int) and run.body.params is None:
            run.at = Utf16(run.body.statement).units(max(0, position - 1))

    async def _tell(self, run: Run) -> None:
        """Send how far the run is, while it goes on."""
        while True:
            await asyncio.sleep(TELL_S)
            if run.state == "running":
                self._publish(run)

    def _publish(self, run: Run) -> None:
        if run.id not in self._runs:
            return
        fields = run.fields()

        def data_of(signed_in: SignedIn) -> Any:
            return fields if signed_in.session.id == run.session else None

        self._feed.publish("run", data_of)

    # What is let go

    def _forget(self, run: Run) -> None:
        run.cancellation.cancel("a person closed it")
        run.rows.close()
        self._runs.pop(run.id, None)

    def _sweep_soon(self) -> None:
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep())

    async def _sweep(self) -> None:
        """End and let go what belongs to sessions that have ended, or whose operator has other
        roles now, as long as there is anything."""
        while self._runs:
            await asyncio.sleep(SWEEP_S)
            with suppress(TidegateError):  # a state that cannot be read is read again
                live = await read_state(self._operators.live)
                for run in list(self._runs.values()):
                    now = live.get(run.session)
                    if now is None or now.operator.roles != run.caller.signed_in.operator.roles:
                        self._forget(run)


def statement_of(
    text: str, params: Mapping[str, Any] | Sequence[Any] | None, source: Source
) -> Statement:
    """The statement with its parameters. Raises: TidegateError ARGUMENT_INVALID."""
    if params is None or not params:
        return Statement(text)
    if isinstance(params, Mapping):
        if not speaks_sql(source):
            raise TidegateError(
                Code.ARGUMENT_INVALID, "Named parameters are for sources that speak SQL"
            )
        return Statement(*bind_names(text, params, source.dialect))
    return Statement(text, tuple(params))


def _only_place(message: str, text: str) -> int | None:
    """Where the name that a message has in backticks is in a statement, if it is there once."""
    name = _NAMED.search(message)
    if name is None:
        return None
    last = re.escape(name[1].rpartition(".")[2])
    places = [each.start() for each in re.finditer(rf"(?<![\w$]){last}(?![\w$])", text)]
    return places[0] if len(places) == 1 else None


def _report(run: Run, share: float, text: str) -> None:
    run.progress = {"done": round(share, 3), "total": 1, "text": text}
