"""Says for the Data page whether a table, or a result, can be edited, and what its columns take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.errors import TidegateError
from tidegate.model.editing import Editability, EditColumn
from tidegate.model.row_changes import DescribeEditing
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.products.console.runs import Runs
from tidegate.sql.plain_results import plain_result

MOST_STAGED = 5_000
"""Rows that are staged in one tab."""
_CLASSES = ["integer", "real", "text", "blob"]


class EditColumns:
    """Questions that are answered before anyone types."""

    def __init__(self, calls: DataCalls, runs: Runs) -> None:
        self._calls = calls
        self._runs = runs

    async def describe(self, place: Place, table: str, caller: Caller) -> Editability:
        """Whether rows of a table can be edited. Raises: TidegateError TABLE_UNKNOWN, as the
        gate."""
        request = DescribeEditing(
            table=table,
            schema=place.schema,
            database=place.database,
            limits=self._calls.row_limits(1),
        )
        found, _ = await self._calls.ask(caller, request, place.source, Editability)
        return found

    async def of_table(self, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """The answer for a table, as JSON."""
        place = Place.of(query)
        self._calls.source(caller, place.source)
        table, catalog = await self._calls.table(caller, place, query.get("table", ""))
        whole = Place(place.source, place.database, table.schema)
        described = await self.describe(whole, table.name, caller)
        return editability_fields(described, whole, table.name, catalog.database)

    async def of_result(self, id: str, caller: Caller) -> dict[str, Any]:
        """The answer for the result of a run: it is of one table, and has its key. Raises:
        TidegateError RESULT_GONE, as the gate."""
        run = await self._runs.held(id, caller)
        body, columns = run.body, run.rows.columns
        none: dict[str, Any] = {
            "table": None,
            "editable": False,
            "columns": [],
            "key": [],
            "result": [],
        }
        found = plain_result(body.statement, run.source.dialect)
        if isinstance(found, str):
            return {**none, "reason": found}
        schema = found.schema or body.schema
        place = Place(body.source, body.database, schema)
        try:
            table, catalog = await self._calls.table(caller, place, found.table)
        except TidegateError as error:
            return {**none, "reason": error.without_secrets().message}
        names = found.columns_of([column.name for column in table.columns])
        if len(names) != len(columns):
            return {**none, "reason": "The columns of the result are not those of the table."}
        whole = Place(body.source, body.database, table.schema)
        described = await self.describe(whole, table.name, caller)
        fields = editability_fields(described, whole, table.name, catalog.database)
        missing = [name for name in fields["key"] if name not in names]
        if fields["editable"] and missing:
            fields |= {
                "editable": False,
                "reason": f"The result lacks {', '.join(missing)} of the key of {table.name}.",
            }
        return {**fields, "result": [{"column": name} for name in names]}


def editability_fields(
    found: Editability, place: Place, table: str, database: str
) -> dict[str, Any]:
    """An answer as JSON."""
    key = sorted([column for column in found.columns if column.key], key=lambda each: each.key)
    return {
        "table": {
            "source": place.source,
            "database": database,
            "schema": place.schema,
            "name": table,
        },
        "editable": found.editable,
        "reason": found.reason,
        "refused": dict(found.refused),
        "asks": found.asks,
        "undo": found.undo,
        "most_rows": min(found.most or MOST_STAGED, MOST_STAGED),
        "key": [column.name for column in key],
        "columns": [_column(column, database) for column in found.columns],
    }


def _column(column: EditColumn, database: str) -> dict[str, Any]:
    reference = column.reference
    return {
        "name": column.name,
        "type": column.type,
        "editor": column.editor,
        "nullable": column.nullable,
        "default": column.default,
        "has_default": column.has_default,
        "key": column.key or None,
        "editable": not column.reason,
        "insertable": not column.new_reason,
        "reason": column.reason,
        "masked": column.masked,
        "values": list(column.labels) or None,
        "length": column.length,
        "classes": _CLASSES if column.classes else None,
        "references": None
        if reference is None
        else {
            "database": database,
            "schema": reference.schema,
            "table": reference.table,
            "columns": list(reference.columns),
            "from": list(reference.own),
        },
    }
