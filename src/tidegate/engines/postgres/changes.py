"""Keeps the rows that a change of a PostgreSQL table touches, and puts them back.

The rows are locked and read, the statement runs, and they are read again by their keys, in one
REPEATABLE READ transaction: its snapshot shows both the same rows, and a row that another
transaction changes meanwhile ends it with a serialization failure, after which it is tried again.
Values are kept as the texts of their types' output functions, which their input functions read back
exactly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from msgspec import structs
from psycopg.pq.abc import PGresult

from tidegate.engines.common.block_rows import BlockRows
from tidegate.engines.common.row_images import RowComparison
from tidegate.engines.common.undo_rows import (
    PartName,
    UndoTable,
    by_key,
    changed_places,
    check_restored,
    compare_rows,
    each_once,
    image_of_change,
    outline_of,
    parts_of,
    restored,
    restoring_orders,
    returning,
    reversibility_of,
    row_bound,
    table_to_keep,
    too_large,
)
from tidegate.engines.postgres.command_protocol import FAILED, Params
from tidegate.engines.postgres.connection import COMMIT, PINNED, ROLLBACK, PostgresSession
from tidegate.engines.postgres.errors import translate
from tidegate.engines.postgres.internal_queries import rows_of, send_queries
from tidegate.engines.postgres.row_counts import AT_ONCE, counter_of
from tidegate.engines.postgres.transaction import TransactionSettings, Tuning, settings_query
from tidegate.engines.postgres.types import Rows
from tidegate.engines.postgres.undo_tables import (
    VERSION,
    found_in,
    key_join_condition,
    locking,
    look_at,
    look_by_name,
    place_of,
    reading_by_keys,
    shown_of_added,
    table_of,
    unnest,
)
from tidegate.engines.postgres.unique_values import make_edits
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import (
    ChangeImage,
    ChangeKeeper,
    Comparison,
    Reversibility,
    Row,
    RowImage,
    TableImage,
)
from tidegate.model.decisions import Permit
from tidegate.sql.change_outline import ChangeOutline
from tidegate.sql.dialects import find

_quote = find("postgres").quote

BEGIN = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE"
_READS = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
TRIES = 5
_OWN_SETTINGS = (
    "its session has a time zone or an order of dates of its own, and the statement may change rows"
    " that are there."
)
_CONSTRAINT = "23"
_SERIALIZATION = ("40001", "40P01")


class Change(NamedTuple):
    """A change that is to run. `tuning` are the settings of its caller's session."""

    text: bytes
    params: Sequence[bytes | None]
    outline: ChangeOutline
    permit: Permit
    max_bytes: int
    tuning: Tuning = ()


class ChangeResult(NamedTuple):
    """A change that has run: its result, of which the first `width` columns are its own, how many
    rows it changed, those that followed included in `counted`, and the image of its rows, or why
    there is none."""

    result: PGresult
    width: int
    affected: int
    counted: int
    table: UndoTable | None
    image: ChangeImage | str


async def reversibility(
    session: PostgresSession, text: str, parameters: int, settings: TransactionSettings
) -> Reversibility:
    """Whether the rows of a change can be put back. Raises: TidegateError."""
    outline = outline_of(text, "postgres", parameters)
    if isinstance(outline, str):
        return Reversibility(False, outline)
    *_, look = await send_queries(
        session, (_READS, None), settings_query(settings), look_by_name(outline)
    )
    await session.end(ROLLBACK)
    return reversibility_of(found_in(look, outline, session.line.server_version))


