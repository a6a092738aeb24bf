"""The rows of a file are added as one change, or none of them."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.held_rows import held_rows
from support.row_edits import FEEDS, Editor, schema_of
from support.undo_shops import AGENT, KINDS, READER, Gate, Shop, gate_of
from tidegate.errors import Code
from tidegate.imports.checking import HeldRows
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.model.editing import Editability
from tidegate.model.requests import SearchHistory
from tidegate.model.row_changes import ChangedRows, ChangeRows, DescribeEditing, RowEdit


@pytest.fixture(params=FEEDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    made = KINDS[request.param].make(tmp_path)
    yield made
    made.close()


async def describe(gate: Gate, table: str, actor: Actor = AGENT) -> Editability:
    request = DescribeEditing(table=table, schema=schema_of(gate.shop), adds=True)
    found = await gate.ask(request, actor)
    assert isinstance(found, Editability)
    return found


async def feed_of(gate: Gate, rows: list[list[Any]], table: str = "items") -> ChangeRows:
    found = await describe(gate, table)
    assert found.shape is not None, found.reason
    feed = held_rows(rows, range(len(rows[0])), "prices.csv")
    schema = schema_of(gate.shop)
    return ChangeRows(table=table, schema=schema, shape=found.shape, edits=(), feed=feed)


def many(count: int) -> list[list[Any]]:
    return [[str(100 + number), f"name {number}", None] for number in range(count)]


async def test_all_rows_are_added_and_taken_back_as_one_change(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        change = await feed_of(gate, many(2_345))
        done = await gate.ask(change)
        assert isinstance(done, ChangedRows)
        assert done.row_count == 2_345 and done.change
        ((count, low, high),) = shop.rows("SELECT count(*), min(id), max(id) FROM items")
        assert (count, low, high) == (2_348, 1, 2_444)
        assert shop.rows("SELECT name, price FROM items WHERE id = 107") == [("name 7", None)]
        await gate.undo(done.change)
    assert shop.contents("items") == before


async def test_a_row_that_the_database_refuses_ends_all_and_is_named(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        rows = many(1_500)
        rows[1_234][0] = "2"
        change = await feed_of(gate, rows)
        error = await gate.error(change)
        assert error.code is Code.SQL_FAILED
        feed = change.feed
        assert isinstance(feed, HeldRows)
        first, last = feed.writing
        assert first <= 1_235 <= last and feed.line_of(1_235) == 1_236
    assert shop.contents("items") == before


async def test_a_table_without_a_key_takes_rows_and_no_edits(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        editor = Editor(gate, "loose")
        assert not (await editor.describe()).editable
        await gate.ask(await feed_of(gate, [["7"], ["7"], [None]], "loose"))
        assert sorted(map(repr, shop.rows("SELECT x FROM loose"))) == sorted(
            map(repr, [(1,), (1,), (7,), (7,), (None,)])
        )


async def test_what_does_not_fit_or_may_not_change_is_refused(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop, max_rows_changed=5) as gate:
        change = await feed_of(gate, many(6))
        assert (await gate.error(change)).code is Code.LIMIT_CHANGES
        assert (await gate.error(change, READER)).code is Code.POLICY_SCOPE
        assert not (await describe(gate, "items", READER)).editable
        for feed, edits in (
            (held_rows([["1", "1"]], [0, 0]), ()),
            (held_rows([["1"]], [9]), ()),
            (held_rows([["1"]], [0]), (RowEdit(None, ((0, "1"),)),)),
        ):
            wrong = ChangeRows(
                table="items", schema=change.schema, shape=change.shape, edits=edits, feed=feed
            )
            assert (await gate.error(wrong)).code is Code.ARGUMENT_INVALID
    shop.script("ALTER TABLE items ADD COLUMN later INTEGER")
    async with gate_of(shop) as gate:
        assert (await gate.error(change)).code is Code.ROWS_CONFLICT
    shop.script("ALTER TABLE items DROP COLUMN later")
    assert shop.contents("items") == before


async def test_a_change_that_undo_cannot_keep_is_made_and_one_that_must_be_kept_is_not(
    shop: Shop,
) -> None:
    small = {"undo": {"max_bytes": 1_024}}
    async with gate_of(shop, config=small) as gate:
        done = await gate.ask(await feed_of(gate, many(50)))
        assert not done.change and shop.rows("SELECT count(*) FROM items") == [(53,)]
    shop.script("DELETE FROM items WHERE id > 50")
    async with gate_of(shop, config=small, undo="require") as gate:
        error = await gate.error(await feed_of(gate, many(50)))
        assert error.code is Code.UNDO_UNAVAILABLE, error
    assert shop.rows("SELECT count(*) FROM items") == [(3,)]


async def test_the_record_has_the_file_and_its_digest_and_no_value(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        change = await feed_of(gate, [["50", "secret word", "1"]])
        await gate.ask(change)
        history = await gate.ask(SearchHistory(), source=None)
        assert "prices.csv" in repr(history) or "items" in repr(history)
        assert "secret word" not in repr(history)
    found = [
        each for each in records(shop.directory / "state") if each.get("request") == "change_rows"
    ]
    assert found and "secret word" not in repr(found)
    arguments = found[-1]["arguments"]
    assert arguments["file"] == "prices.csv" and arguments["file_sha256"] == "ab" * 32
    assert arguments["inserts"] in (1, "1") and arguments["digest"] == change.digest


async def test_the_digest_tells_each_value_and_each_place_apart(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        found = await describe(gate, "items")
        assert found.shape is not None
        rows = ([["1", "a"]], [["1", "b"]], [["1", None]], [["1", ""]], [[1, "a"]], [["1", b"a"]])
        feeds = [held_rows(each, [0, 1]) for each in rows] + [held_rows([["1", "a"]], [0, 2])]
        changes = [
            ChangeRows(table="items", shape=found.shape, edits=(), feed=feed) for feed in feeds
        ]
        for one, other in itertools.combinations(changes, 2):
            assert one.digest != other.digest


async def test_a_cancelled_import_adds_nothing(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        change = await feed_of(gate, many(20_000))
        cancellation = Cancellation()
        feed = change.feed
        assert isinstance(feed, HeldRows)
        loop, cancelled = asyncio.get_running_loop(), threading.Event()
        thread = threading.get_ident()

        def stop(first: int, last: int) -> None:
            loop.call_soon_threadsafe(cancellation.cancel, "a person cancelled it")
            loop.call_soon_threadsafe(cancelled.set)
            if threading.get_ident() != thread:  # an engine's own thread waits for it
                cancelled.wait(30)

        feed.note = stop  # type: ignore[method-assign]
        error = await gate.error(change, cancellation=cancellation)
        assert error.code is Code.CALL_CANCELLED
    assert shop.contents("items") == before
