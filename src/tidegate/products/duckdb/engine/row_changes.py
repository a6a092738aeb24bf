"""Reads rows of a DuckDB table exactly, and changes them over what was read. Runs in the worker.

A value is its text; one of a nested type is its text and its JSON, since the text alone can be that
of another. The transaction stays open until the gate has kept the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from tidegate.engines.api import RowsConflictError
from tidegate.engines.common.edited_images import image_of_edits, image_size
from tidegate.engines.common.row_edits import (
    EditGroup,
    check_rows,
    check_shape,
    grouped,
    keys_in_order,
    narrowed_row,
    new_keys,
    not_written,
    old_keys,
    without_columns,
)
from tidegate.engines.common.row_images import too_many_rows
from tidegate.engines.common.row_statements import forms_of
from tidegate.engines.common.undo_rows import (
    UndoTable,
    outline_of,
    portions,
    table_to_keep,
    too_large,
)
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import Row
from tidegate.model.row_changes import (
    DEFAULT,
    ChangeRows,
    FoundRow,
    FoundRows,
    ReadImages,
    TableShape,
)
from tidegate.products.duckdb.engine.changes import (
    find_table,
    is_kept,
    key_join_condition,
    place_of,
    read_table,
    values_table,
)
from tidegate.products.duckdb.engine.messages import EditedRows, EditRows, ReadByKeys
from tidegate.products.duckdb.engine.row_edits import change_in
from tidegate.sql.dialects import find

_quote = find("duckdb").quote
_FLOATS = ("FLOAT", "DOUBLE")
_ESCAPE = re.compile(r"\\x([0-9A-Fa-f]{2})")
_NEXT = """SELECT count(*) FROM duckdb_columns() WHERE database_name = current_database()
  AND schema_name = $1 AND table_name = $2 AND column_default ILIKE '%nextval%'"""

Cursor = duckdb.DuckDBPyConnection


def read_images(cursor: Cursor, wanted: ReadByKeys) -> FoundRows:
    """Read rows by their keys. Raises: duckdb.Error, TidegateError."""
    table, whole = find_changed(cursor, wanted.schema, wanted.table, keyless=wanted.adds)
    request = ReadImages(
        table=wanted.table,
        keys=tuple(map(tuple, wanted.keys)),
        key_names=tuple(wanted.key_names),
        hidden=tuple(wanted.hidden),
    )
    shape = without_columns(whole, request.hidden)
    places = [whole.names.index(name) for name in shape.names]
    keys = keys_in_order(request, whole)
    found = read_by_place(cursor, table, dict(enumerate(keys)))
    rows = [narrowed_row(found.get(place), places) for place in range(len(keys))]
    return FoundRows(shape, tuple(rows))


def edit_rows(cursor: Cursor, edits: EditRows) -> EditedRows:
    """Make edits in the open transaction. Raises: duckdb.Error, TidegateError."""
    change = change_in(edits)
    table, whole = find_changed(cursor, edits.shape.schema, edits.shape.table)
    places = check_shape(change, whole)
    limit = edits.max_rows_changed
    if limit is not None and len(change.edits) > limit:
        raise too_many_rows(limit, len(change.edits), False)
    adds = any(edit.before is None for edit in change.edits)
    if change.tries and adds:
        check_trial(cursor, table)
    there = read_by_place(cursor, table, dict(old_keys(change)))
    seen = {place: narrowed_row(row, places) for place, row in there.items()}
    rekeyed = {new.edit: new.key for new in new_keys(change, seen)}
    taken = read_by_place(cursor, table, rekeyed)
    try:
        check_rows(change, seen, {place: narrowed_row(row, places) for place, row in taken.items()})
    except RowsConflictError as error:
        return EditedRows(conflicts=list(error.conflicts), count=error.count)
    objection = undo_objection(cursor, change) if edits.keeps else ""
    inserted: dict[int, Row] = {}
    for group in grouped(change):
        inserted |= write_group(cursor, table, change, group)
    stay = {place: key for place, key in old_keys(change) if change.edits[place].values is not None}
    after = read_by_place(cursor, table, {**stay, **rekeyed, **inserted})
    rows = [narrowed_row(after.get(place), places) for place in range(len(change.edits))]
    if not edits.keeps or objection:
        return EditedRows(rows, None, objection)
    image = image_of_edits(table, change, there, after)
    if image_size(image) > edits.max_bytes:
        return EditedRows(rows, None, too_large(edits.max_bytes))
    return EditedRows(rows, image)


def find_changed(
    cursor: Cursor, schema: str, name: str, *, keyless: bool = False
) -> tuple[UndoTable, TableShape]:
    """A table whose rows can be changed; with `keyless` also one to which they can be added alone,
    and then its shape has no key. Raises: duckdb.Error; TidegateError TABLE_UNKNOWN,
    UNSUPPORTED."""
    table = read_table(cursor, schema, name)
    if table is None:
        raise TidegateError(Code.TABLE_UNKNOWN, f"Table not found: {name[:200]}")
    keyed = [column for column in table.columns if column.name in table.key]
    reason = ""
    if keyless:
        pass
    elif not table.key:
        reason = "has no primary key: its rows cannot be distinguished."
    elif any(column.type in _FLOATS for column in keyed):
        reason = "has a floating-point number as its key."
    if reason:
        raise TidegateError(Code.UNSUPPORTED, f"{name} {reason}")
    key = () if keyless else table.key_places
    shape = TableShape(table.schema, table.name, table.columns, key, table.shape)
    return table, shape


def check_trial(cursor: Cursor, table: UndoTable) -> None:
    """Raises: TidegateError UNSUPPORTED for rows that leave a trace when they were added and rolled
    back."""
    if (cursor.execute(_NEXT, [table.schema, table.name]).fetchone() or (0,))[0]:
        raise TidegateError(Code.UNSUPPORTED, "a default would take a number of a sequence.")


def read_by_place(cursor: Cursor, table: UndoTable, keys: Mapping[int, Row]) -> dict[int, FoundRow]:
    """The rows with these keys, by the places of the keys."""
    nested = [place for place, each in enumerate(table.columns) if not is_kept(each.type)]
    texts = [f"CAST(t.{_quote(name)} AS VARCHAR)" for name in table.names]
    texts += [f"CAST(to_json(t.{_quote(table.names[place])}) AS VARCHAR)" for place in nested]
    width, found = len(table.key), dict[int, FoundRow]()
    for some in portions(list(keys.items())):
        rows = [(*map(written_text, key), str(place)) for place, key in some]
        source, params = values_table(rows)
        text = (
            f"SELECT {', '.join(texts)}, v.c{width} FROM {place_of(table)} AS t, {source}"
            f" WHERE {key_join_condition(table)}"
        )
        for row in cursor.execute(text, params).fetchall():
            found[int(row[-1])] = _found(table, row[:-1], nested)
    return found


def _found(table: UndoTable, row: Sequence[Any], nested: Sequence[int]) -> FoundRow:
    width = len(table.columns)
    image, shown = list(row[:width]), list(row[:width])
    for place, json in zip(nested, row[width:], strict=True):
        if image[place] is not None:
            image[place] = f"{image[place]}\n{json}"
    for place, column in enumerate(table.columns):
        if column.type == "BLOB" and shown[place] is not None:
            shown[place] = _bytes(shown[place])
    return FoundRow(tuple(image), tuple(shown))


def _bytes(text: str) -> bytes:
    """The bytes of a text that DuckDB writes of them."""
    parts = _ESCAPE.split(text)
    found = [
        bytes.fromhex(part) if number % 2 else part.encode() for number, part in enumerate(parts)
    ]
    return b"".join(found)


def written_text(value: Any) -> Any:
    """A value as a text that DuckDB casts to its type."""
    if isinstance(value, bytes):
        return "".join([f"\\x{byte:02X}" for byte in value])
    return value


def write_group(
    cursor: Cursor, table: UndoTable, change: ChangeRows, group: EditGroup
) -> dict[int, Row]:
    """Make the edits of a group; the keys of the rows that were added, by the places of their
    edits. Raises: duckdb.Error, TidegateError."""
    if group.verb == "insert":
        return _add(cursor, table, change, group)
    names, width = change.shape.names, len(table.key)
    types = {column.name: column.type for column in table.columns}
    sets = [
        f"{_quote(names[place])} = CAST(v.c{at} AS {types[names[place]]})"
        for at, place in enumerate(group.places, width)
    ]
    sets += [f"{_quote(names[place])} = DEFAULT" for place in group.defaults]
    for some in portions(group.edits):
        rows: list[Row] = []
        for _, edit in some:
            before = dict(zip(names, edit.before or (), strict=True))
            values = dict(edit.values or ())
            rows.append(
                (
                    *[before[name] for name in table.key],
                    *[written_text(values[place]) for place in group.places],
                )
            )
        source, params = values_table(rows)
        if group.verb == "delete":
            text = f"DELETE FROM {place_of(table)} AS t USING {source}"
        else:
            text = f"UPDATE {place_of(table)} AS t SET {', '.join(sets)} FROM {source}"
        done = cursor.execute(f"{text} WHERE {key_join_condition(table)}", params).fetchall()
        if int(done[0][0]) != len(rows):
            raise not_written(change.table)
    return {}


def _add(cursor: Cursor, table: UndoTable, change: ChangeRows, group: EditGroup) -> dict[int, Row]:
    names = change.shape.names
    types = {column.name: column.type for column in table.columns}
    shown = ", ".join([f"CAST({_quote(name)} AS VARCHAR)" for name in table.key])
    listed = ", ".join([_quote(names[place]) for place in group.places])
    casts = [f"CAST(v.c{at} AS {types[names[place]]})" for at, place in enumerate(group.places)]
    known = set(table.key) <= {names[place] for place in group.places}
    found: dict[int, Row] = {}
    # Which row got which key is known where the keys are written, or one row is added at a time.
    for some in portions(group.edits) if known else [[each] for each in group.edits]:
        if not group.places:
            text, params = f"INSERT INTO {place_of(table)} DEFAULT VALUES", []
        else:
            source, params = values_table(
                [
                    tuple([written_text(dict(edit.values or ())[place]) for place in group.places])
                    for _, edit in some
                ]
            )
            text = (
                f"INSERT INTO {place_of(table)} ({listed}) SELECT {', '.join(casts)} FROM {source}"
            )
        rows = cursor.execute(f"{text} RETURNING {shown}", params).fetchall()
        if len(rows) != len(some):
            raise not_written(change.table)
        if not known:
            found[some[0][0]] = tuple(rows[0])
            continue
        for place, edit in some:
            values = {names[at]: value for at, value in edit.values or () if value != DEFAULT}
            found[place] = tuple([values[name] for name in table.key])
    return found


def undo_objection(cursor: Cursor, change: ChangeRows) -> str:
    """Why the rows of the change cannot be put back; empty if they can."""
    for form in forms_of(change, "duckdb").values():
        outline = outline_of(form.text, "duckdb", len(form.params or ()))
        if isinstance(outline, str):
            return outline
        kept = table_to_keep(find_table(cursor, outline, change.schema))
        if isinstance(kept, str):
            return kept
    return ""
