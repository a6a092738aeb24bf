"""The surface `postgres` over a PostgreSQL database of a test: in process, or over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from support.http_application import Answer, ask
from support.postgres_server import Server, shared
from support.surface_client import READER, Peer
from tidegate.app import App
from tidegate.config.loading import load
from tidegate.edges.http.application import HttpApplication
from tidegate.model.actors import Actor
from tidegate.serve.edges import http_endpoints

SHOP = """
CREATE TABLE users (id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY, email text UNIQUE,
  status text NOT NULL DEFAULT 'active');
COMMENT ON TABLE users IS 'People who may sign in';
COMMENT ON COLUMN users.email IS 'Where to write to';
INSERT INTO users (email, status)
  SELECT 'u' || i || '@example.org', CASE WHEN i % 2 = 0 THEN 'active' ELSE 'gone' END
  FROM generate_series(1, 20) AS i;
CREATE TABLE orders (id integer PRIMARY KEY, user_id integer REFERENCES users (id));
"""
_numbers = count(1)


class PostgresShop:
    """A database with `SHOP`, on the test server. `new` makes one."""

    def __init__(self, server: Server, database: str) -> None:
        self.server = server
        self.database = database

    @classmethod
    def new(cls, script: str = SHOP) -> PostgresShop:
        server = shared()
        shop = cls(server, server.new_database())
        shop.server.ask(script, shop.database)
        return shop

    @classmethod
    def lasting(cls, script: str = SHOP) -> PostgresShop:
        """One for a whole module, which drops it: others do not make room for new ones."""
        server = shared()
        shop = cls(server, f"lasting_{next(_numbers)}")
        server.ask(f"CREATE DATABASE {shop.database}")
        shop.ask(script)
        return shop

    def drop(self) -> None:
        self.server.drop_database(self.database)

    @property
    def url(self) -> str:
        return self.server.url(self.database)

    def ask(self, text: str) -> list[tuple]:
        return self.server.ask(text, self.database)


class SurfaceUnderTest:
    """The application with the surface, and the ways to it."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.http = HttpApplication(http_endpoints(app), app.authenticate)

    async def peer(self, revision: str = "2025-11-25", actor: Actor = READER) -> Peer:
        """A client in process, as on stdio: it has no address."""
        peer = Peer(self.app.surface("postgres"), actor, revision)
        await peer.open()
        return peer

    async def post(
        self, body: object, path: str = "/mcp/v1", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """POST a message, as JSON unless it is bytes."""
        return await ask(self.http, "POST", path, body, headers)

    async def rpc(self, method: str, **params: Any) -> dict[str, Any]:
        """The reply to one request at `/mcp/v1`, without a handshake."""
        message = {"jsonrpc": "2.0", "id": 3, "method": method, "params": params}
        answer = await self.post(message)
        assert answer.status == 200, answer
        return msgspec.json.decode(answer.body)

    async def text(self, tool: str, **arguments: Any) -> str:
        """The text of a tool's result at `/mcp/v1`, an error or not."""
        reply = await self.rpc("tools/call", name=tool, arguments=arguments)
        (block,) = reply["result"]["content"]
        return block["text"]


@asynccontextmanager
async def served(
    directory: Path, *shops: PostgresShop, **settings: Any
) -> AsyncIterator[SurfaceUnderTest]:
    """The surface over databases called `shop`, `shop2` and so on; `settings` are of the server."""
    names = ["shop", *(f"shop{n}" for n in range(2, 10))]
    sources = [
        {"name": name, "url": shop.url} for name, shop in zip(names, shops, strict=False)
    ]  # fmt: skip
    whole = {"sources": sources, "state": str(directory / "state"), "auth": False} | settings
    app = App.open(load(msgspec.json.encode(whole).decode()))
    try:
        yield SurfaceUnderTest(app)
    finally:
        await app.close()
