"""A gate of several workers, as its callers and its operator have it."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from support.command_line import Serving, serving
from support.eventually import PATIENCE_S, wait_until

PREFIX = "io.modelcontextprotocol/"
META: dict[str, Any] = {
    f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}
}  # fmt: skip


class WorkerGate:
    """A running gate. `port` is of HTTP, `ports` those of what else listens, by the word by which
    the server announces it."""

    def __init__(self, server: Serving, state: Path, count: int, ports: Mapping[str, int]) -> None:
        self.server = server
        self.state = state
        self.count = count
        self.ports = ports
        self.port = ports.get("http", 0)
        self.token = ""

    def workers(self) -> dict[int, int]:
        """The processes of the workers that run, by their numbers."""
        return workers_of(self.server.process.pid)

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def worker_of(self, connection: HTTPConnection) -> int:
        """The number of the worker that has the other end of an open connection."""
        port = connection.sock.getsockname()[1]
        wanted = [f"0100007F:{self.port:04X}", f"0100007F:{port:04X}"]
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        # The list changes while it is read, so that a line may come twice; a closed connection of
        # the same two ports has no inode, or one that no worker has.
        found = {f"socket:[{fields[9]}]" for fields in lines if fields[1:3] == wanted}
        for number, pid in self.workers().items():
            for file in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if os.readlink(file) in found:
                        return number
        raise AssertionError("no worker has it")

    def connection_at(self, number: int) -> HTTPConnection:
        """An open connection to that worker."""
        others: list[HTTPConnection] = []
        try:
            for _ in range(50):
                connection = self.connect()
                others.append(connection)  # it stays open, so that the next one goes elsewhere
                connection.request("GET", "/health")
                connection.getresponse().read()
                if self.worker_of(connection) == number:
                    return others.pop()
        finally:
            for each in others:
                each.close()
        raise AssertionError("the other workers take all connections")

    def query(self, sql: str, connection: HTTPConnection | None = None) -> Any:
        """The answer to a call of `query`, on a connection of its own unless one is given."""
        if connection is None:
            with closing(self.connect()) as own:
                return self.query(sql, own)
        return self.ask(connection, "tools/call", name="query", arguments={"sql": sql})

    def ask(
        self,
        connection: HTTPConnection,
        method: str,
        capabilities: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> Any:
        """The answer to a request of 2026-07-28 on a connection."""
        return json.loads(self.open(connection, method, capabilities, **params).read())

    def open(
        self,
        connection: HTTPConnection,
        method: str,
        capabilities: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> HTTPResponse:
        """The response to such a request, whose body is still to be read."""
        meta = META | {f"{PREFIX}clientCapabilities": capabilities or {}}
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "Content-Type": "application/json", "Mcp-Method": method,
            "MCP-Protocol-Version": "2026-07-28", "Accept": "application/json, text/event-stream",
        }  # fmt: skip
        if name := params.get("name") or params.get("taskId"):
            headers["Mcp-Name"] = name
        connection.request("POST", "/mcp", json.dumps(frame), headers)
        return connection.getresponse()

    def figures(self) -> dict[str, float]:
        """What Prometheus reads, each sample by its name and labels as they are written."""
        with closing(HTTPConnection("127.0.0.1", self.ports["metrics"])) as connection:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    def calls(self) -> float:
        """How many calls were counted."""
        return sum(v for k, v in self.figures().items() if k.startswith("tidegate_calls_total"))

    def kill(self, number: int) -> None:
        """Kill a worker, and wait until another one has its place."""
        before = self.workers()[number]
        os.kill(before, signal.SIGKILL)
        wait_until(
            lambda: self.workers().get(number, before) != before, "another worker is started"
        )

    @contextmanager
    def paused(self, number: int) -> Generator[None]:
        """While the block runs, a worker does nothing."""
        pid = self.workers()[number]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


def workers_of(parent: int) -> dict[int, int]:
    """The processes of the workers of a parent, by their numbers."""
    found: dict[int, int] = {}
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for child in map(int, children):
        words: list[bytes] = []
        with suppress(OSError):  # it has just ended
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        if b"--worker" in words:
            place = json.loads(words[words.index(b"--worker") + 1])
            found[place["number"]] = child
    return found


def shop(folder: Path) -> Path:
    """A database file with 500 rows."""
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE items (id INTEGER)")
        connection.executemany("INSERT INTO items VALUES (?)", [(n,) for n in range(500)])
    return path


@contextmanager
def worker_gate(
    folder: Path, count: int = 2, words: tuple[str, ...] = (), **settings: Any
) -> Iterator[WorkerGate]:
    """A gate of so many workers on a database of `shop`, without authentication, with figures.
    The settings are in a file below `folder`."""
    given = {
        "auth": False, "workers": count, "http": "127.0.0.1:0",
        "metrics": {"listen": "127.0.0.1:0"},
        **({} if "sources" in settings else {"sources": [
            {"name": "shop", "url": f"sqlite:///{shop(folder)}"}]}), **settings,
    }  # fmt: skip
    file = folder / "settings.json"
    file.write_text(json.dumps(given))
    file.chmod(0o600)
    state = folder / "state"
    with serving(("serve", "--config", str(file), *words), state) as server:
        yield begin(
            server, state, count, {"http", "metrics"} | ({"postgresql"} if "pg" in given else set())
        )


def begin(server: Serving, state: Path, count: int, listening: set[str]) -> WorkerGate:
    """The gate of a server that announces its addresses: a worker that of HTTP, and the parent that
    of the figures, in any order."""
    ports: dict[str, int] = {}
    while not listening <= ports.keys():
        line = server.until("serving")
        for kind, port in re.findall(r"(http|postgresql)://127\.0\.0\.1:(\d+)", line):
            name = "metrics" if "metrics on" in line else kind
            ports[name] = int(port)
    return WorkerGate(server, state, count, ports)
