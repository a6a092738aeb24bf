"""A real server on loopback, and what an attacker has: a socket, frames of any shape, a token.

`Target` is a whole `tidegate serve --http` in a process of its own over one small database.
`Target.traces` tells whether anything on disk has changed: attacks look at it afterwards.
"""

from __future__ import annotations

import hashlib
import json
import socket
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from support.command_line import Serving, serving, tidegate
from support.eventually import PATIENCE_S, wait_until
from tidegate.surfaces.registry import SURFACES

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
RUNAWAY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
"""A statement that never ends by itself."""


class Answer(NamedTuple):
    """An HTTP answer; `json` is None if its body is none."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def text(self) -> str:
        """The text of a tool's result."""
        return str(self.json["result"]["content"][0]["text"])

    @property
    def refused(self) -> bool:
        """Whether a tool's call was answered with an error of either kind."""
        answer = self.json
        return "error" in answer or bool(answer["result"].get("isError"))


class Target:
    """A running server, its database and its state directory."""

    def __init__(self, server: Serving, port: int, database: Path, state: Path) -> None:
        self.server = server
        self.port = port
        self.database = database
        self.state = state

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def post(
        self,
        body: bytes | Any,
        headers: dict[str, str] | None = None,
        *,
        path: str = "/mcp/core",
        token: str | None = None,
        connection: HTTPConnection | None = None,
    ) -> Answer:
        """Send one body, bytes as they are and anything else as JSON."""
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        sent.update(headers or {})
        using = connection or self.connect()
        try:
            using.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), sent)
            response = using.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            if connection is None:
                using.close()

    def call(self, tool: str, token: str | None = None, **arguments: Any) -> Answer:
        """Call a tool of `core`, in the revision without a handshake."""
        return self.post(tool_call(tool, **arguments), headers_of(tool), token=token)

    def query(self, sql: str, token: str | None = None, **arguments: Any) -> Answer:
        return self.call("query", token, sql=sql, **arguments)

    def begin(self, tool: str, token: str | None = None, **arguments: Any) -> HTTPConnection:
        """Send a call and leave the answer where it is."""
        sent = {"Content-Type": "application/json", "Accept": "*/*", **headers_of(tool)}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        connection = self.connect()
        connection.request("POST", "/mcp/core", json.dumps(tool_call(tool, **arguments)), sent)
        return connection

    def raw(self, request: bytes) -> bytes:
        """Send bytes and read until the server closes or has nothing more to say."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as wire:
            wire.sendall(request)
            answer = b""
            while part := wire.recv(65_536):
                answer += part
        return answer

    def token(self, name: str, *words: str, scope: str = "readOnly") -> str:
        """A new token."""
        made = tidegate("token", "create", name, "--scope", scope, *words, state=self.state)
        assert made.status == 0, made.err
        return made.out.strip()

    def traces(self) -> dict[str, str]:
        """What lies beside the database and in it."""
        directory = self.database.parent
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(directory.iterdir())
            if path.is_file()
        }

    def memory_mb(self) -> float:
        """The most memory the server has had, in MB."""
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def computes(self, seconds: float) -> None:
        """Wait until the server has computed for so long."""
        computes(self.server.process.pid, seconds)

    def wait_until_idle(self) -> None:
        """Wait until the server's workers do nothing, at many looks one after another.

        By their states, not by the time they get: on a busy machine who computes may get none.
        """
        looks = 0

        def all_sleep() -> bool:
            nonlocal looks
            looks = 0 if _at_work(self.server.process.pid) else looks + 1
            return looks == 30

        wait_until(all_sleep, "the end of all work in the server")


def computes(pid: int, seconds: float) -> None:
    """Wait until a process has computed for so long."""
    enough = _processor_s(pid) + seconds
    wait_until(lambda: _processor_s(pid) >= enough, "the server at work")


def _processor_s(pid: int) -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _at_work(pid: int) -> bool:
    """Whether a thread other than the event loop's has something to do."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "S" and int(task.name) != pid:
                return True
    return False


def tool_call(tool: str, id: Any = 1, **arguments: Any) -> dict[str, Any]:
    """The frame of a tool's call, in the revision without a handshake."""
    params = {"name": tool, "arguments": arguments, "_meta": META}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def headers_of(tool: str) -> dict[str, str]:
    return {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }


def make_shop(path: Path) -> Path:
    """A database with a few thousand rows, a table of long texts, a view and a trigger."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL);
            CREATE TABLE texts (id INTEGER PRIMARY KEY, body TEXT);
            CREATE TABLE secrets (word TEXT);
            CREATE TABLE changes (id INTEGER);
            CREATE VIEW cheap AS SELECT * FROM items WHERE price < 10;
            CREATE TRIGGER noted AFTER INSERT ON items BEGIN
                INSERT INTO changes VALUES (new.id);
            END;
            INSERT INTO secrets VALUES ('open sesame');
            """
        )
        rows = [(number, f"item {number}", number / 2) for number in range(1, 3_001)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
        texts = [(number, "é" * 30_000) for number in range(1, 121)]
        connection.executemany("INSERT INTO texts VALUES (?, ?)", texts)
    return path


@contextmanager
def target(directory: Path, *words: str, sources: Sequence[str] = ("shop",)) -> Generator[Target]:
    """A server over a shop of each name in `sources`, both surfaces served."""
    databases = [make_shop(directory / name / f"{name}.db") for name in sources]
    state = directory / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    surfaces = [name for name in ("core", "workbench") if name in SURFACES]
    command = ["serve", "--http", "127.0.0.1:0"]
    command += [word for name in surfaces for word in ("--surface", name)]
    for name, database in zip(sources, databases, strict=True):
        command += ["--source", f"{name}=sqlite:///{database}"]
    with serving([*command, *words], state) as server:
        line = server.until("serving")
        address = next(word for word in line.split() if word.startswith("http"))
        port = int(address.removesuffix("/mcp").rpartition(":")[2])
        yield Target(server, port, databases[0], state)
