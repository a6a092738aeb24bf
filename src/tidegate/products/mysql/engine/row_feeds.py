"""Adds the rows of a file to an InnoDB table, as one change.

The rows are read as they are sent, some at a time, as literals in strict mode. Where they are kept
for undo they are read back by their keys: such rows fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import structs

from tidegate.engines.common.edited_images import (
    end_image,
    image_of_added,
    objection_to_lost,
    remarks_on,
)
from tidegate.engines.common.row_edits import change_of, check_shape, not_written, part_of
from tidegate.engines.common.row_images import check_count
from tidegate.engines.common.running_statement import RunningStatement
from tidegate.model.changes import ChangeImage, Row
from tidegate.model.decisions import Permit
from tidegate.model.row_changes import ChangedRows, ChangeRows, RowFeed
from tidegate.products.mysql.engine.changes import begin
from tidegate.products.mysql.engine.connection import COMMIT, ROLLBACK, MysqlSession
from tidegate.products.mysql.engine.row_changes import (
    STRICT,
    WAIT,
    Table,
    check_trial,
    find_changed,
    given_text,
    read_at_keys,
    undo_objection,
    write_edits,
)
from tidegate.products.mysql.engine.row_counts import RowCounter
from tidegate.products.mysql.engine.undo_tables import place_of
from tidegate.sql.dialects import find

_quote = find("mysql").quote
_MOST_TEXT = 1_000_000
"""Characters of rows in one statement: servers take 16 MB or more."""


async def add_rows(
    session: MysqlSession, permit: Permit, running: RunningStatement[MysqlSession]
) -> ChangedRows:
    """Add the rows in one transaction. The caller ends the session if this raises.

    Raises: ServerError, TidegateError.
    """
    change = change_of(permit)
    feed = change.feed
    if feed is None:
        return ChangedRows((), 0)
    check_count(permit, feed.count)
    table = await find_changed(session, change.schema or "", change.table, keyless=True)
    check_shape(change, table.shape)
    table = table._replace(shape=structs.replace(table.shape, key=table.undo.key_places))
    if change.tries:
        await check_trial(session, part_of(change, next(feed.batches(), ())[:1]), table)
        await session.query_internal(WAIT)
    keeper = None if change.tries else permit.keeper
    objection = "" if keeper is None else await undo_objection(session, change)
    await session.query_internal(STRICT)
    await begin(session)
    try:
        counter = await RowCounter.begin(session, permit, change.schema)
        keeps = keeper is not None and not objection
        keys = await _write(session, table, change, feed, keeps=keeps)
        affected = feed.count
        if counter is not None:
            affected = await counter.end(session, affected, returns=True)
        image: ChangeImage | None = None
        if keeps:
            after = await read_at_keys(session, table, keys)
            objection = objection_to_lost(len(keys), len(after))
            image = image_of_added(table.undo, [after[place] for place in sorted(after)])
    except BaseException:
        await session.end(ROLLBACK)
        raise
    if keeper is not None:
        await end_image(keeper, image, objection)
    running.committing = not change.tries
    await session.end(ROLLBACK if change.tries else COMMIT)
    return ChangedRows((), affected, remarks=remarks_on(table.undo.triggers), fed=feed.count)


async def _write(
    session: MysqlSession, table: Table, change: ChangeRows, feed: RowFeed, *, keeps: bool
) -> dict[int, Row]:
    """Add all rows; their keys, if rows are kept. Raises: ServerError, TidegateError."""
    keys: dict[int, Row] = {}
    done = 0
    for rows in feed.batches():
        feed.note(done + 1, done + len(rows))
        if keeps:
            found = await write_edits(session, table, part_of(change, rows))
            keys |= {done + place: key for place, key in found.items()}
        else:
            added = 0
            for text in _statements(table, change, feed, rows):
                session.line.query(text.encode())
                added += await session.line.done()
            if added != len(rows):
                raise not_written(change.table)
        done += len(rows)
    return keys


def _statements(
    table: Table, change: ChangeRows, feed: RowFeed, rows: Sequence[Sequence[Any]]
) -> Iterator[str]:
    by_name = {column.name: column for column in table.undo.columns}
    columns = [by_name[change.shape.names[place]] for place in feed.places]
    listed = ", ".join([_quote(column.name) for column in columns])
    head = f"INSERT INTO {place_of(table.undo)} ({listed}) VALUES "
    parts: list[str] = []
    size = 0
    for row in rows:
        values = [given_text(column, value) for column, value in zip(columns, row, strict=True)]
        part = f"({', '.join(values)})"
        if parts and size + len(part) > _MOST_TEXT:
            yield head + ", ".join(parts)
            parts, size = [], 0
        parts.append(part)
        size += len(part)
    yield head + ", ".join(parts)
