"""What a call leaves is freed when it ends, without the collector of cycles: many calls a second
would have it run all the time."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from support.http_application import ask
from tidegate.app import App
from tidegate.config.model import Config, SourceSettings
from tidegate.edges.http.application import HttpApplication
from tidegate.edges.http.endpoint import Endpoint, HttpConventions
from tidegate.model.actors import Scope
from tidegate.protocol.kernel import Kernel
from tidegate.store.records import TokenRights

CALLS = 5
CLIENT = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT["clientInfo"],
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """Sends calls of one revision, with a session where that has one."""

    def __init__(self, application: HttpApplication, token: str, revision: str) -> None:
        self.application = application
        self.revision = revision
        self.headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/json, text/event-stream",
        }

    async def begin(self) -> None:
        self.headers["mcp-protocol-version"] = self.revision
        if self.revision == "2026-07-28":
            return
        answer = await self.post("initialize", {"protocolVersion": self.revision, **CLIENT})
        self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await ask(self.application, "POST", "/mcp", begun, self.headers)

    async def post(self, method: str, params: dict[str, Any]) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = self.headers
        if self.revision == "2026-07-28":
            params["_meta"] = META
            headers = headers | {"mcp-method": method, "mcp-name": params["name"]}
        return await ask(self.application, "POST", "/mcp", body, headers)

    async def query(self) -> None:
        answer = await self.post("tools/call", {"name": "query", "arguments": {"sql": "SELECT 7"}})
        assert answer.status == 200 and b"[[7]]" in answer.body.replace(b"\\", b""), answer


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("lasting", [True, False])
def test_a_call_leaves_no_cycle_of_objects(tmp_path: Path, revision: str, lasting: bool) -> None:
    sqlite3.connect(tmp_path / "a.db").close()

    async def main() -> list[str]:
        source = SourceSettings(name="a", url=f"sqlite:///{tmp_path}/a.db")
        app = App.open(Config(state=str(tmp_path / "state"), sources=(source,)))
        surface = app.surface("core")
        tasks = app.tasks if lasting else None
        kernel = Kernel(surface, surface.settings, tasks=tasks)
        endpoint = Endpoint("/mcp", kernel, HttpConventions())
        application = HttpApplication([endpoint], app.authenticate)
        token, _ = app.tokens.create("test", TokenRights(Scope.READ_ONLY))
        client = Client(application, token, revision)
        try:
            await client.begin()
            for _ in range(CALLS):
                await client.query()
            gc.collect()
            gc.disable()
            gc.set_debug(gc.DEBUG_SAVEALL)
            for _ in range(CALLS):
                await client.query()
            gc.collect()
            return [type(each).__qualname__ for each in gc.garbage]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
            await app.close()

    left = asyncio.run(main())
    counts = {name: left.count(name) for name in left}
    assert not {name for name, count in counts.items() if count >= CALLS}, counts
