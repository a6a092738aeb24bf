"""Exports of the Data page: a table, or a result that is held, as a file.

A table is read through the gate by a statement of its own, within the limits of exports; a result
is what the page shows, and its statement does not run again. The file is made first, without a
name, so that what fails is an answer and no half of a download; then it is sent as it is taken.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal

import msgspec

from tidegate.edges.console.data_calls import Caller, DataCalls, check_sql
from tidegate.edges.console.data_rows import Narrowed, Sort, conditions_of
from tidegate.edges.console.row_pages import order_of, rows_statement
from tidegate.edges.console.runs import MOST_ROWS, Run, Runs
from tidegate.edges.http.router import Sender
from tidegate.edges.http.sse import HeaderList
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Note
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import ReadRows
from tidegate.model.results import Column, Limits, Page
from tidegate.model.statements import Statement
from tidegate.results.formats import writer
from tidegate.results.row_stream import WriterSink
from tidegate.sql.dialects import find
from tidegate.sql.quoting import qualified

MOST_BYTES = 536_870_912
MOST_AT_ONCE = 2
"""Bytes of one file, and files that are made at once."""
TIMEOUT_S = 60.0
_PART = 262_144
_MOST_BACKLOG = 1_048_576
_WAIT_S = 0.02
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "sql": "application/sql",
}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
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


class Export:
    """A file that was made."""

    def __init__(self, name: str, kind: str, file: IO[bytes]) -> None:
        self._name = name
        self._kind = kind
        self._file = file

    @property
    def headers(self) -> HeaderList:
        name = f'attachment; filename="{self._name}"'
        return [
            (b"content-type", self._kind.encode()),
            (b"content-disposition", name.encode()),
        ]

    async def send(self, sender: Sender, cancellation: Cancellation) -> None:
        """Send the file as its reader takes it."""
        try:
            while part := await asyncio.to_thread(self._file.read, _PART):
                if not await _has_room(sender, cancellation):
                    return
                sender.push(part)
        finally:
            self._file.close()


async def _has_room(sender: Sender, cancellation: Cancellation) -> bool:
    """Wait until the reader has taken most of what was sent; False once it has left."""
    while True:
        if cancellation.reason is not None:
            return False
        if sender.backlog <= _MOST_BACKLOG:
            return True
        await asyncio.sleep(_WAIT_S)


class DataExports:
    """Exports within the operator's rights. `note` puts on record what leaves."""

    def __init__(self, calls: DataCalls, runs: Runs, note: Note, directory: Path) -> None:
        self._calls = calls
        self._runs = runs
        self._note = note
        self._directory = directory
        self._making = asyncio.Semaphore(MOST_AT_ONCE)

    async def check(self, wanted: Wanted, caller: Caller) -> None:
        """Raises: TidegateError for what cannot be exported, before a ticket is given."""
        if isinstance(wanted, OfRun):
            await self._runs.held(wanted.run, caller)
        else:
            await self._statement(wanted, caller)

    async def make(self, wanted: Wanted, caller: Caller) -> Export:
        """The file. Raises: TidegateError, as the gate; LIMIT_BYTES."""
        async with self._making:
            return await self._make(wanted, caller)

    async def _make(self, wanted: Wanted, caller: Caller) -> Export:
        file = TemporaryFile(dir=self._directory)  # noqa: SIM115 - what sends it closes it
        try:
            if isinstance(wanted, OfRun):
                name, source, count = await self._write_run(wanted, caller, _bounded(file))
            else:
                name, source, count = await self._write_table(wanted, caller, _bounded(file))
            await asyncio.to_thread(file.seek, 0)
            details = {"source": source, "rows": str(count), "format": wanted.format}
            signed_in = caller.signed_in
            await asyncio.to_thread(self._note, "console.exported", signed_in.actor_id, details)
        except BaseException:
            file.close()
            raise
        safe = _UNSAFE.sub("_", name).strip("._") or "export"
        return Export(f"{safe[:100]}.{wanted.format}", _TYPES[wanted.format], file)

    async def _statement(self, wanted: OfTable, caller: Caller) -> tuple[str, str, str]:
        """The statement, the table's place in SQL and the source's dialect."""
        source = self._calls.source(caller, wanted.source)
        check_sql(source)
        table, _ = await self._calls.table(caller, wanted, wanted.table)
        sort = [(each.column, each.direction == "desc") for each in wanted.sort]
        order = order_of(table, sort, source.dialect)
        conditions = conditions_of(wanted, table, source.dialect)
        text = rows_statement(table, order, conditions, source.dialect, wanted.columns)
        return text, qualified(table.schema, table.name, source.dialect), source.dialect

    async def _write_table(
        self, wanted: OfTable, caller: Caller, put: Callable[[bytes], None]
    ) -> tuple[str, str, int]:
        text, place, dialect = await self._statement(wanted, caller)
        rows = writer(wanted.format, put, table=place, dialect=dialect)
        request = ReadRows(
            Statement(text),
            limits=Limits(MOST_ROWS, self._calls.limits.max_bytes, TIMEOUT_S),
            database=wanted.database,
            sink=WriterSink(rows),
        )
        page, _ = await self._calls.ask(caller, request, wanted.source, Page, tool="export")
        rows.end()
        return wanted.table, wanted.source, page.row_count

    async def _write_run(
        self, wanted: OfRun, caller: Caller, put: Callable[[bytes], None]
    ) -> tuple[str, str, int]:
        run = await self._runs.held(wanted.run, caller)
        dialect = run.source.dialect

        def write() -> None:
            table = find(dialect).quote("result")
            rows = writer(wanted.format, put, table=table, dialect=dialect)
            rows.begin(run.rows.columns)
            for part in typed_rows(run):
                rows.write(part)
            rows.end()

        await asyncio.to_thread(write)
        return "result", run.source.name, run.rows.count


