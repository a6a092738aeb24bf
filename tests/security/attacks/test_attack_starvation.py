"""Attacks on everyone else's time: statements that never end, as many as one client can send."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from support.attack_target import RUNAWAY, Target, make_shop, target
from support.eventually import HANG_S, PATIENCE_S
from tidegate.engines.common.pool import Pool
from tidegate.engines.common.url import FileUrl
from tidegate.engines.sqlite.connection import SqliteSession
from tidegate.engines.sqlite.engine import SqliteEngine
from tidegate.engines.sqlite.worker_thread import NICENESS, WorkerThread
from tidegate.errors import Code, TidegateError
from tidegate.gateway.concurrency import ConcurrencyLimiter
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.sources import Source


def test_one_clients_runaways_leave_room_for_anothers_statement(tmp_path: Path) -> None:
    with target(tmp_path) as server:
        mine, other = server.token("mine"), server.token("other")
        server.query("SELECT 1", mine)
        runaways = [
            server.begin("query", other, sql=f"{RUNAWAY} -- {number}") for number in range(12)
        ]
        server.computes(0.5)
        # Not a quick one, and one that needs a worker.
        answer = server.query("SELECT count(*), sum(length(name || price)) FROM items", mine)
        assert '"rows":[[3000,' in answer.text
        assert "items(" in server.call("describe", mine, tables=["items"]).text
        for runaway in runaways:
            runaway.close()


@pytest.mark.skipif(sys.platform != "linux", reason="orders threads by the system's own means")
def test_workers_give_way_to_the_event_loop(tmp_path: Path) -> None:
    source = Source("s", "shop", f"sqlite:///{make_shop(tmp_path / 'shop.db')}", "sqlite", "sqlite")

    async def niceness() -> list[int]:
        engine = await SqliteEngine.open(source)
        try:
            workers = [t for t in threading.enumerate() if t.name.startswith("sqlite-shop")]
            return [os.getpriority(os.PRIO_PROCESS, worker.native_id or 0) for worker in workers]
        finally:
            await engine.close()

    found = asyncio.run(niceness())
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    assert found and all(nice > own or nice == 19 for nice in found)
    assert NICENESS > 0


def test_who_has_a_full_share_waits_for_its_own_statements() -> None:
    async def play() -> list[str]:
        limiter = ConcurrencyLimiter(2)
        reported: list[str] = []

        async def run(actor: str, name: str, until: asyncio.Event) -> None:
            await limiter.acquire(actor, PATIENCE_S, NEVER)
            reported.append(name)
            await until.wait()
            limiter.release(actor)

        first, rest = asyncio.Event(), asyncio.Event()
        tasks = [
            asyncio.ensure_future(run("a", "a1", first)),
            asyncio.ensure_future(run("a", "a2", rest)),
            asyncio.ensure_future(run("a", "a3", rest)),
            asyncio.ensure_future(run("b", "b1", rest)),
        ]
        for _ in range(5):
            await asyncio.sleep(0)
        reported.append("|")
        first.set()
        rest.set()
        await asyncio.gather(*tasks)
        assert not limiter._running and not limiter._waiting
        return reported

    assert asyncio.run(play()) == ["a1", "a2", "b1", "|", "a3"]


@pytest.mark.parametrize("how", ["time", "cancel", "task"])
def test_who_gives_up_waiting_leaves_nothing_behind(how: str) -> None:
    async def play() -> None:
        limiter = ConcurrencyLimiter(1)
        assert limiter.try_acquire("a")
        cancellation = Cancellation()
        timeout_s = 0.01 if how == "time" else PATIENCE_S
        waiting = asyncio.ensure_future(limiter.acquire("a", timeout_s, cancellation))
        await asyncio.sleep(0)
        if how == "cancel":
            cancellation.cancel()
        if how == "task":
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        else:
            with pytest.raises(TidegateError) as caught:
                await waiting
            assert caught.value.code in (Code.SOURCE_BUSY, Code.CALL_CANCELLED)
        limiter.release("a")
        assert not limiter._running and not limiter._waiting
        assert limiter.try_acquire("a")

    asyncio.run(play())


def test_threads_that_never_come_back_are_not_replaced_without_end(tmp_path: Path) -> None:
    """An opcode that feels no brake costs a thread: a client must not collect them."""
    shop = make_shop(tmp_path / "shop.db")
    gate = threading.Event()

    async def open_thread() -> WorkerThread:
        return WorkerThread(lambda: SqliteSession(FileUrl(str(shop))), "stuck")

    async def play() -> None:
        pool = Pool(open_thread, 2)
        stuck: list[asyncio.Task[bool]] = []
        for _ in range(4):
            worker = await pool.take(PATIENCE_S)
            stuck.append(asyncio.create_task(worker.do(lambda _: gate.wait(HANG_S))))
            await asyncio.sleep(0)
            pool.drop(worker)
        with pytest.raises(TidegateError) as caught:
            await pool.take(0.01)
        assert caught.value.code is Code.SOURCE_BUSY
        waiting = asyncio.ensure_future(pool.take(PATIENCE_S))
        await asyncio.sleep(0)
        gate.set()
        pool.give(await waiting)
        await pool.close()
        reported = await asyncio.gather(*stuck, return_exceptions=True)
        assert all(isinstance(each, TidegateError) for each in reported)

    asyncio.run(play())


def polygon(corners: int) -> str:
    return f"'[' || (SELECT replace(hex(zeroblob({corners})), '00', '[1,2],[3,1],')) || '[1,2]]'"


@pytest.mark.parametrize("name", ["geopoly_overlap", "geopoly_within"])
def test_polygons_are_too_small_to_hold_a_thread(server: Target, name: str) -> None:
    small, large = polygon(100), polygon(30_000)
    triangle = "'[[0,0],[1,0],[0,1],[0,0]]'"
    assert not server.query(f"SELECT {name}({small}, {small})").refused
    for one, other in ((large, large), (large, triangle), (triangle, large)):
        text = server.query(f"SELECT {name}({one}, {other})").text
        assert text.startswith("limit.bytes")
