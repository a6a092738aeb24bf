"""The reference engine: a few tables in memory and a tiny language, enough for the contract suite.

It shows what the contract asks, without a database in the way. Its statements, one at a time, with
an optional `;` behind:

    ROWS n [w]      n rows: the numbers from 1, and a text of w bytes
    VALUES          one row with a value of every type that a result may hold
    ECHO            one row of the parameters that were given
    TABLE name      every row of a table
    COUNT name      how many rows a table has
    SLEEP s         one row, after s seconds
    FAIL text       an error with this text
    APPEND name     adds the parameters as a row to a table, and returns that row
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

from tidegate.engines.api import Capabilities, Row, Sink
from tidegate.engines.faults import closed
from tidegate.engines.url import parse_file_url
from tidegate.errors import Code, GateError
from tidegate.types import (
    Browse,
    Cancellation,
    Catalog,
    Column,
    ColumnInfo,
    Counts,
    Databases,
    Ddl,
    Description,
    Effect,
    Explain,
    ForeignKey,
    Index,
    Judgement,
    Permit,
    Query,
    Rehearsal,
    Source,
    Statement,
    Status,
    Table,
)

SCHEMA = "main"

VALUES: tuple[tuple[str, Any], ...] = (
    ("null", None),
    ("boolean", True),
    ("integer", 42),
    ("bigint", 2**60),
    ("double", 1.5),
    ("decimal", Decimal("12.50")),
    ("text", "naïve – 海"),
    ("empty", ""),
    ("bytes", b"\x00\xff"),
    ("date", date(2024, 2, 29)),
    ("time", time(13, 30)),
    ("timestamp", datetime(2024, 2, 29, 13, 30, tzinfo=UTC)),
    ("interval", timedelta(days=1, seconds=2)),
    ("uuid", UUID(int=1)),
    ("array", [1, [2, None]]),
    ("object", {"a": 1}),
)

_ITEMS = (ColumnInfo("id", "integer", nullable=False, key=1), ColumnInfo("name", "text"))
_PARTS = (
    ColumnInfo("id", "integer", nullable=False, key=1),
    ColumnInfo("item_id", "integer", nullable=False),
)
TABLES = (
    Table(SCHEMA, "items", "table", _ITEMS, (Index("items_pk", ("id",), True, True),)),
    Table(
        SCHEMA,
        "parts",
        "table",
        _PARTS,
        (Index("parts_pk", ("id",), True, True),),
        (ForeignKey("fk_parts_0", ("item_id",), "items", ("id",), SCHEMA),),
    ),
    Table(SCHEMA, "void", "table", _ITEMS),
)


class MemoryEngine:
    """One set of tables, which is gone when it is closed."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=False, schemas=False, inspects=True
    )

    def __init__(self) -> None:
        self.tables: dict[str, list[Row]] = {
            "items": [(number, f"item {number}") for number in range(1, 11)],
            "parts": [(number, number % 10 + 1) for number in range(1, 21)],
            "void": [],
        }
        self._running: set[MemoryCursor] = set()
        self._closed = False

    @classmethod
    async def open(cls, source: Source) -> MemoryEngine:
        if parse_file_url(source.url, ()).path is not None:
            raise GateError(Code.SOURCE_URL, "A `memory://` URL names no file.")
        return cls()

    @property
    def status(self) -> Status:
        return Status("main", SCHEMA, "memory 1")

    async def inspect(self, statement: Statement) -> Judgement | None:
        try:
            word, argument = _read(statement.text)
        except GateError:
            return None
        writes = word == "APPEND"
        return Judgement(
            effect=Effect.WRITE if writes else Effect.READ,
            rule="memory.word",
            reason=f"The statement is {word}.",
            tables=(argument,) if argument in self.tables else (),
        )

    async def run(self, permit: Permit, cancellation: Cancellation) -> MemoryCursor:
        self._check_open()
        request = permit.request
        if isinstance(request, Browse):
            raise GateError(Code.UNSUPPORTED, "Only a query or an explanation can be run.")
        if cancellation.cancelled:
            raise GateError(Code.CALL_CANCELLED, "The call was cancelled.")
        word, argument = _read(request.statement.text)
        if isinstance(request, Explain):
            columns, rows = (Column("detail", "text"),), _several([(f"{word} {argument}",)])
            return MemoryCursor(self._running, columns, rows, permit, cancellation)
        return self._start(request, word, argument, permit, cancellation)

    def _start(
        self, query: Query, word: str, argument: str, permit: Permit, cancellation: Cancellation
    ) -> MemoryCursor:
        params = query.statement.params or ()
        columns = (Column("number", "integer"), Column("text", "text"))
        affected = 0
        if word == "ROWS":
            count, _, width = argument.partition(" ")
            rows = _counted(_number(count), int(_number(width or "1")))
        elif word == "VALUES":
            columns = tuple([Column(name, name) for name, _ in VALUES])
            rows = _several([tuple([value for _, value in VALUES])])
        elif word == "ECHO":
            columns = tuple([Column(f"p{place}") for place in range(1, len(params) + 1)])
            rows = _several([params])
        elif word == "SLEEP":
            columns, rows = columns[:1], _late(_number(argument))
        elif word == "FAIL":
            raise GateError(Code.SQL_FAILED, argument, details={"memory": "FAIL"})
        else:
            table = self._table(argument)
            columns = tuple([Column(column.name, column.type) for column in table.columns])
            stored = self.tables[table.name]
            if word == "COUNT":
                columns, rows = (Column("count", "integer"),), _several([(len(stored),)])
            elif word == "TABLE":
                rows = _several(list(stored))
            else:
                if permit.effect < Effect.WRITE:
                    raise GateError(Code.POLICY_READ_ONLY, "APPEND needs a permit to write.")
                stored.append(params)
                affected, rows = 1, _several([params])
        return MemoryCursor(self._running, columns, rows, permit, cancellation, affected)

    async def rehearse(self, permit: Permit, cancellation: Cancellation) -> Rehearsal:
        raise GateError(Code.UNSUPPORTED, "This engine rehearses nothing")

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        self._check_open()
        request = permit.request
        if not isinstance(request, Browse):
            raise GateError(Code.UNSUPPORTED, "Only metadata can be described.")
        if request.schema not in (None, SCHEMA):
            raise GateError(Code.TABLE_UNKNOWN, f"There is no schema `{request.schema}`.")
        if request.aspect == "status":
            return self.status
        if request.aspect == "databases":
            return Databases(("main",))
        if request.aspect == "ddl":
            table = self._table(request.table or "")
            columns = ", ".join([f"{column.name} {column.type}" for column in table.columns])
            return Ddl(f"TABLE {table.name} ({columns});")
        tables = TABLES if request.table is None else (self._table(request.table),)
        if request.aspect == "counts":
            return Counts({(SCHEMA, table.name): len(self.tables[table.name]) for table in tables})
        return Catalog("main", SCHEMA, (SCHEMA,), tables, await self.stamp())

    async def stamp(self) -> str:
        self._check_open()
        return "1"

    async def close(self) -> None:
        self._closed = True
        for cursor in list(self._running):
            cursor.stop(Code.SOURCE_NOT_CONNECTED, "The source was closed.")

    def _check_open(self) -> None:
        if self._closed:
            raise closed()

    def _table(self, name: str) -> Table:
        for table in TABLES:
            if table.name == name.lower():
                return table
        near = difflib.get_close_matches(name.lower(), self.tables, 1)
        hint = f"Did you mean `{near[0]}`?" if near else None
        raise GateError(Code.TABLE_UNKNOWN, f"There is no table `{name}`.", hint=hint)


