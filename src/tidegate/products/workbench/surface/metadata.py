"""`list_databases`, `list_schemas`, `list_tables`, `describe_table` and `get_table_ddl`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.schema import ColumnInfo, Counts, Databases, Ddl, ForeignKey, Index, Table
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
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.tool_context import ToolContext


class OfDatabase(OnConnection, frozen=True):
    database: DatabaseName | None = None


class OfSchema(OnConnection, frozen=True):
    database: DatabaseName | None = None
    schema: SchemaName | None = None
    include_row_counts: Annotated[bool, Meta(description="Count the rows of each table")] = False


class OfTable(OnConnection, frozen=True):
    table: TableName
    schema: SchemaName | None = None


class DatabaseNames(msgspec.Struct, frozen=True):
    databases: tuple[str, ...]


class SchemaNames(msgspec.Struct, frozen=True):
    schemas: tuple[str, ...]


class TableEntry(msgspec.Struct, frozen=True):
    name: str
    type: str
    row_count: int | UnsetType = UNSET


class Tables(msgspec.Struct, frozen=True):
    tables: tuple[TableEntry, ...]


class ColumnEntry(msgspec.Struct, frozen=True):
    """`is_primary_key` is there only if it is true, what follows only if it is set. `masked` says
    what is shown of values that are hidden from the caller: nothing, a hash, a part.
    `type_definition` says what a user's type consists of."""

    name: str
    data_type: str
    is_nullable: bool
    is_primary_key: bool | UnsetType = UNSET
    default_value: str | UnsetType = UNSET
    extra: str | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    masked: Literal["nothing", "hash", "partial"] | UnsetType = UNSET
    type_definition: str | UnsetType = UNSET


class IndexEntry(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[str, ...]
    is_unique: bool
    is_primary: bool
    type: str


class ForeignKeyEntry(msgspec.Struct, frozen=True):
    """One column of a foreign key; a key of several columns is several entries of one name."""

    name: str
    column: str
    referenced_table: str
    referenced_column: str
    on_delete: str
    on_update: str
    referenced_schema: str | UnsetType = UNSET


class TableDescription(msgspec.Struct, frozen=True):
    columns: tuple[ColumnEntry, ...]
    indexes: tuple[IndexEntry, ...]
    foreign_keys: tuple[ForeignKeyEntry, ...]
    ddl: str | UnsetType = UNSET
    approximate_row_count: int | UnsetType = UNSET


class TableDdl(msgspec.Struct, frozen=True):
    ddl: str


async def _list_databases(context: ToolContext, args: OnConnection) -> ToolResult:
    databases = await context.handle(Browse("databases"), args.source, Databases)
    return answer(DatabaseNames(databases.names))


async def _list_schemas(context: ToolContext, args: OfDatabase) -> ToolResult:
    catalog, _ = await catalog_of(context, args.source, args.database)
    return answer(SchemaNames(catalog.schemas))


async def _list_tables(context: ToolContext, args: OfSchema) -> ToolResult:
    catalog, schema = await catalog_of(context, args.source, args.database, args.schema)
    counts: dict[tuple[str, str], int] = {}
    if args.include_row_counts:
        counts = await _counts(context, args.source, args.database, schema)
    return answer(
        Tables(
            tuple(
                TableEntry(table.name, table.kind, counts.get((schema, table.name), UNSET))
                for table in catalog.tables
                if table.schema == schema
            )
        )
    )


async def _counts(
    context: ToolContext, source: str, database: str | None, schema: str
) -> dict[tuple[str, str], int]:
    """Row counts, or none at all from an engine that cannot count."""
    try:
        request = Browse("counts", schema=schema, database=database)
        return (await context.handle(request, source, Counts)).rows
    except TidegateError as error:
        if error.code is Code.UNSUPPORTED:
            return {}
        raise


async def _describe_table(context: ToolContext, args: OfTable) -> ToolResult:
    table = await table_of(context, args.source, args.table, args.schema)
    return answer(
        TableDescription(
            columns=tuple(column_entry(column) for column in table.columns),
            indexes=tuple(index_entry(index) for index in table.indexes),
            foreign_keys=foreign_key_entries(table),
            ddl=await _ddl(context, args.source, table),
            approximate_row_count=UNSET
            if table.approximate_rows is None
            else table.approximate_rows,
        )
    )


async def _get_table_ddl(context: ToolContext, args: OfTable) -> ToolResult:
    table = await table_of(context, args.source, args.table, args.schema)
    request = Browse("ddl", schema=table.schema, table=table.name)
    return answer(TableDdl((await context.handle(request, args.source, Ddl)).text))


async def _ddl(context: ToolContext, source: str, table: Table) -> str | UnsetType:
    try:
        request = Browse("ddl", schema=table.schema, table=table.name)
        return (await context.handle(request, source, Ddl)).text
    except TidegateError as error:
        if error.code is Code.UNSUPPORTED:
            return UNSET
        raise


def column_entry(column: ColumnInfo) -> ColumnEntry:
    """A column in the document's shape."""
    return ColumnEntry(
        name=column.name,
        data_type=column.type,
        is_nullable=column.nullable,
        is_primary_key=True if column.key else UNSET,
        default_value=UNSET if column.default is None else column.default,
        extra=column.extra or UNSET,
        comment=column.comment or UNSET,
        masked=column.masked or UNSET,
        type_definition=column.type_definition or UNSET,
    )


def index_entry(index: Index) -> IndexEntry:
    """An index in the document's shape."""
    return IndexEntry(index.name, index.columns, index.unique, index.primary, index.kind)


def foreign_key_entries(table: Table) -> tuple[ForeignKeyEntry, ...]:
    """A table's foreign keys in the document's shape: an entry for each column."""
    return tuple(entry for key in table.foreign_keys for entry in _foreign_key(key, table))


def _foreign_key(key: ForeignKey, table: Table) -> Iterator[ForeignKeyEntry]:
    foreign = key.schema if key.schema and key.schema != table.schema else UNSET
    for column, referenced in zip(key.columns, key.references, strict=True):
        yield ForeignKeyEntry(
            key.name, column, key.table, referenced, key.on_delete, key.on_update, foreign
        )


TOOLS = (
    SurfaceTool(
        name="list_databases",
        title="List Databases",
        description="List the databases that a connection can reach.",
        args=OnConnection,
        run=_list_databases,
        output=DatabaseNames,
        annotations=hints(reads=True),
    ),
    SurfaceTool(
        name="list_schemas",
        title="List Schemas",
        description="List the schemas of a database.",
        args=OfDatabase,
        run=_list_schemas,
        output=SchemaNames,
        annotations=hints(reads=True),
    ),
    SurfaceTool(
        name="list_tables",
        title="List Tables",
        description="List the tables and views of a schema, with row counts if asked for.",
        args=OfSchema,
        run=_list_tables,
        output=Tables,
        annotations=hints(reads=True),
    ),
    SurfaceTool(
        name="describe_table",
        title="Describe Table",
        description="Show a table's columns, primary key, indexes, foreign keys and DDL.",
        args=OfTable,
        run=_describe_table,
        output=TableDescription,
        annotations=hints(reads=True),
    ),
    SurfaceTool(
        name="get_table_ddl",
        title="Table DDL",
        description="Show the CREATE statement of a table or view.",
        args=OfTable,
        run=_get_table_ddl,
        output=TableDdl,
        annotations=hints(reads=True),
    ),
)
