"""A hundred calls that outlast their clients, on a server that is killed among them: each ends in
its result, once, or in what is true of the database. On databases and states of two kinds, and with
workers, of which one is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support import postgres_server, postgres_state
from support.audit_records import records
from support.eventually import HANG_S, wait_until
from support.worker_gate import workers_of
from wire.lasting_gate import TAKES_TASKS, Gate
from wire.patient_client import PatientClient
from wire.wires import MODERN, REVISIONS, HttpPeer, Outcome

CALLS = 25
KILLS = 3
LASTS_S = 0.6
PERSON_S = 0.8
FORMS = ("read", "change", "approved change")
CLIENTS: list[tuple[str, Any]] = [*((each, {}) for each in REVISIONS), (MODERN, TAKES_TASKS)]
TABLES = (
    "CREATE TABLE towns (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)",
    "INSERT INTO towns VALUES " + ", ".join(f"({id}, 0)" for id in range(CALLS)),
)


class SqliteTowns:
    """Two databases, the second of which a person guards. Work lasts while one is locked."""

    def __init__(self, directory: Path) -> None:
        self.files = [directory / "plain.db", directory / "guarded.db"]
        self.urls = [f"sqlite:///{file}" for file in self.files]
        for file in self.files:
            with closing(sqlite3.connect(file)) as connection, connection:
                for statement in TABLES:
                    connection.execute(statement)

    def read(self, id: int) -> str:
        return f"SELECT id, n FROM towns WHERE id = {id}"

    def hold(self, seconds: float) -> None:
        """Lock the first database for a while."""
        with closing(sqlite3.connect(self.files[0], timeout=60)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")

    def count(self, guarded: bool, id: int) -> int:
        with closing(sqlite3.connect(self.files[guarded], timeout=60)) as connection:
            return connection.execute("SELECT n FROM towns WHERE id = ?", (id,)).fetchone()[0]


class PostgresTowns:
    """The same on PostgreSQL, where a read sleeps."""

    def __init__(self, directory: Path) -> None:
        self.server = postgres_server.shared()
        self.names = [self.server.new_database(), self.server.new_database()]
        self.urls = [self.server.url(name) for name in self.names]
        for name in self.names:
            for statement in TABLES:
                self.server.ask(statement, name)

    def read(self, id: int) -> str:
        return f"SELECT id, n FROM towns WHERE id = {id} AND pg_sleep({LASTS_S}) IS NOT NULL"

    def hold(self, seconds: float) -> None:
        self.server.ask(
            f"BEGIN; LOCK TABLE towns IN EXCLUSIVE MODE; SELECT pg_sleep({seconds}); ROLLBACK",
            self.names[0],
        )

    def count(self, guarded: bool, id: int) -> int:
        """Looks when no statement of a server that was killed is left."""
        name = self.names[guarded]
        self.server.ask(f"UPDATE towns SET n = n WHERE id = {id}", name)
        return self.server.ask(f"SELECT n FROM towns WHERE id = {id}", name)[0][0]


ENGINES = {"sqlite": SqliteTowns, "postgres": PostgresTowns}
Towns = SqliteTowns | PostgresTowns


class KilledGate(Gate):
    """A gate whose clients notice that it was killed, and wait for the next one. Of several
    `workers` one is killed at a time."""

    def __init__(self, directory: Path, towns: Towns, state: str, workers: int) -> None:
        self.towns = towns
        self.more = f"workers = {workers}\n"
        self.workers = workers
        self.shares_state = state == "postgres"
        if self.shares_state:
            postgres_state.empty_state()
            key = directory / "key"
            key.write_text("a key of the gate in this test, long enough")
            key.chmod(0o600)
            self.more += f'state_url = "{postgres_state.state_url()}"\n'
            self.more += f'state_key = "${{FILE:{key}}}"\n'
        self.up = threading.Event()
        super().__init__(directory)

    def write(self, source: str = "", tasks: str = "", more: str = "") -> None:
        plain, guarded = self.towns.urls
        self.settings.write_text(
            f'state = "{self.state}"\nhttp = "127.0.0.1:{self.port}"\nsurfaces = ["core"]\n'
            f"{self.more}[approvals]\nwait_s = 100\n[tasks]\nafter_s = 0.1\nanswer_s = 0.25\n"
            f'[[sources]]\nname = "plain"\nurl = "{plain}"\naccess = "write"\n'
            'approval_for = "nothing"\n'
            f'[[sources]]\nname = "guarded"\nurl = "{guarded}"\naccess = "write"\n'
            'approval_for = "writes"\n'
        )

    def start(self) -> None:
        """Start it, and wait for all workers: one that dies before it serves ends the gate."""
        super().start()
        wait_until(lambda: self.has_begun(self.workers), "all serve")

    def has_begun(self, most: int) -> bool:
        names = [each.get("name") for each in records(self.state)]
        return names.count("server.started") >= most

    def restart(self) -> None:
        """Kill it, and start the next one when its tasks are known to be no more. The parent of
        workers starts them again."""
        if self.workers > 1 and self.served is not None:
            parent = self.served.process.pid
            number, pid = wait_until(lambda: workers_of(parent), "a worker runs").popitem()
            os.kill(pid, signal.SIGKILL)
            self.forget_alive(f"%-{number}")
            return
        self.up.clear()
        self.kill()
        self.forget_alive("%")
        self.start()
        self.up.set()

    def forget_alive(self, ids: str) -> None:
        """Let the time pass for which a process that was killed may still be there."""
        change = "UPDATE {}tasks SET alive_until = 0 WHERE id LIKE '" + ids + "'"
        if self.shares_state:
            postgres_state.ask(change.format("tidegate."))
            return
        with closing(sqlite3.connect(self.state / "state.db")) as connection, connection:
            connection.execute(change.format(""))

    def approve_until(self, done: Callable[[], bool]) -> None:
        """Say yes to all that waits, again and again."""
        deadline = time.monotonic() + HANG_S
        while not done():
            assert time.monotonic() < deadline, "calls that do not end"
            time.sleep(PERSON_S)
            for each in self.run("approvals", "list", "--json").json["approvals"]:
                self.run("approvals", "allow", each["id"])


class SessionsEnd(HttpPeer):
    """A peer whose session may be of a server that is gone: then it has no reply."""

    def exchange(self, message: dict[str, Any]) -> Outcome:
        with closing(self.post(message)) as response:
            if response.status == 404:
                raise ConnectionResetError("no such session")
            if response.status >= 500:
                raise ConnectionResetError("its worker, or the state, is away")
            for received in response.messages():
                if received.get("id") == message["id"] and "method" not in received:
                    return Outcome(received, [])
        raise ConnectionResetError("no reply")

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Its worker may be gone between the reply to the greeting and this."""
        message = {
            "jsonrpc": "2.0",
            "method": method,
            **({} if params is None else {"params": params}),
        }
        with closing(self.post(message)) as response:
            if response.status != 202:
                raise ConnectionResetError(f"HTTP {response.status}: its worker is away")


