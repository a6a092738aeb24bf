"""The surface `jdbc` in process: an application with files that its callers may name."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from support.http_application import Answer, ask
from support.surface_client import READER, Notes, Peer
from tidegate.app import App
from tidegate.config.loading import convert_settings
from tidegate.edges.http.application import HttpApplication
from tidegate.model.actors import Actor
from tidegate.protocol.session_state import settled
from tidegate.serve.edges import http_endpoints
from tidegate.surfaces.surface import Surface

USERS = """
CREATE TABLE users (id integer PRIMARY KEY, name varchar(40), email text, status text,
  created_at timestamp);
INSERT INTO users VALUES (1, 'Alice', 'alice@example.com', 'active', '2026-01-31 12:00:00'),
  (2, 'Bob', 'bob@example.com', 'gone', NULL)"""
"""The table of the document's examples; SQLite and PostgreSQL take it."""

QUERY = "SELECT id, name, email FROM users WHERE status = ?"


def make_file(path: Path, script: str = USERS) -> str:
    """A database file; returns its JDBC URL."""
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()
    return f"jdbc:sqlite:{path}"


class JdbcUnderTest:
    """The application with the surface; `files` is a directory that callers may name."""

    def __init__(self, app: App, files: Path) -> None:
        self.app = app
        self.files = files
        self.surface = app.surface("jdbc")
        self.url = make_file(files / "shop.db")
        self.http = HttpApplication(http_endpoints(app), app.authenticate)

    def peer(
        self, actor: Actor = READER, revision: str = "2025-11-25", client: str = "peer"
    ) -> JdbcPeer:
        """A client in process, as on stdio: it has no address, and has not shaken hands."""
        return JdbcPeer(self.surface, actor, revision, (client, "1"))

    async def post(self, method: str, **params: Any) -> Answer:
        """A bare call over HTTP, without a session."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await ask(self.http, "POST", "/mcp/jdbc", message, {})


class OpenNotes(Notes):
    """An outlet that the server may ask questions through."""

    open = True


class JdbcPeer(Peer):
    """A client that speaks both forms."""

    def __init__(
        self, surface: Surface, actor: Actor, revision: str, client: tuple[str, str]
    ) -> None:
        super().__init__(surface, actor, revision, client)
        self.notes = OpenNotes()

    async def bare(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a bare call."""
        reply = await self.request(method, **params)
        assert "error" not in reply, reply
        return reply["result"]

    async def fault(self, method: str, **params: Any) -> dict[str, Any]:
        """The JSON-RPC error of a bare call."""
        reply = await self.request(method, **params)
        assert "error" in reply, reply
        return reply["error"]

    async def connected(self, url: str, **params: Any) -> str:
        """The id of a new connection."""
        result = await self.bare("connect", url=url, **params)
        assert result.get("status") == "connected", result
        return result["id"]

    async def recorded(self, id: str, query: str, **params: Any) -> dict[str, Any]:
        """The result of both steps."""
        await self.bare("record", query=query, connectionId=id)
        return await self.bare("record", query=query, connectionId=id, confirmed=True, **params)


@asynccontextmanager
async def served(directory: Path, **settings: Any) -> AsyncIterator[JdbcUnderTest]:
    """The surface; `settings` are of the server, and those of `temporary_sources` are added."""
    files = directory / "files"
    files.mkdir(exist_ok=True)
    temporary = {"directories": [str(files)], **settings.pop("temporary_sources", {})}
    whole = {
        "state": str(directory / "state"),
        "auth": False,
        "temporary_sources": temporary,
        **settings,
    }
    app = App.open(convert_settings(msgspec.json.decode(msgspec.json.encode(whole))))
    try:
        yield JdbcUnderTest(app, files)
    finally:
        await app.close()
        await settled()
