"""The tables whose rows are kept, as the catalog has them, and how their values are read and
written: numbers and times as the server writes them, and texts by the bytes that are stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tidegate.engines.common.undo_rows import FoundTable, UndoTable, found_table
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import ImageColumn, Row
from tidegate.products.mysql.engine.catalog import sees_triggers
from tidegate.products.mysql.engine.connection import MysqlSession
from tidegate.products.mysql.engine.packets import Rows
from tidegate.sql.change_outline import ChangeOutline
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words

_quote = find("mysql").quote


_TABLE = b"""SELECT engine, table_type FROM information_schema.tables
  WHERE table_schema = ? AND table_name = ?"""


_TRIGGERS = b"""SELECT trigger_name FROM information_schema.triggers
  WHERE event_object_schema = ? AND event_object_table = ? ORDER BY trigger_name"""


_FOLLOWERS = b"""SELECT count(*) FROM information_schema.referential_constraints
  WHERE unique_constraint_schema = ? AND referenced_table_name = ?
  AND NOT (delete_rule IN ('RESTRICT', 'NO ACTION') AND update_rule IN ('RESTRICT', 'NO ACTION'))"""


_COLUMNS = b"""SELECT column_name, lower(data_type), column_type, character_set_name, column_key,
  lower(extra), generation_expression IS NOT NULL AND generation_expression <> ''
  FROM information_schema.columns
  WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position"""


_KEY = b"""SELECT column_name FROM information_schema.statistics
  WHERE table_schema = ? AND table_name = ? AND index_name = 'PRIMARY' ORDER BY seq_in_index"""


_PLAIN = words(
    "tinyint smallint mediumint int bigint decimal date datetime timestamp time year uuid inet4"
    " inet6"
)


_CHARACTERS = words("char varchar tinytext text mediumtext longtext")


_BYTES = words("binary varbinary tinyblob blob mediumblob longblob")


_FLOATS = words("float double")


_NUMBERED = words("bit enum set")


_NOT_TWICE = words("rand uuid uuid_short sys_guid random_bytes sleep")


_NO_CALLS = words(
    "and or not in where set between like when then else case values select from join on using as"
    " exists union all distinct having by into"
)
"""Reserved words: no function has such a name unquoted."""


_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


_CHARSET = re.compile(r"[a-z0-9_]+")


async def find_table(
    session: MysqlSession, outline: ChangeOutline, database: str | None
) -> FoundTable | str:
    name = outline.name[-1][0]
    schema = outline.name[0][0] if len(outline.name) > 1 else database
    if schema is None or len(outline.name) > 2:
        return "its database is not known"
    known = {function.lower() for function in find("mysql").functions} | _NO_CALLS
    calls = {call.lower() for call in outline.calls}
    twice = {call.lower() for call in outline.row_calls}
    if outline.qualified or not calls <= known or not twice.isdisjoint(_NOT_TWICE):
        return "it calls a function that may do more than compute"
    if outline.verb == "merge":
        return "MERGE is no statement of this database"
    if outline.verb == "insert" and not session.setting.mariadb:
        return "MySQL does not say which rows an INSERT has added"
    grants = [str(row[0]) for row in await session.query_internal(b"SHOW GRANTS")]
    if not sees_triggers(grants, schema):
        return "the account lacks TRIGGER, and so cannot see whether its table has triggers"
    tables = await session.query_internal(_TABLE, schema, name)
    if [tuple(map(str, row)) for row in tables] != [("InnoDB", "BASE TABLE")]:
        return "it is not about an InnoDB table"
    table = await read_table(session, schema, name)
    objections = (
        (
            bool((await session.query_internal(_FOLLOWERS, schema, name))[0][0]),
            f"rows of other tables follow those of {name}",
        ),
        (
            any(_read(column) is None for column in table.columns),
            f"{name} has a column of a type that is not kept",
        ),
        (
            any(_kind(column) in _FLOATS for column in table.columns if column.name in table.key),
            f"the primary key of {name} is a floating-point number",
        ),
    )
    return found_table(outline, table, objections)


async def read_table(session: MysqlSession, schema: str, name: str) -> UndoTable:
    """The table as it is now; one without columns if it is not there."""
    found = await session.query_internal(_COLUMNS, schema, name)
    columns = tuple(
        [ImageColumn(str(row[0]), f"{row[1]}:{row[3] or ''}") for row in found if not row[6]]
    )
    key = tuple([str(row[0]) for row in await session.query_internal(_KEY, schema, name)])
    shape = json.dumps([[str(each) for each in row] for row in found] + [list(key)])
    if not {column.name for column in columns}.issuperset(key):
        key = ()  # a part of it is computed, and no value that is kept or written
    triggers = tuple([str(row[0]) for row in await session.query_internal(_TRIGGERS, schema, name)])
    return UndoTable(schema, name, columns, key, shape, frozenset(), triggers)


def _kind(column: ImageColumn) -> str:
    return column.type.partition(":")[0]


def _read(column: ImageColumn) -> str | None:
    """The expression that gives a column's value as text; None for a type that is not kept."""
    name, kind = _quote(column.name), _kind(column)
    if kind in _PLAIN:
        return f"CAST({name} AS CHAR)"
    if kind in _FLOATS:
        return f"CAST(CAST({name} AS DOUBLE) AS CHAR)"
    if kind in _NUMBERED:
        return f"CAST({name} + 0 AS CHAR)"
    if kind in _BYTES or (kind in _CHARACTERS and column.type.partition(":")[2]):
        return f"HEX({name})"
    return None


