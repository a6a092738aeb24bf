"""Attacks on the event loop's own connection: what looks quick and is not must leave it.

Each statement here held the event loop for 20 ms to several seconds, and with it every client.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.attack_target import make_shop
from support.permits import permit_for
from tidegate.engines.sqlite import connection, inline_executor, inspect
from tidegate.engines.sqlite.cursor import ReadyCursor, StreamCursor
from tidegate.engines.sqlite.engine import SqliteEngine
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Statement


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shop(tmp_path_factory.mktemp("inline") / "shop.db")


def stays(shop: Path, text: str) -> bool:
    """Whether the statement is answered by the event loop's own connection."""
    limits = Limits(max_rows=10)
    source = Source("s", "shop", f"sqlite:///{shop}", "sqlite", "sqlite")
    actor = Actor("a", "a", Scope.READ_ONLY)
    permit = permit_for(source, Query(Statement(text), limits=limits), actor=actor)

    async def run() -> bool:
        engine = await SqliteEngine.open(source)
        try:
            cursor = await engine.run(permit, NEVER)
            await cursor.close()
            return isinstance(cursor, ReadyCursor)
        except TidegateError:
            return False
        finally:
            await engine.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name FROM items WHERE id = 7",
        "SELECT strftime('%Y', '2024-05-06'), upper(name) FROM items WHERE id < 20",
    ],
)
def test_a_quick_statement_stays(shop: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(connection, "INLINE_SECONDS", 60.0)  # quick enough on a slow machine, too
    assert stays(shop, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT strftime('" + "%J" * 900 + "', id) FROM items",
        "SELECT " + ",".join(["body"] * 380) + " FROM texts LIMIT 3",
        "SELECT " + "lower(" * 23 + "body" + ")" * 23 + " FROM texts",
        "SELECT count(a.id) FROM texts a, texts b WHERE a.body = b.body COLLATE NOCASE",
        "SELECT id FROM texts WHERE id < 110 ORDER BY body COLLATE NOCASE",
        "SELECT body FROM texts",
        "SELECT count(*) FROM texts WHERE body LIKE '%a%b%c%d%e%f%'",
        "SELECT instr(body, body || 'x') FROM texts",
        "SELECT id FROM texts WHERE " + " || ".join(["body"] * 90) + " = 'x'",
    ],
    ids=[
        *("formats", "copies", "calls", "compared", "sorted", "read"),
        *("patterns", "searched", "joined"),
    ],
)
def test_costly_values_leave_the_event_loop(shop: Path, text: str) -> None:
    assert not stays(shop, text)


def doubled(depth: int) -> str:
    """Each query doubles the terms of the one inside it: SQLite writes all of them out."""
    text = "SELECT id AS a FROM items"
    for _ in range(depth):
        text = f"SELECT a + a AS a FROM ({text})"
    return text


def chained(depth: int) -> str:
    """The same by common table expressions."""
    parts = [f", c{n + 1} AS (SELECT a + a AS a FROM c{n})" for n in range(depth)]
    return f"WITH c0 AS (SELECT id AS a FROM items){''.join(parts)} SELECT a FROM c{depth}"


def windows(number: int) -> str:
    """Each window is a query of its own inside."""
    sums = ", ".join(f"sum(price) OVER (ORDER BY id % {n})" for n in range(2, number + 2))
    return f"SELECT {sums} FROM items"


@pytest.mark.parametrize(
    "text",
    [doubled(12), chained(12), f"SELECT {'a+' * 300}a AS a FROM ({doubled(1)})", windows(90)],
    ids=["doubled", "chained", "multiplied", "windows"],
)
def test_what_takes_long_to_prepare_is_not_prepared_there(
    shop: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    prepared: list[str] = []
    monkeypatch.setattr(inline_executor, "prepare", lambda _, text: prepared.append(text))
    assert not stays(shop, text)
    assert prepared == []


def test_a_text_that_searches_values_is_looked_at_more_often(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One search takes much longer than another step: fewer may lie between two looks, and on
    smaller values. The loop runs such a text only when a worker was quick with one like it."""
    for name in ("QUICK_S", "SLOW_S"):
        monkeypatch.setattr(f"tidegate.engines.sqlite.engine.{name}", 60.0)
    monkeypatch.setattr(connection, "INLINE_SECONDS", 60.0)
    source = Source("s", "shop", f"sqlite:///{shop}", "sqlite", "sqlite")

    async def kinds(text: str) -> list[type]:
        limits, found = Limits(max_rows=10), list[type]()
        engine = await SqliteEngine.open(source)
        try:
            for number in range(1, 4):
                query = Query(Statement(text.format(number)), limits=limits)
                actor = Actor("a", "a", Scope.READ_ONLY)
                permit = permit_for(source, query, actor=actor)
                cursor = await engine.run(permit, NEVER)
                await cursor.close()
                found.append(type(cursor))
        finally:
            await engine.close()
        return found

    small = "SELECT name || 'x' FROM items WHERE id = {} AND name LIKE '%a%'"
    assert asyncio.run(kinds(small)) == [StreamCursor, ReadyCursor, ReadyCursor]
    large = "SELECT length(body || 'x') FROM texts WHERE id = {}"
    assert asyncio.run(kinds(large)) == [StreamCursor] * 3


def test_little_can_be_touched_between_two_looks_at_the_clock() -> None:
    assert connection.INLINE_TICK_OPCODES * connection.INLINE_VALUE_BYTES <= 2_000_000
    assert inspect.SLOW_PACE * connection.INLINE_SEARCH_BYTES <= 20_480
