"""Clients of gates that may go at any time: what was sent, and what each was told of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ANSWER_S = 90.0
"""An answer that has not come by then is one that never comes."""
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Answer(NamedTuple):
    """What a call brought: the status (0 if the connection ended), and the code of an error."""

    status: int
    code: str
    text: str

    @property
    def done(self) -> bool:
        """Whether the gate says that it ran."""
        return self.status == 200 and not self.code


class Client:
    """One session over HTTP, with one connection at a time."""

    def __init__(
        self, port: int, token: str, revision: str = MODERN, host: str = "127.0.0.1"
    ) -> None:
        self._port, self._token, self._revision, self._host = port, token, revision, host
        self._session = ""
        self._id = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def connect(self) -> Answer:
        """The handshake, where the revision has one."""
        if self._revision == MODERN:
            return Answer(200, "", "")
        self._session = ""
        params = {
            "protocolVersion": self._revision, "capabilities": {},
            "clientInfo": {"name": "faults", "version": "1"},
        }  # fmt: skip
        return await self._post("initialize", params)

    async def query(self, sql: str, source: str = "open") -> Answer:
        params: dict[str, Any] = {"name": "query", "arguments": {"sql": sql, "source": source}}
        return await self._post("tools/call", params)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _post(self, method: str, params: dict[str, Any]) -> Answer:
        self._id += 1
        headers = [
            "POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json",
            "Accept: application/json, text/event-stream", f"Authorization: Bearer {self._token}",
        ]  # fmt: skip
        if self._revision == MODERN:
            params = {**params, "_meta": _META}
            headers += [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
            headers += [f"Mcp-Name: {params['name']}"] if "name" in params else []
        elif self._session:
            headers += [
                f"Mcp-Session-Id: {self._session}",
                f"MCP-Protocol-Version: {self._revision}",
            ]
        frame = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        body = json.dumps(frame).encode()
        head = "\r\n".join([*headers, f"Content-Length: {len(body)}", "", ""]).encode()
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._exchange(head + body)
        except TimeoutError:
            self.close()
            return Answer(0, "no answer", "")
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            self.close()
            return Answer(0, "", repr(error))

    async def _exchange(self, request: bytes) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=1 << 22)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status = int(head.split(" ", 2)[1])
        pairs = (line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        names = {name.lower(): value for name, value in pairs}
        self._session = names.get("mcp-session-id", self._session)
        body = await _read_body(reader, names)
        if names.get("connection") == "close":
            self.close()
        return read_answer(status, body)


async def _read_body(reader: asyncio.StreamReader, names: dict[str, str]) -> bytes:
    if names.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(names.get("content-length", "0")))
    parts: list[bytes] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)


def read_answer(status: int, body: bytes) -> Answer:
    """The last message of a body, which may be a stream."""
    text = body.decode(errors="replace")
    found: Any = None
    for line in [text, *(each[5:] for each in text.splitlines() if each.startswith("data:"))]:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if "result" in message or "error" in message:
            found = message
    if found is None:
        return Answer(status, f"http {status}", text[:300])
    if "error" in found:
        error = found["error"]
        if not isinstance(error, dict):
            return Answer(status, f"http {status}", text[:300])
        return Answer(status, str((error.get("data") or {}).get("code") or error["code"]), text)
    result = found["result"]
    if result.get("isError"):
        return Answer(status, result["content"][0]["text"].partition(":")[0], text)
    return Answer(status, "", text)
