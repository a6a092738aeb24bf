"""Workers are killed and replaced while callers go on: no caller waits in vain, what was answered
is right, and the record is one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from http.client import HTTPException
from pathlib import Path

import psycopg
import pytest

from support.command_line import STARTED, Serving, environment, tidegate
from support.eventually import HANG_S, PATIENCE_S, wait_until
from support.worker_gate import WorkerGate, begin, shop, worker_gate

CALLERS = 4
SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000000)"
    " SELECT max(i) FROM n"
)


class Callers:
    """Threads that ask on a new connection each time: `answered` calls were, `lost` got none."""

    def __init__(self, gate: WorkerGate) -> None:
        self._gate = gate
        self._ends = threading.Event()
        self.answered = 0
        self.lost = 0
        self.wrong: list[str] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(CALLERS)]

    def _ask(self) -> None:
        while not self._ends.is_set():
            try:
                said = str(self._gate.query("SELECT count(*) AS n FROM items"))
            except (OSError, HTTPException):
                self.lost += 1
                continue
            self.answered += 1
            if "500" not in said:
                self.wrong.append(said)

    @contextmanager
    def asking(self) -> Generator[Callers]:
        for each in self._threads:
            each.start()
        try:
            yield self
        finally:
            self._ends.set()
            for each in self._threads:
                each.join(PATIENCE_S)


def test_workers_are_replaced_without_a_lost_call(tmp_path: Path) -> None:
    with worker_gate(tmp_path) as gate, Callers(gate).asking() as callers:
        wait_until(lambda: callers.answered > 10, "callers are answered")
        before = set(gate.workers().values())
        gate.server.process.send_signal(signal.SIGUSR2)
        gate.server.until("all workers were replaced")
        assert before.isdisjoint(gate.workers().values())
        after = callers.answered
        wait_until(lambda: callers.answered > after + 10, "the new workers answer")
    assert callers.lost == 0 and callers.wrong == []


def test_killed_workers_cost_their_own_callers_a_connection_and_nothing_else(
    tmp_path: Path,
) -> None:
    with worker_gate(tmp_path) as gate:
        with Callers(gate).asking() as callers:
            counted = 0.0
            for number in (1, 2, 1, 2):
                seen = callers.answered
                wait_until(lambda seen=seen: callers.answered > seen + 10, "callers are answered")
                gate.kill(number)
                assert gate.calls() >= counted
                counted = gate.calls()
            seen = callers.answered
            wait_until(lambda: callers.answered > seen + 10, "callers are answered")
        assert callers.wrong == [] and callers.lost <= 4 * CALLERS
        gate.server.process.send_signal(signal.SIGTERM)
        assert gate.server.process.wait(PATIENCE_S) == 0
    verified = tidegate("audit", "verify", state=gate.state)
    assert verified.status == 0, verified.err


def test_a_statement_on_the_wire_is_cancelled_by_whichever_worker_is_asked(
    tmp_path: Path,
) -> None:
    with worker_gate(tmp_path, pg={"listen": "127.0.0.1:0"}) as gate:
        place = f"host=127.0.0.1 port={gate.ports['postgresql']} user=u dbname=shop"
        with psycopg.connect(place, autocommit=True) as asking:
            timer = threading.Timer(0.5, asking.cancel)  # each on a connection of its own
            timer.start()
            with pytest.raises(psycopg.errors.QueryCanceled):
                asking.execute(SLOW)
            timer.join()


def test_a_second_signal_ends_what_still_runs(tmp_path: Path) -> None:
    with worker_gate(tmp_path, drain_delay_s=600, stop_grace_s=600) as gate:
        asking = threading.Thread(target=_ask_slowly, args=(gate,))
        asking.start()
        wait_until(lambda: gate.figures()["tidegate_calls_running"] == 1, "the statement runs")
        gate.server.process.send_signal(signal.SIGTERM)
        gate.server.until("stops in 600 s")
        gate.server.process.send_signal(signal.SIGTERM)
        assert gate.server.process.wait(HANG_S) == 0
        asking.join(PATIENCE_S)


def _ask_slowly(gate: WorkerGate) -> None:
    try:
        gate.query(SLOW)
    except (OSError, HTTPException):
        return


def test_it_serves_at_the_sockets_of_a_service_manager_and_reports_to_it(tmp_path: Path) -> None:
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(str(tmp_path / "notify"))
    heard.settimeout(HANG_S)
    given = socket.create_server(("127.0.0.1", 0), backlog=16)
    port = given.getsockname()[1]
    words = (
        "serve", "--http", "127.0.0.1:1", "--no-auth", "--workers", "2", "--source",
        f"shop=sqlite:///{shop(tmp_path)}", "--config", '{"metrics": {"listen": "127.0.0.1:0"}}',
    )  # fmt: skip
    script = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3);"
        "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1', LISTEN_FDNAMES='http');"
        "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
    )
    variables = environment(tmp_path / "state") | {"NOTIFY_SOCKET": str(tmp_path / "notify")}
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(given.fileno()), *STARTED, *words],
        pass_fds=[given.fileno()], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=variables,
    )  # fmt: skip
    with closing(heard), closing(given):
        try:
            assert heard.recv(1_000) == b"READY=1"
            gate = begin(Serving(process), tmp_path / "state", 2, {"http", "metrics"})
            assert gate.port == port and len(gate.workers()) == 2
            assert "500" in str(gate.query("SELECT count(*) AS n FROM items"))
            process.send_signal(signal.SIGTERM)
            assert heard.recv(1_000).startswith(b"STOPPING=1\nEXTEND_TIMEOUT_USEC=")
            assert process.wait(HANG_S) == 0
        finally:
            process.kill()
            process.communicate()


def test_a_socket_that_no_setting_asks_for_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        script = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3);"
            "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1');"
            "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script, str(given.fileno()), *STARTED, "serve", "--http",
             "127.0.0.1:1", "--no-auth", "--workers", "2"],
            pass_fds=[given.fileno()], capture_output=True, text=True, timeout=HANG_S,
            env=environment(tmp_path / "state"), stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert ended.returncode == 78 and "for which nothing is set" in ended.stderr


def test_workers_that_cannot_be_started_any_more_end_the_gate_with_their_error(
    tmp_path: Path,
) -> None:
    with worker_gate(tmp_path) as gate:
        file = gate.state.parent / "settings.json"
        file.write_text("{")
        for pid in gate.workers().values():
            os.kill(pid, signal.SIGKILL)
        assert gate.server.process.wait(HANG_S) == 78
        assert "Cannot read" in gate.server.ended().err
