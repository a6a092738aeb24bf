"""Speaks each server's dialect of MCP, as bytes for the load client and as calls for set-up.

Two dialects are enough: `STATELESS` (2026-07-28, no handshake) and `SESSION` (2025-06-18, after
`initialize`, with the session header if the server gives one).
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.client import Shot
from bench.process import Process

STATELESS = "2026-07-28"
SESSION = "2025-06-18"

_CLIENT = {"name": "bench", "version": "1"}
_META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_ID = 1_111_111
_ITEM = "@@@@@@"


class McpError(Exception):
    """A server answered a call of the set-up with an error."""


def compact(value: object) -> bytes:
    """JSON without spaces, as it goes over the wire."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def text_of(result: dict[str, Any]) -> str:
    """What the model sees of a tool result. Raises McpError if the tool reports a failure."""
    text = "".join(block.get("text", "") for block in result.get("content", ()))
    if result.get("isError"):
        raise McpError(text)
    return text


@dataclass
class HttpSpeaker:
    """One server's endpoint. `open` it before use."""

    port: int
    path: str
    dialect: str
    headers: dict[str, str]
    session: str | None = None

    def open(self) -> None:
        """Do the handshake, if the dialect has one."""
        if self.dialect == STATELESS:
            return
        parameters = {"protocolVersion": SESSION, "capabilities": {}, "clientInfo": _CLIENT}
        self._exchange("initialize", parameters, 1)
        self._exchange("notifications/initialized", {}, None)

    def call(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """The decoded result of one request and the bytes of its body."""
        body = self._exchange(method, params, 1)
        reply = json.loads(_event_data(body))
        if "result" not in reply:
            raise McpError(body.decode(errors="replace")[:600])
        return reply["result"], len(body)

    def shots(
        self,
        method: str,
        params: dict[str, Any],
        items: Iterable[tuple[bytes, bytes]],
        times: int = 0,
    ) -> Iterator[Shot]:
        """Requests with running ids, one for each item number and the marker it must bring.

        Params may contain the placeholder that `with_item` makes; all else is encoded once.
        The marker must be in the answer exactly `times` times (0: at least once).
        """
        request = self.request(method, params, _ID)
        before, after = request.split(str(_ID).encode())
        first, *rest = after.split(_ITEM.encode())
        for number, (item, marker) in enumerate(items, 2_000_000):
            digits = b"%d" % number
            tail = first + item + rest[0] if rest else first
            yield Shot(before + digits + tail, marker, b'"id":' + digits, times)

    def _exchange(self, method: str, params: dict[str, Any], number: int | None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.connect()
            connection.sock.sendall(self.request(method, params, number))
            response = http.client.HTTPResponse(connection.sock, method="POST")
            response.begin()
            self.session = response.getheader("mcp-session-id") or self.session
            body = response.read()
            if response.status >= 300:
                raise McpError(f"HTTP {response.status}: {body[:600]!r}")
            return body
        finally:
            connection.close()

    def request(self, method: str, params: dict[str, Any], number: int | None) -> bytes:
        """One request as it goes over the wire."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if number is not None:
            message["id"] = number
        # The id comes before the params, so that a placeholder in them is behind it.
        message["params"] = params | {"_meta": _META} if self.dialect == STATELESS else params
        body = compact(message)
        headers = {
            "Host": f"127.0.0.1:{self.port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self.dialect,
        } | self.headers
        if self.dialect == STATELESS:
            headers["Mcp-Method"] = method
            if "name" in params:
                headers["Mcp-Name"] = params["name"]
        if self.session is not None:
            headers["Mcp-Session-Id"] = self.session
        lines = [f"POST {self.path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}"])
        return head.encode() + b"\r\n\r\n" + body


def with_item(statement: Callable[[Any], str]) -> str:
    """A statement with a placeholder of six characters where its item number goes."""
    return statement(_ITEM)


def _event_data(body: bytes) -> bytes:
    """The JSON of an answer, whether it came plain or as one server-sent event."""
    if body.lstrip().startswith(b"{"):
        return body
    for line in body.splitlines():
        if line.startswith(b"data:") and line[5:].strip():
            return line[5:]
    raise McpError(f"no message in {body[:600]!r}")


class StdioSpeaker:
    """Speaks the handshake era over the pipes of a started server, one call at a time."""

    def __init__(self, process: Process) -> None:
        assert process.popen.stdin is not None
        assert process.popen.stdout is not None
        self._process = process
        self._in = process.popen.stdin
        self._out = process.popen.stdout
        self._number = 0

    def open(self) -> dict[str, Any]:
        """Initialize; the result says who the server is."""
        result = self.call(
            "initialize",
            {"protocolVersion": SESSION, "capabilities": {}, "clientInfo": _CLIENT},
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            line = self._out.readline()
            if not line:
                raise McpError(f"the server ended:\n{self._process.last_words()}")
            reply = json.loads(line)
            if reply.get("id") != self._number:
                continue
            if "result" not in reply:
                raise McpError(line.decode(errors="replace")[:600])
            return reply["result"]

    def ask(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool and give the text of its answer."""
        return text_of(self.call("tools/call", {"name": tool, "arguments": arguments}))

    def _send(self, message: dict[str, Any]) -> None:
        self._in.write(compact(message) + b"\n")
        self._in.flush()
