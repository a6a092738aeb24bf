"""Keeps the rows that a change of a DuckDB table touches, and puts them back. Runs in the worker.

The rows are read, the statement runs, and they are read again by their keys, in one transaction:
its snapshot shows both the same rows, and no other process can write the file meanwhile. DuckDB
locks no rows: a conflict within one process ends the transaction. Values are kept as texts, and
each is read back once to see that it is the same. The transaction stays open until the gate has
kept the rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb

from tidegate.engines.common.row_images import RowComparison
from tidegate.engines.common.undo_rows import (
    FoundTable,
    UndoTable,
    by_key,
    check_restored,
    compare_rows,
    each_once,
    found_table,
    image_of_change,
    outline_of,
    parts_of,
    portions,
    reading_rows,
    restored,
    returning,
    reversibility_of,
    row_bound,
    table_to_keep,
    too_large,
)
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import (
    ChangeImage,
    Comparison,
    ImageColumn,
    Reversibility,
    Row,
    RowImage,
    TableImage,
)
from tidegate.products.duckdb.engine.connection import DuckdbSession
from tidegate.products.duckdb.engine.inspect import read
from tidegate.products.duckdb.engine.messages import Changed, PutBack, Run
from tidegate.products.duckdb.engine.transaction import (
    begin_whole,
    check_effect,
    check_whole,
    count_changes,
    parameters_of,
)
from tidegate.products.duckdb.engine.types import Column, check_exact, coerced, is_json
from tidegate.sql.change_outline import ChangeOutline
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import words

_quote = find("duckdb").quote
_KEPT = words(
    "boolean tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint"
    " float double varchar blob date time timestamp timestamp_s timestamp_ms timestamp_ns interval"
    " uuid json bit"
)
_ALSO = ("DECIMAL(", "ENUM(", "TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE")
_TABLE = """SELECT t.schema_name, t.table_name, t.sql, EXISTS (FROM duckdb_triggers()),
  EXISTS (FROM duckdb_constraints() AS k WHERE k.constraint_type = 'FOREIGN KEY'
    AND k.database_name = t.database_name AND k.schema_name = t.schema_name
    AND t.table_name IN (k.table_name, k.referenced_table)),
  EXISTS (FROM system.main.duckdb_functions() AS f WHERE (list_contains($3, f.function_name)
      AND coalesce(f.stability, 'VOLATILE') = 'VOLATILE')
    OR (list_contains($4, f.function_name) AND NOT f.internal))