class MemoryCursor:
    """A running statement: an asynchronous generator of rows, with a time limit."""

    def __init__(
        self,
        running: set[MemoryCursor],
        columns: tuple[Column, ...],
        rows: AsyncGenerator[Row],
        permit: Permit,
        cancellation: Cancellation,
        affected: int = 0,
    ) -> None:
        self.columns = columns
        self.affected = affected
        self._rows = rows
        self._running = running
        self._cancellation = cancellation
        self._error: GateError | None = None
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        seconds = permit.limits.timeout_s
        self._alarm = asyncio.get_running_loop().call_later(
            seconds, self.stop, Code.LIMIT_TIME, f"The statement was stopped after {seconds:g} s."
        )
        running.add(self)
        cancellation.listen(self._cancelled)

    async def fetch(self, max_rows: int) -> list[Row]:
        coming = asyncio.ensure_future(self._collect(max_rows))
        try:
            await asyncio.wait({coming, self._stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not coming.done():
                coming.cancel()
                await asyncio.wait({coming})
        if self._error is not None:
            raise self._error
        return coming.result()

    async def pour(self, sink: Sink) -> None:
        while wanted := sink.wanted:
            sink.add(await self.fetch(wanted))

    async def close(self) -> None:
        self._alarm.cancel()
        self._cancellation.forget(self._cancelled)
        self._running.discard(self)
        await self._rows.aclose()

    def stop(self, code: Code, message: str) -> None:
        """End the statement: whoever fetches gets this error."""
        if self._error is None:
            self._error = GateError(code, message)
            self._stopped.set_result(None)

    def _cancelled(self) -> None:
        self.stop(Code.CALL_CANCELLED, "The call was cancelled.")

    async def _collect(self, max_rows: int) -> list[Row]:
        rows: list[Row] = []
        while len(rows) < max_rows and (row := await anext(self._rows, None)) is not None:
            rows.append(row)
        return rows


def _read(text: str) -> tuple[str, str]:
    """The word and the argument of a statement. Raises: GateError SQL_*."""
    first, separator, rest = text.strip().partition(";")
    if separator and rest.strip():
        raise GateError(Code.SQL_MULTIPLE, "The text holds more than one statement.")
    if not first.strip():
        raise GateError(Code.SQL_EMPTY, "The text holds no statement.")
    word, _, argument = first.strip().partition(" ")
    if word not in ("ROWS", "VALUES", "ECHO", "TABLE", "COUNT", "SLEEP", "FAIL", "APPEND"):
        raise GateError(Code.SQL_FAILED, f"`{word}` is no statement.", details={"memory": "word"})
    return word, argument.strip()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise GateError(Code.SQL_FAILED, f"`{text}` is no number.") from None


async def _several(rows: list[Row]) -> AsyncGenerator[Row]:
    for row in rows:
        yield row


async def _counted(count: float, width: int) -> AsyncGenerator[Row]:
    text = "x" * width
    for number in range(1, int(count) + 1):
        yield number, text


async def _late(seconds: float) -> AsyncGenerator[Row]:
    await asyncio.sleep(seconds)
    yield (1,)
