"""Bridges under test: a host that types, and a server that follows a script."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any, NamedTuple

from support.command_line import Serving, serving
from support.eventually import PATIENCE_S
from support.thread_server import ThreadServer
from tidegate import __version__
from tidegate.bridge.handshake_file import Handshake, HandshakeFile
from tidegate.config.model import BridgeSettings
from tidegate.identity.bridge_tokens import BridgeTokens

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "open",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "host", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Host:
    """A client on stdio that has a bridge started."""

    def __init__(self, process: Serving) -> None:
        self.process = process

    def open(self, revision: str = "2025-11-25") -> dict[str, Any]:
        """Shake hands; the result of `initialize`."""
        params = {**INITIALIZE["params"], "protocolVersion": revision}
        self.process.send({**INITIALIZE, "params": params})
        result = self.receive("open")["result"]
        self.process.send(READY)
        return result

    def call(self, id: Any, tool: str, **arguments: Any) -> dict[str, Any]:
        """The whole reply to a tool call."""
        self.ask(id, tool, **arguments)
        return self.receive(id)

    def ask(self, id: Any, tool: str, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments}
        self.process.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})

    def receive(self, id: Any) -> dict[str, Any]:
        """The reply to a request; other messages before it are passed over."""
        while line := self.process.line():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == id and "method" not in message:
                return message
        raise AssertionError(f"no reply to {id!r}: {self.process.ended()}")


@contextmanager
def bridged(state: Path, *words: str) -> Generator[Host]:
    with serving(("bridge", *words), state) as process:
        yield Host(process)


def handshake_of(state: Path) -> dict[str, Any]:
    """What the handshake file says."""
    return json.loads((state / "bridge" / "handshake.json").read_text())


def write(state: Path, **changes: Any) -> None:
    """Change what the handshake file says."""
    path = state / "bridge" / "handshake.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def end_server(state: Path, number: signal.Signals = signal.SIGKILL) -> None:
    """End the server that the file names, and wait until it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        pid = handshake_of(state)["pid"]
        watched = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(watched, number)
            wait_for_end(watched)
        finally:
            os.close(watched)


def wait_for_end(watched: int) -> None:
    """Wait until the process of a pidfd has ended."""
    ready, _, _ = select.select([watched], [], [], PATIENCE_S)
    assert ready, "the server did not end"


class Asked(NamedTuple):
    """A request as the scripted server has it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body) if self.body else {}


Script = Callable[[Asked], bytes | None]
"""The bytes to answer with; None closes the connection without an answer."""


class Scripted:
    """A server of this process that a bridge finds: real sockets, answers from `script`.

    The proof and the session's stream (405) are answered by itself. `asked` has all the rest.
    """

    def __init__(self, state: Path, script: Script) -> None:
        self.asked: list[Asked] = []
        self.script = script
        self.resume: Callable[[str], bytes] = lambda last_event: replied(None, 404)
        self._place = HandshakeFile(state)
        self._place.prepare()
        self._lock = self._place.lock("server", wait=False)
        assert self._lock is not None
        scripted = self

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                scripted._answer(self.request, self.rfile)

        self._server = ThreadServer(Handler)
        token, expires_at = BridgeTokens(BridgeSettings(), lambda name, details: None).renew()
        self.handshake = Handshake(
            1, "scripted", "127.0.0.1", self._server.port, os.getpid(),
            expires_at, token, "key", ("/mcp",), 30.0, "", __version__, 0.0,
        )  # fmt: skip
        self._place.write(self.handshake)
        self._server.start()

    def renew(self, **changes: Any) -> None:
        self.handshake = self.handshake._replace(**changes)
        self._place.write(self.handshake)

    def messages(self, method: str) -> list[Asked]:
        """The requests that carried this method."""
        posts = [asked for asked in self.asked if asked.method == "POST"]
        return [asked for asked in posts if asked.message.get("method") == method]

    def close(self) -> None:
        self._server.close()
        self._place.remove()
        assert self._lock is not None
        os.close(self._lock)

    def _answer(self, connection: socket.socket, file: BufferedIOBase) -> None:
        first = file.readline().decode()
        if not first:
            return  # a bridge that has ended meanwhile
        method, path, _ = first.split(" ", 2)
        headers: dict[str, str] = {}
        while line := file.readline().strip().decode():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", 0)))
        asked = Asked(method, path, headers, body)
        if path == "/v1/bridge":
            proof = self.handshake.proof(headers["tidegate-challenge"])
            answer: bytes | None = replied({"proof": proof})
        elif method == "GET" and "last-event-id" in headers:
            answer = self.resume(headers["last-event-id"])
        elif method == "GET":
            answer = replied(None, 405)
        else:
            self.asked.append(asked)
            answer = self.script(asked)
        if answer is not None:
            connection.sendall(answer)


def replied(body: Any, status: int = 200, **headers: str) -> bytes:
    """An answer of JSON."""
    content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += ["Content-Type: application/json", "", ""]
    return "\r\n".join(lines).encode() + content


def result(asked: Asked, result: Any = None, **headers: str) -> bytes:
    body = {"jsonrpc": "2.0", "id": asked.message["id"], "result": result or {}}
    return replied(body, **headers)


def refused(asked: Asked, status: int, code: int, id: Any = ...) -> bytes:
    id = asked.message.get("id") if id is ... else id
    error = {"code": code, "message": "Refused"}
    return replied({"jsonrpc": "2.0", "id": id, "error": error}, status)
