"""Which statements SQLite runs on the event loop, and which in a thread."""

import pytest

from tidegate.engines.sqlite.cursor import ReadyCursor, StreamCursor
from tidegate.model.cancellation import Cancellation


class Watched(Cancellation, kw_only=True):
    """Notes that someone listens."""

    seen: list[object]

    def watch(self) -> None:
        self.seen.append(self)


async def inline_of(case, engine, text, params=None, **options):
    cursor = await case.start(engine, text, params, **options)
    await cursor.close()
    return type(cursor)


POINT = "SELECT * FROM items WHERE id = 3"


@pytest.fixture
def unhurried(monkeypatch):
    """What is quick is so on a slow machine too: here it is about what may be tried at all."""
    monkeypatch.setattr("tidegate.engines.sqlite.connection.INLINE_SECONDS", 60.0)
    for name in ("QUICK_S", "SLOW_S"):
        monkeypatch.setattr(f"tidegate.engines.sqlite.engine.{name}", 60.0)


@pytest.mark.usefixtures("unhurried")
async def test_a_point_query_runs_on_the_event_loop(shop):
    async with shop.opened() as engine:
        assert await inline_of(shop, engine, POINT) is ReadyCursor
        text = "SELECT * FROM items WHERE id = ?"
        assert await inline_of(shop, engine, text, (3,)) is ReadyCursor


@pytest.mark.usefixtures("unhurried")
async def test_what_the_clock_calls_slow_leaves_the_event_loop_if_it_is_so_each_time(
    shop, monkeypatch
):
    async with shop.opened() as engine:
        monkeypatch.setattr("tidegate.engines.sqlite.engine.SLOW_S", -1.0)
        assert [await inline_of(shop, engine, POINT) for _ in range(2)] == [ReadyCursor] * 2
        monkeypatch.setattr("tidegate.engines.sqlite.engine.SLOW_S", 60.0)
        assert await inline_of(shop, engine, POINT) is ReadyCursor
        monkeypatch.setattr("tidegate.engines.sqlite.engine.SLOW_S", -1.0)
        assert [await inline_of(shop, engine, POINT) for _ in range(3)] == [ReadyCursor] * 3
        assert await inline_of(shop, engine, POINT) is StreamCursor


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM items",
        "SELECT * FROM json_each('[1]')",
        "SELECT * FROM items WHERE name LIKE '%1'",
        "SELECT name || name FROM items",
        "SELECT printf('%.*c', 10, 'x')",
        "PRAGMA table_info(items)",
        "SELECT * FROM pragma_table_info('items')",
        "SELECT " + ", ".join(["upper('a')"] * 25),
    ],
)
async def test_what_one_opcode_could_make_long_starts_on_a_worker(shop, text):
    async with shop.opened() as engine:
        assert await inline_of(shop, engine, text) is StreamCursor


@pytest.mark.usefixtures("unhurried")
async def test_what_a_worker_measured_as_quick_comes_to_the_event_loop(shop):
    async with shop.opened() as engine:
        text = "SELECT count(*) FROM items"
        cursors = [await inline_of(shop, engine, text) for _ in range(2)]
    assert cursors == [StreamCursor, ReadyCursor]


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("SELECT name FROM items WHERE name LIKE ?", ("%1",)),
        ("SELECT abs(random()) % 2 || ''", None),
    ],
)
async def test_what_may_cost_more_next_time_stays_on_workers(shop, text, params):
    async with shop.opened() as engine:
        cursors = {await inline_of(shop, engine, text, params) for _ in range(20)}
    assert cursors == {StreamCursor}


async def test_a_long_scan_leaves_the_event_loop_and_is_remembered(shop, change):
    change(
        "CREATE TABLE big AS WITH RECURSIVE n(i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000) SELECT i FROM n",
    )
    async with shop.opened() as engine:
        text = "SELECT sum(i) FROM big WHERE i % 2 = 0"
        assert await inline_of(shop, engine, text) is StreamCursor
        assert not engine._plans.get(text).inline
        assert await shop.ask(engine, text) == [(625025000,)]


async def test_a_large_value_leaves_the_event_loop(shop, change):
    change("INSERT INTO void VALUES (1, printf('%.*c', 100000, 'x'))")
    async with shop.opened() as engine:
        cursor = await shop.start(engine, "SELECT name FROM void WHERE id = 1")
        assert type(cursor) is StreamCursor
        assert len((await cursor.fetch(1))[0][0]) == 100_000
        await cursor.close()


@pytest.mark.usefixtures("unhurried")
async def test_a_cancellation_is_watched_only_by_what_leaves_the_event_loop(shop):
    watched = []
    async with shop.opened() as engine:
        await shop.ask(engine, POINT, cancellation=Watched(seen=watched))
        assert watched == []
        text = "SELECT count(*) FROM items"
        await shop.ask(engine, text, cancellation=Watched(seen=watched))
        assert len(watched) == 1
