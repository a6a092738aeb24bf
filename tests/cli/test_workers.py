"""A gate of two workers: one address, one record, one set of figures, whichever worker answers."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.command_line import tidegate
from support.eventually import wait_until
from support.worker_gate import WorkerGate, worker_gate


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerGate]:
    tasks = {"after_s": 0.5, "answer_s": 1.5}
    with worker_gate(tmp_path_factory.mktemp("gate"), tasks=tasks) as made:
        yield made


def count(gate: WorkerGate) -> int:
    text = gate.query("SELECT count(*) AS n FROM items")["result"]["content"][0]["text"]
    return 500 if "500" in text else -1


@pytest.mark.parametrize("number", [1, 2])
def test_while_a_worker_does_nothing_the_other_takes_all_new_callers(
    gate: WorkerGate, number: int
) -> None:
    with gate.paused(number):
        assert [count(gate) for _ in range(8)] == [500] * 8


def test_a_call_that_lasts_is_one_call_whichever_worker_is_asked_about_it(
    gate: WorkerGate,
) -> None:
    same, another = (f"SELECT count(*) AS n, {n} AS other FROM items" for n in (1, 2))
    tasks = {"extensions": {"io.modelcontextprotocol/tasks": {}}}

    def text_of(answer: Any) -> str:
        return answer["result"]["content"][0]["text"]

    with closing(gate.connection_at(1)) as one, closing(gate.connection_at(2)) as two:
        with locked(gate.state.parent / "shop.db"):
            begun = gate.query(same, one)
            assert text_of(begun) == text_of(gate.query(same, two))
            handle = json.loads(text_of(begun))["more"]
            given = {"name": "query", "arguments": {"sql": another}}
            task = gate.ask(one, "tools/call", tasks, **given)["result"]["taskId"]
        while "still running" in (
            text := text_of(gate.ask(two, "tools/call", name="more", arguments={"handle": handle}))
        ):
            pass
        assert '"rows":[[500,1]]' in text

        with closing(gate.connection_at(2)) as listener:
            listening = gate.open(
                listener, "subscriptions/listen", tasks, notifications={"taskIds": [task]}
            )
            acknowledged = next(line for line in listening if line.startswith(b"data: {"))
            assert task.encode() in acknowledged, "its notices come from the other worker"

        def look() -> Any:
            found = gate.ask(two, "tasks/get", tasks, taskId=task)["result"]
            return None if found["status"] == "working" else found

        assert '"rows":[[500,2]]' in text_of(wait_until(look, "the task ends"))
    lines = [each.get("statement") for each in records(gate.state)]
    assert (lines.count(same), lines.count(another)) == (1, 1)


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """While the block runs, statements on the database wait."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


def test_the_figures_are_those_of_all_workers(gate: WorkerGate) -> None:
    before = gate.calls()
    for number in (1, 2):
        with gate.paused(number):
            assert count(gate) == 500
    wait_until(lambda: gate.calls() == before + 2, "both calls are counted")
    assert gate.figures()["tidegate_workers"] == 2
    assert gate.figures()['tidegate_info{version="0.1.0"}'] == 1, "said by all, and not a sum"


def test_a_worker_that_is_killed_is_started_again_and_no_count_becomes_less(
    gate: WorkerGate,
) -> None:
    with gate.paused(2):
        assert count(gate) == 500  # by the one that is killed
    before, restarts = gate.calls(), gate.figures()["tidegate_worker_restarts_total"]
    seconds = gate.figures()["process_cpu_seconds_total"]
    gate.kill(1)
    assert gate.calls() >= before
    wait_until(lambda: gate.figures()["tidegate_workers"] == 2, "two workers serve")
    figures = gate.figures()
    assert figures["tidegate_worker_restarts_total"] == restarts + 1
    assert figures["process_cpu_seconds_total"] >= seconds
    with gate.paused(2):
        assert count(gate) == 500, "the new one serves"
    assert gate.calls() > before


def test_each_worker_reads_the_settings_again_and_says_which_it_is(gate: WorkerGate) -> None:
    file = gate.state.parent / "settings.json"
    file.write_text(file.read_text().replace('"workers"', '"drain_delay_s": "no", "workers"'))
    gate.server.process.send_signal(signal.SIGHUP)
    said = gate.server.until("cannot be used") + gate.server.until("worker=")
    assert "drain_delay_s" in said
    file.write_text(file.read_text().replace('"drain_delay_s": "no", ', ""))
    wait_until(lambda: count(gate) == 500, "the settings can be used")


def test_a_change_that_needs_a_start_replaces_the_workers_one_by_one(gate: WorkerGate) -> None:
    before = set(gate.workers().values())
    file = gate.state.parent / "settings.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps(settings | {"keep_alive_s": 7}))
    with closing(gate.connect()) as kept:
        assert "result" in gate.query("SELECT 1", kept)
        gate.server.process.send_signal(signal.SIGHUP)
        gate.server.until("workers are replaced, for: keep_alive_s")
        gate.server.until("all workers were replaced")
    assert before.isdisjoint(gate.workers().values())
    assert len(gate.workers()) == 2 and count(gate) == 500


def test_the_gate_is_one_server_to_its_operator(gate: WorkerGate) -> None:
    def shown() -> Any:
        return tidegate("status", "--json", state=gate.state).json

    # Bridges use the worker that has the lock, and another one soon after that was replaced.
    wait_until(lambda: shown()["others"] == [], "a worker serves bridges")
    assert shown()["pid"] == gate.server.process.pid


def test_it_ends_in_good_order_and_its_record_is_one(tmp_path: Path) -> None:
    with worker_gate(tmp_path) as gate:
        workers = gate.workers()
        assert count(gate) == 500
        gate.server.process.send_signal(signal.SIGTERM)
        assert gate.server.process.wait(60) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers.values())
    names = [record.get("name") for record in records(gate.state)]
    assert names.count("server.started") == names.count("server.stopped") == 2
    assert tidegate("audit", "verify", state=gate.state).status == 0


def test_when_the_parent_is_killed_its_workers_end(tmp_path: Path) -> None:
    with worker_gate(tmp_path) as gate:
        workers = gate.workers()
        os.kill(gate.server.process.pid, signal.SIGKILL)
        wait_until(
            lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers.values()),
            "the workers end",
        )