def typed_rows(run: Run) -> Iterator[list[list[Any]]]:
    """The rows of a result as values of their columns' kinds, in parts."""
    readers = [_reader(column) for column in run.rows.columns]
    for part in run.rows.values():
        yield [
            [
                None if value is None else read(value)
                for read, value in zip(readers, row, strict=True)
            ]
            for row in part
        ]


def _reader(column: Column) -> Callable[[Any], Any]:
    """Reads a value that was held as text, so that it is written as the database's own."""
    if column.kind == "integer":
        return _integer
    if column.kind == "float":
        return _float
    if column.kind == "boolean":
        return _truth
    if column.kind in ("json", "array", "struct"):
        return _tree
    return _same


def _same(value: Any) -> Any:
    return value


def _integer(value: Any) -> Any:
    try:
        return int(value)
    except ValueError:
        return value  # a column of SQLite holds anything


def _float(value: Any) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def _truth(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value)


def _tree(value: Any) -> Any:
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _bounded(file: IO[bytes]) -> Callable[[bytes], None]:
    """What writes into a file, up to the limit."""
    left = MOST_BYTES

    def put(part: bytes) -> None:
        nonlocal left
        left -= len(part)
        if left < 0:
            raise TidegateError(
                Code.LIMIT_BYTES,
                f"The export has over {MOST_BYTES:,} bytes",
                hint="Filter the rows, or choose fewer columns.",
            )
        file.write(part)

    return put


def read_ticket(body: bytes) -> Wanted:
    """The body of `export-ticket`. Raises: TidegateError ARGUMENT_INVALID."""
    model: Sequence[Any] = (OfRun, OfTable)
    try:
        fields = msgspec.json.decode(body)
        kind = model[0] if isinstance(fields, dict) and "run" in fields else model[1]
        wanted: Wanted = msgspec.convert(fields, kind)
        return wanted
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise TidegateError(Code.ARGUMENT_INVALID, f"The body is not valid: {error}") from None
