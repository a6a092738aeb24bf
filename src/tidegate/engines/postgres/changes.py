"""Keeps the rows that a change of a PostgreSQL table touches, and puts them back.

The rows are locked and read, the statement runs, and they are read again by their keys, in one
REPEATABLE READ transaction: its snapshot shows both the same rows, and a row that another
transaction changes meanwhile ends it with a serialization failure, after which it is tried again.
Values are kept as the texts of their types' output functions, which their input functions read back
exactly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg.pq.abc import PGresult

from tidegate.engines.common.kept_rows import (
    KeptTable,
    changed_places,
    each_once,
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
from tidegate.engines.postgres.command_protocol import FAILED, Params
from tidegate.engines.postgres.connection import COMMIT, ROLLBACK, PostgresSession
from tidegate.engines.postgres.errors import translate
from tidegate.engines.postgres.own_queries import array_of, rows_of, send_queries
from tidegate.engines.postgres.parameters import dump
from tidegate.engines.postgres.row_counts import AT_ONCE, COUNT, counter_of
from tidegate.engines.postgres.transaction import settings_query
from tidegate.engines.postgres.types import Rows
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
from tidegate.model.sources import Identity
from tidegate.sql.change_outline import ChangeOutline
from tidegate.sql.dialects import find

_quote = find("postgres").quote

BEGIN = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE"
_READS = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
TRIES = 5
_RETURNS_OLD = 180000
_OLD_AND_NEW = frozenset({"old", "new"})
_SERIALIZATION = ("40001", "40P01")

_LOOK = """
SELECT c.oid::text, n.nspname, c.relname,
  c.relkind = 'r' AND c.oid >= 16384 AND NOT c.relhassubclass AND NOT c.relispartition
    AND c.relpersistence = 'p',
  c.relhasrules OR c.relrowsecurity,
  EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.confrelid = c.oid AND k.contype = 'f'
    AND k.confdeltype NOT IN ('a', 'r')),
  EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.confrelid = c.oid AND k.contype = 'f'
    AND k.confupdtype NOT IN ('a', 'r')),
  pg_catalog.has_table_privilege(c.oid, 'SELECT')
    AND pg_catalog.has_table_privilege(c.oid, 'UPDATE'),
  EXISTS (SELECT FROM pg_catalog.pg_proc AS p WHERE p.provolatile = 'v'
    AND (p.proname = ANY ($2::name[]) OR (p.proname = ANY ($3::name[])
      AND p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace))),
  (SELECT pg_catalog.json_agg(t.tgname ORDER BY t.tgname) FROM pg_catalog.pg_trigger AS t
    WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D')::text,
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(a.attname,
      CASE WHEN y.typnamespace = 'pg_catalog'::pg_catalog.regnamespace
        THEN pg_catalog.format_type(a.atttypid, a.atttypmod)
        ELSE pg_catalog.quote_ident(s.nspname) || '.' || pg_catalog.quote_ident(y.typname) END,
      a.attidentity) ORDER BY a.attnum)
    FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS y ON y.oid = a.atttypid
      JOIN pg_catalog.pg_namespace AS s ON s.oid = y.typnamespace
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      AND a.attgenerated = '')::text,
  (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
    WHERE i.indrelid = c.oid AND i.indisprimary)::text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = """
_BY_NAME = f"{_LOOK}pg_catalog.to_regclass($1)".encode()
_BY_PLACE = (
    f"{_LOOK}(SELECT o.oid FROM pg_catalog.pg_class AS o JOIN pg_catalog.pg_namespace AS m"
    " ON m.oid = o.relnamespace WHERE o.relname = $1 AND m.nspname = $4 LIMIT 1)"
).encode()


_IS_OWN = (
    ", (t.xmin::text::bigint = (pg_catalog.pg_current_xact_id()::text::bigint"
    " & 4294967295::bigint))::text"
)
"""Whether this transaction wrote the row."""


class Settings(NamedTuple):
    """What a transaction runs with."""

    timeout_ms: int
    schema: bytes | None = None
    identity: Identity | None = None


class Ran(NamedTuple):
    """A change that has run: its result, of which the first `width` columns are its own, and how
    many rows it changed."""

    result: PGresult
    width: int
    affected: int


class _Found(NamedTuple):
    """A table in the catalog, with what prevents that its rows are kept."""

    table: KeptTable
    objection: str


async def reversibility(
    session: PostgresSession, text: str, parameters: int, settings: Settings
) -> Reversibility:
    """Whether the rows of a change can be put back. Raises: TidegateError."""
    outline = outline_of(text, "postgres", parameters)
    if isinstance(outline, str):
        return Reversibility(False, outline)
    *_, look = await send_queries(session, (_READS, None), _settings(settings), _look(outline))
    await session.end(ROLLBACK)
    found = _found(look, outline, session.line.server_version)
    if isinstance(found, str) or found.objection:
        return Reversibility(False, found if isinstance(found, str) else found.objection)
    return Reversibility(True, triggers=found.table.triggers)


async def run_kept(
    session: PostgresSession,
    text: bytes,
    params: list[bytes | None],
    outline: ChangeOutline,
    settings: Settings,
    permit: Permit,
    keeper: ChangeKeeper,
) -> Ran:
    """Run a change, keep its rows and commit it.

    Raises: TidegateError; nothing was changed then, unless its code is SQL_OUTCOME.
    """
    for attempt in range(TRIES):
        try:
            found = await _try(session, text, params, outline, settings, permit, keeper)
        except TidegateError as error:
            await session.end(ROLLBACK)
            if error.details.get("sqlstate") not in _SERIALIZATION or attempt == TRIES - 1:
                raise
        else:
            await _commit(session)  # not tried again: the rows are kept for this commit
            return found
    raise TidegateError(Code.INTERNAL, "A change was tried and did not end.")


async def _try(
    session: PostgresSession,
    text: bytes,
    params: list[bytes | None],
    outline: ChangeOutline,
    settings: Settings,
    permit: Permit,
    keeper: ChangeKeeper,
) -> Ran:
    counter = counter_of(permit)
    *_, look = await send_queries(session, (BEGIN, None), _settings(settings), _look(outline))
    found = _found(look, outline, session.line.server_version)
    reason = found if isinstance(found, str) else found.objection
    table = None if reason or isinstance(found, str) else found.table
    if counter is not None:
        counter.begin(await session.run_own(COUNT))
    before: Rows = []
    if table is not None and outline.rows.text:
        most = row_bound(keeper.max_bytes)
        (locked,) = await send_queries(session, _locking(outline, table, params, most + 1))
        before = each_once(rows_of(locked), table.key_places)
        if len(before) > most:
            table, reason = None, too_large(keeper.max_bytes)
    adds = table is not None and not outline.rows.text
    if table is not None and adds:
        text = returning(outline, _shown_of_added(outline, table)).encode()
    (done,) = await send_queries(session, (text, params))
    affected = int(done.command_tuples or 0)
    if counter is not None:
        await counter.end(session, affected, deferred=True)
    else:
        await send_queries(session, (AT_ONCE, None))  # a deferred trigger may change the rows
    width = done.nfields
    image: ChangeImage | str = reason
    if table is not None:
        keyed = before
        if adds:
            width -= len(table.names) * (2 if outline.upserts else 1)
            before, keyed = _added(outline, table, [row[width:] for row in rows_of(done)])
        image = await _image(session, table, outline, before, keyed, affected)
    if isinstance(image, str):
        await asyncio.to_thread(keeper.give_up, image)
    else:
        await asyncio.to_thread(keeper.prepare, image)
    return Ran(done, width, affected)


def _added(outline: ChangeOutline, table: KeptTable, shown: Rows) -> tuple[Rows, Rows]:
    """Of what an INSERT or MERGE showed: the rows that it changed or deleted, as they were, and all
    rows, each in one of its states."""
    if not outline.upserts:
        return [], shown
    width, first = len(table.names), table.key_places[0]
    old, new = [row[:width] for row in shown], [row[width:] for row in shown]
    was = [row for row in old if row[first] is not None]
    return was, [*was, *[row for row in new if row[first] is not None]]


async def _image(
    session: PostgresSession,
    table: KeptTable,
    outline: ChangeOutline,
    before: Rows,
    keyed: Rows,
    affected: int,
) -> ChangeImage | str:
    """The image of a change: the rows of these keys are read once more, as it has left them."""
    if not keyed:
        return image_of_change(table, outline, before, (), affected)
    places = table.key_places
    keys = list({tuple([row[place] for place in places]): None for row in keyed})
    (again,) = await send_queries(session, _by_keys(table, keys, _IS_OWN))
    rows = rows_of(again)
    if outline.verb != "delete" and any(row[-1] != "true" for row in rows):
        return "it is about other rows than those that were read before it"
    return image_of_change(table, outline, before, [row[:-1] for row in rows], affected)


async def compare(session: PostgresSession, image: ChangeImage, settings: Settings) -> Comparison:
    """Compare the rows of an image with those there now. Raises: TidegateError."""
    await send_queries(session, (_READS, None), _settings(settings))
    try:
        return await _compared(session, image, locks=False)
    finally:
        await session.end(ROLLBACK)


async def put_back(
    session: PostgresSession,
    image: ChangeImage,
    settings: Settings,
    keeper: ChangeKeeper | None,
) -> Comparison:
    """Put the rows back in one transaction, or return what stands against it.

    Raises: TidegateError; nothing was changed then, unless its code is SQL_OUTCOME.
    """
    await send_queries(session, (b"BEGIN READ WRITE", None), _settings(settings))
    try:
        found = await _compared(session, image, locks=True)
        if found.count or found.reason:
            return found
        made: list[TableImage] = []
        different = 0
        for kept in image.tables:
            table = await _table_now(session, kept)
            await _restore(session, table, kept)
            now, others = await _restored(session, table, kept)
            different += others
            made.append(now)
        if different and not found.triggers:
            raise TidegateError(
                Code.UNDO_UNAVAILABLE,
                f"{different:,} rows would not be as they were. Nothing was changed.",
                hint="Correct the rows by statements.",
            )
        if keeper is not None:
            await asyncio.to_thread(keeper.prepare, ChangeImage(tuple(made)))
        await _commit(session)
    finally:
        if session.line.in_transaction:
            await session.end(ROLLBACK)
    remark = f"triggers changed {different:,} of the rows again" if different else ""
    return Comparison(triggers=found.triggers, remarks=(remark,) if remark else ())


async def _compared(session: PostgresSession, image: ChangeImage, *, locks: bool) -> Comparison:
    comparison = RowComparison()
    triggers: list[str] = []
    for kept in image.tables:
        (look,) = await send_queries(session, _look_at(kept))
        rows = rows_of(look)
        table = _table(rows[0]) if rows else None
        if table is None or table.shape != kept.shape:
            return Comparison(reason=f"the table {kept.table} has another definition now")
        triggers += table.triggers
        keys = [kept.key_of(row) for row in kept.rows]
        (now,) = await send_queries(session, _by_keys(table, keys, " ", locks=locks))
        there = _by_key(kept, rows_of(now))
        for row, key in zip(kept.rows, keys, strict=True):
            comparison.add(kept, row, there.get(key))
    found = comparison.result
    return Comparison(found.conflicts, found.count, found.as_before, triggers=tuple(triggers))


async def _table_now(session: PostgresSession, kept: TableImage) -> KeptTable:
    (look,) = await send_queries(session, _look_at(kept))
    return _table(rows_of(look)[0])


async def _restore(session: PostgresSession, table: KeptTable, kept: TableImage) -> None:
    """Make the rows what they were. Raises: TidegateError."""
    parts = parts_of(kept)
    name = _place(table)
    if parts.goes:
        keys = [kept.key_of(row) for row in parts.goes]
        source, params = _unnest(table, table.key_places, keys)
        text = f"DELETE FROM {name} AS t USING {source} WHERE {_joined(table)}"
        await send_queries(session, (text.encode(), params))
    if parts.changes:
        width = len(table.columns)
        changed = [
            place
            for place in changed_places(parts.changes, width)
            if table.names[place] not in table.identities
        ]
        if changed:
            places = [*table.key_places, *changed]
            rows = [[(row.before or ())[place] for place in places] for row in parts.changes]
            source, params = _unnest(table, places, rows)
            first = len(table.key)
            sets = ", ".join(
                f"{_quote(table.names[place])} = v.c{first + at}::{table.columns[place].type}"
                for at, place in enumerate(changed)
            )
            text = f"UPDATE {name} AS t SET {sets} FROM {source} WHERE {_joined(table)}"
            await send_queries(session, (text.encode(), params))
    if parts.returns:
        places = list(range(len(table.columns)))
        rows = [list(row.before or ()) for row in parts.returns]
        source, params = _unnest(table, places, rows)
        names = ", ".join(map(_quote, table.names))
        values = ", ".join(
            f"v.c{place}::{column.type}" for place, column in enumerate(table.columns)
        )
        text = f"INSERT INTO {name} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {source}"
        await send_queries(session, (text.encode(), params))


async def _restored(
    session: PostgresSession, table: KeptTable, kept: TableImage
) -> tuple[TableImage, int]:
    """What putting back changed, as an image, and how many rows are not as they were."""
    keys = [kept.key_of(row) for row in kept.rows]
    (now,) = await send_queries(session, _by_keys(table, keys, " "))
    there = _by_key(kept, rows_of(now))
    rows: list[RowImage] = []
    different = 0
    for row, key in zip(kept.rows, keys, strict=True):
        found = there.get(key)
        different += not is_same_row(found, row.before)
        rows.append(RowImage(row.after, found))
    image = TableImage(kept.schema, kept.table, kept.columns, kept.key, tuple(rows), kept.shape)
    return image, different


def _by_key(kept: TableImage, rows: Rows) -> dict[Row, Row]:
    return {tuple([row[place] for place in kept.key]): row for row in rows}


async def _commit(session: PostgresSession) -> None:
    committed = await session.end(COMMIT)
    if committed.status in FAILED or committed.command_status != COMMIT:
        raise translate(committed)


def _look(outline: ChangeOutline) -> tuple[bytes, Params]:
    name = ".".join(_quote(part) if given else part for part, given in outline.name)
    calls = [array_of(sorted(names)).encode() for names in (outline.row_calls, outline.calls)]
    return _BY_NAME, [name.encode(), *calls]


def _look_at(kept: TableImage) -> tuple[bytes, Params]:
    return _BY_PLACE, [kept.table.encode(), b"{}", b"{}", kept.schema.encode()]


def _found(look: PGresult, outline: ChangeOutline, version: int) -> _Found | str:
    rows = rows_of(look)
    if not rows:
        return "its table was not found"
    row = rows[0]
    table = _table(row)
    plain, rules, deletes_follow, updates_follow, may_lock, volatile = row[3:9]
    if plain is not True:
        return _Found(table, f"{table.name} is not an ordinary table with a log")
    deletes = outline.verb in ("delete", "merge")
    updates = outline.verb == "update" or outline.upserts
    shown = outline.returning.lower()
    objections = (
        (rules, f"{table.name} has rules or row security"),
        (
            deletes_follow and deletes,
            f"rows of other tables follow those of {table.name} that are deleted",
        ),
        (
            updates_follow and updates,
            f"rows of other tables follow changes of keys of {table.name}",
        ),
        (not may_lock, f"this account may not lock rows of {table.name}"),
        (volatile, "it calls a function that may do more than compute"),
        (
            outline.upserts and version < _RETURNS_OLD,
            "before version 18 PostgreSQL does not show the rows that ON CONFLICT DO UPDATE or"
            " MERGE changes as they were",
        ),
        (
            outline.upserts and not _OLD_AND_NEW.isdisjoint({outline.alias.lower(), table.name}),
            "its table is called like the states of a row, old and new",
        ),
        (shown.lstrip().startswith("with"), "its RETURNING gives the states of a row other names"),
    )
    reasons = [reason for applies, reason in objections if applies]
    return _Found(table, reasons[0] if reasons else key_objection(outline, table))


def _table(row: Sequence[Any]) -> KeptTable:
    oid, schema, name = row[:3]
    listed: list[list[str]] = json.loads(row[10] or "[]")
    columns = tuple([ImageColumn(each[0], each[1]) for each in listed])
    key: tuple[str, ...] = tuple(json.loads(row[11] or "[]"))
    shape = json.dumps([oid, listed, list(key)])
    return KeptTable(
        schema,
        name,
        columns,
        key,
        shape,
        frozenset([each[0] for each in listed if each[2] == "a"]),
        tuple(json.loads(row[9] or "[]")),
    )


def _locking(
    outline: ChangeOutline, table: KeptTable, params: list[bytes | None], most: int
) -> tuple[bytes, Params]:
    shown = _texts(table.names, f"{outline.alias}.")
    text = f"{reading_rows(outline, shown)} LIMIT {most} FOR UPDATE OF {outline.alias}"
    return text.encode(), [params[place] for place in outline.rows.params]


def _shown_of_added(outline: ChangeOutline, table: KeptTable) -> str:
    """What an INSERT or MERGE shows of its rows: as they were and as they are, or these alone."""
    if not outline.upserts:
        return _texts(table.names)
    return f"{_texts(table.names, 'old.')}, {_texts(table.names, 'new.')}"


def _by_keys(
    table: KeptTable, keys: Sequence[Sequence[Any]], more: str, *, locks: bool = False
) -> tuple[bytes, Params]:
    """Reads the rows with these keys, as texts."""
    source, params = _unnest(table, table.key_places, keys)
    shown = ", ".join(f"t.{_quote(name)}::text" for name in table.names)
    lock = " FOR UPDATE OF t" if locks else ""
    text = f"SELECT {shown}{more} FROM {_place(table)} AS t, {source} WHERE {_joined(table)}{lock}"
    return text.encode(), params


def _unnest(
    table: KeptTable, places: Sequence[int], rows: Sequence[Sequence[Any]]
) -> tuple[str, Params]:
    """Rows of texts as a table `v` with the columns c0, c1, ..., and the parameters it takes."""
    names = ", ".join(f"c{at}" for at in range(len(places)))
    arrays = ", ".join(f"pg_catalog.unnest(${at + 1}::text[])" for at in range(len(places)))
    columns = [[row[at] for row in rows] for at in range(len(places))]
    return f"ROWS FROM ({arrays}) AS v({names})", dump(columns)


def _joined(table: KeptTable) -> str:
    """That a row `t` has the key in the first columns of `v`."""
    places = table.key_places
    return " AND ".join(
        f"t.{_quote(table.names[place])} = v.c{at}::{table.columns[place].type}"
        for at, place in enumerate(places)
    )


def _texts(names: Sequence[str], of: str = "") -> str:
    return ", ".join(f"{of}{_quote(name)}::text" for name in names)


def _place(table: KeptTable) -> str:
    return f"{_quote(table.schema)}.{_quote(table.name)}"


def _settings(settings: Settings) -> tuple[bytes, Params]:
    return settings_query(settings.timeout_ms, settings.schema, settings.identity)
