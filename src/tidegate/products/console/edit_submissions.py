"""Submits staged edits: as one change through the gate, which goes on without its page.

Where a person must approve it, it waits for the answer and then sends the same change again. A tab
has one submission under way; what became of the last is kept while the server runs.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, structs

from tidegate.approvals.approvals import Approvals
from tidegate.errors import Code, TidegateError
from tidegate.gateway.row_changes import conflicts_of, write_script
from tidegate.identity.operators import SignedIn
from tidegate.judging_thread import compute
from tidegate.model.cancellation import Cancellation
from tidegate.model.row_changes import (
    ChangedRows,
    ChangeRows,
    EditConflict,
    FoundRow,
)
from tidegate.products.console.advice import advice
from tidegate.products.console.awaited_answers import handle_asking, sentences
from tidegate.products.console.cards import marked_parts
from tidegate.products.console.data_calls import Caller, DataCalls
from tidegate.products.console.edit_columns import EditColumns
from tidegate.products.console.gates import ServingGates
from tidegate.products.console.live import LiveFeed
from tidegate.products.console.shown_rows import ShownRows
from tidegate.products.console.staged import Sent, Staged, StagedRow, standing_of
from tidegate.products.console.staged_edits import StagedEdits, StagedTab, change_of, named_cells
from tidegate.sql.highlighting import highlight

_UNKNOWN = frozenset({Code.SQL_OUTCOME, Code.AUDIT_OUTCOME})
_CONFLICTS = frozenset({Code.ROWS_CONFLICT})
MOST_KEPT = 500
"""Submissions whose ends are kept, in all."""
_MOST_COLORED = 102_400

State = Literal["running", "asking", "done", "conflict", "failed", "cancelled", "unknown"]


class Submit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `tabs/ID/edits/submit`."""

    version: int
    reason: Annotated[str, Meta(max_length=500)] = ""


