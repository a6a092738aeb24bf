"""Schemas, tables, columns, keys and DDL of a SQLite file.

A fixed number of statements, however many tables there are. The CREATE statements are read for what
SQLite shows in no other way: the expressions of computed columns, and which tables a virtual table
may keep rows in.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import apsw
from msgspec import structs

from tidegate.engines.sqlite.apsw_types import Rows
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.inspect import Mode
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.schema import (
    Catalog,
    ColumnInfo,
    Counts,
    Ddl,
    Description,
    ForeignKey,
    Index,
    Status,
    Table,
    Uniqueness,
)
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.index_columns import index_columns
from tidegate.sql.lex import Token, lex

_quote = find("sqlite").quote

_OPENS, _CLOSES = "([{", ")]}"


def expressions(text: str) -> dict[str, str]:
    """Expressions of a table's computed columns by column; empty if they cannot be made out."""
    try:
        tokens = lex(text, find("sqlite").lexical_rules)
    except Refusal:
        return {}
    found: dict[str, str] = {}
    for item in _items(tokens):
        for number, token in enumerate(item[:-1]):
            if number and token.key == "AS" and item[number + 1].key == "(":
                first = item[number + 1]
                found[item[0].text] = text[first.at : _end(item[number + 1 :])]
                break
    return found


def sources(text: str, names: Mapping[str, str]) -> Iterable[str]:
    """The tables that a virtual table's arguments name, perhaps in a string: too many rather than
    too few. `names` are the known ones by their lower-case form."""
    lowered = text.lower()
    arguments = lowered[lowered.find("using") :]
    words = set(re.findall(r"\w+", arguments))
    for lower, name in names.items():
        plain = lower.isidentifier()
        if lower in words if plain else lower in arguments:
            yield name


def _items(tokens: list[Token]) -> list[list[Token]]:
    """What is between the commas of the outermost brackets."""
    items: list[list[Token]] = []
    depth = 0
    for token in tokens:
        depth -= token.key in _CLOSES
        if depth == 0 and token.key == ")":
            break
        if depth == 1 and token.key == ",":
            items.append([])
        elif depth:
            items[-1].append(token)
        elif token.key == "(":
            items.append([])
        depth += token.key in _OPENS
    return [item for item in items if item]


def _end(tokens: list[Token]) -> int:
    """Where the brackets end that the first of these tokens opens."""
    depth = 0
    for token in tokens:
        depth += (token.key == "(") - (token.key == ")")
        if depth == 0:
            return token.at + 1
    return tokens[-1].at


SCHEMA = "main"

_TABLES = """
SELECT name, type, wr FROM pragma_table_list
WHERE schema = 'main' AND type != 'shadow' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
ORDER BY name"""

_VIEWS = "SELECT name, sql FROM sqlite_schema WHERE type = 'view'"
_TRIGGERS = "SELECT DISTINCT lower(tbl_name) FROM sqlite_schema WHERE type = 'trigger'"
_TABLE_DDL = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL"

_COLUMNS = """
SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden
FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c
WHERE t.schema = 'main' AND t.type != 'shadow' AND c.hidden != 1 AND t.name = coalesce(?, t.name)"""

_INDEXES = """
SELECT t.name, i.name, i."unique", i.origin, i.partial, c.name
FROM pragma_table_list AS t, pragma_index_list(t.name) AS i, pragma_index_info(i.name) AS c
WHERE t.schema = 'main' AND t.type = 'table' AND t.name = coalesce(?, t.name)
ORDER BY t.name, i.seq, c.seqno"""

_INDEX_DDL = """
SELECT name, sql FROM sqlite_schema
WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = coalesce(?, tbl_name)"""

_FOREIGN_KEYS = """
SELECT t.name, f.id, f."table", f."from", f."to", f.on_update, f.on_delete
FROM pragma_table_list AS t, pragma_foreign_key_list(t.name) AS f
WHERE t.schema = 'main' AND t.type = 'table' AND t.name = coalesce(?, t.name)
ORDER BY t.name, f.id, f.seq"""

_KINDS = {"table": "table", "view": "view", "virtual": "virtual table"}
_GENERATED = {2: "generated virtual", 3: "generated stored"}


def describe(
    session: SqliteSession,
    progress_handler: ProgressHandler,
    request: Browse,
    status: Status,
    identity: str,
) -> Description:
    """Answer a Browse that needs the database. Raises: TidegateError TABLE_UNKNOWN, LIMIT_TIME."""
    # OBSERVE, since a virtual table may prepare changes of its own while it is connected.
    with session.stepping(progress_handler), session.mode(Mode.OBSERVE):
        if request.schema not in (None, SCHEMA):
            raise TidegateError(
                Code.TABLE_UNKNOWN,
                f"There is no schema `{request.schema}`.",
                hint="SQLite has the one schema `main`.",
            )
        if request.aspect == "ddl":
            return _ddl(session, _known(session, request.table or ""))
        if request.aspect == "counts":
            return _counts(session, request.table)
        return _catalog(session, request, status, identity)


