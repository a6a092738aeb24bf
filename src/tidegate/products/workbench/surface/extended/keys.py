"""`list_indexes` and `list_foreign_keys`, of one table or of a whole schema."""

from __future__ import annotations

import msgspec

from tidegate.model.schema import Table
from tidegate.products.workbench.surface.calls import (
    DatabaseName,
    OnConnection,
    SchemaName,
    TableName,
    answer,
    catalog_of,
    hints,
    table_of,
)
from tidegate.products.workbench.surface.metadata import (
    ForeignKeyEntry,
    IndexEntry,
    foreign_key_entries,
    index_entry,
)
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.tool_context import ToolContext


class OfTables(OnConnection, frozen=True, kw_only=True):
    table: TableName | None = None
    database: DatabaseName | None = None
    schema: SchemaName | None = None


class TableIndexes(msgspec.Struct, frozen=True):
    table: str
    indexes: tuple[IndexEntry, ...]


class Indexes(msgspec.Struct, frozen=True):
    tables: tuple[TableIndexes, ...]


class TableForeignKeys(msgspec.Struct, frozen=True):
    table: str
    foreign_keys: tuple[ForeignKeyEntry, ...]


class ForeignKeys(msgspec.Struct, frozen=True):
    tables: tuple[TableForeignKeys, ...]


async def _tables(context: ToolContext, args: OfTables) -> list[Table]:
    if args.table is not None:
        return [await table_of(context, args.source, args.table, args.schema, args.database)]
    catalog, schema = await catalog_of(context, args.source, args.database, args.schema)
    return [table for table in catalog.tables if table.schema == schema]


async def _list_indexes(context: ToolContext, args: OfTables) -> ToolResult:
    return answer(
        Indexes(
            tuple(
                TableIndexes(table.name, tuple(index_entry(index) for index in table.indexes))
                for table in await _tables(context, args)
                if table.indexes or args.table is not None
            )
        )
    )


async def _list_foreign_keys(context: ToolContext, args: OfTables) -> ToolResult:
    return answer(
        ForeignKeys(
            tuple(
                TableForeignKeys(table.name, foreign_key_entries(table))
                for table in await _tables(context, args)
                if table.foreign_keys or args.table is not None
            )
        )
    )


TOOLS = (
    SurfaceTool(
        name="list_indexes",
        title="List Indexes",
        description="List the indexes of a table, or of all tables of a schema.",
        args=OfTables,
        run=_list_indexes,
        output=Indexes,
        annotations=hints(reads=True),
    ),
    SurfaceTool(
        name="list_foreign_keys",
        title="List Foreign Keys",
        description="List the foreign keys of a table, or of all tables of a schema.",
        args=OfTables,
        run=_list_foreign_keys,
        output=ForeignKeys,
        annotations=hints(reads=True),
    ),
)