def is_kept(column: ImageColumn) -> bool:
    """Whether the values of a column are kept exactly."""
    return _read(column) is not None


def values_of(table: UndoTable, rows: Rows) -> Rows:
    """Rows that `reading` gave, with texts and bytes in the place of their digits."""
    codecs = [_codec(column) for column in table.columns]
    return [
        tuple(
            [
                value if codec is None or value is None else _value(value, codec)
                for codec, value in zip(codecs, row, strict=True)
            ]
        )
        for row in rows
    ]


_CODECS = {"utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "latin1": "cp1252"}
"""The character sets whose texts are kept as texts; of others the bytes are."""


def _codec(column: ImageColumn) -> str | None:
    """How the digits of a column are read, empty for bytes; None if it is not kept as digits."""
    if _read(column) != f"HEX({_quote(column.name)})":
        return None
    return _CODECS.get(column.type.partition(":")[2], "")


def _value(digits: Any, codec: str) -> str | bytes:
    value = bytes.fromhex(str(digits))
    if codec:
        with suppress(UnicodeDecodeError):
            return value.decode(codec)
    return value


def written(column: ImageColumn, value: Any) -> str:
    """A kept value as a literal: it is only ever written as hexadecimal digits, or as a number."""
    kind, _, charset = column.type.partition(":")
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        if kind in _BYTES:
            return f"UNHEX('{value.hex()}')"
        if not _CHARSET.fullmatch(charset):
            raise TidegateError(Code.UNDO_UNAVAILABLE, "A column has an unknown character set.")
        return f"CONVERT(UNHEX('{value.hex()}') USING {charset})"
    text = str(value)
    if kind not in _CHARACTERS and _NUMBER.fullmatch(text):
        return text
    return f"CONVERT(UNHEX('{text.encode().hex()}') USING utf8mb4)"


def reading(table: UndoTable) -> str:
    return ", ".join([_read(column) or "NULL" for column in table.columns])


def place_of(table: UndoTable) -> str:
    return f"{_quote(table.schema)}.{_quote(table.name)}"


def key_condition(table: UndoTable, keys: Sequence[Row]) -> str:
    """That a row has one of these keys."""
    columns = [table.columns[place] for place in table.key_places]
    names = ", ".join([_quote(column.name) for column in columns])
    listed = ", ".join(
        [
            f"({', '.join([written(c, v) for c, v in zip(columns, key, strict=True)])})"
            for key in keys
        ]
    )
    return f"({names}) IN ({listed})"
