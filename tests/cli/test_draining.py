"""What a balancer sees of a server that stops, and what callers see meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.command_line import STARTED, Serving, environment, serving
from support.eventually import HANG_S, PATIENCE_S, wait_until

LONG = {"auth": False, "drain_delay_s": 600}


def begin(server: Serving) -> HTTPConnection:
    port = int(re.findall(r":(\d+)/mcp", server.until("serving"))[0])
    return HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)


def ready(connection: HTTPConnection) -> tuple[int, Any]:
    connection.request("GET", "/ready")
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def is_stopping(connection: HTTPConnection) -> bool:
    status, said = ready(connection)
    return status == 503 and said["failing"] == {"server": "server.stopping"}


def names(state: Path) -> list[str]:
    return [str(record.get("name")) for record in records(state)]


def words(**settings: Any) -> tuple[str, ...]:
    return ("serve", "--http", "127.0.0.1:0", "--config", json.dumps(settings))


def test_after_sigterm_the_server_is_not_ready_and_serves_new_callers(state: Path) -> None:
    with serving(words(**LONG), state) as server:
        first = begin(server)
        assert ready(first) == (200, {"status": "ready"})
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: is_stopping(first), "the server says that it stops")
        other = HTTPConnection("127.0.0.1", first.port, timeout=PATIENCE_S)
        other.request("GET", "/health")
        assert other.getresponse().status == 200, "a new connection is served"
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0, "a second signal ends it now"
        first.close()
        other.close()
    assert names(state).count("server.stopped") == 1


def test_the_delay_ends_by_itself(state: Path) -> None:
    with serving(words(auth=False, drain_delay_s=0.05), state) as server:
        begin(server).close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0


def test_ctrl_c_does_not_wait_for_balancers(state: Path) -> None:
    with serving(words(**LONG), state) as server:
        begin(server).close()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE_S) == 0


def test_a_server_on_stdio_has_no_balancer(state: Path) -> None:
    with serving(("serve", "--config", json.dumps(LONG)), state) as server:
        assert "result" in server.ask("tools/list", {})
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0


NAMESPACE = ("unshare", "--fork", "--pid", "--mount-proc", "--kill-child")
ORPHANS = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
for _ in range(3):
    os.wait()
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Leaves grandchildren to process 1 and becomes the server: it is process 1, they are orphans."""


def zombies(pid: int) -> list[str]:
    """The processes that have ended and that nobody has waited for, below a process."""
    found: list[str] = []
    waiting = [pid]
    while waiting:
        for file in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            for child in file.read_text().split():
                waiting.append(int(child))
                status = Path(f"/proc/{child}/status").read_text()
                if "\nState:\tZ" in status:
                    found.append(status.partition("\n")[0])
    return found


def in_a_namespace(command: list[str], state: Path) -> subprocess.Popen[str]:
    if subprocess.run((*NAMESPACE, "true"), capture_output=True).returncode:
        pytest.skip("a namespace of processes cannot be made here")
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*NAMESPACE, *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True,
        env=environment(state),
    )  # fmt: skip


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_as_the_first_process_it_waits_for_orphans_and_ends_in_good_order(
    state: Path, sent: signal.Signals
) -> None:
    command = [sys.executable, "-c", ORPHANS, *STARTED, *words(auth=False)]
    process = in_a_namespace(command, state)
    server = Serving(process)
    try:
        with closing(begin(server)) as connection:
            assert ready(connection)[0] == 200
        wait_until(lambda: not zombies(process.pid), "the orphans are waited for")
        (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(first), sent)
        assert process.wait(HANG_S) == 0
    finally:
        process.kill()
        process.communicate()
    assert names(state).count("server.stopped") == 1


def test_all_that_a_server_says_is_json_if_that_is_set(state: Path, tmp_path: Path) -> None:
    sources = [{"name": "later", "url": f"sqlite:///{tmp_path / 'missing.db'}"}]
    given = {"auth": False, "log_format": "json", "drain_delay_s": 0.01, "sources": sources}
    with serving(words(**given), state) as server:
        port = int(re.findall(r":(\d+)/mcp", server.until("serving core"))[0])
        with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
            assert ready(connection)[0] == 200
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(PATIENCE_S)
        lines = [json.loads(line) for line in server.ended().err.splitlines()]
    assert "stops in 0.01 s" in lines[-1]["message"]
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in lines)
