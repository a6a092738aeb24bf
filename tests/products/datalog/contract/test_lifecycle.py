"""What is killed, late or shared: a change is whole or absent, and reads go on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.datalog import NEVER, Datalog, Opened
from tidegate.errors import Code
from tidegate.model.results import Limits
from tidegate.products.datalog.engine.directory import users_of
from tidegate.products.datalog.engine.library import find_library
from tidegate.products.datalog.engine.startup_cache import StartupCache
from tidegate.products.datalog.engine.url import place_of
from tidegate.products.datalog.engine.workers import HEAP, Worker

MANY = 20_000

RUNAWAY = """[:find (count ?x) . :where [?x :n ?a] [?y :n ?b] [?z :n ?c] [(< ?a ?b)] [(< ?b ?c)]]"""

LOCKS = """
import fcntl, sys
held = open(sys.argv[1], "r+b")
fcntl.lockf(held, fcntl.LOCK_SH, 1, 0)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def application(datalog: Datalog) -> Iterator[Worker]:
    """A program that uses Datalevin by itself, and knows no lock of ours."""
    worker = Worker(StartupCache(find_library()), HEAP)
    yield worker
    datalog.run(worker.close())


def numbers(count: int) -> list[dict[str, int]]:
    return [{":n": n} for n in range(count)]


def count_of(source: Opened) -> int:
    return source.ask("count_datoms", a=":n")


def test_a_killed_worker_costs_no_handle(people: Opened) -> None:
    pid = people.engine._worker.pid
    os.kill(pid, signal.SIGKILL)
    assert people.query("[:find (count ?e) . :where [?e :name]]") == 4
    assert people.engine._worker.pid not in (0, pid)


def test_a_query_that_runs_away_is_ended_and_a_change_that_is_late_is_whole_or_absent(
    datalog: Datalog, people: Opened
) -> None:
    people.ask("transact", txData=numbers(600))
    error = people.refused("query", query=RUNAWAY, limits=Limits(timeout_s=0.5))
    # Its rows may use up the memory of the process before its time is over.
    assert error.code in (Code.LIMIT_TIME, Code.LIMIT_BYTES)
    assert count_of(people) == 600
    more = [{":n": 1000 + n} for n in range(MANY)]
    error = people.refused("transact", txData=more, limits=Limits(timeout_s=0.05))
    assert error.code is Code.SQL_OUTCOME
    assert count_of(people) in (600, 600 + MANY)


def test_reads_follow_another_program_and_changes_wait_for_its_end(
    datalog: Datalog, people: Opened, application: Worker, tmp_path: Path
) -> None:
    place = place_of(f"datalevin://{tmp_path / 'people'}")

    def ask(operation: str, *, changes: bool, **arguments: Any) -> Any:
        request = {
            "operation": operation,
            "place": place.name,
            "target": {"kind": "database", "options": {}, "client": {}},
            "arguments": arguments,
            "writes?": changes,
            "most": 200,
        }
        return application.ask(request, place, 60.0, NEVER, changes=changes)

    assert count_of(people) == 0
    datalog.run(ask("transact", changes=True, txData=numbers(3)))
    assert count_of(people) == 3
    assert application.pid in users_of(place.name)
    error = people.refused("transact", txData=[{":n": 9}])
    assert (error.code, error.details["pid"]) == (Code.SOURCE_LOCKED, application.pid)
    assert count_of(people) == 3

    async def killed_in_a_transaction() -> None:
        change = asyncio.create_task(ask("transact", changes=True, txData=numbers(MANY)))
        await asyncio.sleep(0.1)
        os.kill(application.pid, signal.SIGKILL)
        await asyncio.wait((change,))

    datalog.run(killed_in_a_transaction())
    assert count_of(people) in (3, 3 + MANY)
    before = count_of(people)
    people.ask("transact", txData=[{":n": 9}])
    assert count_of(people) == before + 1


def test_a_change_is_refused_while_another_process_has_the_lock_file(
    people: Opened, tmp_path: Path
) -> None:
    lock = tmp_path / "people" / "lock.mdb"
    command = [sys.executable, "-c", LOCKS, str(lock)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        error = people.refused("transact", txData=[{":n": 1}])
        assert error.code is Code.SOURCE_LOCKED
        assert str(other.pid) in error.message
        assert count_of(people) == 0
        other.communicate("")
    people.ask("transact", txData=[{":n": 1}])
    assert count_of(people) == 1
