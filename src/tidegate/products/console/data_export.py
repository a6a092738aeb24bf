"""Exports of the Data page: a table, or a result that is held, as a file.

A table is read through the gate by a statement of its own, within the limits of exports; a result
is what the page shows, and its statement does not run again. A file that does not hold all rows
is marked: in its name, in its last line where its form has comments, in the reply, on the page and
on record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import ReadRows
from tidegate.model.results import ColumnKind, Limits, Page
from tidegate.model.schema import Table
from tidegate.model.statements import Statement
from tidegate.products.console.data_calls import Caller, DataCalls, check_sql
from tidegate.products.console.data_rows import Narrowed, Sort, conditions_of
from tidegate.products.console.downloads import Downloads, DraftFile, MadeFile, one_line
from tidegate.products.console.row_pages import order_of, rows_statement
from tidegate.products.console.runs import MOST_ROWS, Run, Runs
from tidegate.products.console.stored_rows import StoredRows
from tidegate.results.formats import Writer, writer
from tidegate.results.json_values import json_raw
from tidegate.results.notes import cut_note, page_notes
from tidegate.results.row_stream import WriterSink
from tidegate.sql.dialects import find
from tidegate.sql.quoting import qualified
from tidegate.typed_values import convert_value

MOST_AT_ONCE = 2
"""Files that are made at once."""
TIMEOUT_S = 60.0
Format = Literal["csv", "json", "jsonl", "sql"]


class OfTable(Narrowed, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `export-ticket` for a table."""

    format: Format
    sort: tuple[Sort, ...] = ()
    columns: list[str] | None = None


class OfRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `export-ticket` for a result that is held."""

    run: str
    format: Format


Wanted = OfTable | OfRun


class Written(NamedTuple):
    """What was written of a table or a result: its name and source, how many rows, where they are
    cut, and further notes."""

    name: str
    source: str
    rows: int
    cut: str
    notes: list[str]


class DataExports:
    """Exports within the operator's rights, made in a folder; `downloads` are where they wait."""

    def __init__(self, calls: DataCalls, runs: Runs, downloads: Downloads, directory: Path) -> None:
        self._calls = calls
        self._runs = runs
        self.downloads = downloads
        self._directory = directory
        self._making = asyncio.Semaphore(MOST_AT_ONCE)

    async def make(
        self, wanted: Wanted, caller: Caller, cancellation: Cancellation
    ) -> dict[str, Any]:
        """Make the file; its ticket, and what it lacks. Raises: TidegateError, as the gate;
        LIMIT_BYTES, LIMIT_RATE, RESULT_GONE, STATE_FAILED."""
        async with self._making:
            standing = self.downloads.standing(caller.signed_in)
            made = await self._make(wanted, caller, cancellation)
        if cancellation.reason is not None:
            made.close()
            raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
        return self.downloads.offer(made, caller.signed_in, standing)

    async def _make(self, wanted: Wanted, caller: Caller, cancellation: Cancellation) -> MadeFile:
        draft = DraftFile(self._directory)
        try:
            if isinstance(wanted, OfRun):
                written = await self._write_run(wanted, caller, draft, cancellation)
            else:
                written = await self._write_table(wanted, caller, draft, cancellation)
            if wanted.format == "sql":
                for note in [written.cut, *written.notes] if written.cut else written.notes:
                    draft.put(f"-- {one_line(note)}\n".encode("utf-8", "replace"))
            draft.finish()
        except BaseException:
            draft.close()
            raise
        details = {
            "source": written.source,
            "rows": str(written.rows),
            "format": wanted.format,
            "bytes": str(draft.size),
            **({"cut": written.cut} if written.cut else {}),
            **({"notes": "; ".join(written.notes)} if written.notes else {}),
        }
        return MadeFile(
            draft,
            written.name,
            wanted.format,
            written.rows,
            cut=written.cut,
            notes=written.notes,
            details=details,
        )

    async def _write_table(
        self, wanted: OfTable, caller: Caller, draft: DraftFile, cancellation: Cancellation
    ) -> Written:
        source = self._calls.source(caller, wanted.source)
        check_sql(source, "its tables cannot be exported")
        table, _ = await self._calls.table(caller, wanted, wanted.table)
        dialect = source.dialect
        sort = [(each.column, each.direction == "desc") for each in wanted.sort]
        columns, notes = wanted.columns, list[str]()
        if wanted.format == "sql":
            columns, notes = _insertable(table, columns)
        order = order_of(table, sort, dialect)
        conditions = conditions_of(wanted, table, dialect)
        text = rows_statement(table, order, conditions, dialect, columns)
        place = qualified(table.schema, table.name, dialect)
        always = [each.name for each in table.columns if each.extra == "identity always"]
        overriding = any(columns is None or name in columns for name in always)
        rows = writer(wanted.format, draft.put, table=place, dialect=dialect, overriding=overriding)
        request = ReadRows(
            Statement(text),
            limits=Limits(MOST_ROWS, self._calls.limits.max_bytes, TIMEOUT_S),
            database=wanted.database,
            sink=WriterSink(rows, lambda: draft.size),
            is_whole=True,
        )
        page, _ = await self._calls.ask(
            caller, request, wanted.source, Page, tool="export", cancellation=cancellation
        )
        rows.end()
        notes += page_notes(page)
        return Written(wanted.table, wanted.source, page.row_count, cut_note(page), notes)

    async def _write_run(
        self, wanted: OfRun, caller: Caller, draft: DraftFile, cancellation: Cancellation
    ) -> Written:
        run = await self._runs.held(wanted.run, caller)
        if not run.is_over:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The statement is still running: its rows are not all there",
                hint="Save them when it has ended.",
            )
        dialect = run.source.dialect
        table = find(dialect).quote("result")
        rows = writer(wanted.format, draft.put, table=table, dialect=dialect)
        written = await asyncio.to_thread(_write_held, run, rows, cancellation)
        notes = [] if run.page is None else page_notes(run.page)
        return Written("result", run.source.name, written, cut_of(run), notes)


