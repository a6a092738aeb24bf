"""Schemas, tables, columns, keys and DDL of MySQL and MariaDB. A schema is a database here.

A source whose URL names a database shows that one; others can be asked for by name. Without one in
the URL all databases that the account sees are shown, except the system's.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.schema import (
    Catalog,
    ColumnInfo,
    Counts,
    Databases,
    Ddl,
    Description,
    ForeignKey,
    Index,
    Table,
)
from tidegate.products.mysql.engine.connection import MysqlSession
from tidegate.products.mysql.engine.errors import ServerError
from tidegate.products.mysql.engine.packets import Rows
from tidegate.sql.dialects import find

_quote = find("mysql").quote
_literal = find("mysql").text_literal

SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")

DATABASES = b"SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1"

STORED_FUNCTIONS = b"""
SELECT DISTINCT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = 'FUNCTION'"""

_NAMES = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES
WHERE {where} AND TABLE_TYPE <> 'SEQUENCE' AND TABLE_TYPE <> 'TEMPORARY' ORDER BY 1, 2"""

_TABLES = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, TABLE_COMMENT, CREATE_OPTIONS
FROM information_schema.TABLES WHERE {where}"""

_COLUMNS = """
SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT,
  COLUMN_COMMENT, EXTRA, ORDINAL_POSITION, GENERATION_EXPRESSION
FROM information_schema.COLUMNS WHERE {where}"""

_INDEXES = """
SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NON_UNIQUE, COLUMN_NAME, INDEX_TYPE, SEQ_IN_INDEX
FROM information_schema.STATISTICS WHERE {where}"""

_VIEWS = """
SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE {where}"""

_FOREIGN_KEYS = """
SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA,
  REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME, ORDINAL_POSITION
FROM information_schema.KEY_COLUMN_USAGE WHERE {where} AND REFERENCED_TABLE_NAME IS NOT NULL"""

_RULES = """
SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, UPDATE_RULE, DELETE_RULE
FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE {where}"""

_TRIGGERS = """
SELECT DISTINCT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS
WHERE {where}"""

_GRANT = re.compile(r"GRANT (.+?) ON (\S+|`[^`]*`\.\S+) TO ", re.DOTALL)

_CHANGES = """
alter_db alter_sequence alter_table create_db create_index create_sequence create_table
create_trigger create_view drop_db drop_index drop_sequence drop_table drop_trigger drop_view
rename_table
"""

_COUNTERS = ", ".join(f"'Com_{name}'" for name in _CHANGES.split()) + ", 'Uptime'"


_PARTITIONS = """
SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME, PARTITION_EXPRESSION, SUBPARTITION_EXPRESSION
FROM information_schema.PARTITIONS WHERE {where} AND PARTITION_NAME IS NOT NULL"""


def _where(schema: str | None, table: str | None, column: str = "TABLE_SCHEMA") -> str:
    if schema is None:
        return f"{column} NOT IN ({', '.join(_literal(name) for name in SYSTEM)})"
    narrowed = "" if table is None else f" AND TABLE_NAME = {_literal(table)}"
    return f"{column} = {_literal(schema)}{narrowed}"


def names_query(schema: str | None) -> bytes:
    """Every table and view of one database, or of all but the system's."""
    return _NAMES.format(where=_where(schema, None)).encode()


def details(schema: str | None, table: str | None) -> tuple[bytes, ...]:
    """Tables, columns, indexes, views, foreign keys and their rules, tables with triggers."""
    where = _where(schema, table)
    queries = (_TABLES, _COLUMNS, _INDEXES, _VIEWS, _FOREIGN_KEYS)
    texts = [text.format(where=where) for text in queries]
    texts.append(_RULES.format(where=_where(schema, table, "CONSTRAINT_SCHEMA")))
    texts.append(_TRIGGERS.format(where=_where(schema, None, "EVENT_OBJECT_SCHEMA")))
    return tuple(text.encode() for text in texts)


