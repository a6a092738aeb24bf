"""Takes the rows of a held file into a table: checks all of them, then adds them as one change.

The change goes through the gate like any other; where a person must approve it, it waits for the
answer and then sends the same change again.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta, structs

from tidegate.approvals.approvals import Approvals
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.imports.checking import Checked, HeldRows, Pair, check_rows
from tidegate.imports.model import LineError, Reading, Unreadable
from tidegate.model.cancellation import Cancellation
from tidegate.model.editing import Editability
from tidegate.model.row_changes import ChangedRows, ChangeRows, DescribeEditing, undo_size
from tidegate.products.console.advice import advice
from tidegate.products.console.awaited_answers import handle_asking, sentences
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.products.console.import_files import HeldFile
from tidegate.products.console.live import LiveFeed

TELL_S = 0.5
_ROOM = 4_194_304
"""Bytes by which the room for checked rows grows."""
_UNKNOWN = frozenset({Code.SQL_OUTCOME, Code.AUDIT_OUTCOME})
_ENDED = frozenset({"checked", "invalid", "done", "failed", "cancelled", "unknown"})

State = Literal[
    "checking", "checked", "invalid", "running", "asking", "done", "failed", "cancelled", "unknown"
]


class ColumnPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of the file, by its place, and the column that it goes into."""

    place: Annotated[int, Meta(ge=0)]
    column: Annotated[str, Meta(max_length=256)]


