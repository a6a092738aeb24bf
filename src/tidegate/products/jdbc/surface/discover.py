"""`discover`: the columns of a table with JDBC's type codes, or the tables of a schema."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.model.statements import Statement
from tidegate.products.jdbc.result_types import listed_code
from tidegate.products.jdbc.surface.connections import Connection, ConnectionTable
from tidegate.products.jdbc.surface.errors import is_denied
from tidegate.results.column_kinds import read_type
from tidegate.sql import quoting
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.tool_context import ToolContext

PAGE = 200
"""Tables in one answer."""

_NO_ROWS = Limits(max_rows=1, timeout_s=10.0)


class DiscoverArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    connection_id: Annotated[str, Meta(description="The id of `connect`")]
    table: Annotated[str, Meta(description="Table, or schema.table")] | None = None
    schema_pattern: (
        Annotated[str, Meta(description="Lists the tables of these schemas: a name, or with *")]
        | None
    ) = None
    cursor: Annotated[str, Meta(description="`nextCursor` of the list before")] | None = None


class Discovery:
    """Answers `discover`."""

    def __init__(self, connections: ConnectionTable) -> None:
        self._connections = connections

    async def discover(self, context: ToolContext, args: DiscoverArgs) -> Mapping[str, Any]:
        """The fields of the reply. Raises: TidegateError TABLE_UNKNOWN, what the gate refuses, and
        what the database says where its user may not read the table."""
        if args.table is None and args.schema_pattern is None:
            raise wrong_argument("table", "missing", "is required")
        async with self._connections.order(context):
            connection = await self._connections.find(context, args.connection_id)
            async with self._connections.using(connection):
                return await _described(context, connection, args)


async def _described(
    context: ToolContext, connection: Connection, args: DiscoverArgs
) -> Mapping[str, Any]:
    catalog = await context.handle(Browse("catalog"), connection.source, Catalog)
    if args.table is None:
        return _tables(catalog, args.schema_pattern or "*", args.cursor)
    table = find_table(catalog, args.table)
    await _check_right(context, connection, catalog, table)
    return _columns(args.table, table, connection.types)


def find_table(catalog: Catalog, given: str) -> Table:
    """The table that is meant: by its exact name, else by the only name that differs in case; of
    several schemas in the current one. No sign in a name means anything but itself.

    Raises: TidegateError TABLE_UNKNOWN, with the schemas or the names that are near.
    """
    candidates: list[tuple[str | None, str]] = [(None, given)]
    schema, dot, name = given.partition(".")
    if dot and name:
        candidates.append((schema, name))
    for place, wanted in candidates:
        here = [each for each in catalog.tables if _is_in(each, place)]
        fitting = [each for each in here if each.name == wanted] or [
            each for each in here if each.name.lower() == wanted.lower()
        ]
        if len(fitting) > 1:
            default = [each for each in fitting if each.schema == catalog.default_schema]
            fitting = default or fitting
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            places = ", ".join(sorted(f"{each.schema}.{each.name}" for each in fitting)[:5])
            raise TidegateError(
                Code.TABLE_UNKNOWN,
                f"Table not found: several are called {given[:80]}.",
                hint=f"Use one of {places}.",
            )
    wanted = candidates[-1][1].lower()
    names = {each.name.lower(): each.name for each in catalog.tables}
    near = [names[each] for each in difflib.get_close_matches(wanted, names, 3)]
    raise TidegateError(
        Code.TABLE_UNKNOWN,
        f"Table not found: there is no table {given[:80]}.",
        hint=f"Did you mean {' or '.join(near)}?" if near else "List them with schemaPattern.",
    )


def _is_in(table: Table, schema: str | None) -> bool:
    return schema is None or table.schema.lower() == schema.lower()


async def _check_right(
    context: ToolContext, connection: Connection, catalog: Catalog, table: Table
) -> None:
    """See that the user may read the table: a catalog names tables of others, too. Raises:
    TidegateError SQL_FAILED with the SQLSTATE of a missing right."""
    schema = table.schema if table.schema != catalog.default_schema else ""
    place = quoting.qualified(schema, table.name, connection.dialect)
    request = Query(Statement(f"SELECT * FROM {place} WHERE 1 = 0"), limits=_NO_ROWS)
    try:
        await context.handle(
            request, connection.source, Page, reads_only=True, quiet=True, asks=False
        )
    except TidegateError as error:
        if is_denied(error, is_there=True):
            error.details.pop("cause", None)  # the catalog names the table: a right is lacking
            raise


def _columns(given: str, table: Table, dialect: str) -> dict[str, Any]:
    return {
        "table": given,
        "columns": [_column(column, dialect) for column in table.columns],
        "schema": table.schema,
    }


def _column(column: ColumnInfo, dialect: str) -> dict[str, Any]:
    """A column; `size` and `scale` are those that its type declares, `typeDefinition` what a type
    that a user made consists of."""
    code = column.driver_type_code
    _, size, scale = read_type(column.type)
    shown = {
        "name": column.name,
        "type": listed_code(column.type, dialect) if code is None else code,
        "typeName": column.type,
        "size": size,
        "scale": scale,
        "nullable": column.nullable,
        "default": column.default,
        "primaryKey": column.key,
    }
    if column.type_definition is not None:
        shown["typeDefinition"] = column.type_definition
    return shown


def _tables(catalog: Catalog, pattern: str, cursor: str | None) -> dict[str, Any]:
    glob = pattern.replace("%", "*").lower()
    found = [each for each in catalog.tables if fnmatchcase(each.schema.lower(), glob)]
    if cursor is not None and not (cursor.isdecimal() and len(cursor) < 10):
        raise wrong_argument("cursor", "value", "must be the nextCursor of the list before")
    start = int(cursor or 0)
    shown: Sequence[Table] = found[start : start + PAGE]
    reply: dict[str, Any] = {
        "tables": [{"schema": each.schema, "name": each.name, "kind": each.kind} for each in shown],
        "schemas": sorted({each.schema for each in found}),
        "totalTables": len(found),
    }
    if start + PAGE < len(found):
        reply["nextCursor"] = str(start + PAGE)
    return reply
