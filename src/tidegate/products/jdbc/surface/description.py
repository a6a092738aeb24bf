"""What a query would give and take, shown before it is confirmed. Nothing of it runs: the database
prepares the statement, within the rules of the gate.

The digest of a description is what a confirmation is bound to. If the columns, the types of the
parameters, the masks or what the statement is rewritten to change, it is another one.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tidegate.engines.common.errors import PROCESS
from tidegate.errors import Code, TidegateError
from tidegate.model.replies import Prepared
from tidegate.model.requests import Browse, Explain, Prepare
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog, Table
from tidegate.model.statements import Statement
from tidegate.products.jdbc.extraction.model import Extraction, TableUse
from tidegate.products.jdbc.result_types import jdbc_type
from tidegate.products.jdbc.surface.connections import Connection
from tidegate.products.jdbc.surface.discover import find_table
from tidegate.products.jdbc.surface.errors import error_text
from tidegate.sql.dialects import find
from tidegate.sql.lex import lex
from tidegate.surfaces.tool_context import ToolContext

LIMITS = Limits(max_rows=50, max_bytes=65_536, timeout_s=10.0)
MOST_NAMES = 20
"""Unknown names that are shown."""

_PASSING = frozenset(
    {
        *(Code.SOURCE_UNKNOWN, Code.SOURCE_UNREACHABLE, Code.SOURCE_BUSY, Code.SOURCE_LOCKED),
        *(Code.LIMIT_RATE, Code.LIMIT_TIME, Code.CALL_CANCELLED, Code.INTERNAL),
        *(Code.STATE_FAILED, Code.AUDIT_UNAVAILABLE, Code.AUDIT_OUTCOME),
    }
)
"""What says nothing of the query."""
_NAMES_UNKNOWN = frozenset({Code.SQL_FAILED, Code.TABLE_UNKNOWN})
_NAME = re.compile(r"""(?:.*\.)?["`\[]?(\w+)["`\]]?""")
_COLUMN = re.compile(r"""(?:["`\[]?(\w+)["`\]]?\.)?["`\[]?([^\W\d]\w*)["`\]]?""")
"""A column, with the table or alias before it if that is one word."""
_COSTS = re.compile(r"cost=[\d.]+\.\.([\d.]+) rows=(\d+)")


class Description(msgspec.Struct, frozen=True):
    """`shown` is the member `description` of the reply."""

    digest: str
    shown: Mapping[str, Any]


async def describe(
    context: ToolContext, connection: Connection, found: Extraction, *, whole: bool = True
) -> Description:
    """The description of a query; without `whole` only what its digest needs.

    A query that the gate or the database refuses has a description that reports it. Raises:
    TidegateError for faults that are not the query's.
    """
    request = Prepare(Statement(found.source_text), limits=LIMITS)
    try:
        prepared = await context.handle(
            request, connection.source, Prepared, reads_only=True, asks=False
        )
    except TidegateError as error:
        if error.code in _PASSING or error.details.get("cause") == PROCESS:
            raise
        return await _problem(context, connection, found, error, whole=whole)
    if not whole:
        return Description(prepared.digest, {})
    shown = _shown(prepared, connection.types)
    if prepared.parameters is not None:
        shown |= await _parameters(context, connection, found, prepared.parameters)
    if not prepared.asks:
        plan = await _plan(context, connection, found.source_text)
        if plan is not None:
            shown["plan"] = plan
    return Description(prepared.digest, shown)


def _shown(prepared: Prepared, types_of: str) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if prepared.columns is not None:
        types = [jdbc_type(column, types_of) for column in prepared.columns]
        shown["columns"] = [
            {
                "index": index,
                "name": column.name,
                "jdbcType": type_.code,
                "jdbcTypeName": type_.name,
                "javaClassName": type_.value_class,
            }
            for index, (column, type_) in enumerate(zip(prepared.columns, types, strict=True), 1)
        ]
    return shown | {
        "tables": prepared.tables,
        "effect": prepared.effect,
        "needsApproval": prepared.asks,
        "masked": [f"{table}.{column}" for table, column in prepared.masked],
    }


async def _parameters(
    context: ToolContext, connection: Connection, found: Extraction, types: Sequence[str]
) -> dict[str, Any]:
    """The parameters with their types. Where the database reports none, that of the column which
    the parameter is compared with replaces it, and the column is named."""
    parameters: list[dict[str, Any]] = [
        {"index": index, "type": type_ or None} for index, type_ in enumerate(types, 1)
    ]
    shown: dict[str, Any] = {"parameters": parameters}
    if not types or all(types):
        return shown
    columns = await _compared_columns(context, connection, found)
    for parameter, column in zip(parameters, columns, strict=False):
        if parameter["type"] is None and column is not None:
            parameter["type"], parameter["column"] = column
    if not any(types):
        rules = find(connection.dialect)
        databases = " and ".join([rules.title, *rules.titles.values()])
        shown["parameterTypes"] = f"not reported by {databases}"
        if any("column" in each for each in parameters):
            shown["parameterTypes"] += "; those shown are of the columns compared with"
    return shown


async def _compared_columns(
    context: ToolContext, connection: Connection, found: Extraction
) -> list[tuple[str, str] | None]:
    """For each parameter the type and the name of the column that it is compared with. None where
    that is no plain column, and in queries with others inside, whose columns have the same names.
    """
    nothing: list[tuple[str, str] | None] = [None] * len(found.parameters)
    tokens = lex(found.source_text, find(connection.dialect).lexical_rules)
    queries = [token.key for token in tokens if token.key in ("SELECT", "WITH", "VALUES", "TABLE")]
    if queries != ["SELECT"] or not any(each.field for each in found.parameters):
        return nothing
    try:
        catalog = await context.handle(Browse("catalog"), connection.source, Catalog)
        tables = [(use, find_table(catalog, use.name)) for use in found.tables]
    except TidegateError:
        return nothing  # it is a help, and no part of what is confirmed
    return [
        None if each.field is None else _column_of(each.field, tables) for each in found.parameters
    ]


def _column_of(field: str, tables: Sequence[tuple[TableUse, Table]]) -> tuple[str, str] | None:
    """The type and the name of the only column that a field can be."""
    written = _COLUMN.fullmatch(field.strip())
    if written is None:
        return None
    owner, name = (written[1] or "").lower(), written[2].lower()
    fitting = [
        (column.type, f"{table.name}.{column.name}")
        for use, table in tables
        if not owner or owner == _plain(use.alias or use.name)
        for column in table.columns
        if column.name.lower() == name
    ]
    return fitting[0] if len(fitting) == 1 else None


def _plain(name: str) -> str:
    """The last part of a name, without quotes, in lower case."""
    return name.rpartition(".")[2].strip('"`[]').lower()


async def _plan(context: ToolContext, connection: Connection, text: str) -> dict[str, Any] | None:
    """The database's estimate; None where it gives none that is understood."""
    if not find(connection.dialect).plans_reveal_sizes:
        return None
    request = Explain(Statement(text), limits=LIMITS)
    try:
        page = await context.handle(request, connection.source, Page, reads_only=True, asks=False)
    except TidegateError:
        return None  # it is a help, and no part of what is confirmed
    rows: list[list[Any]] = msgspec.json.decode(page.rows)
    found = _COSTS.search(str(rows[0][0])) if rows and rows[0] else None
    if found is not None:
        return {"rows": int(found[2]), "cost": float(found[1])}
    return _examined([column.name for column in page.columns], rows)


