"""What a session opened on an engine is closed with the session, however that ends."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.basket_surface import surface
from support.eventually import PATIENCE_S
from support.http_application import ask
from support.memory_engine import DATABASES, MemoryEngine
from support.surface_client import OWNER, READER
from support.surface_gateway import SqliteGate
from tidegate.edges.http.application import HttpApplication
from tidegate.edges.http.endpoint import Endpoint, HttpConventions
from tidegate.edges.stdio import StdioEdge
from tidegate.model.sources import Source
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.sessions import IDLE_S

ACTORS = {"reader": READER, "owner": OWNER}
INITIALIZE = {
    "protocolVersion": "2025-06-18", "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}  # fmt: skip
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Harness:
    """The surface over a source that speaks no SQL, and a look at what its engine keeps open."""

    def __init__(self, gate: SqliteGate) -> None:
        self._gate = gate
        served = surface(gate)
        self.kernel = Kernel(served, served.settings)
        self.application = HttpApplication(
            [Endpoint("/mcp", self.kernel, HttpConventions())],
            lambda token, client: ACTORS[token or "reader"],
        )

    @property
    def baskets(self) -> list[list[int]]:
        """What the engine keeps open, over all callers."""
        engine = self._gate.connections.find("baskets", READER).engine
        assert isinstance(engine, MemoryEngine)
        return [items for _, items in engine.baskets.values()]

    async def post(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str], id: int | None = 1
    ) -> Any:
        """One request; the answer with its headers."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        body = message if id is None else message | {"id": id}
        accept = {"accept": "application/json"}
        return await ask(self.application, "POST", "/mcp", body, accept | dict(headers))

    async def session(self, actor: str = "reader") -> dict[str, str]:
        """Open a session with one basket that holds one item; returns its headers."""
        headers = {"authorization": f"Bearer {actor}"}
        opened = await self.post("initialize", INITIALIZE, headers)
        headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        headers["mcp-protocol-version"] = "2025-06-18"
        await self.post("notifications/initialized", {}, headers, None)
        await self.call("open", {}, headers)
        assert (await self.call("put", {"item": 3}, headers)) == {"items": 1}
        return headers

    async def call(
        self, tool: str, arguments: Mapping[str, Any], headers: Mapping[str, str]
    ) -> Any:
        answer = await self.post("tools/call", {"name": tool, "arguments": arguments}, headers)
        return answer.json["result"]["structuredContent"]

    async def closed(self, left: int = 0) -> None:
        """Wait until the engine keeps no more than that."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.baskets) != left:
                await asyncio.sleep(0)


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[Harness]:
    DATABASES.pop("baskets", None)
    gate = SqliteGate(directory, Source("s1", "baskets", "memory://baskets", "memory", "memory"))
    async with gate.opened():
        yield Harness(gate)


def closings(directory: Path) -> list[str]:
    """Who closed baskets, as the audit log has it."""
    found = [each for each in records(directory) if each.get("statement") == "basket.close"]
    assert all(each["verdict"] == "allow" for each in found)
    return [each["actor"] for each in found]


async def test_a_client_that_deletes_its_session_ends_its_own_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as harness:
        mine, other = await harness.session(), await harness.session()
        theirs = await harness.session("owner")
        assert harness.baskets == [[3], [3], [3]]
        # Another caller cannot end it.
        stolen = mine | {"authorization": "Bearer owner"}
        assert (await ask(harness.application, "DELETE", "/mcp", None, stolen)).status == 404
        assert len(harness.baskets) == 3
        assert (await ask(harness.application, "DELETE", "/mcp", None, mine)).status in (200, 204)
        await harness.closed(2)
        assert (await harness.call("put", {"item": 4}, other)) == {"items": 2}
        assert (await harness.call("put", {"item": 4}, theirs)) == {"items": 2}
    assert closings(tmp_path) == [READER.id]


async def test_the_end_of_the_input_ends_what_a_client_at_stdio_opened(tmp_path: Path) -> None:
    async with opened(tmp_path) as harness:
        ours_in, theirs_in = os.pipe()
        theirs_out, ours_out = os.pipe()
        with open(ours_in, "rb") as stdin, open(ours_out, "wb") as stdout:
            edge = StdioEdge(harness.kernel, READER, stdin=stdin, stdout=stdout)
            await edge.start()
            with open(theirs_out, "rb") as answers:
                for id, method, params in (
                    (1, "initialize", INITIALIZE),
                    (None, "notifications/initialized", {}),
                    (2, "tools/call", {"name": "open", "arguments": {}}),
                    (3, "tools/call", {"name": "put", "arguments": {"item": 3}}),
                ):
                    sent = {"jsonrpc": "2.0", "method": method, "params": params}
                    sent |= {} if id is None else {"id": id}
                    os.write(theirs_in, json.dumps(sent).encode() + b"\n")
                    if id is not None:
                        assert b'"error"' not in await asyncio.to_thread(answers.readline)
                assert harness.baskets == [[3]]
                os.close(theirs_in)
                await asyncio.wait_for(edge.wait_ended(), PATIENCE_S)
                await edge.stop(1.0)
                await harness.closed()
    assert closings(tmp_path) == [READER.id]


async def test_a_session_that_lay_unused_too_long_ends_when_another_one_comes(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as harness:
        unused = await harness.session()
        session = harness.kernel.sessions.find(unused["mcp-session-id"], READER)
        assert session is not None
        session.last_active -= IDLE_S + 1
        await harness.session("owner")
        await harness.closed(1)
    assert closings(tmp_path) == [READER.id]


async def test_a_state_of_the_stateless_era_ends_when_its_handle_lies_unused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as harness:
        monkeypatch.setattr(harness.kernel.sessions.states, "_idle_s", 0.2)
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            params = {"name": tool, "arguments": arguments, "_meta": META}
            answer = await harness.post("tools/call", params, headers | {"mcp-name": tool})
            return answer.json["result"]["structuredContent"]

        handle = (await call("open", {}))["handle"]
        assert (await call("put", {"item": 3, "handle": handle})) == {"items": 1}
        await harness.closed()
    assert closings(tmp_path) == [READER.id]


@pytest.mark.parametrize("way", ["revoked", "stopped"])
async def test_a_revoked_token_and_the_end_of_the_server_end_it(tmp_path: Path, way: str) -> None:
    async with opened(tmp_path) as harness:
        await harness.session()
        if way == "revoked":
            harness.application.end_actors([READER.id], "the token was revoked")
        else:
            harness.application.close()
        await harness.closed()
    assert closings(tmp_path) == [READER.id]