def _write_held(run: Run, rows: Writer, cancellation: Cancellation) -> int:
    """Write the rows that are held. Raises: TidegateError RESULT_GONE, CALL_CANCELLED."""
    count = 0
    rows.begin(run.rows.columns)
    for part in typed_rows(run.rows):
        if cancellation.reason is not None:
            raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
        rows.write(part)
        count += len(part)
    rows.end()
    return count


def cut_of(run: Run) -> str:
    """Where a result that is over ends though there was more; empty if it is whole."""
    if run.state == "done" and run.page is not None:
        return cut_note(run.page)
    rows = f"{run.rows.count:,} row{'s' * (run.rows.count != 1)}"
    how = {"cancelled": "was cancelled", "failed": "failed"}.get(run.state, "did not end well")
    return f"cut after {rows}: the statement {how}"


def _insertable(table: Table, columns: list[str] | None) -> tuple[list[str] | None, list[str]]:
    """The columns to which an INSERT may give values, and what is said of the others."""
    computed = [each.name for each in table.columns if each.is_generated]
    wanted = [each.name for each in table.columns] if columns is None else columns
    left_out = [name for name in computed if name in wanted]
    if not left_out:
        return columns, []
    verb = "is" if len(left_out) == 1 else "are"
    note = f"{', '.join(left_out)} {verb} left out, as the table computes the values itself"
    return [name for name in wanted if name not in computed], [note]


def typed_rows(rows: StoredRows) -> Iterator[list[list[Any]]]:
    """The rows of a result as values of their columns' kinds, in parts."""
    readers = [
        _same if rows.is_exact(place) else _READERS.get(column.kind, _same)
        for place, column in enumerate(rows.columns)
    ]
    for part in rows.values():
        yield [
            [
                None if value is None else read(value)
                for read, value in zip(readers, row, strict=True)
            ]
            for row in part
        ]


def _same(value: Any) -> Any:
    return value


def _integer(value: Any) -> Any:
    try:
        return int(value)
    except ValueError:
        return value  # a word, such as that of an infinity


def _float(value: Any) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def _truth(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value)


_READERS: Mapping[ColumnKind, Callable[[Any], Any]] = {
    "integer": _integer,
    "float": _float,
    "boolean": _truth,
    "json": json_raw,
}
"""What reads a value that was held as text, so that it is written as the database's own."""


def read_ticket(body: bytes) -> Wanted:
    """The body of `export-ticket`. Raises: TidegateError ARGUMENT_INVALID."""
    model: Sequence[Any] = (OfRun, OfTable)
    try:
        fields = msgspec.json.decode(body)
        kind = model[0] if isinstance(fields, dict) and "run" in fields else model[1]
        wanted: Wanted = convert_value(fields, kind)
        return wanted
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TidegateError(Code.ARGUMENT_INVALID, f"The body is not valid: {error}") from None
