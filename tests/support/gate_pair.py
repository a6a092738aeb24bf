"""Two processes that answer for one state: two workers of a gate on SQLite, or two gates on one
state in PostgreSQL. A test sends each request to the one that it names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from support import postgres_server
from support.command_line import Serving, serving, tidegate
from support.eventually import PATIENCE_S
from support.worker_gate import WorkerGate, shop, worker_gate

KINDS = ("workers", "gates")
ACCEPT = "application/json, text/event-stream"
MODERN = "2026-07-28"
_PREFIX = "io.modelcontextprotocol/"


class GatePair:
    """`kind` is one of `KINDS`; the two processes are 1 and 2. `token` may write."""

    def __init__(self, kind: str, folder: Path, words: tuple[str, ...]) -> None:
        """`words` name the state in a command."""
        self.kind = kind
        self.words = words
        self.token = self.make_token()
        self.folder = folder
        self.worker_gate: WorkerGate | None = None
        self.own_url = ""
        """A database that is no source, where a test has one."""
        self.ports: list[int] = []
        self.served: list[Serving] = []
        self.states: list[Path] = []

    def connect(self, at: int) -> HTTPConnection:
        """An open connection to one of the two."""
        if self.worker_gate is not None:
            return self.worker_gate.connection_at(at)
        return HTTPConnection("127.0.0.1", self.ports[at - 1], timeout=PATIENCE_S)

    def port(self, at: int) -> int:
        """The port of one of the two; workers have one together."""
        return self.ports[at - 1] if self.worker_gate is None else self.worker_gate.port

    def gate_id(self, at: int) -> str:
        """The id of the gate of one of the two."""
        return (self.states[at - 1] / "audit" / "gate-id").read_text().strip()

    def make_token(self) -> str:
        """Another token that may write."""
        return make_token(self.words)

    def client(self, path: str = "/mcp", revision: str = MODERN, at: int = 1) -> Client:
        """A client at an endpoint, which shakes hands with one of the two."""
        return Client(self, path, revision, at)


class Client:
    """A client of a revision. With a session, if the revision has some."""

    def __init__(self, pair: GatePair, path: str, revision: str, at: int) -> None:
        self.pair = pair
        self.path = path
        self.modern = revision == MODERN
        self.headers = {
            "Authorization": f"Bearer {pair.token}", "Content-Type": "application/json",
            "Accept": ACCEPT,
        }  # fmt: skip
        self.capabilities: dict[str, Any] = {}
        self._last = 0
        if not self.modern:
            about = {
                "protocolVersion": revision, "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "test", "version": "1"},
            }  # fmt: skip
            with closing(pair.connect(at)) as connection:
                opened = self.open(connection, "initialize", **about)
                opened.read()
                self.headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
                self.headers["MCP-Protocol-Version"] = revision
                ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
                connection.request("POST", path, ready, self.headers)
                connection.getresponse().read()
        self.headers["MCP-Protocol-Version"] = revision

    def open(self, connection: HTTPConnection, method: str, **params: Any) -> HTTPResponse:
        """The response to a request, whose body is still to be read."""
        self._last += 1
        headers = dict(self.headers)
        if self.modern:
            meta = {
                f"{_PREFIX}protocolVersion": MODERN,
                f"{_PREFIX}clientCapabilities": self.capabilities,
            }
            params["_meta"] = meta | params.get("_meta", {})
            headers["Mcp-Method"] = method
            if name := params.get("name") or params.get("taskId"):
                headers["Mcp-Name"] = name
        frame = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        connection.request("POST", self.path, json.dumps(frame), headers)
        return connection.getresponse()

    def ask(self, at: int, method: str, **params: Any) -> Any:
        """The answer of one of the two: a message, or the status and text of a refusal."""
        with closing(self.pair.connect(at)) as connection:
            response = self.open(connection, method, **params)
            text = response.read().decode()
            if "event-stream" in response.headers.get("Content-Type", ""):
                datas = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
                return json.loads(datas[-1])
            return json.loads(text)

    def call(self, at: int, name: str, **arguments: Any) -> str:
        """What a tool answers, as text; an error, too."""
        found = self.ask(at, "tools/call", name=name, arguments=arguments)
        if "error" in found:
            return json.dumps(found["error"])
        return "".join(each.get("text", "") for each in found["result"]["content"])

    def get(self, connection: HTTPConnection, **headers: str) -> HTTPResponse:
        """The response to a GET of the session's stream."""
        connection.request("GET", self.path, headers={**self.headers, **headers})
        return connection.getresponse()


def events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The messages of a stream, as they come."""
    for line in response:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


@contextmanager
def gate_pair(kind: str, folder: Path, **settings: Any) -> Iterator[GatePair]:
    """The two serve while the block runs, on a SQLite source `shop`, and what the settings say."""
    sources = [{"name": "shop", "url": f"sqlite:///{shop(folder)}", "access": "write"}]
    given = {**settings, "auth": True, "sources": [*sources, *settings.get("sources", ())]}
    if kind == "workers":
        with worker_gate(folder, **given) as gate:
            pair = GatePair(kind, folder, ("--state", str(gate.state)))
            pair.worker_gate, pair.states = gate, [gate.state, gate.state]
            yield pair
        return
    server = postgres_server.shared()
    database = server.new_database()
    key = folder / "state.key"
    key.write_text("a key of the two gates of this test, long enough")
    key.chmod(0o600)
    shared = {
        **given, "http": "127.0.0.1:0", "state_url": server.url(database),
        "state_key": f"${{FILE:{key}}}",
    }  # fmt: skip
    with ExitStack() as stack:
        stack.callback(server.drop_database, database)
        pair = None
        for number in (1, 2):
            directory = folder / f"gate{number}"
            directory.mkdir()
            file = directory / "settings.json"
            file.write_text(json.dumps({**shared, "state": str(directory / "state")}))
            file.chmod(0o600)
            pair = pair or GatePair(kind, folder, ("--config", str(file)))
            served = stack.enter_context(
                serving(("serve", "--config", str(file)), directory / "state")
            )
            found = re.search(r"http://127\.0\.0\.1:(\d+)", served.until("serving"))
            assert found is not None
            pair.served.append(served)
            pair.ports.append(int(found[1]))
            pair.states.append(directory / "state")
        assert pair is not None
        yield pair


def make_token(words: tuple[str, ...]) -> str:
    """A new token that may write."""
    name = f"w{os.urandom(4).hex()}"
    return tidegate("token", "create", name, "--scope", "readWrite", *words).out.strip()