def _examined(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any] | None:
    """The rows that are read: those of tables that are joined multiply."""
    if "rows" not in names:
        return None
    at = names.index("rows")
    counts = [int(row[at]) for row in rows if row[at] is not None]
    return {"rowsExamined": math.prod(counts)} if counts else None


async def _problem(
    context: ToolContext,
    connection: Connection,
    found: Extraction,
    error: TidegateError,
    *,
    whole: bool,
) -> Description:
    state = error.details.get("sqlstate", "")
    digest = f"{error.code.value} {state}"
    if not whole:
        return Description(digest, {})
    problem: dict[str, Any] = {
        "error": connection.redact(error_text(error, context.tool)),
        "code": error.code.value,
    }
    if error.hint:
        problem["hint"] = error.hint
    shown: dict[str, Any] = {"problem": problem}
    if error.code in _NAMES_UNKNOWN:
        unknown = await _unknown_names(context, connection, found)
        if unknown:
            shown["unknownNames"] = unknown
    return Description(digest, shown)


async def _unknown_names(
    context: ToolContext, connection: Connection, found: Extraction
) -> list[dict[str, Any]]:
    """Tables and columns of the query that the catalog does not show, with names near them."""
    try:
        catalog = await context.handle(Browse("catalog"), connection.source, Catalog)
    except TidegateError:
        return []
    unknown: list[dict[str, Any]] = []
    tables: list[Table] = []
    for use in found.tables:
        try:
            tables.append(find_table(catalog, use.name))
        except TidegateError:
            last = use.name.rpartition(".")[2]
            near = _near(last, [table.name for table in catalog.tables])
            unknown.append({"name": use.name, "kind": "table", "near": near})
    columns = {column.name for table in tables for column in table.columns}
    if len(tables) == len(found.tables) and columns:
        known = {name.lower() for name in columns} | _own_names(found)
        for name in _named(found):
            if name.lower() not in known:
                unknown.append({"name": name, "kind": "column", "near": _near(name, columns)})
    return unknown[:MOST_NAMES]


def _own_names(found: Extraction) -> set[str]:
    """Names that the query itself gives."""
    aliases = [field.alias for field in found.fields] + [use.alias for use in found.tables]
    return {alias.lower().strip('"`[]') for alias in aliases if alias}


def _named(found: Extraction) -> list[str]:
    """What could be the name of a column: fields and sides of conditions that are nothing else."""
    texts = [field.text for field in found.fields]
    texts += [each.field for each in (*found.conditions, *found.filters)]
    names = [match[1] for text in texts if (match := _NAME.fullmatch(text.strip())) is not None]
    return list(dict.fromkeys([name for name in names if not name[0].isdigit()]))


def _near(name: str, names: Iterable[str]) -> list[str]:
    folded = {each.lower(): each for each in names}
    return [folded[each] for each in difflib.get_close_matches(name.lower(), folded, 3)]
