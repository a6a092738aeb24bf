"""A client of one surface, in process: real frames through the real kernel."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.model.actors import Actor, Scope
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.session import Session
from tidegate.protocol.transport import TransportContext
from tidegate.surfaces.surface import Surface

READER = Actor("tok_reader", "reader", Scope.READ_ONLY)
WRITER = Actor("tok_writer", "writer", Scope.READ_WRITE)
OWNER = Actor("tok_owner", "owner", Scope.FULL_ACCESS)


def modern_meta(client: str = "peer", **capabilities: Any) -> dict[str, Any]:
    """The `_meta` of a request of the stateless era."""
    place = "io.modelcontextprotocol/"
    return {
        f"{place}protocolVersion": "2026-07-28",
        f"{place}clientCapabilities": capabilities,
        f"{place}clientInfo": {"name": client, "version": "1"},
    }


class Notes:
    """An outlet that keeps what the server sends by itself."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def send(self, message: bytes) -> None:
        self.messages.append(msgspec.json.decode(message))


class Peer:
    """Speaks to `surface` as `actor`, after a handshake at `revision`.

    `status` is the HTTP status of the last answer; `sent` and `received` count tool traffic as a
    model sees it: arguments and result texts.
    """

    def __init__(
        self,
        surface: Surface,
        actor: Actor = READER,
        revision: str = "2025-11-25",
        client: tuple[str, str] = ("peer", "1"),
    ) -> None:
        self.kernel = Kernel(surface, surface.settings)
        self.session = Session(actor)
        self.notes = Notes()
        self.actor = actor
        self.status = 0
        self._revision = revision
        self._client = {"name": client[0], "version": client[1]}
        self._next = 0

    async def open(self) -> dict[str, Any]:
        """Shake hands; returns the result of `initialize`."""
        reply = await self.request(
            "initialize",
            protocolVersion=self._revision,
            capabilities={},
            clientInfo=self._client,
        )
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return reply["result"]

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole reply to one request."""
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        answer = await self.send(message)
        assert answer is not None
        return answer

    async def send(self, message: dict[str, Any]) -> dict[str, Any] | None:
        transport = TransportContext(self.actor, self.notes, session=self.session)
        answer = await self.kernel.serve(msgspec.json.encode(message), transport)
        if answer is None:
            return None
        self.status = answer.status
        return msgspec.json.decode(answer.frame)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The reply to a tool call."""
        return await self.request("tools/call", name=tool, arguments=arguments)

    async def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call that must succeed."""
        reply = await self.call(tool, **arguments)
        assert "error" not in reply, reply
        assert not reply["result"].get("isError"), reply
        return reply["result"]

    async def error(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The JSON-RPC error of a tool call that must fail that way."""
        reply = await self.call(tool, **arguments)
        assert "error" in reply, reply
        return reply["error"]

    async def text(self, tool: str, **arguments: Any) -> str:
        """The one text that a tool call returns, error or not."""
        reply = await self.call(tool, **arguments)
        (block,) = reply["result"]["content"]
        return block["text"]
