"""Adds the rows of a file to a PostgreSQL table, as one change.

The rows are read as they are sent, some at a time, as arrays of texts. Where they are kept for undo
they are read back by the keys that the server gave them: such rows fit into memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from tidegate.engines.common.edited_images import (
    end_image,
    image_of_added,
    objection_to_lost,
    remarks_on,
)
from tidegate.engines.common.row_edits import (
    change_of,
    check_shape,
    grouped,
    not_written,
    part_of,
)
from tidegate.engines.common.row_images import check_count
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.engines.postgres.changes import commit
from tidegate.engines.postgres.connection import ROLLBACK, PostgresSession
from tidegate.engines.postgres.dry_run import LOCK_WAIT
from tidegate.engines.postgres.internal_queries import send_queries
from tidegate.engines.postgres.row_changes import (
    WRITES,
    Table,
    WrittenRows,
    check_trial,
    find_table,
    read_by_place,
    source_of,
    undo_objection,
    written_text,
)
from tidegate.engines.postgres.row_counts import AT_ONCE, counter_of
from tidegate.engines.postgres.transaction import TransactionSettings, settings_query
from tidegate.engines.postgres.undo_tables import place_of
from tidegate.model.changes import Row
from tidegate.model.decisions import Permit
from tidegate.model.row_changes import ChangedRows, ChangeRows, FoundRow, RowFeed
from tidegate.sql.dialects import find

_quote = find("postgres").quote


async def add_rows(
    session: PostgresSession,
    permit: Permit,
    settings: TransactionSettings,
    running: RunningStatement[PostgresSession],
) -> ChangedRows:
    """Add the rows in one transaction.

    Raises: TidegateError; nothing was changed then, unless its code is SQL_OUTCOME.
    """
    change = change_of(permit)
    feed = change.feed
    if feed is None:
        return ChangedRows((), 0)
    check_count(permit, feed.count)
    first = [(WRITES, None), settings_query(settings)]
    first += [(LOCK_WAIT, None)] if change.tries else []
    try:
        table = await find_table(session, first, change.schema, change.table, keyless=True)
        done = await _add(session, permit, change, table)
        if not change.tries:
            running.committing = True
            await commit(session)
        return done
    finally:
        if session.line.in_transaction:
            await session.end(ROLLBACK)
            await session.settle()


async def _add(
    session: PostgresSession, permit: Permit, change: ChangeRows, table: Table
) -> ChangedRows:
    feed = change.feed
    if feed is None:
        return ChangedRows((), 0)
    check_shape(change, table.shape)
    table = table._replace(shape=structs.replace(table.shape, key=table.undo.key_places))
    if change.tries:
        await check_trial(session, part_of(change, next(feed.batches(), ())[:1]), table)
    keeper = None if change.tries else permit.keeper
    objection = "" if keeper is None else await undo_objection(session, change)
    counter = counter_of(permit)
    if counter is not None:
        await counter.start(session)
    keys: dict[int, Row] = {}
    kept: dict[int, FoundRow] = {}
    done = 0
    for rows in feed.batches():
        feed.note(done + 1, done + len(rows))
        if keeper is None or objection:
            await _insert(session, table, change, feed, rows)
        else:
            part = part_of(change, rows)
            made = WrittenRows(table, part)
            for group in grouped(part):
                await made.make(session, group)
            keys |= {done + place: key for place, key in made.keys.items()}
            kept |= {done + place: row for place, row in made.rows.items()}
        done += len(rows)
    affected = feed.count
    if counter is not None:
        affected = await counter.end(session, affected, deferred=True)
    await send_queries(session, (AT_ONCE, None))  # a deferred trigger may change the rows
    if keeper is not None:
        if table.reacts and not objection:
            kept = await read_by_place(session, table, keys, locks=False)
            objection = objection_to_lost(len(keys), len(kept))
        rows = [kept[place] for place in sorted(kept)]
        image = None if objection else image_of_added(table.undo, rows)
        await end_image(keeper, image, objection)
    return ChangedRows((), affected, remarks=remarks_on(table.undo.triggers), fed=feed.count)


async def _insert(
    session: PostgresSession,
    table: Table,
    change: ChangeRows,
    feed: RowFeed,
    rows: Sequence[Sequence[Any]],
) -> None:
    """Raises: TidegateError."""
    names = [change.shape.names[place] for place in feed.places]
    casts = ", ".join([f"v.c{at}::{table.casts[name]}" for at, name in enumerate(names)])
    listed = ", ".join(map(_quote, names))
    source, params = source_of([list(map(written_text, row)) for row in rows])
    text = f"INSERT INTO {place_of(table.undo)} ({listed}) SELECT {casts} FROM {source}"
    (added,) = await send_queries(session, (text.encode(), params))
    if added.command_tuples != len(rows):
        raise not_written(change.table)
