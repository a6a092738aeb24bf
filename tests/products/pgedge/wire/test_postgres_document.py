"""The requests of the postgres document at `/mcp/v1`, as it writes them, and its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from support.http_application import ask
from support.postgres_surface import PostgresShop, SurfaceUnderTest, served
from tidegate.model.actors import Scope
from tidegate.store.records import TokenRights

ResultT = TypeVar("ResultT")
Scene = Callable[[SurfaceUnderTest], Awaitable[ResultT]]


@pytest.fixture(scope="module")
def shop() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting()
    yield shop
    shop.drop()


def play(directory: Path, shop: PostgresShop, scene: Scene[ResultT], **settings: Any) -> ResultT:
    async def run() -> ResultT:
        async with served(directory, shop, **settings) as surface:
            return await scene(surface)

    return asyncio.run(run())


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2024-11-05",
        "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": {"name": "my-client", "version": "1.0.0"},
    },
}


def test_initialize_answers_the_documents_revision_and_capabilities(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        return msgspec.json.decode((await surface.post(INITIALIZE)).body)

    result = play(tmp_path, shop, scene)["result"]
    assert result["protocolVersion"] == "2024-11-05"
    assert result["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}}
    assert result["serverInfo"]["name"] == "tidegate-postgres"


@pytest.mark.parametrize("asked", ["2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01"])
def test_initialize_answers_the_same_whatever_revision_is_asked_for(
    tmp_path: Path, shop: PostgresShop, asked: str
) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        params = INITIALIZE["params"] | {"protocolVersion": asked}  # type: ignore[operator]
        return await surface.rpc("initialize", **params)

    assert play(tmp_path, shop, scene)["result"]["protocolVersion"] == "2024-11-05"


def test_the_server_goes_by_the_documents_name_if_that_is_set(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        return msgspec.json.decode((await surface.post(INITIALIZE)).body)

    settings = {"surface": {"postgres": {"server_info": "document"}}}
    info = play(tmp_path, shop, scene, **settings)["result"]["serverInfo"]
    assert info == {"name": "pgedge-postgres-mcp", "version": "1.0.0-alpha2"}


def test_lists_need_neither_a_handshake_nor_a_content_type(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[dict[str, Any]]:
        odd = {"content-type": "application/x-www-form-urlencoded"}
        body = {"jsonrpc": "2.0", "id": 2, "method": "resources/list", "params": {}}
        return [
            await surface.rpc("tools/list"),
            msgspec.json.decode((await surface.post(body, headers=odd)).body),
        ]

    tools, resources = play(tmp_path, shop, scene)
    assert "query_database" in [tool["name"] for tool in tools["result"]["tools"]]
    for tool in tools["result"]["tools"]:
        assert set(tool) == {"name", "description", "inputSchema"}
        assert tool["inputSchema"]["type"] == "object"
    assert [each["uri"] for each in resources["result"]["resources"]] == [
        "pg://system_info",
        "pg://settings",
        "pg://stat/activity",
        "pg://stat/replication",
    ]


def test_a_statement_is_answered_in_the_documents_form(tmp_path: Path, shop: PostgresShop) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        sql = "SELECT id, email FROM users ORDER BY id LIMIT 2"
        return await surface.rpc("tools/call", name="query_database", arguments={"query": sql})

    result = play(tmp_path, shop, scene)["result"]
    assert set(result) == {"content"}
    text = result["content"][0]["text"]
    head, _, rest = text.partition("\n\nResults:\n")
    assert head == "SQL Query:\nSELECT id, email FROM users ORDER BY id LIMIT 2"
    rows, _, count = rest.rpartition("\n\n")
    assert msgspec.json.decode(rows) == [
        {"id": 1, "email": "u1@example.org"},
        {"id": 2, "email": "u2@example.org"},
    ]
    assert count == "2 rows"


def test_a_resource_is_read_as_the_document_shows(tmp_path: Path, shop: PostgresShop) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        return await surface.rpc("resources/read", uri="pg://system_info")

    (contents,) = play(tmp_path, shop, scene)["result"]["contents"]
    assert contents["uri"] == "pg://system_info"
    assert contents["mimeType"] == "application/json"
    info = msgspec.json.decode(contents["text"])
    assert info["version"].startswith("PostgreSQL 1")
    assert info["os"] == "Linux"
    assert info["arch"]


@pytest.mark.parametrize(
    ("method", "params", "code", "message"),
    [
        ("tools/call", {"name": "nope", "arguments": {}}, -32002, "Tool not found"),
        ("resources/read", {"uri": "pg://nope"}, -32003, "Resource not found"),
        ("nope", {}, -32601, "Method not found: nope"),
        ("tools/call", {"name": "query_database", "arguments": {}}, -32602, None),
        ("tools/call", {"name": "query_database", "arguments": {"query": 5}}, -32602, None),
        ("tools/call", {"arguments": {}}, -32602, None),
    ],
)
def test_errors_of_the_protocol_have_the_documents_codes_and_status_200(
    tmp_path: Path,
    shop: PostgresShop,
    method: str,
    params: dict[str, Any],
    code: int,
    message: str | None,
) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        return await surface.rpc(method, **params)

    error = play(tmp_path, shop, scene)["error"]
    assert error["code"] == code
    assert message is None or error["message"] == message


def test_a_body_that_is_no_json_is_a_parse_error_with_status_200(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> Any:
        return [await surface.post(b"{nonsense"), await surface.post(b'{"jsonrpc": "2.0"}')]

    bad, empty = play(tmp_path, shop, scene)
    assert (bad.status, msgspec.json.decode(bad.body)["error"]["code"]) == (200, -32700)
    assert (empty.status, msgspec.json.decode(empty.body)["error"]["code"]) == (200, -32600)


def test_what_the_database_or_a_rule_refuses_is_a_result_that_is_an_error(
    tmp_path: Path, shop: PostgresShop
) -> None:
    before = shop.ask("SELECT count(*), min(status) FROM users")

    async def scene(surface: SurfaceUnderTest) -> list[dict[str, Any]]:
        return [
            await surface.rpc("tools/call", name="query_database", arguments={"query": query})
            for query in (
                "SELECT nope FROM users",
                "DELETE FROM users",
                "SELECT pg_advisory_lock(1)",
            )
        ]

    failed, written, locked = (reply["result"] for reply in play(tmp_path, shop, scene))
    assert all(result["isError"] for result in (failed, written, locked))
    assert 'column "nope" does not exist' in failed["content"][0]["text"]
    assert written["content"][0]["text"].startswith("policy.read_only: ")
    assert locked["content"][0]["text"].startswith("sql.function_refused: ")
    assert shop.ask("SELECT count(*), min(status) FROM users") == before


def test_a_caller_without_a_token_gets_the_documents_401(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> Any:
        wrong = {"authorization": "Bearer nonsense"}
        bearer, _ = surface.app.tokens.create("reader", TokenRights(Scope.READ_ONLY))
        right = {"authorization": f"Bearer {bearer}"}
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        return [
            await surface.post(ping),
            await surface.post(ping, headers=wrong),
            await surface.post(ping, headers=right),
        ]

    missing, invalid, known = play(tmp_path, shop, scene, auth=True)
    for refused in (missing, invalid):
        assert refused.status == 401
        assert msgspec.json.decode(refused.body) == {"error": "Unauthorized"}
    assert known.status == 200


def test_a_page_of_another_origin_and_other_methods_are_refused_as_json(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> Any:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        foreign = {"origin": "https://elsewhere.example"}
        return [
            await surface.post(ping, headers=foreign),
            await ask(surface.http, "GET", "/mcp/v1"),
        ]

    foreign, get = play(tmp_path, shop, scene)
    assert foreign.status == 403
    assert set(msgspec.json.decode(foreign.body)) == {"error"}
    assert get.status == 405
    assert get.headers["allow"] == "POST"


def test_on_stdio_the_documents_codes_hold_at_its_revision_alone(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[int]:
        codes: list[int] = []
        for revision in ("2024-11-05", "2025-11-25"):
            peer = await surface.peer(revision)
            codes += [
                (await peer.error("nope"))["code"],
                (await peer.request("resources/read", uri="pg://nope"))["error"]["code"],
            ]
        return codes

    assert play(tmp_path, shop, scene) == [-32002, -32003, -32602, -32002]


def test_there_are_exactly_the_documents_five_tools(tmp_path: Path, shop: PostgresShop) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        return await surface.rpc("tools/list")

    assert [tool["name"] for tool in play(tmp_path, shop, scene)["result"]["tools"]] == [
        "query_database",
        "get_schema_info",
        "similarity_search",
        "generate_embedding",
        "read_resource",
    ]


def test_a_client_of_the_stateless_era_meets_a_server_that_does_not_know_it(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[dict[str, Any]]:
        headers = {"mcp-protocol-version": "2026-07-28"}
        discover = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}
        answers = [await surface.post(each, headers=headers) for each in (discover, INITIALIZE)]
        return [msgspec.json.decode(answer.body) for answer in answers]

    discovered, initialized = play(tmp_path, shop, scene)
    assert discovered["error"]["code"] == -32601
    assert initialized["result"]["protocolVersion"] == "2024-11-05"