def schema_version(session: SqliteSession, identity: str) -> str:
    """The schema's version and the file's identity. Raises: apsw.Error."""
    version = session.connection.execute("PRAGMA schema_version").fetchall()
    return f"{identity}.{version[0][0]}"


def _catalog(session: SqliteSession, request: Browse, status: Status, identity: str) -> Catalog:
    mark = schema_version(session, identity)
    listed = _all(session, _TABLES)
    names = {row[0].lower(): row[0] for row in listed}
    only = None
    if request.table is not None:
        only = _known(session, request.table)
        listed = [row for row in listed if row[0] == only]
    columns = _columns(session, listed, only)
    indexes = _indexes(session, only)
    unique = _uniqueness(session, indexes, columns, only)
    keys = _foreign_keys(session, columns, names, only)
    estimates = _estimates(session)
    views = dict(_all(session, _VIEWS))
    reads = _read_table_ddl(session, listed, columns, names)
    with_triggers = {row[0] for row in _all(session, _TRIGGERS)}
    tables = [
        Table(
            schema=SCHEMA,
            name=name,
            kind=_KINDS.get(str(kind), str(kind)),
            columns=tuple(columns.get(name, ())),
            indexes=tuple(indexes.get(name, ())),
            foreign_keys=tuple(keys.get(name, ())),
            approximate_rows=estimates.get(name),
            definition=views.get(name),
            reads=tuple([(SCHEMA, other) for other in reads.get(name, ())]),
            may_react=name.lower() in with_triggers,
            stored_by=_stored_by(columns.get(name, ()), bool(without_rowid)),
            uniqueness=tuple(unique.get(name, ())),
        )
        for name, kind, without_rowid in listed
    ]
    return Catalog(status.database, SCHEMA, (SCHEMA,), tuple(tables), mark)


def _stored_by(columns: Sequence[ColumnInfo], without_rowid: bool) -> tuple[str, ...]:
    """The primary key of a table without rowids, or the column that is the rowid."""
    key = sorted([each for each in columns if each.key], key=lambda each: each.key)
    is_rowid = len(key) == 1 and key[0].type.upper() == "INTEGER"
    return tuple([each.name for each in key]) if without_rowid or is_rowid else ()


def _columns(session: SqliteSession, listed: Rows, only: str | None) -> dict[str, list[ColumnInfo]]:
    try:
        rows = _all(session, _COLUMNS, only)
    except apsw.SQLError:
        # One broken view, or a virtual table whose module is missing, fails the whole join.
        rows = [row for name, *_ in listed for row in _columns_of(session, name)]
    without_rowid = {name for name, _, wr in listed if wr}
    key_sizes: dict[str, int] = defaultdict(int)
    for table, *_, key, _ in rows:
        key_sizes[table] += key > 0
    columns: dict[str, list[ColumnInfo]] = defaultdict(list)
    for table, name, kind, not_null, default, key, hidden in rows:
        is_rowid = (
            key == 1
            and key_sizes[table] == 1
            and kind.upper() == "INTEGER"
            and table not in without_rowid
        )
        columns[table].append(
            ColumnInfo(
                name=name,
                type=kind or "",
                nullable=not not_null and not is_rowid,
                default=default,
                key=key,
                extra=_GENERATED.get(hidden),
            )
        )
    return columns


def _read_table_ddl(
    session: SqliteSession,
    listed: Rows,
    columns: dict[str, list[ColumnInfo]],
    names: dict[str, str],
) -> dict[str, list[str]]:
    """Put in the expressions of computed columns; which tables a virtual one holds rows of."""
    virtual = {name for name, kind, _ in listed if kind == "virtual"}
    computed = {name for name, known in columns.items() if any(each.extra for each in known)}
    if not virtual and not computed:
        return {}
    from tidegate.engines.sqlite.catalog import expressions, sources

    reads: dict[str, list[str]] = {}
    for name, text in _all(session, _TABLE_DDL):
        if name in virtual:
            reads[name] = [other for other in sources(text, names) if other != name]
        if name in computed:
            formulas = expressions(text)
            columns[name] = [
                structs.replace(each, default=formulas.get(each.name)) if each.extra else each
                for each in columns[name]
            ]
    return reads


def _columns_of(session: SqliteSession, table: str) -> Rows:
    query = (
        'SELECT ?1, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden'
        " FROM pragma_table_xinfo(?1) AS c WHERE c.hidden != 1"
    )
    try:
        return session.connection.execute(query, (table,)).fetchall()
    except apsw.SQLError:
        return []