class Check(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `imports/ID/check`."""

    table: Annotated[str, Meta(max_length=256)]
    columns: Annotated[tuple[ColumnPair, ...], Meta(min_length=1, max_length=1_000)]


class Submit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `imports/ID/submit`."""

    reason: Annotated[str, Meta(max_length=500)] = ""


class ImportOf(Protocol):
    """The file of a run, and how it is read."""

    @property
    def id(self) -> str: ...
    @property
    def file(self) -> HeldFile: ...
    @property
    def reading(self) -> Reading: ...
    @property
    def names(self) -> list[str]: ...

    def fields(self) -> dict[str, Any]: ...


class Keeping(msgspec.Struct, frozen=True):
    """How the server asks people, and what it keeps of changes."""

    calls: DataCalls
    approvals: Approvals
    feed: LiveFeed
    undo_bytes: int


class ImportRun:
    """One way of a file into one table."""

    def __init__(self, gate: Keeping, source: ImportOf, caller: Caller) -> None:
        self.cancellation = Cancellation()
        self.state: State = "checking"
        self._gate = gate
        self._import = source
        self._caller = caller
        self._body: Check | None = None
        self._described: Editability | None = None
        self._rows: HeldRows | None = None
        self._left = False
        self._count = self._error_count = 0
        self._errors: tuple[LineError, ...] = ()
        self._began, self._elapsed_ms = time.perf_counter(), 0.0
        self._approval = self._call_id = self._change_id = ""
        self._code = self._message = self._hint = ""
        self._notes: list[str] = []
        self._line: int | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        return self.state in _ENDED

    @property
    def is_checked(self) -> bool:
        """Whether its rows can be added."""
        return self.state in ("checked", "failed", "cancelled") and self._rows is not None

    def fields(self) -> dict[str, Any]:
        """The run as JSON."""
        body, rows = self._body, self._rows
        done = self._count if rows is None or self.state == "checking" else rows.writing[1]
        return {
            "state": self.state,
            "table": None if body is None else body.table,
            "schema": None if body is None else body.schema,
            "source": None if body is None else body.source,
            "asks": self._described is not None and self._described.asks,
            "cannot_undo": self._undo_objection(),
            "count": self._count,
            "done": done,
            "digest": "" if rows is None else rows.digest,
            "errors": msgspec.to_builtins(self._errors),
            "error_count": self._error_count,
            "line": self._line,
            "elapsed_ms": round(self._elapsed_ms or (time.perf_counter() - self._began) * 1000, 1),
            "approval": self._approval or None,
            "change_id": self._change_id or None,
            "call_id": self._call_id,
            "code": self._code,
            "message": self._message,
            "hint": self._hint,
            "notes": self._notes,
        }

    def _undo_objection(self) -> str:
        """Why the rows will not be kept for undo, as a sentence; empty if they are."""
        described, rows = self._described, self._rows
        if described is None:
            return ""
        if not described.undo:
            return "The source keeps no rows for undo."
        if not any(column.key for column in described.columns):
            return "The table has no primary key."
        most = self._gate.undo_bytes
        if rows is not None and undo_size(rows) > most:
            return f"The rows may take more than the {most:,} bytes of `undo.max_bytes`."
        return ""

    # Checking

    async def begin(self, body: Check) -> None:
        """Find the table, and begin to read all rows. Raises: TidegateError ARGUMENT_INVALID, as
        the gate."""
        calls, caller = self._gate.calls, self._caller
        place = Place(body.source, body.database, body.schema)
        calls.source(caller, place.source)
        table, _ = await calls.table(caller, place, body.table)
        self._body = structs.replace(body, schema=table.schema)
        request = DescribeEditing(
            table=table.name,
            schema=table.schema,
            database=body.database,
            limits=calls.row_limits(1),
            adds=True,
        )
        described, _ = await calls.ask(caller, request, body.source, Editability)
        if described.reason or described.shape is None:
            reason = described.reason or "It takes no rows."
            raise TidegateError(Code.ARGUMENT_INVALID, reason, hint="Choose another table.")
        self._described = described
        pairs = self._pairs(body, described)
        file = self._import.file
        rows = HeldRows(file.new_file(), file.name, file.digest, pairs)
        file.over = False
        self._start(self._check(rows, pairs))

    def _pairs(self, body: Check, described: Editability) -> list[Pair]:
        shape, columns = described.shape, {each.name: each for each in described.columns}
        found: list[Pair] = []
        for pair in body.columns:
            column = columns.get(pair.column)
            if column is None or shape is None or pair.place >= len(self._import.names):
                raise TidegateError(
                    Code.ARGUMENT_INVALID, f"There is no such column: {pair.column[:100]}"
                )
            if column.reason or pair.column not in shape.names:
                raise TidegateError(
                    Code.ARGUMENT_INVALID, f"{pair.column} cannot be written: {column.reason}"
                )
            name = self._import.names[pair.place]
            found.append(Pair(pair.place, name, column, shape.names.index(pair.column)))
        if len({pair.at for pair in found}) < len(found):
            raise TidegateError(Code.ARGUMENT_INVALID, "Two columns go into the same one")
        return found

    async def _check(self, rows: HeldRows, pairs: list[Pair]) -> None:
        file, reading = self._import.file, self._import.reading
        room = 0

        def note(count: int) -> None:
            nonlocal room
            self._count = count
            if self.cancellation.reason is not None:
                raise TidegateError(Code.CALL_CANCELLED, "The import was cancelled")
            while rows.size > room:
                file.take_room(_ROOM)
                room += _ROOM

        def work() -> Checked:
            return check_rows(file.records(reading), reading, pairs, rows, note)

        try:
            found = await asyncio.to_thread(work)
        except Unreadable as error:
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"The file cannot be read: {error}."
            ) from None
        except OSError as error:
            raise TidegateError(
                Code.STATE_FAILED, f"The rows cannot be kept: {error.strerror}"
            ) from error
        self._errors, self._error_count = found.errors, found.error_count
        if found.rows is None:
            self.state = "invalid"
            self._message = "The file has no rows." if not found.error_count else ""
        else:
            self._rows, self.state = found.rows, "checked"
            found.rows.note(0, 0)

    # Adding

    def submit(self, reason: str) -> None:
        """Begin to add the rows."""
        rows, body, described = self._rows, self._body, self._described
        if rows is None or body is None or described is None or described.shape is None:
            return
        calls = self._gate.calls
        limits = structs.replace(calls.row_limits(1), timeout_s=calls.limits.max_timeout_s)
        change = ChangeRows(
            table=body.table,
            schema=body.schema,
            database=body.database,
            limits=limits,
            shape=described.shape,
            edits=(),
            feed=rows,
        )
        self.state = "running"
        self.cancellation = Cancellation()
        self._approval = self._call_id = self._code = self._message = self._hint = ""
        self._line = None
        rows.note(0, 0)
        self._import.file.over = False
        self._start(self._make(change, body.source, reason))

    async def _make(self, change: ChangeRows, source: str, reason: str) -> None:
        gate = self._gate
        call = gate.calls.call(self._caller, change, source, cancellation=self.cancellation)
        call = structs.replace(call, reason=reason)

        def tell(question: str) -> None:
            self.state = "asking" if question else "running"
            self._approval = question or self._approval
            self._publish()

        reply = await handle_asking(gate.calls, gate.approvals, call, tell)
        done: ChangedRows = reply.payload
        self._call_id, self._change_id = reply.call_id, done.change
        self._notes = sentences(done.remarks)
        self.state = "done"

    def _start(self, work: Any) -> None:
        self._began, self._elapsed_ms = time.perf_counter(), 0.0
        self._task = asyncio.get_running_loop().create_task(self._work(work))

    async def _work(self, work: Any) -> None:
        telling = asyncio.get_running_loop().create_task(self._tell())
        try:
            await work
        except TidegateError as error:
            self._fail(error)
        except Exception:
            self._fail(TidegateError(Code.INTERNAL, "A fault of the server"))
            raise
        finally:
            telling.cancel()
            self._elapsed_ms = (time.perf_counter() - self._began) * 1000
            self._import.file.over = True
            if self._left:
                self._import.file.close()
            self._publish()

    def _fail(self, error: TidegateError) -> None:
        shown, rows = error.without_secrets(), self._rows
        self._call_id = error.call_id or self._call_id
        self._code, self._message, self._hint = error.code.value, shown.message, advice(shown)
        self.state = "failed"
        if error.code is Code.CALL_CANCELLED:
            self.state = "cancelled"
        elif error.code in _UNKNOWN:
            self.state = "unknown"
        elif error.code is Code.SQL_FAILED and rows is not None and rows.writing[0]:
            first, last = rows.writing
            self._line = rows.line_of(first)
            if first == last:
                self._message = f"Line {self._line:,} of the file: {self._message}"
            else:
                lines = f"{self._line:,} to {rows.line_of(last):,}"
                self._message = f"One of the lines {lines} of the file: {self._message}"

    def leave(self) -> None:
        """Let the file go, once nothing reads it."""
        self._left = True
        if self.is_over:
            self._import.file.close()

    async def _tell(self) -> None:
        """Send how far it is, while it goes on."""
        while True:
            await asyncio.sleep(TELL_S)
            self._publish()

    def _publish(self) -> None:
        fields = {"id": self._import.id, "run": self.fields()}
        session = self._caller.signed_in.session.id

        def data_of(signed_in: SignedIn) -> Any:
            return fields if signed_in.session.id == session else None

        self._gate.feed.publish("import", data_of)