async def run_with_undo(
    session: PostgresSession,
    text: bytes,
    params: list[bytes | None],
    outline: ChangeOutline,
    settings: TransactionSettings,
    permit: Permit,
    keeper: ChangeKeeper,
) -> ChangeResult:
    """Run a change, keep its rows and commit it.

    Raises: TidegateError; nothing was changed then, unless its code is SQL_OUTCOME.
    """
    for attempt in range(TRIES):
        try:
            before = (BEGIN, None), settings_query(settings)
            change = Change(text, params, outline, permit, keeper.max_bytes, settings.tuning)
            ran = await _change(session, before, change, ends=True)
            if isinstance(ran.image, str):
                await asyncio.to_thread(keeper.give_up, ran.image)
            else:
                await asyncio.to_thread(keeper.prepare, ran.image)
        except TidegateError as error:
            await session.end(ROLLBACK)
            if error.details.get("sqlstate") not in _SERIALIZATION or attempt == TRIES - 1:
                raise
        else:
            await commit(session)  # not tried again: the rows are kept for this commit
            return ran
    raise TidegateError(Code.INTERNAL, "A change was tried and did not end.")


async def run_in_block(
    session: PostgresSession,
    settings: Sequence[tuple[bytes, Params]],
    change: Change,
    keeper: ChangeKeeper,
    block: BlockRows,
) -> ChangeResult:
    """Run a change of a transaction over several, after its settings, and add its rows to
    those of the transaction.

    Raises: TidegateError.
    """
    ran = await _change(session, settings, change, ends=False)
    await block.take(ran.table, ran.image, keeper, change.max_bytes)
    return ran


async def keep_block(
    session: PostgresSession, block: BlockRows, keeper: ChangeKeeper, tuned: Tuning
) -> None:
    """Keep what a transaction has changed, before its COMMIT; `tuned` are settings that statements
    of it had. Raises: TidegateError."""
    tables: list[TableImage] = []
    if not block.reason:
        await send_queries(session, (AT_ONCE, None))  # a deferred trigger may change the rows
        if tuned:
            await send_queries(session, _as_pinned(tuned))
        for table, keys in block.tables:
            (now,) = await send_queries(session, reading_by_keys(table, keys, ""))
            rows = rows_of(now)
            there = {tuple([row[place] for place in table.key_places]): row for row in rows}
            image = block.image(table, there)
            if image is not None:
                tables.append(image)
    await block.prepare(keeper, tables)


async def _change(
    session: PostgresSession,
    first: Sequence[tuple[bytes, Params]],
    change: Change,
    *,
    ends: bool,
) -> ChangeResult:
    """Run a change after what comes `first`, between two readings of its rows. With `ends` it is
    the only one of its transaction, and what is deferred is done."""
    text, params, outline, permit, max_bytes, tuning = change
    counter = counter_of(permit)
    *_, look = await send_queries(session, *first, look_by_name(outline))
    table = table_to_keep(found_in(look, outline, session.line.server_version))
    if counter is not None:
        await counter.start(session)
    before: Rows = []
    if not isinstance(table, str) and outline.rows.text:
        most = row_bound(max_bytes)
        (locked,) = await send_queries(session, locking(outline, table, params, most + 1))
        before = each_once(rows_of(locked), table.key_places)
        if tuning and before:
            before = await _read_alike(session, table, before, tuning)
        table = too_large(max_bytes) if len(before) > most else table
    if tuning and not isinstance(table, str) and outline.upserts:
        table = _OWN_SETTINGS  # what RETURNING shows of the rows before is written by them
    adds = not isinstance(table, str) and not outline.rows.text
    if not isinstance(table, str) and adds:
        text = returning(outline, shown_of_added(outline, table)).encode()
    (done,) = await send_queries(session, (text, params))
    affected = counted = int(done.command_tuples or 0)
    if counter is not None:
        counted = await counter.end(session, affected, deferred=ends)
    elif ends:
        await send_queries(session, (AT_ONCE, None))  # a deferred trigger may change the rows
    width = done.nfields
    if isinstance(table, str):
        return ChangeResult(done, width, affected, counted, None, table)
    keyed = before
    if adds:
        width -= len(table.names) * (2 if outline.upserts else 1)
        before, keyed = _split_inserted_rows(outline, table, [row[width:] for row in rows_of(done)])
    if tuning:
        await send_queries(session, _as_pinned(tuning))
    image = await _image(session, table, outline, before, keyed, affected)
    return ChangeResult(done, width, affected, counted, table, image)