def _indexes(session: SqliteSession, only: str | None) -> dict[str, list[Index]]:
    grouped: dict[tuple[str, str, int, str, int], list[str]] = defaultdict(list)
    for table, name, unique, origin, partial, column in _all(session, _INDEXES, only):
        grouped[table, name, unique, origin, partial].append(column or "<expression>")
    indexes: dict[str, list[Index]] = defaultdict(list)
    for (table, name, unique, origin, partial), columns in grouped.items():
        indexes[table].append(
            Index(name, tuple(columns), bool(unique), origin == "pk", usable=not partial)
        )
    return indexes


def _uniqueness(
    session: SqliteSession,
    indexes: Mapping[str, Sequence[Index]],
    columns: Mapping[str, Sequence[ColumnInfo]],
    only: str | None,
) -> dict[str, list[Uniqueness]]:
    """Of the unique indexes that are partial or have expressions, which only their text tells."""
    unusual = {
        index.name: table
        for table, group in indexes.items()
        for index in group
        if index.unique and (not index.usable or "<expression>" in index.columns)
    }
    unique: dict[str, list[Uniqueness]] = defaultdict(list)
    if not unusual:
        return unique
    dialect = find("sqlite")
    for name, text in _all(session, _INDEX_DDL, only):
        if name in unusual:
            table = unusual[name]
            known = [column.name for column in columns.get(table, ())]
            named = index_columns(text, table, known, dialect)
            unique[table].append(Uniqueness(name, named))
    return unique


def _foreign_keys(
    session: SqliteSession,
    columns: dict[str, list[ColumnInfo]],
    names: dict[str, str],
    only: str | None,
) -> dict[str, list[ForeignKey]]:
    grouped: dict[tuple[str, int], Rows] = defaultdict(list)
    for row in _all(session, _FOREIGN_KEYS, only):
        grouped[row[0], row[1]].append(row)
    keys: dict[str, list[ForeignKey]] = defaultdict(list)
    for (table, number), rows in grouped.items():
        _, _, parent, _, to, on_update, on_delete = rows[0]
        parent = names.get(str(parent).lower(), str(parent))
        if to is None:  # REFERENCES without columns means the parent's primary key
            found = columns[parent] if parent in columns else _columns(session, [], parent)[parent]
            named = sorted((column.key, column.name) for column in found)
            references = [name for key, name in named if key]
        else:
            references = [str(row[4]) for row in rows]
        keys[table].append(
            ForeignKey(
                name=f"fk_{table}_{number}",
                columns=tuple(row[3] for row in rows),
                table=parent,
                references=tuple(references),
                schema=SCHEMA,
                on_update=on_update,
                on_delete=on_delete,
            )
        )
    return keys


def _estimates(session: SqliteSession) -> dict[str, int]:
    """Row counts as of the last ANALYZE, if there was one."""
    try:
        rows = _all(session, "SELECT tbl, stat FROM sqlite_stat1 WHERE stat IS NOT NULL")
    except apsw.SQLError:
        return {}
    estimates: dict[str, int] = {}
    for table, stat in rows:
        first = str(stat).partition(" ")[0]
        if first.isdecimal():
            estimates[table] = max(int(first), estimates.get(table, 0))
    return estimates


def _ddl(session: SqliteSession, table: str) -> Ddl:
    rows = session.connection.execute(
        "SELECT sql FROM sqlite_schema WHERE (name = ?1 OR tbl_name = ?1) AND sql IS NOT NULL"
        " ORDER BY name = ?1 DESC, type, name",
        (table,),
    ).fetchall()
    return Ddl(";\n".join(row[0] for row in rows) + ";")


def _counts(session: SqliteSession, table: str | None) -> Counts:
    """Count the one table, or every table that is not a view."""
    if table is not None:
        names = [_known(session, table)]
    else:
        names = [name for name, kind, _ in _all(session, _TABLES) if kind != "view"]
    counts: dict[tuple[str, str], int] = {}
    for name in names:
        try:
            found = session.connection.execute(
                f"SELECT count(*) FROM main.{_quote(name)}",
                can_cache=False,
            ).fetchall()
        except apsw.InterruptError:
            if table is not None or not counts:
                raise
            break  # out of time: what was counted is still right
        except apsw.Error:
            if table is not None:
                raise
            continue
        counts[SCHEMA, name] = found[0][0]
    return Counts(counts)


def _known(session: SqliteSession, table: str) -> str:
    """A table's name as the catalog spells it. Raises: TidegateError TABLE_UNKNOWN."""
    names = {row[0].lower(): row[0] for row in _all(session, _TABLES)}
    found = names.get(table.lower())
    if found is None:
        near = difflib.get_close_matches(table.lower(), names, 3)
        hint = f"Did you mean {', '.join(names[name] for name in near)}?" if near else None
        raise TidegateError(Code.TABLE_UNKNOWN, f"There is no table `{table}`.", hint=hint)
    return found


def _all(session: SqliteSession, query: str, *params: str | None) -> Rows:
    return session.connection.execute(query, params or None).fetchall()
