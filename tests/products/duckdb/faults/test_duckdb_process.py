"""What can happen to a worker process, and what it may not take. The next call always works."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from support.eventually import HANG_S, until
from tidegate.engines.worker.process import WorkerProcess
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect

COUNT = "SELECT count(*) FROM items"
UNINTERRUPTIBLE = "SELECT levenshtein(repeat('a', 300000), repeat('b', 300000))"
"""One call of a function for half a minute: it hears no interrupt."""


async def code_of(awaitable):
    with pytest.raises(TidegateError) as caught:
        await awaitable
    return caught.value.code


def pids(engine):
    return {worker.pid for worker in engine._pool.connections}


def lives(pid):
    """Whether the process runs; one that ended and was not collected yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


async def busy(engine):
    """Wait until a worker has a statement."""
    await until(
        lambda: engine._running and any(worker.busy for worker in engine._pool.connections),
        "a worker at work",
    )


async def test_a_giant_string_is_refused_for_its_memory(shop):
    async with shop.opened() as engine:
        for text in (
            "SELECT repeat('x', 3000000000)",
            "SELECT length(repeat('x', 3000000000))",
            "SELECT list(i) FROM range(1000000000) AS n (i)",
            "SELECT string_agg(repeat('x', 1000000), '') FROM range(1000000)",
        ):
            assert await code_of(shop.ask(engine, text)) is Code.LIMIT_BYTES
            assert await shop.ask(engine, COUNT) == [(10,)]


async def test_a_statement_that_needs_more_memory_than_the_source_gives_is_reported(shop):
    url = f"{shop.url}?memory_limit=64MB"
    shop.source = Source("s1", "shop", url, "duckdb", "duckdb")
    async with shop.opened() as engine:
        text = (
            "SELECT count(DISTINCT i::VARCHAR || 'abcdefghijklmnop') FROM range(50000000) AS n (i)"
        )
        assert await code_of(shop.ask(engine, text)) is Code.LIMIT_BYTES
        assert await shop.ask(engine, COUNT) == [(10,)]


async def test_a_statement_that_ignores_interrupts_loses_its_process(shop):
    async with shop.opened() as engine:
        before = pids(engine)
        limits = Limits(timeout_s=0.1)
        assert await code_of(shop.ask(engine, UNINTERRUPTIBLE, limits=limits)) is Code.LIMIT_TIME
        assert await shop.ask(engine, COUNT) == [(10,)]
        assert not before & pids(engine)
    await until(lambda: not any(map(lives, before)), "the end of the workers")


async def test_cancelling_a_statement_that_ignores_interrupts_ends_it_too(shop):
    cancellation = Cancellation()
    async with shop.opened() as engine:
        before = pids(engine)
        task = asyncio.ensure_future(shop.ask(engine, UNINTERRUPTIBLE, cancellation=cancellation))
        await busy(engine)
        cancellation.cancel()
        assert await code_of(task) is Code.CALL_CANCELLED
        assert await shop.ask(engine, COUNT) == [(10,)]
        assert not before & pids(engine)


async def test_closing_does_not_wait_for_a_statement_that_ignores_interrupts(shop):
    async with shop.opened() as engine:
        task = asyncio.ensure_future(shop.ask(engine, UNINTERRUPTIBLE))
        await busy(engine)
        before = pids(engine)
        await engine.close()
        assert await code_of(task) is Code.SOURCE_NOT_CONNECTED
    await until(lambda: not any(map(lives, before)), "the end of the workers")


async def test_a_killed_process_is_reported_and_replaced(shop):
    async with shop.opened() as engine:
        task = asyncio.ensure_future(shop.ask(engine, shop.spelling.runaway))
        await busy(engine)
        (killed,) = pids(engine)
        os.kill(killed, signal.SIGKILL)
        assert await code_of(task) is Code.SOURCE_UNREACHABLE
        assert await shop.ask(engine, COUNT) == [(10,)]
        assert killed not in pids(engine)


async def test_an_idle_process_that_died_is_replaced_unnoticed(shop):
    async with shop.opened() as engine:
        (killed,) = pids(engine)
        worker = next(iter(engine._pool.connections))
        os.kill(killed, signal.SIGKILL)
        await until(lambda: not worker.alive, "the end of the worker")
        assert await shop.ask(engine, COUNT) == [(10,)]
        assert killed not in pids(engine)


async def test_an_idle_process_that_has_just_died_is_replaced_before_the_event_loop_knows(shop):
    async with shop.opened() as engine:
        (killed,) = pids(engine)
        os.kill(killed, signal.SIGKILL)
        with suppress(ChildProcessError):  # the thread that collects processes was quicker
            os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)
        assert await shop.ask(engine, COUNT) == [(10,)]
        assert killed not in pids(engine)