class Submission:
    """One change on its way, and what became of it."""

    def __init__(self, tab: StagedTab, caller: Caller, rows: tuple[StagedRow, ...], now: float):
        self.id = secrets.token_urlsafe(12)
        self.tab = tab
        self.caller = caller
        self.standing = standing_of(tab.source, caller.signed_in)
        self.edits = rows
        self.state: State = "running"
        self.started_at = now
        self.ended_at: float | None = None
        self.began = time.perf_counter()
        self.elapsed_ms: float | None = None
        self.cancellation = Cancellation()
        self.approval = self.call_id = self.change_id = ""
        self.code = self.message = self.hint = ""
        self.rows: list[dict[str, Any]] = []
        self.conflicts: list[dict[str, Any]] = []
        self.conflict_count = 0
        self.notes: list[str] = []
        self.counts = tab.staged.counts
        self.task: asyncio.Task[None] | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of the rows that are stored."""
        return [column.name for column in self.tab.staged.columns]

    @property
    def owner(self) -> str:
        return self.caller.signed_in.operator.name

    def end(self, now: float) -> None:
        """It is over: let go of the rows that were sent."""
        self.ended_at = now
        self.elapsed_ms = (time.perf_counter() - self.began) * 1000
        self.tab = self.tab._replace(staged=structs.replace(self.tab.staged, rows=()))
        self.edits = ()

    def fields(self) -> dict[str, Any]:
        """The submission as JSON."""
        now = (time.perf_counter() - self.began) * 1000
        return {
            "id": self.id,
            "tab": self.tab.tab.id,
            "state": self.state,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "elapsed_ms": round(now if self.elapsed_ms is None else self.elapsed_ms, 1),
            "counts": self.counts,
            "approval": self.approval or None,
            "change_id": self.change_id or None,
            "call_id": self.call_id,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "columns": self.columns,
            "rows": self.rows,
            "conflicts": self.conflicts,
            "conflict_count": self.conflict_count,
            "notes": self.notes,
        }


class Submissions:
    """The submissions of one server."""

    def __init__(
        self,
        calls: DataCalls,
        edits: StagedEdits,
        columns: EditColumns,
        approvals: Approvals,
        feed: LiveFeed,
        gates: ServingGates,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._gates = gates
        self._calls = calls
        self._edits = edits
        self._columns = columns
        self._approvals = approvals
        self._feed = feed
        self._shown = ShownRows(calls)
        self._clock = clock
        self._last: dict[tuple[str, str], Submission] = {}

    async def statement(self, id: str, caller: Caller) -> dict[str, Any]:
        """What is staged as SQL, and what the gate would say to it. Raises: TidegateError
        TAB_UNKNOWN, ARGUMENT_INVALID if nothing is staged."""
        found = await self._edits.load_visible(id, caller)
        change, _ = change_of(found.staged, self._calls.row_limits(1))
        dialect = found.source.dialect
        script = await compute(change.table, write_script, change, dialect)
        spans = None
        if len(script.text) <= _MOST_COLORED:
            parts = list(await compute(script.text, highlight, script.text, dialect))
            spans = list(marked_parts(parts))
        staged = found.staged
        assert staged.place is not None  # noqa: S101 - `change_of` has seen to it
        described = await self._columns.describe(staged.place, staged.table, caller)
        refused = dict(described.refused)
        reasons = [refused[verb] for verb in change.verbs if verb in refused]
        why = described.reason or next(iter(reasons), "")
        return {
            "text": script.text,
            "spans": spans,
            "statements": script.statements,
            "shown": script.shown,
            "verdict": "deny" if why else ("ask" if described.asks else "allow"),
            "why": why,
        }

    async def submit(self, id: str, body: Submit, caller: Caller) -> tuple[int, dict[str, Any]]:
        """Begin to make what is staged: the HTTP status, and the answer. Raises: TidegateError
        TAB_UNKNOWN, ARGUMENT_INVALID; LIMIT_RATE while a submission of the tab is under way."""
        found = await self._edits.load(id, caller)
        place = caller.signed_in.operator.name, id
        await self._check_idle(found, caller)
        if body.version != found.staged.version:
            raise _other_edits()
        limits = self._calls.limits
        whole = structs.replace(
            self._calls.row_limits(len(found.staged.rows)), timeout_s=limits.max_timeout_s
        )
        change, rows = change_of(found.staged, whole)
        made = Submission(found, caller, rows, self._clock())
        # Kept first: a server that ends in between leaves edits that may have been made.
        sent = structs.replace(found.staged, sent=Sent(made.id, made.started_at, self._gates.own))
        if await self._edits.save(found, sent, caller) is None:
            raise _other_edits()
        self._keep(place, made)
        loop = asyncio.get_running_loop()
        made.task = loop.create_task(self._work(made, change, body.reason))
        return 200, made.fields()

    async def check_idle(self, id: str, caller: Caller) -> None:
        """Raises: TidegateError LIMIT_RATE while a submission of the tab is under way: what is
        written then would be lost with what was sent."""
        await self._check_idle(await self._edits.load(id, caller), caller)

    async def _check_idle(self, found: StagedTab, caller: Caller) -> None:
        last = self._last.get((caller.signed_in.operator.name, found.tab.id))
        sent = found.staged.sent
        if last is not None and last.ended_at is None:
            where = ""
        elif sent is not None and await self._gates.serve(sent.gate):
            where = f" by the gate {sent.gate}"
        else:
            return
        raise TidegateError(
            Code.LIMIT_RATE,
            f"Edits of this tab are being made{where}.",
            hint="Wait until they are, or cancel that.",
        )

    async def result(self, id: str, caller: Caller) -> dict[str, Any] | None:
        """What became of the last submission of a tab; None if there was none."""
        found = await self._find(id, caller)
        return None if found is None else found.fields()

    async def cancel(self, id: str, caller: Caller) -> dict[str, Any] | None:
        """End the submission that is under way. Raises: TidegateError UNSUPPORTED for one of
        another gate."""
        found = await self._find(id, caller)
        if found is not None and found.state == "running" and found.message:
            raise TidegateError(Code.UNSUPPORTED, found.message, hint=found.hint)
        if found is not None:
            found.cancellation.cancel("a person cancelled it")
        return None if found is None else found.fields()

    async def _find(self, id: str, caller: Caller) -> Submission | None:
        """The last submission, without rows that were read under other rights."""
        tab = await self._edits.load(id, caller)
        found = self._last.get((caller.signed_in.operator.name, id))
        sent = tab.staged.sent
        if sent is not None and await self._gates.serve(sent.gate):
            return _elsewhere(tab, sent, caller)
        if sent is not None and (found is None or found.id != sent.id):
            return _unknown(tab, sent, caller)
        if found is not None and found.standing != standing_of(tab.source, caller.signed_in):
            found.rows, found.conflicts = [], []
        return found

    def _keep(self, place: tuple[str, str], made: Submission) -> None:
        self._last.pop(place, None)
        if len(self._last) >= MOST_KEPT:
            ended = [key for key, each in self._last.items() if each.ended_at is not None]
            for key in ended[: len(self._last) - MOST_KEPT + 1]:
                del self._last[key]
        self._last[place] = made

    # A submission on its way

    async def _work(self, made: Submission, change: ChangeRows, reason: str) -> None:
        try:
            await self._make(made, change, reason)
        except TidegateError as error:
            self._fail(made, error)
            sent = Sent(made.id, made.started_at) if made.state == "unknown" else None
            await self._save(made, lambda staged: structs.replace(staged, sent=sent))
        except Exception:
            self._fail(made, TidegateError(Code.INTERNAL, "A fault of the server"))
            raise
        finally:
            made.end(self._clock())
            self._publish(made)

    async def _make(self, made: Submission, change: ChangeRows, reason: str) -> None:
        source = made.tab.source.name
        call = self._calls.call(made.caller, change, source, cancellation=made.cancellation)
        call = structs.replace(call, reason=reason)

        def tell(question: str) -> None:
            made.state = "asking" if question else "running"
            made.approval = question or made.approval
            self._publish(made)

        reply = await handle_asking(self._calls, self._approvals, call, tell)
        done: ChangedRows = reply.payload
        made.call_id, made.change_id = reply.call_id, done.change
        made.notes = sentences(done.remarks)
        gone = {row.id for row in made.edits}

        def without(staged: Staged) -> Staged:
            left = tuple([row for row in staged.rows if row.id not in gone])
            return structs.replace(staged, rows=left, sent=None) if left else Staged()

        # Before anything else is asked: they must not be staged any more than they are to be made.
        if not await self._save(made, without):
            made.notes.append("The edits are made, and still staged: discard them.")
        made.rows = await self._stored(made, done)
        made.state = "done"

    async def _save(self, made: Submission, change: Callable[[Staged], Staged]) -> bool:
        """Change what is staged, whatever was staged meanwhile; False if that cannot be kept."""
        for _ in range(5):
            with suppress(TidegateError):
                found = await self._edits.load(made.tab.tab.id, made.caller)
                if await self._edits.save(found, change(found.staged), made.caller) is not None:
                    return True
        return False

    async def _stored(self, made: Submission, done: ChangedRows) -> list[dict[str, Any]]:
        """The rows as they are stored now, as the grid shows them."""
        staged = made.tab.staged
        shape, place = staged.shape, staged.place
        assert shape is not None and place is not None  # noqa: S101 - `change_of` has seen to it
        there = [row for row in done.rows if row is not None]
        shown: dict[tuple[str, ...], list[Any]] = {}
        with suppress(TidegateError):  # the change is made; the page reads the rows again
            shown = await self._shown.read(
                place, staged.table, there, shape, made.columns, made.caller
            )
        by_row = _by_key(shown, shape.names, staged)
        found: list[dict[str, Any]] = []
        for edit, row in zip(made.edits, done.rows, strict=True):
            key, cells = (None, None) if row is None else by_row(row)
            found.append(
                {"id": edit.id, "kind": edit.kind, "was": edit.key, "key": key, "row": cells}
            )
        return found

    def _fail(self, made: Submission, error: TidegateError) -> None:
        shown = error.without_secrets()
        made.call_id = error.call_id or made.call_id
        made.code, made.message, made.hint = error.code.value, shown.message, advice(shown)
        made.state = "failed"
        if error.code is Code.CALL_CANCELLED:
            made.state = "cancelled"
        elif error.code in _UNKNOWN:
            made.state = "unknown"
        elif error.code in _CONFLICTS:
            made.state = "conflict"
        conflicts, made.conflict_count = conflicts_of(error)
        made.conflicts = [_conflict(made, each) for each in conflicts]

    def _publish(self, made: Submission) -> None:
        fields = made.fields()

        def data_of(signed_in: SignedIn) -> Any:
            own = signed_in.session.id == made.caller.signed_in.session.id
            return fields if own or signed_in.operator.name == made.owner else None

        self._feed.publish("edit", data_of)


def _other_edits() -> TidegateError:
    return TidegateError(Code.TAB_CHANGED, "Another page has staged edits in this tab since.")


def _elsewhere(tab: StagedTab, sent: Sent, caller: Caller) -> Submission:
    """A submission that another gate makes."""
    made = Submission(tab, caller, (), sent.at)
    made.id, made.state = sent.id, "running"
    made.message = f"The gate {sent.gate} makes these edits."
    made.hint = "They are ended from the page where they were submitted, or under Now."
    return made


def _unknown(tab: StagedTab, sent: Sent, caller: Caller) -> Submission:
    """A submission of which this server knows the beginning alone."""
    made = Submission(tab, caller, (), sent.at)
    made.id, made.state, made.code = sent.id, "unknown", Code.SQL_OUTCOME.value
    made.message = "These edits were sent before, and how that ended is not known here."
    made.hint = "Read the rows again: submit the edits only if they were not made."
    made.end(sent.at)
    made.elapsed_ms = 0.0
    return made


def _by_key(
    shown: dict[tuple[str, ...], list[Any]], names: tuple[str, ...], staged: Staged
) -> Callable[[FoundRow], tuple[list[str] | None, list[Any] | None]]:
    """Finds the cells of a stored row by the values of its key, which the grid may write
    otherwise."""
    places = [names.index(name) for name in staged.key_names]
    if len(shown) == 1:
        (only,) = shown
        return lambda row: (list(only), shown[only])

    def find(row: FoundRow) -> tuple[list[str] | None, list[Any] | None]:
        wanted = tuple([_text(row.shown[place]) for place in places])
        return (list(wanted), shown[wanted]) if wanted in shown else (None, None)

    return find


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _conflict(made: Submission, conflict: EditConflict) -> dict[str, Any]:
    edit, staged = made.edits[conflict.edit], made.tab.staged
    shape = staged.shape
    assert shape is not None  # noqa: S101 - `change_of` has seen to it
    now = conflict.now
    theirs = None if now is None else named_cells(shape, now.shown, staged)
    before = named_cells(shape, edit.before, staged) or {}
    changed = edit.cells if edit.kind != "delete" else {}
    names = [
        name
        for place, name in enumerate(shape.names)
        if name in changed or place in conflict.differs
    ]
    columns = [
        {
            "name": name,
            "before": before.get(name),
            "theirs": None if theirs is None else theirs.get(name),
            "yours": changed.get(name, before.get(name)),
        }
        for name in names
    ]
    return {
        "id": edit.id,
        "problem": conflict.problem,
        "columns": msgspec.to_builtins(columns),
        "theirs": msgspec.to_builtins(theirs),
    }