def counters(mariadb: bool) -> bytes:
    """How often each kind of statement that changes schemas was run since the server started."""
    where = "information_schema" if mariadb else "performance_schema"
    return (
        f"SELECT VARIABLE_NAME, VARIABLE_VALUE, UNIX_TIMESTAMP() FROM {where}.GLOBAL_STATUS"
        f" WHERE VARIABLE_NAME IN ({_COUNTERS}) ORDER BY 1"
    ).encode()


def views(places: list[tuple[str, str]]) -> bytes:
    """The definitions of those of the named tables that are views."""
    return " UNION ALL ".join(
        "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS"
        f" WHERE TABLE_SCHEMA = {_literal(schema)} AND TABLE_NAME = {_literal(table)}"
        for schema, table in places
    ).encode()


def partitions(schema: str | None, table: str | None) -> bytes:
    """By which expressions tables are partitioned. It opens tables, unlike the other queries."""
    return _PARTITIONS.format(where=_where(schema, table)).encode()


Place = tuple[str, str]

_KINDS = {"VIEW": "view", "SYSTEM VIEW": "view"}
_FOREIGN = frozenset({"FEDERATED", "CONNECT", "SPIDER"})
_MERGED = frozenset({"MYISAM", "MRG_MYISAM"})
_OUT_OF_TIME = frozenset({1317, 1969, 3024})


async def describe(session: MysqlSession, request: Browse) -> Description:
    """Answer a Browse that needs the server. Raises: TidegateError TABLE_UNKNOWN, ServerError."""
    databases = tuple([str(row[0]) for row in await session.query_internal(DATABASES)])
    if request.aspect == "databases":
        return Databases(databases)
    schema = _known_schema(request, session.setting.database, databases)
    names = await session.query_internal(names_query(schema))
    if request.aspect == "counts":
        return await _counts(session, names, request, schema)
    if request.aspect == "ddl":
        return await _ddl(session, _known(names, request.table or "", schema))
    return await _catalog(session, names, request, schema, databases)


async def _catalog(
    session: MysqlSession,
    names: Rows,
    request: Browse,
    schema: str | None,
    databases: tuple[str, ...],
) -> Catalog:
    only = None
    if request.table is not None:
        only = _known(names, request.table, schema)
        schema = only[0]
        names = [row for row in names if (row[0], row[1]) == only]
    texts = details(schema, None if only is None else only[1])
    tables, columns, indexes, views, keys, rules, triggers = await session.ask(*texts)
    parted_by: dict[Place, list[str | None]] = defaultdict(list)
    if any("partitioned" in str(row[6]).lower() for row in tables):
        for row in await session.query_internal(
            partitions(schema, None if only is None else only[1])
        ):
            parted_by[row[0], row[1]] += row[2:4]
    grants = [str(row[0]) for row in await session.query_internal(b"SHOW GRANTS")]
    with_triggers = {(row[0], row[1]) for row in triggers}
    row_of = {(row[0], row[1]): row for row in tables}
    metadata = _Metadata(
        columns=_columns(columns, _primary(indexes)),
        indexes=_indexes(indexes),
        foreign_keys=_foreign_keys(keys, rules),
        definitions={(row[0], row[1]): str(row[2]) for row in views if row[2]},
        mergeable=tuple([key for key, row in row_of.items() if str(row[3]).upper() in _MERGED]),
        partitions=parted_by,
    )
    described = [
        _table(
            place,
            row_of[place],
            metadata,
            may_react=place in with_triggers or not sees_triggers(grants, place[0]),
        )
        for place in [(row[0], row[1]) for row in names]
        if place in row_of
    ]
    home = schema or session.setting.database or ""
    shown = (schema,) if schema is not None else _own(databases)
    return Catalog(home, home, shown, tuple(described), "")


class _Metadata(NamedTuple):
    """What information_schema says of the tables of a catalog, by their places.

    `columns`, `indexes` and `foreign_keys` give an empty list for a table that has none.
    `definitions` has the text of each view that the account may read. `mergeable` are the tables
    whose rows a merged table can hold: the server does not list which. `partitions` has the
    expressions by which a table is partitioned and subpartitioned, None for one that is missing.
    """

    columns: defaultdict[Place, list[ColumnInfo]]
    indexes: defaultdict[Place, list[Index]]
    foreign_keys: defaultdict[Place, list[ForeignKey]]
    definitions: dict[Place, str]
    mergeable: tuple[Place, ...]
    partitions: dict[Place, list[str | None]]


