"""Over HTTP: a session belongs to its token, a path to its surface, and a token that no longer
counts opens no tool.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from support.authz_calls import LISTINGS, ROWS
from support.authz_server import Harness, play
from support.http_application import Answer, ask
from tidegate.edges.http.application import HttpApplication
from tidegate.model.actors import Scope
from tidegate.serve.edges import http_endpoints
from tidegate.store.records import TokenRights
from tidegate.surfaces.registry import SURFACES

OLD, MODERN = "2025-11-25", "2026-07-28"
WRITE = "UPDATE orders SET total = total + 1 WHERE id = 1"


class Line:
    """The edge of a harness as `serve --http` makes it, and its tokens."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.edge = HttpApplication(http_endpoints(harness.app), harness.app.authenticate)

    def token(
        self,
        name: str,
        scope: Scope,
        *,
        sources: frozenset[str] | None = None,
        expires_at: float | None = None,
    ) -> str:
        rights = TokenRights(scope, sources)
        return self.harness.app.tokens.create(name, rights, expires_at=expires_at)[0]

    async def send(
        self,
        token: str,
        body: Any,
        path: str = "/mcp/core",
        method: str = "POST",
        **headers: str,
    ) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given |= {"authorization": f"Bearer {token}"}
        given |= {"accept": "application/json, text/event-stream"}
        return await ask(self.edge, method, path, body, given)

    async def open(self, token: str, path: str = "/mcp/core", revision: str = OLD) -> str:
        """The id of a new session."""
        params = {
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }  # fmt: skip
        opened = await self.send(token, message("initialize", params), path)
        session = opened.headers["mcp-session-id"]
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.send(token, note, path, mcp_session_id=session)
        return session

    async def call(
        self, token: str, name: str, arguments: dict[str, Any], path: str = "/mcp/core"
    ) -> Answer:
        """A call of a tool in the stateless era."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": name, "arguments": arguments, "_meta": meta}
        named = {
            "mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": name,
        }  # fmt: skip
        return await self.send(token, message("tools/call", params), path, **named)


def message(method: str, params: dict[str, Any], id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def execute(harness: Harness, query: str, id: int = 1) -> dict[str, Any]:
    arguments = {"source": harness.source.name, "sql": query}
    return message("tools/call", {"name": "query", "arguments": arguments}, id)


def text_of(answer: Answer) -> str:
    """The one text that a call returns, error or not."""
    (block,) = answer.json["result"]["content"]
    return block["text"]


BOTH = {"surfaces": ["workbench", "core"]}


def test_a_session_is_of_no_use_with_another_token(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        line = Line(harness)
        writer, reader = (line.token(n, s) for n, s in PAIR)
        session = await line.open(writer)
        before = harness.shop.digest()
        for token in (reader, line.token("twin", Scope.FULL_ACCESS)):
            stolen = await line.send(token, execute(harness, WRITE), mcp_session_id=session)
            assert stolen.status == 404
            for method in ("GET", "DELETE"):
                answer = await line.send(token, None, method=method, mcp_session_id=session)
                assert answer.status == 404
        assert harness.shop.digest() == before
        own = await line.open(reader)
        swapped = await line.send(writer, execute(harness, WRITE), mcp_session_id=own)
        assert swapped.status == 404
        refused = await line.send(reader, execute(harness, WRITE), mcp_session_id=own)
        assert text_of(refused).startswith("policy.scope:")
        assert harness.shop.digest() == before
        kept = await line.send(writer, execute(harness, WRITE), mcp_session_id=session)
        assert text_of(kept) == '{"affected":1}'

    play(tmp_path, "sqlite", "readWrite", scenario)


PAIR = (("writer", Scope.READ_WRITE), ("reader", Scope.READ_ONLY))


@pytest.mark.needs("workbench")
def test_a_path_has_the_tools_of_its_surface_alone(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        line = Line(harness)
        token = line.token("owner", Scope.FULL_ACCESS)
        before = harness.shop.digest()
        for surface, name in (*ROWS, *LISTINGS):
            other = "core" if surface == "workbench" else "workbench"
            if "://" in name or (other, name) in ROWS:
                continue
            arguments = {
                "connection_id": harness.source.id, "query": WRITE, "sql": WRITE,
                "source": harness.source.name,
            }  # fmt: skip
            answer = await line.call(token, name, arguments, f"/mcp/{other}")
            assert answer.json["error"]["code"] in (-32601, -32602), name
        session = await line.open(token, "/mcp/core")
        for path in ("/mcp/workbench", "/mcp/workbench/"):
            answer = await line.send(token, execute(harness, WRITE), path, mcp_session_id=session)
            assert answer.status == 404
        assert harness.shop.digest() == before

    play(tmp_path, "sqlite", "readWrite", scenario, **BOTH)


def test_each_member_of_a_batch_is_judged_for_itself(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        line = Line(harness)
        token = line.token("reader", Scope.READ_ONLY)
        session = await line.open(token, revision="2025-03-26")
        before = harness.shop.digest()
        texts = ("SELECT 1", WRITE, "SELECT 2", "DROP TABLE orders", "SELECT 3; " + WRITE)
        batch = [execute(harness, text, id) for id, text in enumerate(texts)]
        answers = (await line.send(token, batch, mcp_session_id=session)).json
        came = {answer["id"]: not answer["result"].get("isError") for answer in answers}
        assert came == {0: True, 1: False, 2: True, 3: False, 4: False}
        assert harness.shop.digest() == before

    play(tmp_path, "sqlite", "readWrite", scenario)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres", "mariadb"])
def test_a_token_that_counts_no_more_opens_no_tool(tmp_path: Path, engine: str) -> None:
    async def scenario(harness: Harness) -> None:
        line = Line(harness)
        revoked = line.token("revoked", Scope.FULL_ACCESS)
        expired = line.token("expired", Scope.FULL_ACCESS, expires_at=time.time() + 3_600)
        sessions = {token: await line.open(token) for token in (revoked, expired)}
        for token in sessions:
            assert (await line.call(token, "sources", {})).status == 200
        harness.app.tokens.revoke("revoked")
        harness.app.tokens._clock = lambda: time.time() + 7_200
        harness.app.authenticator._lockout.check = lambda address, now: (
            None
        )  # many knocks, all of them here
        before = harness.shop.digest()
        for surface, name in (*ROWS, *LISTINGS):
            arguments = {
                "connection_id": harness.source.id, "query": WRITE, "sql": WRITE,
                "source": harness.source.name,
            }  # fmt: skip
            for token in sessions:
                answer = await line.call(token, name, arguments, f"/mcp/{surface}")
                assert answer.status == 401, name
                code = -32008 if token == expired else -32001
                assert answer.json["error"]["code"] == code
        for token, session in sessions.items():
            answer = await line.send(token, execute(harness, WRITE), mcp_session_id=session)
            assert answer.status == 401
        assert harness.shop.digest() == before

    play(tmp_path, engine, "readWrite", scenario, surfaces=list(SURFACES))


def test_a_token_that_was_narrowed_is_another_token(tmp_path: Path) -> None:
    """Rights are never changed in place: the operator revokes and makes a narrower one."""

    async def scenario(harness: Harness) -> None:
        line = Line(harness)
        wide = line.token("agent", Scope.FULL_ACCESS)
        session = await line.open(wide)
        harness.app.tokens.revoke("agent")
        narrow = line.token("agent", Scope.READ_ONLY, sources=frozenset({"elsewhere"}))
        before = harness.shop.digest()
        old = await line.send(wide, execute(harness, WRITE), mcp_session_id=session)
        assert old.status == 401
        taken = await line.send(narrow, execute(harness, WRITE), mcp_session_id=session)
        assert taken.status == 404
        refused = await line.call(
            narrow, "query", {"source": harness.source.name, "sql": "SELECT 1"}
        )
        assert text_of(refused).startswith("policy.source:")
        assert harness.shop.digest() == before

    play(tmp_path, "sqlite", "readWrite", scenario)
