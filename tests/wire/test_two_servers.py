"""Two servers on one state: what one of them keeps for a caller works at the other, or the other
says truly why it does not."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.eventually import LOOK_S, PATIENCE_S
from support.http_application import Answer, ask
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.edges.http.application import HttpApplication
from tidegate.errors import TidegateError
from tidegate.identity.lockout import FAILURES
from tidegate.model.actors import Actor, Scope
from tidegate.serve.edges import http_endpoints
from tidegate.store.records import TokenRights

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
INSERT = "INSERT INTO items VALUES (501)"


class Server:
    """One server on the state: an application over an `App` of its own."""

    def __init__(self, config: Config) -> None:
        self.app = App.open(config, "server")
        self.app.shared_sessions.read_key()
        self.application = HttpApplication(http_endpoints(self.app), self.app.authenticate)

    async def call(self, token: str, tool: str, more: Mapping[str, Any] = {}, **given: Any) -> Any:
        params = {"name": tool, "arguments": given, "_meta": META, **more}
        headers = {
            "authorization": f"Bearer {token}", "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool,
        }  # fmt: skip
        answer = await self.post("tools/call", params, headers)
        return answer.json

    def link(self, other: Server) -> None:
        """Have what this one tells other workers come to that one."""
        self.app.siblings.send = other.app.siblings.take

    async def post(self, method: str, params: Any, headers: Mapping[str, str]) -> Answer:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await ask(self.application, "POST", "/mcp", message, headers)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE items (id INTEGER)")
        connection.executemany("INSERT INTO items VALUES (?)", [(n,) for n in range(500)])
    connection.close()
    return path


def rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM items").fetchone()
    connection.close()
    return count


@asynccontextmanager
async def two(tmp_path: Path, database: Path) -> AsyncIterator[tuple[Server, Server, str]]:
    """Two servers, and a token that may write where a person must approve it."""
    source = SourceSettings("shop", f"sqlite:///{database}", access="write", approval_for="writes")
    config = Config(state=str(tmp_path / "state"), sources=(source,))
    servers = Server(config), Server(config)
    token, _ = servers[0].app.tokens.create("writer", TokenRights(Scope.READ_WRITE))
    try:
        yield *servers, token
    finally:
        for server in servers:
            server.application.close()
            await server.app.close()


def answered(result: dict[str, Any], decision: str) -> dict[str, Any]:
    """The retry's fields: the question's answer, and the state that came with it."""
    assert result["resultType"] == "input_required", result
    answer = {"action": "accept", "content": {"decision": decision}}
    keys = result["inputRequests"]
    return {"requestState": result["requestState"], "inputResponses": dict.fromkeys(keys, answer)}


async def test_what_one_server_asked_may_be_answered_at_the_other_once(
    tmp_path: Path, database: Path
) -> None:
    async with two(tmp_path, database) as (first, second, token):
        asked = (await first.call(token, "query", sql=INSERT))["result"]
        assert rows(database) == 500
        retry = answered(asked, "allow once")
        done = await second.call(token, "query", retry, sql=INSERT)
        assert not done["result"].get("isError"), done
        assert rows(database) == 501
        for server in (first, second):
            again = await server.call(token, "query", retry, sql=INSERT)
            assert "used before" in again["error"]["message"]
        assert rows(database) == 501


async def test_two_servers_that_get_one_answer_at_once_take_it_once(
    tmp_path: Path, database: Path
) -> None:
    async with two(tmp_path, database) as (first, second, token):
        retry = answered((await first.call(token, "query", sql=INSERT))["result"], "allow once")
        replies = await asyncio.gather(
            *(server.call(token, "query", retry, sql=INSERT) for server in (second, first) * 3)
        )
        assert sum("error" in reply for reply in replies) == 5
        assert rows(database) == 501


async def test_an_answer_for_another_call_or_caller_is_refused_at_both(
    tmp_path: Path, database: Path
) -> None:
    async with two(tmp_path, database) as (first, second, token):
        other, _ = first.app.tokens.create("other", TokenRights(Scope.READ_WRITE))
        retry = answered((await first.call(token, "query", sql=INSERT))["result"], "allow once")
        for server in (first, second):
            for caller, text in ((other, INSERT), (token, f"{INSERT}, (502)")):
                refused = await server.call(caller, "query", retry, sql=text)
                assert "another call" in refused["error"]["message"]
        assert rows(database) == 500


async def test_the_rest_of_a_result_is_at_the_server_that_read_it_and_the_other_says_so(
    tmp_path: Path, database: Path
) -> None:
    async with two(tmp_path, database) as (first, second, token):
        shown = await first.call(token, "query", sql="SELECT id FROM items", max_rows=1)
        text = shown["result"]["content"][0]["text"]
        handle = text.partition('"more":"')[2].partition('"')[0]
        elsewhere = (await second.call(token, "more", handle=handle))["result"]
        assert elsewhere["isError"]
        said = elsewhere["content"][0]["text"]
        assert said.startswith("result.gone") and "another server" in said
        assert "Run the query again" in said
        assert not (await first.call(token, "more", handle=handle))["result"].get("isError")


HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


async def begin(server: Server, token: str, revision: str) -> dict[str, str]:
    """The headers of a session that began there."""
    headers = {
        "authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"
    }  # fmt: skip
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}
    opened = await server.post("initialize", params, headers)
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    return {**headers, **session, "mcp-protocol-version": revision}


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_any_server_answers_any_request_of_a_session(
    tmp_path: Path, database: Path, revision: str
) -> None:
    async with two(tmp_path, database) as (first, second, token):
        headers = await begin(first, token, revision)
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await ask(second.application, "POST", "/mcp", ready, headers)).status == 202
        for server in (second, first, second, first):
            said = (await server.post("tools/list", {}, headers)).json
            assert "tools" in said["result"]
            called = {"name": "query", "arguments": {"sql": "SELECT count(*) AS n FROM items"}}
            said = (await server.post("tools/call", called, headers)).json
            assert "500" in str(said["result"]["content"])


async def test_a_session_that_was_ended_is_unknown_at_every_server(
    tmp_path: Path, database: Path
) -> None:
    async with two(tmp_path, database) as (first, second, token):
        first.link(second)
        seen, unseen = [await begin(first, token, "2025-06-18") for _ in range(2)]
        assert (await second.post("tools/list", {}, seen)).status == 200
        for headers in (seen, unseen):
            assert (await ask(first.application, "DELETE", "/mcp", None, headers)).status == 204
            for server in (first, second):
                # 404 is what tells a client to initialize again.
                assert (await server.post("tools/list", {}, headers)).status == 404
        third = Server(second.app.config)
        assert (await third.post("tools/list", {}, seen)).status == 404, "it started later"


async def test_a_gate_on_the_same_state_learns_that_a_session_was_ended(
    tmp_path: Path, database: Path
) -> None:
    async with two(tmp_path, database) as (first, second, token):
        for each in (first, second):  # as servers do
            await asyncio.to_thread(each.app.state.versions.follow)
        reading = asyncio.ensure_future(second.app.mailbox.run())
        headers = await begin(first, token, "2025-06-18")
        assert (await second.post("tools/list", {}, headers)).status == 200
        assert (await ask(first.application, "DELETE", "/mcp", None, headers)).status == 204
        async with asyncio.timeout(PATIENCE_S):
            while (await second.post("tools/list", {}, headers)).status != 404:
                await asyncio.sleep(LOOK_S)
        reading.cancel()


async def test_a_session_belongs_to_its_actor_and_its_endpoint_at_every_server(
    tmp_path: Path, database: Path
) -> None:
    async with two(tmp_path, database) as (first, second, token):
        headers = await begin(first, token, "2025-06-18")
        other, _ = first.app.tokens.create("other", TokenRights(Scope.READ_ONLY))
        stolen = {**headers, "authorization": f"Bearer {other}"}
        assert (await second.post("tools/list", {}, stolen)).status == 404
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        elsewhere = await ask(second.application, "POST", "/mcp/workbench", message, headers)
        assert elsewhere.status == 404
        id = headers["mcp-session-id"]
        for changed in (id[:-1], f"{id}A", f"{id[:40]}x{id[41:]}", "", "x" * 3_000, "é"):
            forged = {**headers, "mcp-session-id": changed}
            assert (await second.post("tools/list", {}, forged)).status == 404


async def test_a_gate_on_another_state_knows_no_session(tmp_path: Path, database: Path) -> None:
    async with two(tmp_path, database) as (first, _, token):
        headers = await begin(first, token, "2025-06-18")
        config = Config(state=str(tmp_path / "other"), sources=first.app.config.sources)
        stranger = Server(config)
        other, _ = stranger.app.tokens.create("writer", TokenRights(Scope.READ_WRITE))
        asked = {**headers, "authorization": f"Bearer {other}"}
        assert (await stranger.post("tools/list", {}, asked)).status == 404
        await stranger.app.close()


async def test_a_client_that_says_very_much_of_itself_has_an_id_that_proxies_take(
    tmp_path: Path, database: Path
) -> None:
    async with two(tmp_path, database) as (first, second, token):
        headers = {
            "authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"
        }  # fmt: skip
        capabilities = {
            "elicitation": {"form": {"words": "x" * 3_000}},
            **{f"other{n}": {} for n in range(60)},
        }
        info = {"name": "n" * 2_000, "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info}
        opened = await first.post("initialize", params, headers)
        id = opened.headers["mcp-session-id"]
        assert len(id) < 3_500
        session = {**headers, "mcp-session-id": id, "mcp-protocol-version": "2025-06-18"}
        assert (await second.post("tools/list", {}, session)).status == 200


async def test_failed_logins_at_two_servers_count_together(tmp_path: Path, database: Path) -> None:
    async with two(tmp_path, database) as (first, second, token):

        async def attempt(server: Server, bearer: str, address: str) -> str:
            try:
                found = server.app.authenticator.authenticate(bearer, address)
                if not isinstance(found, Actor):
                    await found
            except TidegateError as error:
                return error.code.value
            return "ok"

        wrong = [f"tg_{number:043}" for number in range(FAILURES)]
        codes = [
            await attempt(server, bearer, "203.0.113.7")
            for server, bearer in zip((first, second) * FAILURES, wrong, strict=False)
        ]
        assert codes == ["auth.invalid"] * FAILURES
        for server in (first, second):
            assert await attempt(server, wrong[0], "203.0.113.7") == "auth.locked_out"
            assert await attempt(server, wrong[0], "203.0.113.8") == "auth.invalid"
            assert await attempt(server, token, "203.0.113.7") == "ok"
