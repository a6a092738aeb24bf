"""Reads rows of an InnoDB table exactly, and changes them over what was read.

The rows are locked by their keys and read as undo keeps them: numbers and times as the server
writes them, texts by the bytes that are stored. Values are written in strict mode, so that what
does not fit a column is refused and not cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tidegate.engines.common.edited_images import (
    end_image,
    image_of_edits,
    objection_to_lost,
    remarks_on,
)
from tidegate.engines.common.row_edits import (
    change_of,
    check_rows,
    check_shape,
    in_order,
    keys_in_order,
    narrowed_row,
    new_keys,
    old_keys,
    without_columns,
)
from tidegate.engines.common.row_statements import forms_of
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.engines.common.undo_rows import (
    UndoTable,
    outline_of,
    portions,
    table_to_keep,
)
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import ImageColumn, Row
from tidegate.model.decisions import Permit
from tidegate.model.row_changes import (
    DEFAULT,
    ChangedRows,
    ChangeRows,
    FoundRow,
    FoundRows,
    ReadImages,
    RowEdit,
    TableShape,
)
from tidegate.products.mysql.engine.catalog import sees_triggers
from tidegate.products.mysql.engine.changes import begin, by_keys, send_texts
from tidegate.products.mysql.engine.connection import COMMIT, ROLLBACK, MysqlSession
from tidegate.products.mysql.engine.packets import Rows
from tidegate.products.mysql.engine.row_counts import RowCounter
from tidegate.products.mysql.engine.undo_tables import (
    find_table,
    is_kept,
    place_of,
    read_table,
    reading,
    values_of,
    written,
)
from tidegate.sql.dialects import find

_quote = find("mysql").quote
STRICT = b"SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')"
WAIT = b"SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"
_TABLE = b"""SELECT engine, table_type FROM information_schema.tables
  WHERE table_schema = ? AND table_name = ?"""
_TYPES = b"""SELECT column_name, column_type, lower(extra) FROM information_schema.columns
  WHERE table_schema = ? AND table_name = ?"""
_LABEL = re.compile(r"'((?:[^']|'')*)'")
_FLOATS = ("float:", "double:")


class Table(NamedTuple):
    """A table as it is now. `labels` are those of enums and sets, by the names of their columns,
    `numbered` the column of which the server counts the values up, empty if there is none."""

    undo: UndoTable
    shape: TableShape
    labels: Mapping[str, tuple[str, ...]]
    numbered: str


async def read_images(session: MysqlSession, request: ReadImages) -> FoundRows:
    """Read rows by their keys. Raises: ServerError, TidegateError."""
    schema, keyless = request.schema or "", request.adds
    table = await find_changed(session, schema, request.table, keyless=keyless)
    shape = without_columns(table.shape, request.hidden)
    places = [table.shape.names.index(name) for name in shape.names]
    keys = keys_in_order(request, table.shape)
    found = await _one_by_one(session, table, dict(enumerate(keys)))
    rows = [narrowed_row(found.get(place), places) for place in range(len(keys))]
    return FoundRows(shape, tuple(rows))


async def change_rows(
    session: MysqlSession, permit: Permit, running: RunningStatement[MysqlSession]
) -> ChangedRows:
    """Make the edits in one transaction. The caller ends the session if this raises.

    Raises: ServerError, TidegateError.
    """
    change = change_of(permit)
    table = await find_changed(session, change.schema or "", change.table)
    places = check_shape(change, table.shape)
    if change.tries:
        await check_trial(session, change, table)
        await session.query_internal(WAIT)
    keeper = None if change.tries else permit.keeper
    objection = "" if keeper is None else await undo_objection(session, change)
    await session.query_internal(STRICT)
    await begin(session)
    try:
        there = await read_at_keys(session, table, dict(old_keys(change)))
        seen = {place: narrowed_row(row, places) for place, row in there.items()}
        rekeyed = {new.edit: new.key for new in new_keys(change, seen)}
        taken = await _one_by_one(session, table, rekeyed)
        check_rows(change, seen, {place: narrowed_row(row, places) for place, row in taken.items()})
        counter = await RowCounter.begin(session, permit, change.schema)
        inserted = await write_edits(session, table, change)
        affected = len(change.edits)
        if counter is not None:
            affected = await counter.end(session, affected, returns=True)
        stay = {place: key for place, key in old_keys(change) if place not in rekeyed}
        gone = {place for place, edit in enumerate(change.edits) if edit.values is None}
        stay |= inserted
        after = await read_at_keys(
            session, table, {at: key for at, key in stay.items() if at not in gone}
        )
        moved = {place: key for place, key in rekeyed.items() if place not in inserted}
        after |= await _one_by_one(session, table, moved)
    except BaseException:
        await session.end(ROLLBACK)
        raise
    rows = [narrowed_row(after.get(place), places) for place in range(len(change.edits))]
    if keeper is not None:
        image = image_of_edits(table.undo, change, there, after)
        lost = objection_to_lost(len(change.edits) - len(gone), len(after))
        await end_image(keeper, image, objection or lost)
    running.committing = not change.tries
    await session.end(ROLLBACK if change.tries else COMMIT)
    return ChangedRows(tuple(rows), affected, remarks=remarks_on(table.undo.triggers))


async def find_changed(
    session: MysqlSession, schema: str, name: str, *, keyless: bool = False
) -> Table:
    """A table whose rows can be changed; with `keyless` also one to which they can be added alone,
    and then its shape has no key. Raises: ServerError; TidegateError TABLE_UNKNOWN, UNSUPPORTED."""
    tables = await session.query_internal(_TABLE, schema, name)
    if not tables:
        raise TidegateError(Code.TABLE_UNKNOWN, f"Table not found: {name[:200]}")
    reason = ""
    engine, kind = map(str, tables[0])
    if engine != "InnoDB":
        reason = "is not an InnoDB table: its changes could not be rolled back."
    elif kind != "BASE TABLE":
        reason = f"is a {kind.lower()} table: its rows are not edited here."
    if reason:
        raise TidegateError(Code.UNSUPPORTED, f"{name} {reason}")
    undo = await read_table(session, schema, name)
    keyed = [column for column in undo.columns if column.name in undo.key]
    if keyless:
        pass
    elif not undo.key:
        reason = "has no primary key: its rows cannot be distinguished."
    elif any(column.type.startswith(_FLOATS) for column in keyed):
        reason = "has a floating-point number as its key."
    elif not all(map(is_kept, undo.columns)):
        reason = "has a column of a type that is not compared exactly."
    if reason:
        raise TidegateError(Code.UNSUPPORTED, f"{name} {reason}")
    key = () if keyless else undo.key_places
    shape = TableShape(undo.schema, undo.name, undo.columns, key, undo.shape)
    types = await session.query_internal(_TYPES, schema, name)
    labels = {
        str(row[0]): tuple([each.replace("''", "'") for each in _LABEL.findall(str(row[1]))])
        for row in types
        if str(row[1]).lower().startswith(("enum(", "set("))
    }
    numbered = [str(row[0]) for row in types if "auto_increment" in str(row[2])]
    return Table(undo, shape, labels, numbered[0] if numbered else "")


async def check_trial(session: MysqlSession, change: ChangeRows, table: Table) -> None:
    """Raises: TidegateError UNSUPPORTED for a change that could leave traces after ROLLBACK."""
    grants = [str(row[0]) for row in await session.query_internal(b"SHOW GRANTS")]
    numbers = any(
        edit.verb == "insert"
        and table.numbered
        and table.numbered not in [change.shape.names[place] for place, _ in edit.values or ()]
        for edit in change.edits
    )
    for applies, reason in (
        (table.undo.triggers, "its table has triggers."),
        (
            not sees_triggers(grants, table.undo.schema),
            "the account lacks TRIGGER, and so cannot see whether its table has triggers.",
        ),
        (numbers, "it may use up numbers of its table, which a rollback does not give back."),
    ):
        if applies:
            raise TidegateError(Code.UNSUPPORTED, reason)


async def read_at_keys(
    session: MysqlSession, table: Table, keys: Mapping[int, Row]
) -> dict[int, FoundRow]:
    """The rows with these keys, which are of images, by their places. They stay locked."""
    rows = await by_keys(session, table.undo, list(keys.values()), locks=True) if keys else []
    there = {table.shape.key_of(tuple(row)): tuple(row) for row in rows}
    return {place: _found(table, there[key]) for place, key in keys.items() if key in there}


async def _one_by_one(
    session: MysqlSession, table: Table, keys: Mapping[int, Row]
) -> dict[int, FoundRow]:
    """The rows with these keys, which are as they are shown, by their places."""
    undo, found = table.undo, dict[int, FoundRow]()
    columns = [undo.columns[place] for place in undo.key_places]
    for some in portions(list(keys.items())):
        texts = [
            f"SELECT {reading(undo)} FROM {place_of(undo)} WHERE"
            f" {_condition(columns, key)}".encode()
            for _, key in some
        ]
        answers: list[Rows] = await session.ask(*texts)
        for (place, _), rows in zip(some, answers, strict=True):
            for row in values_of(undo, rows)[:1]:
                found[place] = _found(table, tuple(row))
    return found


def _condition(columns: Sequence[ImageColumn], key: Row) -> str:
    return " AND ".join(
        [
            f"{_quote(column.name)} = {given_text(column, value)}"
            for column, value in zip(columns, key, strict=True)
        ]
    )


def given_text(column: ImageColumn, value: Any) -> str:
    """A value, as it is shown, as a literal: the label of an enum is never its number."""
    if isinstance(value, str) and column.type.startswith(("enum:", "set:")):
        return f"CONVERT(UNHEX('{value.encode().hex()}') USING utf8mb4)"
    return written(column, value)


def _found(table: Table, image: Row) -> FoundRow:
    shown = [
        _shown(value, table.labels.get(column.name), is_set=column.type.startswith("set:"))
        for column, value in zip(table.undo.columns, image, strict=True)
    ]
    return FoundRow(image, tuple(shown))


def _shown(value: Any, labels: tuple[str, ...] | None, *, is_set: bool) -> Any:
    if value is None or labels is None:
        return value
    number = int(value)
    if is_set:
        return ",".join([label for place, label in enumerate(labels) if number >> place & 1])
    return labels[number - 1] if 1 <= number <= len(labels) else ""


async def write_edits(session: MysqlSession, table: Table, change: ChangeRows) -> dict[int, Row]:
    """Make the edits; the keys of the rows that were added, by the places of their edits. Raises:
    ServerError, TidegateError."""
    edits = in_order(change)
    updates = [each for each in edits if each[1].verb == "update"]
    if len(updates) < 2:
        return await _write(session, table, change, edits)
    at = edits.index(updates[0])
    await _write(session, table, change, edits[:at])
    await send_texts(session, [_changing(table, change, edit) for _, edit in updates], in_turn=True)
    return await _write(session, table, change, edits[at + len(updates) :])


async def _write(
    session: MysqlSession, table: Table, change: ChangeRows, edits: Sequence[tuple[int, RowEdit]]
) -> dict[int, Row]:
    """Make edits in their order; the keys of the rows that were added."""
    keys: dict[int, Row] = {}
    for some in portions(edits):
        adds = [(place, edit) for place, edit in some if edit.before is None]
        rest = [_changing(table, change, edit) for _, edit in some if edit.before is not None]
        if rest:
            session.line.query(*[text.encode() for text in rest])
            for _ in rest:
                await session.line.done()
        if not adds:
            continue
        texts = [_adding(table, change, edit) for _, edit in adds]
        if session.setting.mariadb:
            shown = f" RETURNING {reading(table.undo)}"
            answers = await session.ask(*[f"{text}{shown}".encode() for text in texts])
            for (place, _), rows in zip(adds, answers, strict=True):
                (row,) = values_of(table.undo, rows)
                keys[place] = table.shape.key_of(tuple(row))
            continue
        for (place, edit), text in zip(adds, texts, strict=True):
            await session.query_internal(text.encode())
            ((number,),) = await session.query_internal(b"SELECT CAST(LAST_INSERT_ID() AS CHAR)")
            keys[place] = _added_key(table, change, edit, str(number))
    return keys


def _added_key(table: Table, change: ChangeRows, edit: RowEdit, number: str) -> Row:
    """The key of a row that was added, where the server does not show it. Raises: TidegateError
    UNSUPPORTED."""
    values = {change.shape.names[place]: value for place, value in edit.values or ()}
    key: list[Any] = []
    for name in table.undo.key:
        value = values.get(name, DEFAULT)
        if value is None or value == DEFAULT:
            if name != table.numbered:
                raise TidegateError(
                    Code.UNSUPPORTED, f"MySQL does not say which {name} it gave. Nothing was added."
                )
            value = number
        key.append(value)
    return tuple(key)


def _changing(table: Table, change: ChangeRows, edit: RowEdit) -> str:
    undo = table.undo
    columns = [undo.columns[place] for place in undo.key_places]
    before = dict(zip(change.shape.names, edit.before or (), strict=True))
    where = " AND ".join(
        [f"{_quote(each.name)} = {written(each, before[each.name])}" for each in columns]
    )
    if edit.values is None:
        return f"DELETE FROM {place_of(undo)} WHERE {where}"
    sets = [f"{_quote(name)} = {value}" for name, value in _assigned(table, change, edit)]
    return f"UPDATE {place_of(undo)} SET {', '.join(sets)} WHERE {where}"


def _adding(table: Table, change: ChangeRows, edit: RowEdit) -> str:
    assigned = [each for each in _assigned(table, change, edit) if each[1] != "DEFAULT"]
    names = ", ".join([_quote(name) for name, _ in assigned])
    values = ", ".join([value for _, value in assigned])
    return f"INSERT INTO {place_of(table.undo)} ({names}) VALUES ({values})"


def _assigned(table: Table, change: ChangeRows, edit: RowEdit) -> list[tuple[str, str]]:
    columns = {column.name: column for column in table.undo.columns}
    found: list[tuple[str, str]] = []
    for place, value in edit.values or ():
        name = change.shape.names[place]
        text = "DEFAULT" if value == DEFAULT else given_text(columns[name], value)
        found.append((name, text))
    return found


async def undo_objection(session: MysqlSession, change: ChangeRows) -> str:
    """Why the rows of the change cannot be put back; empty if they can."""
    for form in forms_of(change, "mysql").values():
        outline = outline_of(form.text, "mysql", len(form.params or ()))
        if isinstance(outline, str):
            return outline
        kept = table_to_keep(await find_table(session, outline, change.schema))
        if isinstance(kept, str):
            return kept
    return ""
