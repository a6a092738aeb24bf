"""Keeps the rows that a change of an InnoDB table touches, and puts them back.

The rows are locked and read, the statement runs, and they are read again by their keys, in one
transaction of REPEATABLE READ, whose locks keep other rows from coming to meet the condition.
Values are kept as what gives the same value back: numbers and times as the server writes them, and
texts by the bytes that are stored.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import structs

from tidegate.engines.common.kept_rows import (
    KeptTable,
    image_of_change,
    key_objection,
    outline_of,
    parts_of,
    reading_rows,
    returning,
    row_bound,
    too_large,
)
from tidegate.engines.common.row_images import RowComparison, is_same_row
from tidegate.engines.mysql.catalog import sees_triggers
from tidegate.engines.mysql.command_protocol import Fields
from tidegate.engines.mysql.connection import COMMIT, ROLLBACK, MysqlSession
from tidegate.engines.mysql.packets import Rows
from tidegate.engines.mysql.row_counts import RowCounter
from tidegate.engines.mysql.types import check_count as check_parameters
from tidegate.engines.mysql.types import pack, read_fields
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import (
    ChangeImage,
    ChangeKeeper,
    Comparison,
    ImageColumn,
    Reversibility,
    Row,
    RowImage,
    TableImage,
)
from tidegate.model.decisions import Permit
from tidegate.model.results import Column
from tidegate.sql.change_outline import ChangeOutline
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words

_quote = find("mysql").quote

_ISOLATION = b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_AT_ONCE = 200
"""Rows that one statement of ours is about."""

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


class _Found(NamedTuple):
    """A table in the catalog, with what prevents that its rows are kept. `charsets` are those of
    columns that have one."""

    table: KeptTable
    objection: str


async def reversibility(
    session: MysqlSession, text: str, parameters: int, database: str | None
) -> Reversibility:
    """Whether the rows of a change can be put back. Raises: ServerError, TidegateError."""
    outline = outline_of(text, "mysql", parameters)
    if isinstance(outline, str):
        return Reversibility(False, outline)
    found = await _find(session, outline, database)
    if isinstance(found, str) or found.objection:
        return Reversibility(False, found if isinstance(found, str) else found.objection)
    return Reversibility(True, triggers=found.table.triggers)


async def run_kept(
    session: MysqlSession,
    text: bytes,
    params: tuple[object, ...] | None,
    outline: ChangeOutline,
    database: str | None,
    permit: Permit,
    keeper: ChangeKeeper,
) -> tuple[tuple[Column, ...], Rows, int]:
    """Run a change, keep its rows and commit it. Returns the columns and rows that it gives, and
    how many rows it changed. The caller ends the session if this raises.

    Raises: ServerError, TidegateError.
    """
    found = await _find(session, outline, database)
    reason = found if isinstance(found, str) else found.objection
    await _begin(session)
    counter = await RowCounter.begin(session, permit, database)
    before: Rows = []
    if not reason and not isinstance(found, str) and outline.verb != "insert":
        most = row_bound(keeper.max_bytes)
        before = await _locked(session, outline, found.table, params, most + 1)
        reason = too_large(keeper.max_bytes) if len(before) > most else ""
    added: Rows = []
    if not reason and not isinstance(found, str) and outline.verb == "insert":
        shown = returning(outline, _reads(found.table)).encode()
        columns, rows, affected = await _run(session, shown, params)
        width = len(columns) - len(found.table.columns)
        added = _values(found.table, [row[width:] for row in rows])
        columns, rows = columns[:width], [row[:width] for row in rows] if width else []
    else:
        columns, rows, affected = await _run(session, text, params)
    if counter is not None:
        await counter.end(session, affected)
    image: ChangeImage | str = reason
    if not reason and not isinstance(found, str):
        table = found.table
        after = added
        if outline.verb != "insert" and before:
            keys = [tuple([row[place] for place in table.key_places]) for row in before]
            after = await _by_keys(session, table, keys, locks=True)
        if outline.verb == "update":
            before, after = _changed(table, before, after)
        image = image_of_change(table, outline, before, after, affected)
    if isinstance(image, str):
        await asyncio.to_thread(keeper.give_up, image)
    else:
        await asyncio.to_thread(keeper.prepare, image)
    await session.end(COMMIT)
    return columns, rows, affected


async def compare(session: MysqlSession, image: ChangeImage) -> Comparison:
    """Compare the rows of an image with those there now. Raises: ServerError, TidegateError."""
    return await _compared(session, image, locks=False)


async def put_back(
    session: MysqlSession, image: ChangeImage, keeper: ChangeKeeper | None
) -> Comparison:
    """Put the rows back in one transaction, or return what stands against it. The caller ends the
    session if this raises.

    Raises: ServerError, TidegateError.
    """
    await _begin(session)
    found = await _compared(session, image, locks=True)
    if found.count or found.reason:
        await session.end(ROLLBACK)
        return found
    made: list[TableImage] = []
    different = 0
    for kept in image.tables:
        table = await _table(session, kept.schema, kept.table)
        await _restore(session, table, kept)
        keys = [kept.key_of(row) for row in kept.rows]
        there = _by_key(kept, await _by_keys(session, table, keys))
        rows = [
            RowImage(row.after, there.get(key)) for row, key in zip(kept.rows, keys, strict=True)
        ]
        pairs = zip(rows, kept.rows, strict=True)
        different += sum([not is_same_row(now.after, then.before) for now, then in pairs])
        made.append(structs.replace(kept, rows=tuple(rows)))
    if different and not found.triggers:
        raise TidegateError(
            Code.UNDO_UNAVAILABLE,
            f"{different:,} rows would not be as they were. Nothing was changed.",
            hint="Correct the rows by statements.",
        )
    if keeper is not None:
        await asyncio.to_thread(keeper.prepare, ChangeImage(tuple(made)))
    await session.end(COMMIT)
    remark = f"triggers changed {different:,} of the rows again" if different else ""
    return Comparison(triggers=found.triggers, remarks=(remark,) if remark else ())


async def _begin(session: MysqlSession) -> None:
    """Begin a transaction whose locks also keep rows away that would come. Raises: ServerError."""
    session.line.query(_ISOLATION)
    await session.line.done()
    await session.open_transaction()


async def _run(
    session: MysqlSession, text: bytes, params: tuple[object, ...] | None
) -> tuple[tuple[Column, ...], Rows, int]:
    """Run the statement of a caller. Raises: ServerError, TidegateError."""
    line = session.line
    if params is None:
        line.query(text)
    else:
        statement, _, count = await line.prepare(text)
        check_parameters(count, params)
        line.execute(statement, pack(params))
    binary = params is not None
    head = await line.answer()
    if not isinstance(head, Fields):
        return (), [], line.affected
    columns, by_text, by_bytes = read_fields(head.definitions)
    rows: Rows = []
    while (more := await line.rows(by_bytes if binary else by_text, binary=binary)) is not None:
        rows += more
    return columns, rows, len(rows)


async def _find(
    session: MysqlSession, outline: ChangeOutline, database: str | None
) -> _Found | str:
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
    grants = [str(row[0]) for row in await session.own(b"SHOW GRANTS")]
    if not sees_triggers(grants, schema):
        return "the account lacks TRIGGER, and so cannot see whether its table has triggers"
    tables = await session.own(_TABLE, schema, name)
    if [tuple(map(str, row)) for row in tables] != [("InnoDB", "BASE TABLE")]:
        return "it is not about an InnoDB table"
    table = await _table(session, schema, name)
    objections = (
        (
            bool((await session.own(_FOLLOWERS, schema, name))[0][0]),
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
    reasons = [reason for applies, reason in objections if applies]
    return _Found(table, reasons[0] if reasons else key_objection(outline, table))


async def _table(session: MysqlSession, schema: str, name: str) -> KeptTable:
    """The table as it is now; one without columns if it is not there."""
    found = await session.own(_COLUMNS, schema, name)
    columns = tuple(
        [ImageColumn(str(row[0]), f"{row[1]}:{row[3] or ''}") for row in found if not row[6]]
    )
    key = tuple([str(row[0]) for row in await session.own(_KEY, schema, name)])
    shape = json.dumps([[str(each) for each in row] for row in found] + [list(key)])
    triggers = tuple([str(row[0]) for row in await session.own(_TRIGGERS, schema, name)])
    return KeptTable(schema, name, columns, key, shape, frozenset(), triggers)


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


def _values(table: KeptTable, rows: Rows) -> Rows:
    """Rows that `_reads` gave, with texts and bytes in the place of their digits."""
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


def _written(column: ImageColumn, value: Any) -> str:
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


def _reads(table: KeptTable) -> str:
    return ", ".join([_read(column) or "NULL" for column in table.columns])


def _place(table: KeptTable) -> str:
    return f"{_quote(table.schema)}.{_quote(table.name)}"


async def _locked(
    session: MysqlSession,
    outline: ChangeOutline,
    table: KeptTable,
    params: tuple[object, ...] | None,
    most: int,
) -> Rows:
    """The rows that the statement is about, which stay locked."""
    text = f"{reading_rows(outline, _reads(table))} LIMIT {most} FOR UPDATE"
    taken = [params[place] for place in outline.rows.params] if params else []
    found = await session.own(text.encode(), *taken)
    return _values(table, found)


def _condition(table: KeptTable, keys: Sequence[Row]) -> str:
    """That a row has one of these keys."""
    columns = [table.columns[place] for place in table.key_places]
    names = ", ".join([_quote(column.name) for column in columns])
    listed = ", ".join(
        [
            f"({', '.join([_written(c, v) for c, v in zip(columns, key, strict=True)])})"
            for key in keys
        ]
    )
    return f"({names}) IN ({listed})"


async def _by_keys(
    session: MysqlSession, table: KeptTable, keys: Sequence[Row], *, locks: bool = False
) -> Rows:
    """The rows with these keys."""
    found: Rows = []
    lock = " FOR UPDATE" if locks else ""
    for some in _portions(keys):
        text = f"SELECT {_reads(table)} FROM {_place(table)} WHERE {_condition(table, some)}{lock}"
        found += await session.own(text.encode())
    return _values(table, found)


def _portions(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(keys), _AT_ONCE):
        yield keys[first : first + _AT_ONCE]


def _by_key(kept: TableImage, rows: Rows) -> dict[Row, Row]:
    return {tuple([row[place] for place in kept.key]): tuple(row) for row in rows}


def _changed(table: KeptTable, before: Rows, after: Rows) -> tuple[Rows, Rows]:
    """The rows that an UPDATE has made other ones: the server counts no others."""
    places = table.key_places
    then = {tuple([row[place] for place in places]): row for row in after}
    kept = [
        row
        for row in before
        if not is_same_row(row, then.get(tuple([row[place] for place in places])))
    ]
    keys = {tuple([row[place] for place in places]) for row in kept}
    return kept, [row for key, row in then.items() if key in keys]


async def _compared(session: MysqlSession, image: ChangeImage, *, locks: bool) -> Comparison:
    comparison = RowComparison()
    triggers: list[str] = []
    for kept in image.tables:
        table = await _table(session, kept.schema, kept.table)
        if table.shape != kept.shape:
            return Comparison(reason=f"the table {kept.table} has another definition now")
        triggers += table.triggers
        keys = [kept.key_of(row) for row in kept.rows]
        there = _by_key(kept, await _by_keys(session, table, keys, locks=locks))
        for row, key in zip(kept.rows, keys, strict=True):
            comparison.add(kept, row, there.get(key))
    return structs.replace(comparison.result, triggers=tuple(triggers))


async def _restore(session: MysqlSession, table: KeptTable, kept: TableImage) -> None:
    """Make the rows what they were. Raises: ServerError, TidegateError."""
    parts = parts_of(kept)
    texts: list[str] = []
    for some in _portions([kept.key_of(row) for row in parts.goes]):
        texts.append(f"DELETE FROM {_place(table)} WHERE {_condition(table, some)}")
    for row in parts.changes:
        was, now = row.before or (), row.after or ()
        sets = [
            f"{_quote(column.name)} = {_written(column, was[place])}"
            for place, column in enumerate(table.columns)
            if was[place] != now[place]
        ]
        key = [kept.key_of(row)]
        texts.append(f"UPDATE {_place(table)} SET {', '.join(sets)} WHERE {_condition(table, key)}")
    names = ", ".join([_quote(column.name) for column in table.columns])
    for some in _portions(parts.returns):
        rows = [
            ", ".join(
                [_written(c, v) for c, v in zip(table.columns, row.before or (), strict=True)]
            )
            for row in some
        ]
        listed = ", ".join(f"({row})" for row in rows)
        texts.append(f"INSERT INTO {_place(table)} ({names}) VALUES {listed}")
    for some in _portions(texts):
        session.line.query(*[text.encode() for text in some])
        for _ in some:
            await session.line.done()