class Call:
    """What one client sends, and what came of it."""

    def __init__(self, gate: KilledGate, number: int) -> None:
        self.gate, self.id = gate, number
        self.form = FORMS[number % len(FORMS)]
        self.guarded = self.form == "approved change"
        self.revision, self.capabilities = CLIENTS[number // len(FORMS) % len(CLIENTS)]
        change = f"UPDATE towns SET n = n + 1 WHERE id = {number}"
        self.sql = gate.towns.read(number) if self.form == "read" else change
        self.client = PatientClient(self._connect, gate.up, self.count)

    def _connect(self) -> HttpPeer:
        peer = SessionsEnd(self.gate.port, self.revision, capabilities=self.capabilities)
        peer.token = self.gate.token
        return peer.connect()

    def count(self) -> int:
        return self.gate.towns.count(self.guarded, self.id)

    def finish(self) -> str:
        source = "guarded" if self.guarded else "plain"
        return self.client.finish({"sql": self.sql, "source": source})

    def is_mine(self, line: dict[str, Any]) -> bool:
        """Whether a line of the record is of the call, and not of the preview for a person."""
        return line.get("statement") == self.sql and not line["call_id"].endswith("-dry")

    def check(self, text: str) -> None:
        """Fail unless the end of the call is true of the database and of the record."""
        count, said = self.count(), f"{self.form} of {self.revision}: {text!r}"
        if text.startswith("state.failed") or "its answer is withheld" in text:
            # The state was too slow: what is true is not known, or may not be shown.
            assert count in (0, 1), said
            return
        if self.form == "read":
            assert json.loads(text)["rows"] == [[self.id, 0]], said
            return
        if "not known whether it changed data" in text:
            assert count in (0, 1), said
        elif text and "stands" not in text:
            assert json.loads(text)["affected"] == 1, said
            assert count == 1, said
        else:
            assert count == 1, said
        lines = [each for each in records(self.gate.state) if self.is_mine(each)]
        intents = [each for each in lines if each["phase"] == "intent"]
        done = [each for each in lines if each["phase"] == "outcome" and "code" not in each]
        assert count <= len(intents), f"{said}: an intent is in the record"
        assert len(done) <= count, f"{said}: what is recorded as done was done"


@pytest.mark.parametrize(
    ("engine", "state", "workers"),
    [
        ("sqlite", "sqlite", 1), ("postgres", "postgres", 1), ("sqlite", "postgres", 2),
        ("postgres", "sqlite", 2),
    ],
)  # fmt: skip
def test_calls_of_every_client_end_in_what_is_true(
    tmp_path: Path, engine: str, state: str, workers: int
) -> None:
    chance = random.Random(f"{engine} {state}")
    towns = ENGINES[engine](tmp_path)
    gate = KilledGate(tmp_path, towns, state, workers)
    gate.start()
    gate.up.set()
    calls = [Call(gate, number) for number in range(CALLS)]
    try:
        with ThreadPoolExecutor(CALLS + KILLS + 1) as pool:
            ends = [pool.submit(call.finish) for call in calls]
            person = pool.submit(gate.approve_until, lambda: all(end.done() for end in ends))
            for _ in range(KILLS):
                pool.submit(towns.hold, LASTS_S)
                wait(ends, chance.uniform(0, PERSON_S + LASTS_S))
                gate.restart()
            pool.submit(towns.hold, LASTS_S)
        person.result()
        for call, end in zip(calls, ends, strict=True):
            call.check(end.result())
    finally:
        gate.close()
    assert gate.run("audit", "verify").status == 0