def _table(place: Place, row: tuple[Any, ...], metadata: _Metadata, *, may_react: bool) -> Table:
    _, _, kind, engine, rows, comment, _ = row
    columns, indexes = metadata.columns[place], metadata.indexes[place]
    return Table(
        schema=place[0],
        name=place[1],
        kind=_KINDS.get(kind) or ("foreign table" if engine in _FOREIGN else "table"),
        columns=tuple(columns),
        indexes=tuple(indexes),
        foreign_keys=tuple(metadata.foreign_keys[place]),
        comment=comment if comment and kind not in _KINDS else None,
        approximate_rows=None if rows is None or kind in _KINDS else int(rows),
        definition=metadata.definitions.get(place),
        reads=tuple([each for each in metadata.mergeable if each != place])
        if str(engine).upper() == "MRG_MYISAM"
        else (),
        may_react=may_react,
        stored_by=_stored_by(columns, indexes),
        parted_by=_parted_by(metadata.partitions.get(place, ()), columns),
    )


def _parted_by(expressions: Sequence[str | None], columns: list[ColumnInfo]) -> tuple[str, ...]:
    """The columns that partitioning expressions name: too many rather than too few. KEY () names
    none and takes the primary key."""
    texts = [text.lower() for text in expressions if text is not None]
    return tuple(
        [
            column.name
            for column in columns
            if any(column.name.lower() in text for text in texts)
            or (column.key and any(not text.strip() for text in texts))
        ]
    )


def _stored_by(columns: list[ColumnInfo], indexes: list[Index]) -> tuple[str, ...]:
    """InnoDB stores rows in the order of the primary key, or of the first unique key of columns
    that are never NULL. Other storages are taken alike: it costs them a sort at most."""
    never_null = {column.name for column in columns if not column.nullable}
    keys = [each for each in indexes if each.unique and never_null.issuperset(each.columns)]
    primary = [each.columns for each in keys if each.primary]
    return (primary or [each.columns for each in keys] or [()])[0]


def sees_triggers(grants: list[str], schema: str) -> bool:
    """Whether an account with these grants sees the triggers of a database: others see none."""
    places = {"*.*", f"`{schema}`.*", f"`{schema.replace('_', chr(92) + '_')}`.*"}
    for grant in grants:
        found = _GRANT.match(grant)
        if found is not None and found[2] in places:
            privileges = {name.strip().upper() for name in found[1].split(",")}
            if privileges & {"ALL PRIVILEGES", "TRIGGER"}:
                return True
    return False


def _primary(rows: Rows) -> dict[tuple[str, str, str], int]:
    return {(row[0], row[1], row[4]): int(row[6]) for row in rows if row[2] == "PRIMARY" and row[4]}


def _columns(
    rows: Rows, primary: dict[tuple[str, str, str], int]
) -> defaultdict[Place, list[ColumnInfo]]:
    columns: defaultdict[Place, list[ColumnInfo]] = defaultdict(list)
    for schema, table, name, kind, nullable, default, comment, extra, _, made in sorted(
        rows, key=lambda row: row[8]
    ):
        columns[schema, table].append(
            ColumnInfo(
                name=name,
                type=kind,
                nullable=nullable == "YES",
                default=made or (None if default == "NULL" else default),
                key=primary.get((schema, table, name), 0),
                comment=comment or None,
                extra=_extra(extra),
            )
        )
    return columns


def _extra(extra: str | None) -> str | None:
    words = (extra or "").lower().replace("default_generated", "").strip()
    kind, _, rest = words.partition(" ")
    return f"generated {kind}" if rest == "generated" else words or None


