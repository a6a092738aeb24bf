"""`get_schema_info`: tables, columns, keys and comments, for people and models to read.

A schema of many tables is summed up unless something narrower is asked for. The compact form shows
names alone, or within a budget of bytes what `search` of `core` shows. What the caller may not
read is not shown; everything is sorted, so that the same schema is the same text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.results import Truncation
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.products.pgedge.surface.databases import Databases
from tidegate.products.pgedge.surface.query import READS
from tidegate.products.pgedge.surface.schema_details import (
    UNKNOWN,
    Details,
    TableDetails,
    read_details,
)
from tidegate.protocol.model import ToolResult, text
from tidegate.search.privileges import readable_catalog
from tidegate.search.shorthand import printable
from tidegate.sql.dialects import find
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import wrong_argument
from tidegate.surfaces.tool_context import ToolContext

SUMMARY_FROM = 11
"""Tables from which on a schema is summed up."""
MIN_BYTES = 200
MOST_BYTES = 64_000
"""Bytes of an answer's text, and as many of its data: what follows comes with an offset."""
MOST_SCHEMAS, MOST_NAMED = 100, 50
"""Schemas of a summary that are described, and names of others that are listed."""
NAMED_IN_SUMMARY = 5
"""Tables of each schema that a summary names."""

_VECTOR = re.compile(r"(?:vector|halfvec|sparsevec)(?:\((\d+)\))?|FLOAT\[(\d+)\]")


class SchemaArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema_name: Annotated[str, Meta(description="Tables of this schema only")] | None = None
    table_name: Annotated[str, Meta(description="This table only")] | None = None
    vector_tables_only: Annotated[
        bool, Meta(description="Tables that have a vector column only")
    ] = False
    compact: Annotated[
        bool, Meta(description="Names of tables and columns alone, unless max_bytes is given")
    ] = False
    max_bytes: (
        Annotated[
            int,
            Meta(
                ge=MIN_BYTES,
                description="With compact: bytes in which to show types, keys (pk), likely joins"
                " (~>; by name alone ~?>), common values {…} and ranges [a..b] as well",
            ),
        ]
        | None
    ) = None
    include_partitions: Annotated[bool, Meta(description="Partitions as tables of their own")] = (
        False
    )
    offset: Annotated[int, Meta(description="Tables to leave out at the start", ge=0)] = 0
    source: Annotated[str, Meta(description="The database, if there are several")] | None = None

    @property
    def narrows(self) -> bool:
        """Whether it asks for less than all."""
        return bool(self.schema_name or self.table_name or self.vector_tables_only)