FROM duckdb_tables() AS t
WHERE NOT t.internal AND NOT t.temporary AND t.database_name = current_database()
  AND lower(t.schema_name) = lower($1) AND lower(t.table_name) = lower($2)"""
_COLUMNS = """SELECT column_name, data_type FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2
  AND NOT coalesce(is_generated, false) ORDER BY column_index"""
_KEY = """SELECT unnest(constraint_column_names) FROM duckdb_constraints()
WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2
  AND constraint_type = 'PRIMARY KEY'"""

Cursor = duckdb.DuckDBPyConnection


def reversibility(session: DuckdbSession, run: Run) -> Reversibility:
    """Whether the rows of a change can be put back. Raises: duckdb.Error."""
    outline = outline_of(run.text, "duckdb", len(run.params or ()))
    if isinstance(outline, str):
        return Reversibility(False, outline)
    cursor = session.cursor(run.version)
    try:
        found = find_table(cursor, outline, run.schema)
    finally:
        session.drop(cursor)
    return reversibility_of(found)


def run_change(cursor: Cursor, run: Run, max_bytes: int) -> Changed:
    """Run a change in the open transaction, with the image of its rows; or run nothing, and say why
    there would be none.

    Raises: TidegateError POLICY_* if it does more than `run.effect`, LIMIT_CHANGES; duckdb.Error.
    """
    reading = read(run.text)
    check_effect(reading, run)
    params = parameters_of(reading, run)
    outline = outline_of(run.text, "duckdb", len(params or ()))
    found = outline if isinstance(outline, str) else find_table(cursor, outline, run.schema)
    table = table_to_keep(found)
    if isinstance(table, str) or isinstance(outline, str):
        return Changed(reason=str(table))
    text, most = reading.text, row_bound(max_bytes)
    before: list[Row] = []
    if outline.rows.text:
        taken = [params[place] for place in outline.rows.params] if params else None
        query = f"{reading_rows(outline, _texts(table, outline.alias))} LIMIT {most + 1}"
        before = each_once(cursor.execute(query, taken).fetchall(), table.key_places)
        if len(before) > most:
            return Changed(reason=too_large(max_bytes))
    else:
        text = returning(outline, _texts(table, ""))
    whole = begin_whole(run, cursor)
    cursor.execute(text, params)
    description, rows = cursor.description or [], cursor.fetchall()
    width = len(description) if reading.returns else 0
    if outline.rows.text:
        affected = len(rows) if reading.returns else int(rows[0][0])
        keyed = before
    else:
        width = len(description) - 2 * len(table.columns)
        affected, keyed = len(rows), [row[width:] for row in rows]
    count_changes(run, affected)
    check_whole(whole, cursor, affected)
    kinds = [entry[1] for entry in description[:width]]
    check_exact(kinds)
    image = _image(cursor, table, outline, before, keyed, affected)
    own = coerced([row[:width] for row in rows], _coercions(kinds)) if width else []
    columns = [(entry[0], str(entry[1])) for entry in description[:width]]
    if isinstance(image, str):
        return Changed(columns, own, affected, reason=image)
    return Changed(columns, own, affected, image)


def compare(cursor: Cursor, image: ChangeImage) -> Comparison:
    """Compare the rows of an image with those there now. Raises: duckdb.Error, TidegateError."""
    comparison = RowComparison()
    for kept in image.tables:
        table = read_table(cursor, kept.schema, kept.table)
        if table is None or table.shape != kept.shape:
            return Comparison(reason=f"the table {kept.table} has another definition now")
        compare_rows(comparison, kept, _read_current_rows(cursor, table, kept))
    return comparison.result


def put_back(cursor: Cursor, image: ChangeImage) -> PutBack:
    """Put the rows back in the open transaction, or say what prevents it. Raises:
    duckdb.Error, TidegateError."""
    found = compare(cursor, image)
    if found.count or found.reason:
        return PutBack(found)
    made: list[TableImage] = []
    for kept in image.tables:
        table = read_table(cursor, kept.schema, kept.table)
        if table is None:
            raise TidegateError(Code.INTERNAL, "A table went while its rows were put back.")
        _restore(cursor, table, kept)
        now, different = restored(kept, _read_current_rows(cursor, table, kept))
        check_restored(different, ())
        made.append(now)
    return PutBack(found, ChangeImage(tuple(made)))


def _coercions(kinds: Sequence[Any]) -> list[Column]:
    if not any(map(is_json, kinds)):
        return []
    return [Column(place, kind) for place, kind in enumerate(kinds)]


def _image(
    cursor: Cursor,
    table: UndoTable,
    outline: ChangeOutline,
    before: Sequence[Row],
    keyed: Sequence[Row],
    affected: int,
) -> ChangeImage | str:
    width = len(table.columns)
    if any(not all(row[width:]) for row in (*before, *keyed)):
        return "a value is not the same when it is read back from its text"
    was = [row[:width] for row in before]
    after: list[Row] = []
    if keyed:
        places = table.key_places
        keys = [tuple([row[place] for place in places]) for row in keyed]
        after = _at_keys(cursor, table, keys)
        if any(not all(row[width:]) for row in after):
            return "a value is not the same when it is read back from its text"
    return image_of_change(table, outline, was, [row[:width] for row in after], affected)


def find_table(cursor: Cursor, outline: ChangeOutline, schema: str | None) -> FoundTable | str:
    if len(outline.name) > 2 or outline.qualified:
        return "its database is not known, or it calls a function by its place"
    if outline.upserts or outline.verb == "merge":
        return "DuckDB does not show the rows that ON CONFLICT DO UPDATE or MERGE changes"
    named = [part for part, _ in outline.name]
    where = [named[0] if len(named) > 1 else schema or "main", named[-1]]
    twice, calls = [
        sorted({each.lower() for each in names}) for names in (outline.row_calls, outline.calls)
    ]
    looked = cursor.execute(_TABLE, [*where, twice, calls]).fetchall()
    if len(looked) != 1:
        return "it is not about a plain table"
    place, name, _, triggers, keys, volatile = looked[0]
    table = read_table(cursor, str(place), str(name))
    if table is None:
        return "it is not about a plain table"
    unkept = [each for each in table.columns if not is_kept(each.type)]
    floats = [each for each in table.columns if each.name in table.key and each.type in _FLOATS]
    objections = (
        (triggers, "the database has triggers"),
        (keys, f"{name} takes part in a foreign key, and DuckDB then replaces rows"),
        (volatile, "it calls a function that may do more than compute"),
        (bool(unkept), f"{name} has a column of a type that is not kept"),
        (bool(floats), f"the primary key of {name} is a floating-point number"),
    )
    return found_table(outline, table, objections)


_FLOATS = ("FLOAT", "DOUBLE")


def is_kept(kind: str) -> bool:
    return kind.lower() in _KEPT or (kind.startswith(_ALSO) and not kind.endswith("]"))


def read_table(cursor: Cursor, schema: str, name: str) -> UndoTable | None:
    """The table as it is now; None if it is not there."""
    nothing: list[str] = []
    looked = cursor.execute(_TABLE, [schema, name, nothing, nothing]).fetchall()
    if len(looked) != 1:
        return None
    columns = cursor.execute(_COLUMNS, [schema, name]).fetchall()
    key = tuple([str(row[0]) for row in cursor.execute(_KEY, [schema, name]).fetchall()])
    shape = json.dumps([looked[0][2], columns, key])
    return UndoTable(
        schema, name, tuple([ImageColumn(str(a), str(b)) for a, b in columns]), key, shape
    )


def _texts(table: UndoTable, alias: str) -> str:
    """The values as texts, and then for each whether that gives the value back."""
    of = f"{alias}." if alias else ""
    names = [(f"{of}{_quote(column.name)}", column.type) for column in table.columns]
    texts = [f"CAST({name} AS VARCHAR)" for name, _ in names]
    same = [
        f"CAST(CAST({name} AS VARCHAR) AS {kind}) IS NOT DISTINCT FROM {name}"
        for name, kind in names
    ]
    return ", ".join([*texts, *same])


def _read_current_rows(cursor: Cursor, table: UndoTable, kept: TableImage) -> dict[Row, Row]:
    """The rows that the keys of an image find now."""
    return by_key(kept, _at_keys(cursor, table, [kept.key_of(row) for row in kept.rows]))


def _at_keys(cursor: Cursor, table: UndoTable, keys: Sequence[Row]) -> list[Row]:
    """The rows with these keys, as `_texts` reads them."""
    found: list[Row] = []
    for some in portions(keys):
        source, params = values_table(some)
        text = f"SELECT {_texts(table, 't')} FROM {place_of(table)} AS t, {source}"
        found += cursor.execute(f"{text} WHERE {key_join_condition(table)}", params).fetchall()
    return found


def _restore(cursor: Cursor, table: UndoTable, kept: TableImage) -> None:
    parts = parts_of(kept)
    for some in portions([kept.key_of(row) for row in parts.goes]):
        source, params = values_table(some)
        text = (
            f"DELETE FROM {place_of(table)} AS t USING {source} WHERE {key_join_condition(table)}"
        )
        cursor.execute(text, params)
    for places, rows in _by_changed_columns(kept, parts.changes).items():
        width = len(table.key_places)
        named = [(at, table.columns[place]) for at, place in enumerate(places, width)]
        sets = ", ".join(
            [f"{_quote(column.name)} = CAST(v.c{at} AS {column.type})" for at, column in named]
        )
        for some in portions(rows):
            source, params = values_table(some)
            text = f"UPDATE {place_of(table)} AS t SET {sets} FROM {source}"
            cursor.execute(f"{text} WHERE {key_join_condition(table)}", params)
    names = ", ".join([_quote(column.name) for column in table.columns])
    read_back = ", ".join(
        [f"CAST(v.c{at} AS {column.type})" for at, column in enumerate(table.columns)]
    )
    for some in portions([row.before or () for row in parts.returns]):
        source, params = values_table(some)
        text = f"INSERT INTO {place_of(table)} ({names}) SELECT {read_back} FROM {source}"
        cursor.execute(text, params)


def _by_changed_columns(
    kept: TableImage, changes: Sequence[RowImage]
) -> dict[tuple[int, ...], list[Row]]:
    """The key and the values from before of each row that is to change, by the places of the
    columns that differ. DuckDB takes a millisecond for a statement, however few rows it is of."""
    found: dict[tuple[int, ...], list[Row]] = {}
    for row in changes:
        was, now = row.before or (), row.after or ()
        places = tuple([place for place, value in enumerate(was) if value != now[place]])
        if places:  # else it was set to what it had been
            values = [was[place] for place in places]
            found.setdefault(places, []).append((*kept.key_of(row), *values))
    return found


def values_table(rows: Sequence[Row]) -> tuple[str, list[Any]]:
    """Rows of texts as a table `v` with the columns c0, c1, ..., and its parameters."""
    width = len(rows[0])
    row = "(" + ", ".join(["CAST(? AS VARCHAR)"] * width) + ")"
    names = ", ".join([f"c{at}" for at in range(width)])
    listed = ", ".join([row] * len(rows))
    return f"(VALUES {listed}) AS v({names})", [value for each in rows for value in each]


def key_join_condition(table: UndoTable) -> str:
    """That a row `t` has the key in `v`."""
    return " AND ".join(
        [
            f"t.{_quote(table.columns[place].name)} = CAST(v.c{at} AS {table.columns[place].type})"
            for at, place in enumerate(table.key_places)
        ]
    )


def place_of(table: UndoTable) -> str:
    return f"{_quote(table.schema)}.{_quote(table.name)}"