async def _read_alike(
    session: PostgresSession, table: UndoTable, rows: Rows, tuning: Tuning
) -> Rows:
    """The same rows, as texts that do not depend on the settings of the caller's session."""
    keys = [tuple([row[place] for place in table.key_places]) for row in rows]
    again = await send_queries(
        session,
        _as_pinned(tuning),
        reading_by_keys(table, keys, VERSION),
        _query_of(tuning),
    )
    return rows_of(again[1])


def _as_pinned(tuning: Tuning) -> tuple[bytes, Params]:
    return _query_of(tuple([(name, PINNED[name]) for name, _ in tuning if name in PINNED]))


def _query_of(tuning: Tuning) -> tuple[bytes, Params]:
    calls = [
        b"pg_catalog.set_config($%d, $%d, true)" % (2 * place + 1, 2 * place + 2)
        for place in range(len(tuning))
    ]
    return b"SELECT " + b", ".join(calls), [part.encode() for each in tuning for part in each]


def _split_inserted_rows(
    outline: ChangeOutline, table: UndoTable, shown: Rows
) -> tuple[Rows, Rows]:
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
    table: UndoTable,
    outline: ChangeOutline,
    before: Rows,
    keyed: Rows,
    affected: int,
) -> ChangeImage | str:
    """The image of a change: the rows of these keys are read once more, as it has left them."""
    width = len(table.columns)
    was = [row[:width] for row in before]
    if not keyed:
        return image_of_change(table, outline, was, (), affected)
    places = table.key_places
    keys = list({tuple([row[place] for place in places]): None for row in keyed})
    (again,) = await send_queries(session, reading_by_keys(table, keys, VERSION))
    rows = rows_of(again)
    if outline.verb == "update":
        versions = {tuple([row[place] for place in places]): row[width] for row in before}
        if any(versions.get(tuple([row[place] for place in places])) == row[width] for row in rows):
            return "it is about other rows than those that were read before it"
    return image_of_change(table, outline, was, [row[:width] for row in rows], affected)


async def compare(
    session: PostgresSession, image: ChangeImage, settings: TransactionSettings
) -> Comparison:
    """Compare the rows of an image with those there now. Raises: TidegateError."""
    await send_queries(session, (_READS, None), settings_query(settings))
    try:
        return await _compare_images(session, image, locks=False)
    finally:
        await session.end(ROLLBACK)


async def put_back(
    session: PostgresSession,
    image: ChangeImage,
    settings: TransactionSettings,
    keeper: ChangeKeeper | None,
) -> Comparison:
    """Put the rows back in one transaction, or return what prevents it.

    Raises: TidegateError; nothing was changed then, unless its code is SQL_OUTCOME.
    """
    await send_queries(session, (b"BEGIN READ WRITE", None), settings_query(settings))
    try:
        found = await _compare_images(session, image, locks=True)
        if found.count or found.reason:
            return found
        made: list[TableImage] = []
        different = 0
        await _restore(session, image)
        for kept in image.tables:
            table = await _table_now(session, kept)
            now, others = restored(kept, await _read_current_rows(session, table, kept))
            different += others
            made.append(now)
        remarks = check_restored(different, found.triggers)
        if keeper is not None:
            await asyncio.to_thread(keeper.prepare, ChangeImage(tuple(made)))
        await commit(session)
    finally:
        if session.line.in_transaction:
            await session.end(ROLLBACK)
    return Comparison(triggers=found.triggers, remarks=remarks)


async def _compare_images(
    session: PostgresSession, image: ChangeImage, *, locks: bool
) -> Comparison:
    comparison = RowComparison()
    triggers: list[str] = []
    for kept in image.tables:
        (look,) = await send_queries(session, look_at(kept))
        rows = rows_of(look)
        table = table_of(rows[0]) if rows else None
        if table is None or table.shape != kept.shape:
            return Comparison(reason=f"the table {kept.table} has another definition now")
        triggers += table.triggers
        compare_rows(comparison, kept, await _read_current_rows(session, table, kept, locks=locks))
    return structs.replace(comparison.result, triggers=tuple(triggers))