class SchemaTool:
    """Answers calls of `get_schema_info`."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases

    async def run(self, context: ToolContext, args: SchemaArgs) -> ToolResult:
        """Answer one call. Raises: TidegateError."""
        source = await self._databases.name_of(context, args.source)
        catalog = await self._databases.handle(context, source, Browse("catalog"), Catalog)
        details: Details = {}
        if find(catalog.dialect) is find("postgres"):
            details = await read_details(context, self._databases, source) or {}

            async def handle(request: Any, expected: Any) -> Any:
                return await self._databases.handle(context, source, request, expected, quiet=True)

            catalog = await readable_catalog(handle, catalog)
        shown = _SchemaText(catalog, details, args)
        tables = shown.tables
        if tables and args.offset >= len(tables):
            raise wrong_argument(
                "offset", "value", f"must be less than {len(tables)}, the tables that fit",
                required=False,
            )  # fmt: skip
        if not tables:
            if args.narrows:
                raise _nothing_fits(args, catalog)
            return ToolResult(content=[text(_EMPTY)], body=b'{"tables":[]}')
        if args.compact and args.max_bytes is not None:
            from tidegate.surfaces.table_search import outline_tables

            reply = await outline_tables(context, source, catalog, tables, args.max_bytes)
            shorthand = {"database": catalog.database, "shorthand": reply.splitlines()}
            return ToolResult(content=[text(reply)], body=msgspec.json.encode(shorthand))
        if args.compact:
            reply, count = _fitting([], shown.compact(), len(tables), args.offset)
        elif len(tables) >= SUMMARY_FROM and not args.narrows:
            reply, count = "\n".join(shown.summary()), len(tables) - args.offset
        else:
            reply, count = _fitting([_HEADER], shown.full(), len(tables), args.offset)
        return ToolResult(content=[text(reply)], body=shown.structured(count))


def _fitting(lines: list[str], parts: Iterator[str], total: int, offset: int) -> tuple[str, int]:
    """The text of as many tables as there is room for, with how to see the others, and how many
    these are. One table at least is shown."""
    left, count = MOST_BYTES, 0
    for part in parts:
        left -= len(part.encode()) + 1
        if left < 0 and count:
            after = offset + count
            lines.append(
                f"\nCut at {MOST_BYTES:,} bytes: tables {offset + 1} to {after} of {total} are"
                f" shown. Use offset={after} for the next ones, or narrow by schema_name."
            )
            break
        lines.append(part)
        count += 1
    return "\n".join(lines), count


_EMPTY = (
    "No tables that this account may read.\n\nNext steps:\n"
    "- Create a table, or grant SELECT on one to the account of this source.\n"
    "- Ask the operator whether this is the right database."
)
_HEADER = "Database Schema Information:\n============================"


class _SchemaText:
    """The tables that fit the arguments, and the texts about them."""

    def __init__(self, catalog: Catalog, details: Details, args: SchemaArgs) -> None:
        self._catalog = catalog
        self._details = details
        self._args = args
        self.tables = sorted(
            (table for table in catalog.tables if self._fits(table)),
            key=lambda table: (table.schema, table.name),
        )
        self._partitions = Counter(
            each.parent for each in details.values() if each.parent is not None and each.readable
        )

    def _of(self, table: Table) -> TableDetails:
        return self._details.get((table.schema, table.name), UNKNOWN)

    def _fits(self, table: Table) -> bool:
        args, details = self._args, self._of(table)
        if not details.readable:
            return False
        if details.parent is not None and not (args.include_partitions or args.table_name):
            return False
        if args.schema_name is not None and table.schema != args.schema_name:
            return False
        if args.table_name is not None and args.table_name not in (
            table.name,
            f"{table.schema}.{table.name}",
        ):
            return False
        return not args.vector_tables_only or any(map(is_vector, table.columns))

    def compact(self) -> Iterator[str]:
        """A line for each table: its name and those of its columns."""
        for table in self.tables[self._args.offset :]:
            yield f"{_name(table)}: {', '.join(printable(column.name) for column in table.columns)}"

    def full(self) -> Iterator[str]:
        """Everything that is known of each table, a text for each."""
        for table in self.tables[self._args.offset :]:
            yield "\n".join(["", *self._table(table)])

    def summary(self) -> Iterator[str]:
        """The schemas, some tables of each, the tables with vectors, and how to see more."""
        yield _HEADER
        yield f"\n{len(self.tables)} tables in {self._catalog.database}:"
        by_schema: dict[str, list[Table]] = {}
        for table in self.tables:
            by_schema.setdefault(table.schema, []).append(table)
        for schema, tables in list(by_schema.items())[:MOST_SCHEMAS]:
            names = ", ".join(table.name for table in tables[:NAMED_IN_SUMMARY])
            more = len(tables) - NAMED_IN_SUMMARY
            rest = f", and {more} more" if more > 0 else ""
            yield f"\n{schema} ({len(tables)} tables): {names}{rest}"
        if len(by_schema) > MOST_SCHEMAS:
            others = list(by_schema)[MOST_SCHEMAS:]
            named = ", ".join(map(printable, others[:MOST_NAMED]))
            rest = f", and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
            yield f"\nOther schemas, see each by schema_name: {named}{rest}"
        vectors = [table for table in self.tables if any(map(is_vector, table.columns))]
        if vectors:
            named = ", ".join(map(_name, vectors[:MOST_NAMED]))
            more = len(vectors) - MOST_NAMED
            rest = f", and {more} more: see them with vector_tables_only=true" if more > 0 else ""
            yield f"\nTables with vector columns: {named}{rest}"
        yield "\nNext steps:"
        yield '- Names of all columns: compact=true, with schema_name="..." for one schema.'
        yield "- Types, likely joins and values: compact=true, max_bytes=4000."
        yield '- Everything about one table: schema_name="...", table_name="...".'

    def _table(self, table: Table) -> Iterator[str]:
        details = self._of(table)
        yield f"{_name(table)} ({_kind(table, details)})"
        if table.comment:
            yield f"  Description: {_one_line(table.comment)}"
        if table.approximate_rows is not None:
            yield f"  Rows: about {table.approximate_rows}"
        if details.partition_key:
            count = self._partitions[table.schema, table.name]
            yield f"  Partitioned by: {details.partition_key}; {count} partitions"
        if details.parent is not None:
            yield f"  Partition of: {'.'.join(details.parent)} {details.bound or ''}".rstrip()
        if details.server is not None:
            yield f"  Foreign server: {details.server}"
        yield "  Columns:" if table.columns else "  Columns: none"
        unique = {each.columns[0] for each in table.indexes if _is_unique_alone(each.columns, each)}
        for column in table.columns:
            yield f"    - {_column(column, column.name in unique)}"
        keys = [column.name for column in sorted(table.columns, key=_key_place) if column.key]
        if keys:
            yield f"  Primary key: {', '.join(keys)}"
        for key in table.foreign_keys:
            target = f"{key.schema}.{key.table}" if key.schema else key.table
            yield (
                f"  Foreign key: {', '.join(key.columns)} -> {target}({', '.join(key.references)})"
            )
        for index in table.indexes:
            if not index.primary:
                kind = "unique " if index.unique else ""
                yield f"  Index: {index.name} {kind}{index.kind} ({', '.join(index.columns)})"

    def structured(self, count: int) -> bytes:
        """The same `count` tables as JSON, as many as there is room for; `nextOffset` and a record
        of what was left out where these are not all."""
        offset, total = self._args.offset, len(self.tables)
        summed_up = total >= SUMMARY_FROM and not self._args.narrows
        parts: list[msgspec.Raw] = []
        left = MOST_BYTES
        for table in self.tables[offset : offset + count]:
            shown = self._as_json(table)
            if self._args.compact or summed_up:
                shown = _names_alone(shown)
            part = msgspec.json.encode(shown)
            left -= len(part) + 1
            if left < 0 and parts:
                break
            parts.append(msgspec.Raw(part))
        body: dict[str, Any] = {"database": self._catalog.database, "tables": parts}
        after = offset + len(parts)
        if after < total:
            body["nextOffset"] = after
            body["truncations"] = [Truncation("bytes", MOST_BYTES, len(parts))]
        return msgspec.json.encode(body)

    def _as_json(self, table: Table) -> dict[str, Any]:
        details = self._of(table)
        shown: dict[str, Any] = {
            "schema": table.schema,
            "name": table.name,
            "kind": _kind(table, details).lower(),
            "comment": table.comment,
            "rows": table.approximate_rows,
            "partitionKey": details.partition_key,
            "partitionOf": ".".join(details.parent) if details.parent else None,
            "bound": details.bound,
            "server": details.server,
            "columns": [_column_as_json(column) for column in table.columns],
            "foreignKeys": [
                {
                    "columns": key.columns,
                    "schema": key.schema,
                    "table": key.table,
                    "references": key.references,
                }
                for key in table.foreign_keys
            ],
            "indexes": [
                {
                    "name": index.name,
                    "columns": index.columns,
                    "unique": index.unique,
                    "kind": index.kind,
                }
                for index in table.indexes
            ],
        }
        return {name: value for name, value in shown.items() if value not in (None, [])}


def is_vector(column: ColumnInfo) -> bool:
    """Whether a column holds vectors."""
    return _VECTOR.fullmatch(column.type.rpartition(".")[2]) is not None


def vector_dimensions(column: ColumnInfo) -> int | None:
    """The declared dimensions of a vector column; None if it is another column or declares none."""
    found = _VECTOR.fullmatch(column.type.rpartition(".")[2])
    return int(found[1] or found[2]) if found is not None and (found[1] or found[2]) else None


def _column(column: ColumnInfo, unique: bool) -> str:
    line = (
        f"{printable(column.name)}: {column.type} ({'nullable' if column.nullable else 'not null'})"
    )
    marks = [printable(column.type_definition)] if column.type_definition else []
    marks += ["unique"] if unique else []
    marks += [column.extra] if column.extra else []
    marks += [f"default {column.default}"] if column.default is not None else []
    marks += [f"masked: {column.masked}"] if column.masked else []
    line += f" [{'; '.join(marks)}]" if marks else ""
    return line + (f" - {_one_line(column.comment)}" if column.comment else "")


def _column_as_json(column: ColumnInfo) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "typeDefinition": column.type_definition,
        "nullable": column.nullable,
        "primaryKey": column.key or None,
        "default": column.default,
        "comment": column.comment,
        "extra": column.extra,
        "masked": column.masked,
        "dimensions": vector_dimensions(column),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _names_alone(table: dict[str, Any]) -> dict[str, Any]:
    names = [column["name"] for column in table.get("columns", ())]
    return {"schema": table["schema"], "name": table["name"], "columns": names}


def _kind(table: Table, details: TableDetails) -> str:
    return "PARTITIONED TABLE" if details.partitioned else table.kind.upper()


def _is_unique_alone(columns: Sequence[str], index: Any) -> bool:
    return index.unique and not index.primary and len(columns) == 1


def _key_place(column: ColumnInfo) -> int:
    return column.key


def _name(table: Table) -> str:
    return printable(f"{table.schema}.{table.name}")


def _one_line(value: str) -> str:
    """A comment on one line, without what a terminal or a reader takes for commands."""
    return printable(" ".join(value.split()))


def _nothing_fits(args: SchemaArgs, catalog: Catalog) -> TidegateError:
    if args.schema_name is not None and args.schema_name not in catalog.schemas:
        known = ", ".join(sorted(catalog.schemas)[:10])
        return wrong_argument(
            "schema_name",
            "value",
            f"names no schema: {args.schema_name[:80]!r}",
            hint=f"Schemas: {known}.",
            required=False,
        )
    if args.table_name is not None:
        return TidegateError(
            Code.TABLE_UNKNOWN, f"There is no table {args.table_name[:80]!r} that you may read"
        )
    return TidegateError(
        Code.TABLE_UNKNOWN,
        "No table that you may read has a vector column",
        hint="Leave out vector_tables_only to see all tables.",
    )


def schema_tool(databases: Databases) -> SurfaceTool:
    """The tool as the surface lists it."""
    return SurfaceTool(
        name="get_schema_info",
        title="Schema of the database",
        description="Get tables, views, columns, types, keys and comments of the database. Large"
        " schemas are summed up; narrow them by schema_name or table_name.",
        args=SchemaArgs,
        run=SchemaTool(databases).run,
        annotations=READS,
    )
