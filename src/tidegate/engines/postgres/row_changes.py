"""Reads rows of a PostgreSQL table exactly, and changes them over what was read.

The rows are locked by their keys and read as the texts of their types' output functions, compared,
and written from texts by their types' input functions, in one transaction. A text is cast to its
type without the length, so that it is assigned, and one that is too long is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tidegate.engines.common.edited_images import (
    end_image,
    image_of_edits,
    objection_to_lost,
    remarks_on,
)
from tidegate.engines.common.row_edits import (
    EditGroup,
    change_of,
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
from tidegate.engines.common.row_statements import forms_of
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.engines.common.undo_rows import UndoTable, outline_of, table_to_keep
from tidegate.engines.postgres.changes import commit
from tidegate.engines.postgres.command_protocol import Params
from tidegate.engines.postgres.connection import ROLLBACK, PostgresSession
from tidegate.engines.postgres.dry_run import DEFAULTS, LOCK_WAIT, LOOK, OBJECTIONS
from tidegate.engines.postgres.internal_queries import array_of, rows_of, send_queries
from tidegate.engines.postgres.parameters import dump
from tidegate.engines.postgres.row_counts import AT_ONCE, counter_of
from tidegate.engines.postgres.transaction import TransactionSettings, settings_query
from tidegate.engines.postgres.undo_tables import (
    BY_PLACE,
    found_in,
    look_by_name,
    place_of,
    table_of,
)
from tidegate.engines.postgres.unique_values import make_edits
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import Row
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
from tidegate.sql.dialects import find

_quote = find("postgres").quote
_READS = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITES = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_BY_INDEX = b"""SELECT pg_catalog.set_config('enable_hashjoin', 'off', true),
  pg_catalog.set_config('enable_mergejoin', 'off', true)"""
"""Has rows found one by one by their keys: a join would read a whole table of medium size."""
_BY_COST = b"SET LOCAL enable_hashjoin TO DEFAULT", b"SET LOCAL enable_mergejoin TO DEFAULT"
_KIND = b"""
SELECT c.relkind, c.relhasrules, c.relkind = 'r' AND c.relhassubclass, c.oid < 16384,
  (SELECT pg_catalog.json_object_agg(a.attname, (
    WITH RECURSIVE bases AS (
      SELECT y.oid, y.typtype, y.typbasetype FROM pg_catalog.pg_type AS y WHERE y.oid = a.atttypid
      UNION ALL SELECT y.oid, y.typtype, y.typbasetype FROM pg_catalog.pg_type AS y
        JOIN bases AS b ON b.typtype = 'd' AND y.oid = b.typbasetype)
    SELECT CASE WHEN y.typnamespace = 'pg_catalog'::pg_catalog.regnamespace
        THEN pg_catalog.format_type(y.oid, -1)
        ELSE pg_catalog.quote_ident(s.nspname) || '.' || pg_catalog.quote_ident(y.typname) END
      FROM bases AS b JOIN pg_catalog.pg_type AS y ON y.oid = b.oid
      JOIN pg_catalog.pg_namespace AS s ON s.oid = y.typnamespace WHERE b.typtype <> 'd'))
    FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0
      AND NOT a.attisdropped AND a.attgenerated = '')::text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = $1 AND n.nspname = $2"""
"""What kind of table it is, and the types of its columns without domains and lengths."""


class Table(NamedTuple):
    """A table as it is now. `casts` are types without lengths, by the names of their columns.
    `reacts`: its rows may be other ones once a change has ended than when they were written."""

    undo: UndoTable
    shape: TableShape
    casts: Mapping[str, str]
    reacts: bool


async def read_images(
    session: PostgresSession, request: ReadImages, settings: TransactionSettings
) -> FoundRows:
    """Read rows by their keys. Raises: TidegateError."""
    first = (_READS, None), settings_query(settings), (_BY_INDEX, None)
    try:
        schema, keyless = request.schema, request.adds
        table = await find_table(session, first, schema, request.table, keyless=keyless)
        shape = without_columns(table.shape, request.hidden)
        places = [table.shape.names.index(name) for name in shape.names]
        keys = keys_in_order(request, table.shape)
        found = await read_by_place(session, table, dict(enumerate(keys)), locks=False)
        rows = [narrowed_row(found.get(place), places) for place in range(len(keys))]
        return FoundRows(shape, tuple(rows))
    finally:
        await session.end(ROLLBACK)


async def change_rows(
    session: PostgresSession,
    permit: Permit,
    settings: TransactionSettings,
    running: RunningStatement[PostgresSession],
) -> ChangedRows:
    """Make the edits in one transaction.

    Raises: TidegateError; nothing was changed then, unless its code is SQL_OUTCOME.
    """
    change = change_of(permit)
    first = [(WRITES, None), settings_query(settings), (_BY_INDEX, None)]
    first += [(LOCK_WAIT, None)] if change.tries else []
    try:
        table = await find_table(session, first, change.schema, change.table)
        done = await _change(session, permit, change, table)
        if not change.tries:
            running.committing = True
            await commit(session)
        return done
    finally:
        if session.line.in_transaction:
            await session.end(ROLLBACK)
            await session.settle()


async def _change(
    session: PostgresSession, permit: Permit, change: ChangeRows, table: Table
) -> ChangedRows:
    places = check_shape(change, table.shape)
    if change.tries:
        await check_trial(session, change, table)
    keys = dict(old_keys(change))
    there = await read_by_place(session, table, keys, locks=True)
    await _check_locked(session, table, {at: keys[at] for at in keys.keys() - there.keys()})
    seen = {place: narrowed_row(row, places) for place, row in there.items()}
    written = {new.edit: new.key for new in new_keys(change, seen)}
    taken = await read_by_place(session, table, written, locks=False)
    check_rows(change, seen, {place: narrowed_row(row, places) for place, row in taken.items()})
    keeper = None if change.tries else permit.keeper
    objection = "" if keeper is None else await undo_objection(session, change)
    counter = counter_of(permit)
    if counter is not None:
        await counter.start(session)
    if table.undo.triggers:  # what they run is planned as elsewhere
        await send_queries(session, *[(text, None) for text in _BY_COST])
    written = WrittenRows(table, change)
    # A deferred trigger may change the rows.
    last = [] if counter is not None else [(AT_ONCE, None)]
    await _write(session, written, grouped(change), last)
    affected = len(change.edits)
    if counter is not None:
        affected = await counter.end(session, affected, deferred=True)
        await send_queries(session, (AT_ONCE, None))
    after = written.rows
    if table.reacts:
        await send_queries(session, (_BY_INDEX, None))
        after = await read_by_place(session, table, written.keys, locks=False)
    rows = [narrowed_row(after.get(place), places) for place in range(len(change.edits))]
    if keeper is not None:
        image = image_of_edits(table.undo, change, there, after)
        lost = objection_to_lost(len(written.keys), len(after))
        await end_image(keeper, image, objection or lost)
    return ChangedRows(tuple(rows), affected, remarks=remarks_on(table.undo.triggers))


async def _write(
    session: PostgresSession,
    written: WrittenRows,
    groups: Sequence[EditGroup],
    last: Sequence[tuple[bytes, Params]],
) -> None:
    """Make the edits, and do what comes `last`. Raises: TidegateError."""
    updates = [group for group in groups if group.verb == "update"]
    first = groups.index(updates[0]) if updates else len(groups)

    async def make(some: Sequence[EditGroup]) -> None:
        for group in some:
            await written.make(session, group)

    await make(groups[:first])
    alone = [group._replace(edits=[each]) for group in updates for each in group.edits]
    if updates:
        await make_edits(session, alone, partial(make, updates), partial(written.make, session))
    await make(groups[first + len(updates) :])
    if last:
        await send_queries(session, *last)


async def _check_locked(session: PostgresSession, table: Table, missing: Mapping[int, Row]) -> None:
    """Raises: TidegateError SQL_FAILED if rows that were not found to be locked can be read: then
    they are not gone, but row security keeps the account from changing them."""
    readable = await read_by_place(session, table, missing, locks=False)
    if readable:
        name, count = table.undo.name, len(readable)
        rows = "1 row" if count == 1 else f"{count:,} rows"
        raise TidegateError(
            Code.SQL_FAILED,
            f"The row security of {name} lets the source's account read {rows} of the change, but"
            " not lock them to change them. Nothing was changed.",
            hint="Look at the policies of the table for UPDATE.",
        )


async def find_table(
    session: PostgresSession,
    first: Sequence[tuple[bytes, Params]],
    schema: str | None,
    name: str,
    *,
    keyless: bool = False,
) -> Table:
    """A table whose rows can be changed, after what comes `first`; with `keyless` also one to which
    they can be added alone, and then its shape has no key. Raises: TidegateError TABLE_UNKNOWN,
    UNSUPPORTED."""
    at = [name.encode(), (schema or "public").encode()]
    by_place = BY_PLACE, [at[0], b"{}", b"{}", at[1]]
    *_, kind_of, look = await send_queries(session, *first, (_KIND, at), by_place)
    kinds, tables = rows_of(kind_of), rows_of(look)
    if not kinds or not tables:
        raise TidegateError(Code.TABLE_UNKNOWN, f"Table not found: {name[:200]}")
    kind, rules, parent, system, casts = kinds[0]
    undo = table_of(tables[0])
    reason = ""
    if kind not in ("r", "p") or system:
        reason = "is not an ordinary table."
    elif rules or parent:
        reason = "has rules." if rules else "has tables that inherit from it."
    elif not undo.key and not keyless:
        has = "no primary key" if tables[0][11] is None else "a primary key that is computed"
        reason = f"has {has}: its rows cannot be distinguished."
    if reason:
        raise TidegateError(Code.UNSUPPORTED, f"{name} {reason}")
    key = () if keyless else undo.key_places
    shape = TableShape(undo.schema, undo.name, undo.columns, key, undo.shape)
    follows = tables[0][5] is not False or tables[0][6] is not False
    return Table(undo, shape, json.loads(casts), bool(undo.triggers) or follows)


async def check_trial(session: PostgresSession, change: ChangeRows, table: Table) -> None:
    """Raises: TidegateError UNSUPPORTED for a change that leaves traces after ROLLBACK."""
    name = place_of(table.undo).encode()
    (look,) = await send_queries(session, (LOOK, [name, b"{}"]))
    for objection, flag in zip(OBJECTIONS, rows_of(look)[0], strict=False):
        if flag is not False:
            raise TidegateError(Code.UNSUPPORTED, objection)
    for edit in change.edits:
        given = [change.shape.names[at] for at, value in edit.values or () if value != DEFAULT]
        everything = edit.before is not None and not any(
            value == DEFAULT for _, value in edit.values or ()
        )
        if edit.values is None or everything:
            continue
        (defaults,) = await send_queries(session, (DEFAULTS, [name, array_of(given).encode()]))
        if any(rows_of(defaults)[0]):
            raise TidegateError(
                Code.UNSUPPORTED, "a default would take a number of a sequence, or call a function."
            )
        return  # columns that one edit leaves out are much the same for the others


async def read_by_place(
    session: PostgresSession, table: Table, keys: Mapping[int, Row], *, locks: bool
) -> dict[int, FoundRow]:
    """The rows with these keys, by the places of the keys."""
    if not keys:
        return {}
    undo = table.undo
    rows = [[*map(written_text, key), str(place)] for place, key in keys.items()]
    source, params = source_of(rows)
    shown = ", ".join([f"t.{_quote(name)}::text" for name in undo.names])
    lock = " FOR UPDATE OF t" if locks else ""
    width = len(undo.key)
    text = (
        f"SELECT {shown}, v.c{width} FROM {place_of(undo)} AS t, {source}"
        f" WHERE {_has_key(table)}{lock}"
    )
    (found,) = await send_queries(session, (text.encode(), params))
    return {int(row[-1]): _found(undo, tuple(row[:-1])) for row in rows_of(found)}


def _has_key(table: Table) -> str:
    """That a row `t` has the key in the first columns of `v`. Without lengths, so that a text that
    is too long is no other key."""
    names = enumerate(table.undo.key)
    return " AND ".join([f"t.{_quote(name)} = v.c{at}::{table.casts[name]}" for at, name in names])


def _found(table: UndoTable, image: Row) -> FoundRow:
    if not any(column.type == "bytea" for column in table.columns):
        return FoundRow(image, image)
    shown = [
        bytes.fromhex(value[2:]) if column.type == "bytea" and value is not None else value
        for column, value in zip(table.columns, image, strict=True)
    ]
    return FoundRow(image, tuple(shown))


def written_text(value: Any) -> Any:
    """A value as the text that the server reads."""
    return f"\\x{value.hex()}" if isinstance(value, bytes) else value


def source_of(rows: Sequence[Sequence[Any]]) -> tuple[str, Params]:
    """Rows of texts as a table `v` with the columns c0, c1, ..., and the parameters it takes."""
    columns = list(zip(*rows, strict=True))
    names = ", ".join([f"c{at}" for at in range(len(columns))])
    arrays = ", ".join([f"pg_catalog.unnest(${at + 1}::text[])" for at in range(len(columns))])
    return f"ROWS FROM ({arrays}) AS v({names})", dump([list(column) for column in columns])


class WrittenRows:
    """The rows of a change as they were written: their keys and themselves, by their places."""

    def __init__(self, table: Table, change: ChangeRows) -> None:
        self._table = table
        self._change = change
        self.keys: dict[int, Row] = {}
        self.rows: dict[int, FoundRow] = {}

    async def make(self, session: PostgresSession, group: EditGroup) -> None:
        """Make the edits of a group. Raises: TidegateError."""
        text, params = _statement(self._table, self._change, group)
        (done,) = await send_queries(session, (text.encode(), params))
        rows = rows_of(done)
        if len(rows) != len(group.edits):
            raise not_written(self._change.table)
        if group.verb == "delete":
            return
        undo = self._table.undo
        for row, (place, _) in zip(rows, group.edits, strict=True):
            at = place if group.verb == "insert" else int(row[-1])
            image = tuple(row[: len(undo.columns)])
            self.rows[at] = _found(undo, image)
            self.keys[at] = self._table.shape.key_of(image)


def _statement(table: Table, change: ChangeRows, group: EditGroup) -> tuple[str, Params]:
    undo, names, width = table.undo, change.shape.names, len(table.undo.key)
    name = place_of(undo)
    shown = ", ".join([f"t.{_quote(each)}::text" for each in undo.names])
    written = [names[place] for place in group.places]
    if group.verb == "insert":
        casts = [f"v.c{at}::{table.casts[each]}" for at, each in enumerate(written)]
        if not written:
            values = " UNION ALL ".join(["SELECT"] * len(group.edits))
            text = f"INSERT INTO {name} AS t {values} RETURNING {shown}"
            if len(group.edits) == 1:
                text = f"INSERT INTO {name} AS t DEFAULT VALUES RETURNING {shown}"
            return text, []
        rows = [[*_values(group, edit), str(at)] for at, edit in _numbered(group)]
        source, params = source_of(rows)
        listed = ", ".join(map(_quote, written))
        text = (
            f"INSERT INTO {name} AS t ({listed}) SELECT {', '.join(casts)} FROM {source}"
            f" ORDER BY v.c{len(written)}::integer RETURNING {shown}"
        )
        return text, params
    rows = [
        [*_key(change, table, edit), *_values(group, edit), str(place)]
        for place, edit in group.edits
    ]
    source, params = source_of(rows)
    condition, last = _has_key(table), width + len(written)
    if group.verb == "delete":
        text = f"DELETE FROM {name} AS t USING {source} WHERE {condition} RETURNING v.c{last}"
        return text, params
    sets = [
        f"{_quote(each)} = v.c{at}::{table.casts[each]}" for at, each in enumerate(written, width)
    ]
    sets += [f"{_quote(names[place])} = DEFAULT" for place in group.defaults]
    text = (
        f"UPDATE {name} AS t SET {', '.join(sets)} FROM {source} WHERE {condition}"
        f" RETURNING {shown}, v.c{last}"
    )
    return text, params


def _numbered(group: EditGroup) -> list[tuple[int, RowEdit]]:
    """The edits of a group with their numbers in it."""
    return [(number, edit) for number, (_, edit) in enumerate(group.edits)]


def _values(group: EditGroup, edit: RowEdit) -> list[Any]:
    values = dict(edit.values or ())
    return [written_text(values[place]) for place in group.places]


def _key(change: ChangeRows, table: Table, edit: RowEdit) -> list[Any]:
    """The key of a row that is there, in the order of the table's."""
    values = dict(zip(change.shape.names, edit.before or (), strict=True))
    return [values[name] for name in table.undo.key]


async def undo_objection(session: PostgresSession, change: ChangeRows) -> str:
    """Why the rows of the change cannot be put back; empty if they can."""
    for form in forms_of(change, "postgres").values():
        outline = outline_of(form.text, "postgres", len(form.params or ()))
        if isinstance(outline, str):
            return outline
        (look,) = await send_queries(session, look_by_name(outline))
        kept = table_to_keep(found_in(look, outline, session.line.server_version))
        if isinstance(kept, str):
            return kept
    return ""