async def _table_now(session: PostgresSession, kept: TableImage) -> UndoTable:
    (look,) = await send_queries(session, look_at(kept))
    return table_of(rows_of(look)[0])


async def _restore(session: PostgresSession, image: ChangeImage) -> None:
    """Make the rows what they were. Raises: TidegateError."""
    tables = [await _table_now(session, kept) for kept in image.tables]
    queries = [_restoring(table, kept) for table, kept in zip(tables, image.tables, strict=True)]
    orders = restoring_orders(len(tables))
    for at, order in enumerate(orders, 1):
        if at < len(orders):
            await send_queries(session, (b"SAVEPOINT restoring", None))
        try:
            for part, place in order:
                if part == "changes":
                    await _change_back(
                        session, tables[place], parts_of(image.tables[place]).changes
                    )
                elif part in queries[place]:
                    await send_queries(session, queries[place][part])
        except TidegateError as error:
            constraint = str(error.details.get("sqlstate", "")).startswith(_CONSTRAINT)
            if at == len(orders) or not constraint:
                raise
            await session.be_ready_in_block()
            await send_queries(session, (b"ROLLBACK TO SAVEPOINT restoring", None))
        else:
            return


def _restoring(table: UndoTable, kept: TableImage) -> dict[PartName, tuple[bytes, Params]]:
    """The queries that bring rows of a table back, or delete those that were added."""
    parts = parts_of(kept)
    name = place_of(table)
    queries: dict[PartName, tuple[bytes, Params]] = {}
    if parts.goes:
        keys = [kept.key_of(row) for row in parts.goes]
        source, params = unnest(table, table.key_places, keys)
        text = f"DELETE FROM {name} AS t USING {source} WHERE {key_join_condition(table)}"
        queries["goes"] = text.encode(), params
    if parts.returns:
        rows = [list(row.before or ()) for row in parts.returns]
        source, params = unnest(table, list(range(len(table.columns))), rows)
        names = ", ".join(map(_quote, table.names))
        values = ", ".join(
            f"v.c{place}::{column.type}" for place, column in enumerate(table.columns)
        )
        text = f"INSERT INTO {name} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {source}"
        queries["returns"] = text.encode(), params
    return queries


async def _change_back(
    session: PostgresSession, table: UndoTable, changes: Sequence[RowImage]
) -> None:
    """Make rows what they were. Raises: TidegateError."""
    changed = [
        place
        for place in changed_places(changes, len(table.columns))
        if table.names[place] not in table.identities
    ]
    places, first = [*table.key_places, *changed], len(table.key)
    sets = ", ".join(
        f"{_quote(table.names[place])} = v.c{first + at}::{table.columns[place].type}"
        for at, place in enumerate(changed)
    )

    async def change(*some: RowImage) -> None:
        rows = [[(row.before or ())[place] for place in places] for row in some]
        source, params = unnest(table, places, rows)
        condition = key_join_condition(table)
        text = f"UPDATE {place_of(table)} AS t SET {sets} FROM {source} WHERE {condition}"
        await send_queries(session, (text.encode(), params))

    if changed:
        await make_edits(session, changes, partial(change, *changes), change)


async def _read_current_rows(
    session: PostgresSession, table: UndoTable, kept: TableImage, *, locks: bool = False
) -> dict[Row, Row]:
    """The rows that the keys of an image find now."""
    keys = [kept.key_of(row) for row in kept.rows]
    (now,) = await send_queries(session, reading_by_keys(table, keys, " ", locks=locks))
    return by_key(kept, rows_of(now))


async def commit(session: PostgresSession) -> None:
    """Commit the transaction. Raises: TidegateError."""
    committed = await session.end(COMMIT)
    if committed.status in FAILED or committed.command_status != COMMIT:
        raise translate(committed)
