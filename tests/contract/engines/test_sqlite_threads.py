"""What happens to a thread that does not come back, and to those who wait for it."""

import asyncio
import threading

import pytest

from support.engine_cases import CASES
from support.eventually import HANG_S, PATIENCE_S
from tidegate.engines.common import pool as pools
from tidegate.engines.common.pool import Pool, waits_of
from tidegate.engines.common.running_statement import RunningStatements, start
from tidegate.engines.common.url import FileUrl
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.cost_estimate import MAX_VALUE_BYTES, CostEstimate
from tidegate.engines.sqlite.worker_thread import WorkerThread
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation


@pytest.fixture
def file(tmp_path):
    case = CASES["sqlite"].prepare(tmp_path)
    return FileUrl(case.url.removeprefix("sqlite:///"))


@pytest.fixture
def stuck():
    """Work that feels no brake until the test lets it go."""
    gate = threading.Event()
    yield lambda _: gate.wait(HANG_S)
    gate.set()


def one_thread(file):
    async def open_thread():
        return WorkerThread(lambda: SqliteSession(file), "test")

    return Pool(open_thread, 1)


async def under_way(pool, timeout_s, cancellation=NEVER):
    running = await start(pool, timeout_s, cancellation, RunningStatements())
    running.connection().progress_handler = ProgressHandler(timeout_s)
    return running


async def run_on(running, work):
    async with running as worker:
        return await worker.do(work)


async def test_a_stuck_thread_is_written_off_and_its_caller_answered(file, stuck, monkeypatch):
    monkeypatch.setattr(WorkerThread, "grace_s", 0.02)
    pool = one_thread(file)
    running = await under_way(pool, 0.02)
    worker = running.held
    with pytest.raises(TidegateError) as caught:
        await run_on(running, stuck)
    assert caught.value.code is Code.LIMIT_TIME
    other = await pool.take(1)
    assert other is not worker
    assert await other.do(lambda session: session.connection.total_changes()) == 0
    pool.give(other)
    monkeypatch.setattr(pools, "CLOSE_S", 0.02)
    await pool.close()


async def test_cancelling_a_stuck_thread_answers_its_caller(file, stuck, monkeypatch):
    monkeypatch.setattr(WorkerThread, "grace_s", 0.02)
    monkeypatch.setattr(pools, "CLOSE_S", 0.02)
    cancellation = Cancellation()
    pool = one_thread(file)
    running = await under_way(pool, 60, cancellation)
    asyncio.get_running_loop().call_soon(cancellation.cancel)
    with pytest.raises(TidegateError) as caught:
        await run_on(running, stuck)
    assert caught.value.code is Code.CALL_CANCELLED
    await pool.close()


async def test_who_finds_a_connection_idle_is_not_counted_as_one_who_waits(file):
    pool = one_thread(file)
    worker = await pool.take(1)
    assert pool.waits == 1, "it was opened"
    waiting = asyncio.ensure_future(pool.take(PATIENCE_S))
    await asyncio.sleep(0)
    opened = waits_of([pool])
    pool.give(worker)
    assert await waiting is worker
    pool.give(worker)
    assert await pool.take(1) is worker
    pool.give(worker)
    assert (pool.waits, opened.times) == (2, 1)
    assert pool.waited_s >= opened.seconds >= 0
    await pool.close()


