"""Decides what each word of the memory engine's language does."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncGenerator
from typing import ClassVar

from tidegate.calls import Explain, Query
from tidegate.cancellation import Cancellation
from tidegate.engines.api import Capabilities, Row
from tidegate.engines.faults import closed
from tidegate.engines.identities import refuse_identity
from tidegate.engines.memory.cursor import MemoryCursor
from tidegate.engines.memory.shop import ROWS, SCHEMA, TABLES, VALUES
from tidegate.engines.requests import check_wanted, describable, runnable
from tidegate.engines.url import parse_file_url
from tidegate.errors import Code, GateError
from tidegate.metadata import Catalog, Counts, Databases, Ddl, Description, Status, Table
from tidegate.pages import Column
from tidegate.permits import Permit
from tidegate.sources import Source
from tidegate.statements import Effect, Judgement, Rehearsal, Statement


class MemoryEngine:
    """One set of tables, which is gone when it is closed."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        explains_as_json=False, transactions=False, schemas=False, inspects=True
    )

    def __init__(self) -> None:
        self.tables: dict[str, list[Row]] = {name: list(rows) for name, rows in ROWS.items()}
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
        refuse_identity(permit)
        self._check_open()
        request = runnable(permit)
        check_wanted(cancellation)
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
        refuse_identity(permit)
        self._check_open()
        request = describable(permit)
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