async def test_a_change_whose_process_was_killed_is_not_run_again(shop):
    async with shop.opened() as engine:
        slow = "INSERT INTO void SELECT count(*), 'x' FROM range(100000000000000) AS n (i)"
        slow += " WHERE i % 7 = 3"
        task = asyncio.ensure_future(shop.ask(engine, slow, effect=Effect.WRITE))
        await busy(engine)
        for pid in pids(engine):
            os.kill(pid, signal.SIGKILL)
        assert await code_of(task) is Code.SOURCE_UNREACHABLE
        assert await shop.ask(engine, "SELECT count(*) FROM void") == [(0,)]
        await shop.ask(engine, shop.spelling.add, (1, "one"), effect=Effect.WRITE)
        assert await shop.ask(engine, "SELECT count(*) FROM void") == [(1,)]


async def test_a_change_that_ran_out_of_time_changed_nothing(shop):
    async with shop.opened() as engine:
        text = f"INSERT INTO void SELECT ({UNINTERRUPTIBLE}), 'x'"
        limits = Limits(timeout_s=0.2)
        refused = shop.ask(engine, text, effect=Effect.WRITE, limits=limits)
        assert await code_of(refused) is Code.LIMIT_TIME
        assert await shop.ask(engine, "SELECT count(*) FROM void") == [(0,)]


async def test_when_all_processes_are_busy_the_caller_gets_an_error(shop):
    cancellation = Cancellation()
    async with shop.opened() as engine:
        runaways = [
            asyncio.ensure_future(
                shop.ask(engine, shop.spelling.runaway, cancellation=cancellation)
            )
            for _ in range(2)
        ]
        await until(
            lambda: sum(worker.busy for worker in engine._pool.connections) == 2,
            "both workers at work",
        )
        limits = Limits(timeout_s=0.05)
        assert await code_of(shop.ask(engine, COUNT, limits=limits)) is Code.SOURCE_BUSY
        cancellation.cancel()
        assert {await code_of(task) for task in runaways} == {Code.CALL_CANCELLED}
        assert await shop.ask(engine, COUNT) == [(10,)]


async def test_no_process_is_left_after_close(shop):
    async with shop.opened() as engine:
        first = await shop.start(engine, "SELECT * FROM range(1000000)")
        second = await shop.start(engine, "SELECT * FROM range(1000000)")
        assert await first.fetch(1)
        assert await second.fetch(1)
        before = pids(engine)
        assert len(before) == 2
    await until(lambda: not any(map(lives, before)), "the end of the workers")


ORPHAN = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
from support.engine_cases import CASES
from pathlib import Path

async def main():
    case = CASES["duckdb"].prepare(Path(sys.argv[2]))
    async with case.opened() as engine:
        task = asyncio.ensure_future(case.ask(engine, sys.argv[3]))
        while not any(worker.busy for worker in engine._pool.connections):
            await asyncio.sleep(0)
        print(*[worker.pid for worker in engine._pool.connections], flush=True)
        os._exit(1)

asyncio.run(main())
"""


@pytest.mark.parametrize("text", ["SELECT count(*) FROM range(100000000000000)", UNINTERRUPTIBLE])
async def test_a_worker_ends_with_the_gate_whatever_it_does(tmp_path, text):
    tests = Path(__file__).parents[3]
    reported = subprocess.run(
        [sys.executable, "-c", ORPHAN, str(tests), str(tmp_path), text],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    orphans = [int(pid) for pid in reported.stdout.split()]
    assert orphans, reported.stderr
    await until(lambda: not any(map(lives, orphans)), "the end of the workers")


async def test_a_worker_sees_nothing_of_our_environment(shop, monkeypatch):
    monkeypatch.setenv("TIDEGATE_TEST_SECRET", "hunter2")
    async with shop.opened() as engine:
        for pid in pids(engine):
            assert b"hunter2" not in Path(f"/proc/{pid}/environ").read_bytes()


async def test_the_driver_is_not_in_our_process(tmp_path):
    script = (
        "import asyncio, sys\n"
        "from tidegate.engines.registry import open_engine\n"
        "from tidegate.model.sources import Source\n"
        "async def main():\n"
        "    source = Source('s', 's', 'duckdb:///:memory:', 'duckdb', 'duckdb')\n"
        "    engine = await open_engine(source)\n"
        "    await engine.schema_version()\n"
        "    await engine.close()\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('duckdb', 'pytz')])\n"
    )
    (tmp_path / "duckdb.py").write_text("raise SystemExit('a module of the working directory')")
    reported = subprocess.run(
        [sys.executable, "-P", "-c", script],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
        cwd=tmp_path,
    )
    assert reported.stdout == "[]\n"


async def test_a_worker_that_does_not_come_up_is_reported():
    before = asyncio.all_tasks()
    assert await code_of(WorkerProcess.start("tidegate.no_such_worker", None)) is (
        Code.SOURCE_UNREACHABLE
    )
    assert asyncio.all_tasks() == before
