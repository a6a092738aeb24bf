"""The description of a table for the Data page: columns, keys both ways, indexes, triggers, DDL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tidegate.errors import TidegateError
from tidegate.judging_thread import compute
from tidegate.model.requests import Browse, ReadRows
from tidegate.model.results import Page
from tidegate.model.schema import Catalog, ColumnInfo, Ddl, ForeignKey, Index, Table
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.products.console.cells import kind_of
from tidegate.products.console.data_calls import Caller, DataCalls, Place, speaks_sql
from tidegate.results.column_kinds import read_type
from tidegate.sql.dialects import find
from tidegate.sql.highlighting import highlight
from tidegate.sql.quoting import literal

MOST_TRIGGERS = 200
_ROWS = msgspec.json.Decoder(list[list[str | None]])
_SQLITE_TRIGGER = re.compile(
    r"\b(BEFORE|AFTER|INSTEAD\s+OF)?\s*\b(INSERT|UPDATE|DELETE)\b", re.IGNORECASE
)
_POSTGRES_EVENTS = ((4, "INSERT"), (8, "DELETE"), (16, "UPDATE"), (32, "TRUNCATE"))


class Trigger(NamedTuple):
    """A trigger of a table."""

    name: str
    timing: str
    event: str


class DataTables:
    """Descriptions of tables."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls

    async def describe(self, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """All that is known of a table but its rows. Raises: TidegateError TABLE_UNKNOWN."""
        place = Place.of(query)
        table, catalog = await self._calls.table(caller, place, query.get("table", ""))
        source = self._calls.source(caller, place.source)
        ddl, reason = await self._ddl(caller, place, table)
        spans = None
        if ddl and speaks_sql(source):
            spans = await compute(ddl, highlight, ddl, source.dialect)
        triggers, unread = await self._triggers(caller, place, table, source)
        return {
            "name": table.name,
            "schema": table.schema,
            "database": catalog.database,
            "kind": table.kind,
            "comment": table.comment or "",
            "rows": table.approximate_rows,
            "filtered": table.filtered,
            "ddl": ddl,
            "ddl_reason": reason,
            "ddl_spans": spans,
            "columns": [_column(each) for each in table.columns],
            "foreign_keys": [_foreign_key(key, table, catalog) for key in table.foreign_keys],
            "referenced_by": _referenced_by(table, catalog),
            "indexes": [_index(index) for index in table.indexes],
            "triggers": [each._asdict() for each in triggers],
            "triggers_reason": unread,
        }

    async def _ddl(self, caller: Caller, place: Place, table: Table) -> tuple[str | None, str]:
        request = Browse("ddl", database=place.database, schema=table.schema, table=table.name)
        try:
            found, _ = await self._calls.ask(caller, request, place.source, Ddl)
        except TidegateError as error:
            return None, error.without_secrets().message
        return found.text, ""

    async def _triggers(
        self, caller: Caller, place: Place, table: Table, source: Source
    ) -> tuple[list[Trigger], str]:
        """The triggers of the table, or why they are not known."""
        template = find(source.dialect).trigger_query
        if not table.may_react or "view" in table.kind:
            return [], ""
        if not template:
            return [], f"{source.name} does not show its triggers."
        dialect = source.dialect
        text = template.format(
            schema=literal(table.schema, dialect), table=literal(table.name, dialect)
        )
        request = ReadRows(
            Statement(text),
            cells="text",
            database=place.database,
            limits=self._calls.row_limits(MOST_TRIGGERS),
        )
        try:
            page, _ = await self._calls.ask(caller, request, place.source, Page, tool="triggers")
        except TidegateError as error:
            return [], error.without_secrets().message
        return [_trigger(row) for row in _ROWS.decode(page.rows)], ""


def _column(column: ColumnInfo) -> dict[str, Any]:
    extra = column.extra or ""
    return {
        "name": column.name,
        "type": column.type,
        "type_definition": column.type_definition or "",
        "kind": kind_of(read_type(column.type)[0]),
        "nullable": column.nullable,
        "default": column.default,
        "generated": extra.startswith(("generated", "identity", "auto")),
        "extra": extra,
        "key": column.key or None,
        "masked": column.masked is not None,
        "comment": column.comment or "",
    }


def _foreign_key(key: ForeignKey, table: Table, catalog: Catalog) -> dict[str, Any]:
    return {
        "name": key.name,
        "columns": list(key.columns),
        "to": {
            "database": catalog.database,
            "schema": key.schema or table.schema,
            "table": key.table,
            "columns": list(key.references),
        },
    }


def _referenced_by(table: Table, catalog: Catalog) -> list[dict[str, Any]]:
    return [
        {
            "name": key.name,
            "columns": list(key.references),
            "from": {
                "database": catalog.database,
                "schema": other.schema,
                "table": other.name,
                "columns": list(key.columns),
            },
        }
        for other in catalog.tables
        for key in other.foreign_keys
        if key.table == table.name and (key.schema or other.schema) == table.schema
    ]


def _index(index: Index) -> dict[str, Any]:
    return {
        "name": index.name,
        "columns": list(index.columns),
        "unique": index.unique,
        "primary": index.primary,
        "method": index.kind,
        "partial": "" if index.usable else "is partial or not finished",
    }


def _trigger(row: Sequence[str | None]) -> Trigger:
    name, *rest = [cell or "" for cell in row]
    if len(rest) == 2:
        return Trigger(name, *rest)
    if rest[0].isdigit():
        return _postgres_trigger(name, int(rest[0]))
    found = _SQLITE_TRIGGER.search(rest[0])
    if found is None:
        return Trigger(name, "", "")
    return Trigger(name, " ".join((found[1] or "BEFORE").upper().split()), found[2].upper())


def _postgres_trigger(name: str, bits: int) -> Trigger:
    timing = "BEFORE" if bits & 2 else "INSTEAD OF" if bits & 64 else "AFTER"
    return Trigger(
        name, timing, " OR ".join([word for bit, word in _POSTGRES_EVENTS if bits & bit])
    )