async def test_waiters_are_served_in_order_and_the_gone_are_passed_over(file):
    pool = one_thread(file)
    worker = await pool.take(1)
    waiting = [asyncio.ensure_future(pool.take(PATIENCE_S)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    pool.give(worker)
    assert await waiting[1] is worker
    assert not waiting[2].done()
    pool.give(worker)
    assert await waiting[2] is worker
    pool.give(worker)
    await pool.close()


async def test_a_call_that_waits_in_line_is_cancelled_at_once_and_passed_over(file):
    pool, cancellation = one_thread(file), Cancellation()
    worker = await pool.take(1)
    first = asyncio.ensure_future(under_way(pool, PATIENCE_S, cancellation))
    second = asyncio.ensure_future(pool.take(PATIENCE_S))
    await asyncio.sleep(0)
    cancellation.cancel()
    with pytest.raises(TidegateError) as caught:
        await first
    assert caught.value.code is Code.CALL_CANCELLED
    pool.give(worker)
    assert await second is worker
    pool.give(worker)
    await pool.close()


async def test_a_place_that_becomes_free_goes_to_who_has_waited_longest(file):
    pool = one_thread(file)
    worker = await pool.take(1)
    first, second = [asyncio.ensure_future(pool.take(PATIENCE_S)) for _ in range(2)]
    await asyncio.sleep(0)
    pool.drop(worker)
    with pytest.raises(TidegateError) as caught:  # it came later, and finds no place
        await pool.take(0.0)
    assert caught.value.code is Code.SOURCE_BUSY
    other = await first
    assert other is not worker
    assert not second.done()
    pool.give(other)
    assert await second is other
    pool.give(other)
    await pool.close()


async def test_those_who_wait_get_an_error_when_the_pool_is_closed(file):
    pool = one_thread(file)
    await pool.take(1)
    waiting = [asyncio.ensure_future(pool.take(PATIENCE_S)) for _ in range(2)]
    await asyncio.sleep(0)
    await pool.close()
    for each in waiting:
        with pytest.raises(TidegateError) as caught:
            await each
        assert caught.value.code is Code.SOURCE_NOT_CONNECTED
    assert not pool.connections


async def test_a_statement_that_no_one_reads_gives_its_thread_back_in_time(file):
    pool = one_thread(file)
    running = await under_way(pool, 0.02)
    worker = await pool.take(PATIENCE_S)
    assert running.held is None
    with pytest.raises(TidegateError) as caught:
        await run_on(running, lambda session: session.connection.total_changes())
    assert caught.value.code is Code.LIMIT_TIME
    pool.give(worker)
    await pool.close()


async def test_a_worker_that_cannot_open_its_file_says_so_each_time(tmp_path):
    pool = one_thread(FileUrl(str(tmp_path / "nowhere.db")))
    worker = await pool.take(1)
    for _ in range(2):
        with pytest.raises(TidegateError) as caught:
            await worker.do(lambda session: session)
        assert caught.value.code is Code.SOURCE_UNREACHABLE
    await pool.close()


def program(file, text):
    session = SqliteSession(file)
    try:
        return CostEstimate(session.connection.execute(text, explain=1).fetchall())
    finally:
        session.close()


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("SELECT name FROM items", MAX_VALUE_BYTES),
        ("SELECT hex(name) FROM items", MAX_VALUE_BYTES),
        ("SELECT instr(name, 'short') FROM items", 14_000_000),
        ("SELECT trim(name, ' ') FROM items", 14_000_000),
        ("SELECT trim(name) FROM items", MAX_VALUE_BYTES),
        ("SELECT instr(name, ?) FROM items", 300_000),
        ("SELECT instr('short', name) FROM items", 300_000),
        ("SELECT instr(name, hex('short')) FROM items", 300_000),
        ("SELECT instr(name, 'a' || 'b') FROM items", 300_000),
        (f"SELECT instr(name, '{'x' * 40}') FROM items", 300_000),
        ("SELECT name LIKE ? FROM items", 1_800_000),
        ("SELECT name LIKE '%short%' FROM items", 14_000_000),
        ("SELECT trim(name, ?) FROM items", 25_724),
    ],
)
def test_the_limit_on_values_follows_from_the_program(file, text, most):
    session = SqliteSession(file)
    nulls = (None,) * text.count("?")
    rows = session.connection.execute(text, nulls, explain=1).fetchall()
    session.close()
    assert CostEstimate(rows).max_value_bytes == most
