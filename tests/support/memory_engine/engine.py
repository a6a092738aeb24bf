"""Runs the statements and operations of the memory engine."""

from __future__ import annotations

import asyncio
import difflib
import secrets
from collections.abc import AsyncGenerator
from typing import Any, ClassVar

from msgspec import structs

from support.memory_engine.cursor import MemoryCursor
from support.memory_engine.language import OPERATIONS, read
from support.memory_engine.requests import CountAll
from support.memory_engine.tables import ROWS, SCHEMA, TABLES, VALUES
from tidegate.engines.api import Capabilities, Row
from tidegate.engines.common.errors import closed
from tidegate.engines.common.permit_checks import (
    check_cancelled,
    describe_of,
    operation_of,
    query_of,
)
from tidegate.engines.common.roles import refuse_identity
from tidegate.engines.registry import resolve_options
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Explain, Operation, Query
from tidegate.model.results import Column, Document
from tidegate.model.schema import Catalog, Counts, Databases, Ddl, Description, Status, Table
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.results.json_values import encode

Tables = dict[str, list[Row]]

DATABASES: dict[str, Tables] = {}
"""The tables of the databases that have a name, which all connections share."""


class MemoryEngine:
    """One set of tables. Without a name it is gone when the engine is closed."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        explains_as_json=False, transactions=False, schemas=False, inspects=True
    )

    def __init__(self, tables: Tables, version: str = "1") -> None:
        self.tables = tables
        self._version = version
        self.baskets: dict[str, tuple[str, list[Any]]] = {}
        self._running: set[MemoryCursor] = set()
        self._closed = False

    @classmethod
    async def open(cls, source: Source) -> MemoryEngine:
        name = source.url.partition("://")[2]
        if "/" in name or "?" in name:
            raise TidegateError(
                Code.SOURCE_URL,
                "A `memory://` URL has a name and nothing else.",
                hint="Write memory:// or memory://NAME.",
            )
        options = resolve_options(source)
        if options.get("password", "open sesame") != "open sesame":
            raise TidegateError(Code.SOURCE_UNREACHABLE, "The password is wrong.")
        tables = DATABASES.setdefault(name, fresh()) if name else fresh()
        return cls(tables, options.get("version", "1"))

    @property
    def status(self) -> Status:
        return Status("main", SCHEMA, f"memory {self._version}")

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = 10.0
    ) -> Judgement | None:
        """The gate has read the word; what only the engine knows is which tables there are."""
        if judgement.effect is Effect.UNKNOWN:
            return None
        known = tuple([name for name in judgement.tables if name in self.tables])
        return structs.replace(judgement, tables=known)

    async def run(self, permit: Permit, cancellation: Cancellation) -> MemoryCursor | Document:
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        if isinstance(permit.request, CountAll):
            empty = permit.request.empty
            counts = {name: len(rows) for name, rows in self.tables.items() if rows or empty}
            return Document(encode(counts))
        if isinstance(permit.request, Operation):
            answer = self._perform(operation_of(permit), permit)
            return Document(encode(answer))
        request, _ = query_of(permit)
        word, argument = read(request.statement.text)
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
            columns = tuple([Column(f"p{place}", "") for place in range(1, len(params) + 1)])
            rows = _several([params])
        elif word == "SLEEP":
            columns, rows = columns[:1], _late(_number(argument))
        elif word == "FAIL":
            raise TidegateError(Code.SQL_FAILED, argument, details={"memory": "FAIL"})
        else:
            name, _, given = argument.partition(" ")
            table = self._table(name)
            columns = tuple([Column(column.name, column.type) for column in table.columns])
            stored = self.tables[table.name]
            if word == "COUNT":
                columns, rows = (Column("count", "integer"),), _several([(len(stored),)])
            elif word == "TABLE":
                rows = _several(list(stored))
            elif word == "CLEAR":
                _require(permit, Effect.DESTRUCTIVE)
                affected, rows, columns = len(stored), _several([]), ()
                stored.clear()
            else:
                _require(permit, Effect.WRITE)
                row = tuple(given.split()) if given else params
                stored.append(row)
                affected, rows = 1, _several([row])
        return MemoryCursor(self._running, columns, rows, permit, cancellation, affected)

    def _perform(self, operation: Operation, permit: Permit) -> dict[str, Any]:
        """Answer an operation. Raises: TidegateError ARGUMENT_INVALID, TABLE_UNKNOWN, ..."""
        _require(permit, OPERATIONS.get(operation.name, Effect.UNKNOWN))
        arguments, owner = operation.arguments, permit.actor.id
        kind, _, verb = operation.name.partition(".")
        if kind == "basket":
            if verb == "open":
                id = secrets.token_urlsafe(12)
                self.baskets[id] = owner, []
                return {"basket": id}
            found = self.baskets.get(str(arguments.get("basket")))
            if found is None or found[0] != owner:
                raise TidegateError(Code.ARGUMENT_INVALID, "There is no such basket.")
            if verb == "close":
                del self.baskets[str(arguments["basket"])]
                return {"closed": True}
            if verb == "put":
                found[1].append(arguments.get("item"))
                return {"items": len(found[1])}
            return {"items": found[1]}
        table = self._table(str(arguments.get("table", "")))
        stored = self.tables[table.name]
        if operation.name == "row.add":
            stored.append(tuple(arguments.get("row", ())))
            return {"added": 1}
        if operation.name == "table.clear":
            removed = len(stored)
            stored.clear()
            return {"removed": removed}
        names = [column.name for column in table.columns]
        rows = [dict(zip(names, row, strict=False)) for row in stored]
        return {"table": table.name, "rows": rows}

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        raise TidegateError(Code.UNSUPPORTED, "This engine has no dry run.")

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        refuse_identity(permit)
        self._check_open()
        request = describe_of(permit)
        if request.schema not in (None, SCHEMA):
            raise TidegateError(Code.TABLE_UNKNOWN, f"There is no schema `{request.schema}`.")
        if request.aspect == "databases":
            return Databases(("main",))
        if request.aspect == "ddl":
            table = self._table(request.table or "")
            columns = ", ".join([f"{column.name} {column.type}" for column in table.columns])
            return Ddl(f"TABLE {table.name} ({columns});")
        tables = TABLES if request.table is None else (self._table(request.table),)
        if request.aspect == "counts":
            return Counts({(SCHEMA, table.name): len(self.tables[table.name]) for table in tables})
        return Catalog("main", SCHEMA, (SCHEMA,), tables, await self.schema_version())

    async def schema_version(self) -> str:
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
        raise TidegateError(Code.TABLE_UNKNOWN, f"There is no table `{name}`.", hint=hint)


def fresh() -> Tables:
    """The tables as they are when a database is made."""
    return {name: list(rows) for name, rows in ROWS.items()}


def _require(permit: Permit, effect: Effect) -> None:
    """The engine's own fence: it changes nothing beyond the permit. Raises: TidegateError."""
    if permit.effect < effect:
        raise TidegateError(
            Code.POLICY_READ_ONLY, f"This needs a permit of the effect {effect.label}."
        )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TidegateError(Code.SQL_FAILED, f"`{text}` is no number.") from None


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