def _indexes(rows: Rows) -> defaultdict[Place, list[Index]]:
    grouped: dict[tuple[str, str, str], Rows] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row[2] != "PRIMARY", row[2], row[6])):
        grouped[row[0], row[1], row[2]].append(row)
    indexes: defaultdict[Place, list[Index]] = defaultdict(list)
    for (schema, table, name), parts in grouped.items():
        columns = tuple([part[4] or "<expression>" for part in parts])
        unique, kind = not int(parts[0][3]), str(parts[0][5]).lower()
        indexes[schema, table].append(Index(name, columns, unique, name == "PRIMARY", kind))
    return indexes


def _foreign_keys(rows: Rows, rules: Rows) -> defaultdict[Place, list[ForeignKey]]:
    actions = {(row[0], row[1], row[2]): (row[3], row[4]) for row in rules}
    grouped: dict[tuple[str, str, str], Rows] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row[7]):
        grouped[row[0], row[1], row[2]].append(row)
    keys: defaultdict[Place, list[ForeignKey]] = defaultdict(list)
    for (schema, table, name), parts in sorted(grouped.items()):
        on_update, on_delete = actions.get((schema, table, name), ("NO ACTION", "NO ACTION"))
        keys[schema, table].append(
            ForeignKey(
                name=name,
                columns=tuple([part[3] for part in parts]),
                table=parts[0][5],
                references=tuple([part[6] for part in parts]),
                schema=parts[0][4],
                on_update=on_update,
                on_delete=on_delete,
            )
        )
    return keys


async def _ddl(session: MysqlSession, place: Place) -> Ddl:
    name = f"{_quote(place[0])}.{_quote(place[1])}"
    ((_, text, *_),) = await session.query_internal(f"SHOW CREATE TABLE {name}".encode())
    return Ddl(f"{text};")


async def _counts(
    session: MysqlSession, names: Rows, request: Browse, schema: str | None
) -> Counts:
    """Count the one table, or every table that is not a view."""
    if request.table is not None:
        places = [_known(names, request.table, schema)]
    else:
        places = [(row[0], row[1]) for row in names if row[2] not in _KINDS]
    counts: dict[Place, int] = {}
    for place in places:
        name = f"{_quote(place[0])}.{_quote(place[1])}"
        try:
            ((count,),) = await session.query_internal(f"SELECT COUNT(*) FROM {name}".encode())
        except ServerError as error:
            if request.table is not None or (error.number in _OUT_OF_TIME and not counts):
                raise
            if error.number in _OUT_OF_TIME:
                break  # what was counted is still right
            continue
        counts[place] = count
    return Counts(counts)


def _known_schema(request: Browse, default: str | None, databases: tuple[str, ...]) -> str | None:
    """The one database that is asked for; None for all. Raises: TidegateError TABLE_UNKNOWN."""
    wanted = request.schema or request.database
    if wanted is None:
        return default
    if wanted in databases:
        return wanted
    near = difflib.get_close_matches(wanted, databases, 3)
    hint = f"Did you mean {', '.join(near)}?" if near else None
    raise TidegateError(Code.TABLE_UNKNOWN, f"There is no database `{wanted}`.", hint=hint)


def _known(names: Rows, table: str, schema: str | None) -> Place:
    """A table's place as the catalog spells it. Raises: TidegateError TABLE_UNKNOWN."""
    places = [(row[0], row[1]) for row in names]
    found = [place for place in places if place[1] == table] or [
        place for place in places if place[1].lower() == table.lower()
    ]
    if len(found) == 1 or (found and schema is not None):
        return found[0]
    if found:
        hint = f"Name the database: {', '.join(place[0] for place in found[:5])}."
        raise TidegateError(Code.TABLE_UNKNOWN, f"Several databases have `{table}`.", hint=hint)
    spelled = {place[1].lower(): place[1] for place in places}
    near = difflib.get_close_matches(table.lower(), spelled, 3)
    hint = f"Did you mean {', '.join(spelled[name] for name in near)}?" if near else None
    raise TidegateError(Code.TABLE_UNKNOWN, f"There is no table `{table}`.", hint=hint)


def _own(databases: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in databases if name not in SYSTEM)
