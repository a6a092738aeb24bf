"""Clients of our own that see every byte: HTTP and stdio, every revision, nothing hidden.

They share no code with the server. A peer keeps all that the server sent in `all_messages`.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from support.eventually import PATIENCE_S
from wire.raw_http import Response, http_request
from wire.served import EVERYTHING

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*HANDSHAKE, MODERN)
META = "io.modelcontextprotocol/"
CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
CLIENT = {"name": "wire-test", "version": "1.0"}
BOTH = "application/json, text/event-stream"

Answer = Callable[[Mapping[str, Any]], dict[str, Any]]


class ReceivedMessage(NamedTuple):
    """A message from the server, and the method of the request whose answer it came with."""

    method: str | None
    message: Any


class Outcome(NamedTuple):
    """What one request brought: its response and everything before it."""

    response: dict[str, Any]
    before: list[dict[str, Any]]

    @property
    def result(self) -> dict[str, Any]:
        assert "result" in self.response, self.response
        return self.response["result"]

    @property
    def error(self) -> dict[str, Any]:
        assert "error" in self.response, self.response
        return self.response["error"]

    @property
    def text(self) -> str:
        return self.result["content"][0]["text"]


def accept(request: Mapping[str, Any]) -> dict[str, Any]:
    """Say yes to whatever the server asks of a client."""
    if request["method"] == "elicitation/create":
        fields = request["params"]["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: _sample(f) for name, f in fields.items()}}
    if request["method"] == "sampling/createMessage":
        content = {"type": "text", "text": "Paris"}
        return {"role": "assistant", "content": content, "model": "none", "stopReason": "endTurn"}
    return {"roots": [{"uri": "file:///test/root", "name": "Root"}]}


def _sample(field: Mapping[str, Any]) -> Any:
    if field["type"] == "array":
        items = field["items"]
        return [items["enum"][0] if "enum" in items else items["anyOf"][0]["const"]]
    if "enum" in field:
        return field["enum"][0]
    if "oneOf" in field:
        return field["oneOf"][0]["const"]
    return {"string": "Alice", "integer": 7, "number": 7.5, "boolean": True}[field["type"]]


class Peer:
    """What both transports share: ids, the handshake, answering the server's questions."""

    def __init__(self, revision: str, *, answer: Answer = accept, capabilities: Any = None) -> None:
        self.revision = revision
        self.modern = revision == MODERN
        self.answer = answer
        self.capabilities = CAPABILITIES if capabilities is None else capabilities
        self.all_messages: list[ReceivedMessage] = []
        self.greeting: dict[str, Any] = {}
        self._last_id = 0

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def connect(self) -> Any:
        """The handshake, where the revision has one."""
        if not self.modern:
            params = {
                "protocolVersion": self.revision,
                "capabilities": self.capabilities,
                "clientInfo": CLIENT,
            }
            self.greeting = self.request("initialize", params).result
            self.notify("notifications/initialized")
        return self

    def add_meta(self, params: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Params as this revision wants them: the modern one carries who asks in `_meta`."""
        if not self.modern:
            return None if params is None else dict(params)
        own = {
            f"{META}protocolVersion": self.revision,
            f"{META}clientCapabilities": self.capabilities,
            f"{META}clientInfo": CLIENT,
        }
        given = dict(params or {})
        return {**given, "_meta": {**own, **given.get("_meta", {})}}

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = None
    ) -> Outcome:
        """Send a request and wait for its response."""
        id = self.next_id() if id is None else id
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
        with_meta = self.add_meta(params)
        if with_meta is not None:
            message["params"] = with_meta
        return self.exchange(message)

    def call(self, name: str, given: Mapping[str, Any] | None = None, **extra: Any) -> Outcome:
        """Call a tool and, in the modern era, go through the rounds of its questions."""
        return self.converse("tools/call", {"name": name, "arguments": given or {}, **extra})

    def converse(self, method: str, params: Mapping[str, Any]) -> Outcome:
        """A request with as many rounds as it needs."""
        outcome = self.request(method, params)
        while outcome.response.get("result", {}).get("resultType") == "input_required":
            asked = outcome.result.get("inputRequests", {})
            more: dict[str, Any] = {key: self.answer(ask) for key, ask in asked.items()}
            retry = {**params, "inputResponses": more}
            if "requestState" in outcome.result:
                retry["requestState"] = outcome.result["requestState"]
            outcome = self.request(method, retry)
        return outcome

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        raise NotImplementedError

    def exchange(self, message: dict[str, Any]) -> Outcome:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reply_to(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": request["id"], "result": self.answer(request)}


NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


class HttpPeer(Peer):
    """Streamable HTTP."""

    def __init__(self, port: int, revision: str, *, path: str = "/mcp", **more: Any) -> None:
        super().__init__(revision, **more)
        self.port = port
        self.path = path
        self.session: str | None = None
        self.token: str | None = None

    def headers(self, message: Any) -> dict[str, str]:
        """The headers that this revision wants beside such a message."""
        headers = {"Content-Type": "application/json", "Accept": BOTH}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.modern:
            headers["MCP-Protocol-Version"] = self.revision
            headers["Mcp-Method"] = message["method"]
            name = message.get("params", {}).get(NAMED.get(message["method"], ""))
            if isinstance(name, str):
                headers["Mcp-Name"] = name
            return headers
        if self.session is not None:
            headers["Mcp-Session-Id"] = self.session
            headers["MCP-Protocol-Version"] = self.revision
        return headers

    def post(self, message: Any, headers: Mapping[str, str] | None = None) -> Response:
        """Send one message (bytes go as they are) and return the open response."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        chosen = self.headers(message) if headers is None else headers
        response = http_request(self.port, "POST", self.path, body, chosen)
        self.session = response.headers.get("mcp-session-id", self.session)
        return response

    def exchange(self, message: dict[str, Any]) -> Outcome:
        response = self.post(message)
        before: list[dict[str, Any]] = []
        for received in response.messages():
            self.all_messages.append(ReceivedMessage(message["method"], received))
            if received.get("id") == message["id"] and "method" not in received:
                response.close()
                return Outcome(received, before)
            before.append(received)
            if "method" in received and "id" in received:
                self.post(self._reply_to(received)).close()
        raise AssertionError(f"no response (HTTP {response.status}) but {before}")

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        response = self.post(message)
        assert response.status == 202, (response.status, response.read())
        response.close()

    def listen(self, last_event_id: str | None = None) -> Response:
        """Open the session's own stream (handshake era)."""
        headers = {**self.headers({}), "Accept": "text/event-stream"}
        if last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        return http_request(self.port, "GET", self.path, None, headers)

    def close(self) -> None:
        if self.session is not None:
            http_request(self.port, "DELETE", self.path, None, self.headers({})).close()
            self.session = None


class StdioPeer(Peer):
    """A server of our own as a child process; lines in, lines out."""

    def __init__(self, revision: str, command: Sequence[str] | None = None, **more: Any) -> None:
        super().__init__(revision, **more)
        self.process = subprocess.Popen(
            command or [sys.executable, str(EVERYTHING), "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._said: list[bytes] = []
        self._readers = [
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        self._said.extend(self.process.stderr)

    @property
    def diagnostics(self) -> str:
        """What the server wrote to stderr so far."""
        return b"".join(self._said).decode(errors="replace")

    def write(self, data: bytes) -> None:
        """Bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def read_line(self, patience_s: float = PATIENCE_S) -> bytes | None:
        """The next line; None at the end of the output."""
        try:
            return self._lines.get(timeout=patience_s)
        except queue.Empty:
            raise AssertionError(f"no line in {patience_s} s; stderr: {self.diagnostics}") from None

    def receive(self, patience_s: float = PATIENCE_S) -> Any:
        """The next message."""
        line = self.read_line(patience_s)
        assert line is not None, f"the server has ended; stderr: {self.diagnostics}"
        return json.loads(line)

    def exchange(self, message: dict[str, Any]) -> Outcome:
        self.send(message)
        before: list[dict[str, Any]] = []
        while True:
            received = self.receive()
            self.all_messages.append(ReceivedMessage(message["method"], received))
            if isinstance(received, dict):
                if received.get("id") == message["id"] and "method" not in received:
                    return Outcome(received, before)
                if "method" in received and "id" in received:
                    self.send(self._reply_to(received))
            before.append(received)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close(self) -> None:
        """End of input, then the end of the process; kills one that stays."""
        with contextlib.suppress(BrokenPipeError):
            self.close_input()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join(PATIENCE_S)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
