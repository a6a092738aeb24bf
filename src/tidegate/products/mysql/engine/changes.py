"""Keeps the rows that a change of an InnoDB table touches, and puts them back.

The rows are locked and read, the statement runs, and they are read again by their keys, in one
transaction of REPEATABLE READ, whose locks keep other rows from coming to meet the condition.
Values are kept as what gives the same value back: numbers and times as the server writes them, and
texts by the bytes that are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from tidegate.engines.common.block_rows import BlockRows
from tidegate.engines.common.row_edits import EditTurns
from tidegate.engines.common.row_images import RowComparison, is_same_row
from tidegate.engines.common.undo_rows import (
    FoundTable,
    PartName,
    UndoTable,
    by_key,
    check_restored,
    compare_rows,
    image_of_change,
    outline_of,
    parts_of,
    portions,
    reading_rows,
    restored,
    restoring_orders,
    returning,
    reversibility_of,
    row_bound,
    table_to_keep,
    too_large,
)
from tidegate.model.changes import (
    ChangeImage,
    ChangeKeeper,
    Comparison,
    Reversibility,
    Row,
    TableImage,
)
from tidegate.model.decisions import Permit
from tidegate.model.results import Column
from tidegate.products.mysql.engine.command_protocol import Fields
from tidegate.products.mysql.engine.connection import COMMIT, ROLLBACK, MysqlSession
from tidegate.products.mysql.engine.errors import ServerError
from tidegate.products.mysql.engine.packets import Rows
from tidegate.products.mysql.engine.row_counts import RowCounter
from tidegate.products.mysql.engine.types import check_count as check_parameters
from tidegate.products.mysql.engine.types import pack, read_fields
from tidegate.products.mysql.engine.undo_tables import (
    find_table,
    key_condition,
    place_of,
    read_table,
    reading,
    values_of,
    written,
)
from tidegate.sql.change_outline import ChangeOutline
from tidegate.sql.dialects import find

_quote = find("mysql").quote

_ISOLATION = b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"


_CONSTRAINT = "23000"
_TAKEN = frozenset({1062, 1586})
"""A unique value that another row has."""


async def reversibility(
    session: MysqlSession, text: str, parameters: int, database: str | None
) -> Reversibility:
    """Whether the rows of a change can be put back. Raises: ServerError, TidegateError."""
    outline = outline_of(text, "mysql", parameters)
    if isinstance(outline, str):
        return Reversibility(False, outline)
    return reversibility_of(await find_table(session, outline, database))


class BoundChange(NamedTuple):
    """A change of one table with the values of its parameters.

    `text` is the statement as the server reads it; `params` its values in their order, None where
    it goes to the server as text alone. `outline` says what it does to which rows, and `database`
    where a name without a database is looked up, None where the session has none.
    """

    text: bytes
    params: tuple[object, ...] | None
    outline: ChangeOutline
    database: str | None


class ChangeResult(NamedTuple):
    """A change that has run: what it gives, how many rows it changed, those of triggers included in
    `counted`, and the image of its rows, or why there is none. `table` is None without an image."""

    columns: tuple[Column, ...]
    rows: Rows
    affected: int
    counted: int
    table: UndoTable | None
    image: ChangeImage | str


async def run_with_undo(
    session: MysqlSession, change: BoundChange, permit: Permit, keeper: ChangeKeeper
) -> ChangeResult:
    """Run a change, keep its rows and commit it. The caller ends the session if this raises.

    Raises: ServerError, TidegateError.
    """
    found = await find_table(session, change.outline, change.database)
    await begin(session)
    ran = await _change(session, change, found, permit, keeper.max_bytes)
    if isinstance(ran.image, str):
        await asyncio.to_thread(keeper.give_up, ran.image)
    else:
        await asyncio.to_thread(keeper.prepare, ran.image)
    await session.end(COMMIT)
    return ran


async def run_in_block(
    session: MysqlSession,
    change: BoundChange,
    permit: Permit,
    keeper: ChangeKeeper,
    block: BlockRows,
) -> ChangeResult:
    """Run a change of a transaction over several, and add its rows to those of the transaction.

    Raises: ServerError, TidegateError.
    """
    found = await find_table(session, change.outline, change.database)
    ran = await _change(session, change, found, permit, keeper.max_bytes)
    await block.take(ran.table, ran.image, keeper, keeper.max_bytes)
    return ran


async def keep_block(session: MysqlSession, block: BlockRows, keeper: ChangeKeeper) -> None:
    """Keep what a transaction has changed, before its COMMIT.

    Raises: ServerError, TidegateError.
    """
    tables: list[TableImage] = []
    for table, keys in block.tables if not block.reason else ():
        rows = await by_keys(session, table, keys, locks=True)
        there = {tuple([row[place] for place in table.key_places]): tuple(row) for row in rows}
        image = block.image(table, there)
        if image is not None:
            tables.append(image)
    await block.prepare(keeper, tables)


async def _change(
    session: MysqlSession,
    change: BoundChange,
    found: FoundTable | str,
    permit: Permit,
    max_bytes: int,
) -> ChangeResult:
    """Run a change in the open transaction, between two readings of its rows."""
    text, params, outline, _ = change
    table = table_to_keep(found)
    counter = await RowCounter.begin(session, permit, change.database)
    before: Rows = []
    if not isinstance(table, str) and outline.verb != "insert":
        most = row_bound(max_bytes)
        before = await _locked(session, change, table, most + 1)
        table = too_large(max_bytes) if len(before) > most else table
    after: Rows = []
    if not isinstance(table, str) and outline.verb == "insert":
        returns = True
        shown = returning(outline, reading(table)).encode()
        columns, rows, affected = await _run(session, shown, params)
        width = len(columns) - len(table.columns)
        after = values_of(table, [row[width:] for row in rows])
        columns, rows = columns[:width], [row[:width] for row in rows] if width else []
    else:
        columns, rows, affected = await _run(session, text, params)
        returns = bool(columns)
    counted = affected if counter is None else await counter.end(session, affected, returns=returns)
    if isinstance(table, str):
        return ChangeResult(columns, rows, affected, counted, None, table)
    if outline.verb != "insert" and before:
        keys = [tuple([row[place] for place in table.key_places]) for row in before]
        after = await by_keys(session, table, keys, locks=True)
    if outline.verb == "update":
        before, after = _changed(table, before, after)
    image = image_of_change(table, outline, before, after, affected)
    return ChangeResult(columns, rows, affected, counted, table, image)


async def compare(session: MysqlSession, image: ChangeImage) -> Comparison:
    """Compare the rows of an image with those there now. Raises: ServerError, TidegateError."""
    return await _compare_images(session, image, locks=False)


async def put_back(
    session: MysqlSession, image: ChangeImage, keeper: ChangeKeeper | None
) -> Comparison:
    """Put the rows back in one transaction, or return what prevents it. The caller ends the
    session if this raises.

    Raises: ServerError, TidegateError.
    """
    await begin(session)
    found = await _compare_images(session, image, locks=True)
    if found.count or found.reason:
        await session.end(ROLLBACK)
        return found
    made: list[TableImage] = []
    different = 0
    await _restore(session, image)
    for kept in image.tables:
        table = await read_table(session, kept.schema, kept.table)
        now, others = restored(kept, await _read_current_rows(session, table, kept))
        different += others
        made.append(now)
    remarks = check_restored(different, found.triggers)
    if keeper is not None:
        await asyncio.to_thread(keeper.prepare, ChangeImage(tuple(made)))
    await session.end(COMMIT)
    return Comparison(triggers=found.triggers, remarks=remarks)


async def begin(session: MysqlSession) -> None:
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


async def _locked(session: MysqlSession, change: BoundChange, table: UndoTable, most: int) -> Rows:
    """The rows that the statement is about, which stay locked."""
    outline, params = change.outline, change.params
    text = f"{reading_rows(outline, reading(table))} LIMIT {most} FOR UPDATE"
    taken = [params[place] for place in outline.rows.params] if params else []
    found = await session.query_internal(text.encode(), *taken)
    return values_of(table, found)


async def by_keys(
    session: MysqlSession, table: UndoTable, keys: Sequence[Row], *, locks: bool = False
) -> Rows:
    """The rows with these keys."""
    found: Rows = []
    lock = " FOR UPDATE" if locks else ""
    for some in portions(keys):
        text = f"SELECT {reading(table)} FROM {place_of(table)} WHERE {key_condition(table, some)}"
        found += await session.query_internal(f"{text}{lock}".encode())
    return values_of(table, found)


async def _read_current_rows(
    session: MysqlSession, table: UndoTable, kept: TableImage, *, locks: bool = False
) -> dict[Row, Row]:
    """The rows that the keys of an image find now."""
    keys = [kept.key_of(row) for row in kept.rows]
    return by_key(kept, await by_keys(session, table, keys, locks=locks))


def _changed(table: UndoTable, before: Rows, after: Rows) -> tuple[Rows, Rows]:
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


async def _compare_images(session: MysqlSession, image: ChangeImage, *, locks: bool) -> Comparison:
    comparison = RowComparison()
    triggers: list[str] = []
    for kept in image.tables:
        table = await read_table(session, kept.schema, kept.table)
        if table.shape != kept.shape:
            return Comparison(reason=f"the table {kept.table} has another definition now")
        triggers += table.triggers
        compare_rows(comparison, kept, await _read_current_rows(session, table, kept, locks=locks))
    return structs.replace(comparison.result, triggers=tuple(triggers))


async def _restore(session: MysqlSession, image: ChangeImage) -> None:
    """Make the rows what they were. Raises: ServerError, TidegateError."""
    tables = [await read_table(session, kept.schema, kept.table) for kept in image.tables]
    texts = [_restoring(table, kept) for table, kept in zip(tables, image.tables, strict=True)]
    orders = restoring_orders(len(tables))
    for at, order in enumerate(orders, 1):
        if at < len(orders):
            await session.query_internal(b"SAVEPOINT restoring")
        try:
            for part, place in order:
                await send_texts(session, texts[place][part], in_turn=part == "changes")
        except ServerError as error:
            if at == len(orders) or error.details.get("sqlstate") != _CONSTRAINT:
                raise
            await session.line.settle()
            await session.query_internal(b"ROLLBACK TO SAVEPOINT restoring")
        else:
            return


async def send_texts(session: MysqlSession, texts: Sequence[str], *, in_turn: bool) -> None:
    """Run statements, many at a time; `in_turn` those whose unique values are other rows' still
    come again after the others. Raises: ServerError, TidegateError."""
    saves = in_turn and len(texts) > 1
    if saves:
        await session.query_internal(b"SAVEPOINT edits")
    try:
        for some in portions(texts):
            session.line.query(*[text.encode() for text in some])
            for _ in some:
                await session.line.done()
        return
    except ServerError as error:
        if not saves or error.number not in _TAKEN:
            raise
    await session.line.settle()
    await session.query_internal(b"ROLLBACK TO SAVEPOINT edits")
    turns = EditTurns(texts)
    while (text := turns.next()) is not None:
        session.line.query(text.encode())
        try:
            await session.line.done()
        except ServerError as error:
            if error.number not in _TAKEN:
                raise
            await session.line.settle()
            turns.put_off(text, error)


def _restoring(table: UndoTable, kept: TableImage) -> dict[PartName, list[str]]:
    """The statements that make the rows of a table what they were."""
    parts = parts_of(kept)
    goes = [
        f"DELETE FROM {place_of(table)} WHERE {key_condition(table, some)}"
        for some in portions([kept.key_of(row) for row in parts.goes])
    ]
    changes: list[str] = []
    for row in parts.changes:
        was, now = row.before or (), row.after or ()
        sets = [
            f"{_quote(column.name)} = {written(column, was[place])}"
            for place, column in enumerate(table.columns)
            if was[place] != now[place]
        ]
        key = [kept.key_of(row)]
        changes.append(
            f"UPDATE {place_of(table)} SET {', '.join(sets)} WHERE {key_condition(table, key)}"
        )
    returns: list[str] = []
    names = ", ".join([_quote(column.name) for column in table.columns])
    for some in portions(parts.returns):
        rows = [
            ", ".join([written(c, v) for c, v in zip(table.columns, row.before or (), strict=True)])
            for row in some
        ]
        listed = ", ".join(f"({row})" for row in rows)
        returns.append(f"INSERT INTO {place_of(table)} ({names}) VALUES {listed}")
    return {"goes": goes, "changes": changes, "returns": returns}
