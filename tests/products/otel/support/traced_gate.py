"""A gate in this process that is traced, and a client of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from support.surface_client import OWNER, READER, Notes, modern_meta
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.model.actors import Actor
from tidegate.model.replies import Reply
from tidegate.model.requests import Call, Request
from tidegate.products.otel.service import OtelService, make_service
from tidegate.products.otel.settings import OtelSettings
from tidegate.protocol.session import Session
from tidegate.protocol.transport import TransportContext

Answer = dict[str, Any]


class TracedGate:
    """An application over one SQLite file with the surface `core`. `stop` sends what waits."""

    def __init__(
        self, directory: Path, endpoint: str, stop_grace_s: float = 5.0, **otel: Any
    ) -> None:
        file = directory / "shop.db"
        with apsw.Connection(str(file)) as made:
            made.execute("CREATE TABLE IF NOT EXISTS customers(id INTEGER PRIMARY KEY, secret)")
        self.app = App.open(
            Config(
                state=str(directory / "state"),
                sources=(SourceSettings("shop", f"sqlite:///{file}", access="write"),),
                allow_writes=True,
                stop_grace_s=stop_grace_s,
                sections={"otel": OtelSettings(**{"endpoint": endpoint, "flush_s": 0.02, **otel})},
            )
        )
        service = make_service(self.app)
        assert service is not None
        self.service: OtelService = service
        self.loop = asyncio.Runner()
        surface = self.app.surface("core")
        self.kernel = self.app.kernel(surface, surface.settings, "core")
        self._record = directory / "state" / "audit"
        service.start()

    def send(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[bytes, bytes] | None = None,
        id: Any = 7,
        actor: Actor = READER,
    ) -> Answer:
        """The reply to one request of the stateless era; over HTTP if there are `headers`."""
        whole = {**params, "_meta": {**modern_meta(), **(meta or {})}}
        frame = {"jsonrpc": "2.0", "id": id, "method": method, "params": whole}
        given = None
        if headers is not None:
            given = {
                b"mcp-protocol-version": b"2026-07-28",
                b"mcp-method": method.encode(),
                b"mcp-name": str(params.get("name", "")).encode(),
                **headers,
            }
        transport = TransportContext(actor, Notes(), session=Session(actor), headers=given)
        answer = self.loop.run(self._serve(json.dumps(frame).encode(), transport))
        return msgspec.json.decode(answer)

    async def _serve(self, frame: bytes, transport: TransportContext) -> bytes:
        answer = await self.kernel.serve(frame, transport)
        assert answer is not None
        return answer.frame

    def query(self, sql: str, **more: Any) -> Answer:
        arguments = {"sql": sql, "source": "shop"}
        return self.send("tools/call", {"name": "query", "arguments": arguments}, **more)

    def call(self, request: Request, surface: str = "wire", source: str = "shop") -> Reply:
        """Send a call as an edge does that does not speak MCP."""
        call = Call(OWNER, surface, "query", request, source)
        return self.loop.run(self.app.gateway.handle(call))

    def stop(self) -> None:
        self.service.stop()

    def record(self) -> list[Answer]:
        """The lines of the record about calls."""
        lines = [
            json.loads(line)
            for path in sorted(self._record.glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]
        return [each for each in lines if each.get("call_id")]

    def close(self) -> None:
        self.service.stop()
        self.loop.run(self.app.close())
        self.loop.close()


@contextmanager
def traced_gate(directory: Path, endpoint: str, **otel: Any) -> Generator[TracedGate]:
    """The gate within a block."""
    gate = TracedGate(directory, endpoint, **otel)
    try:
        yield gate
    finally:
        gate.close()
