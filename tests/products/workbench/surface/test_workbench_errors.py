"""The workbench document's errors: codes, words, HTTP statuses, and how a call ends early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.surface_client import READER, WRITER, Peer, modern_meta
from support.surface_gateway import SHOP_ID, SqliteGate, sqlite_source
from support.surface_shop import build_shop
from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.errors import ERRORS, Code, TidegateError
from tidegate.model.actors import Actor
from tidegate.model.replies import Reply
from tidegate.model.requests import Call
from tidegate.products.workbench import surface as workbench
from tidegate.products.workbench.surface.settings import WorkbenchSettings

MODERN = "2026-07-28"
SEED_STATUS = {
    -32601: 200,
    -32602: 200,
    -32603: 500,
    -32001: 401,
    -32002: 200,
    -32003: 200,
    -32004: 404,
    -32005: 413,
    -32007: 403,
    -32008: 401,
}
QUERY = {"connection_id": SHOP_ID, "query": "SELECT 1"}


class FailingGate:
    """Refuses every call with one error."""

    def __init__(self, code: Code, message: str = "It failed") -> None:
        self._error = TidegateError(code, message)

    async def handle(self, call: Call) -> Reply:
        raise self._error

    async def settle(self, needed: ApprovalNeeded, call: Call, allow: bool) -> None:
        raise self._error

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[FailingGate]:
        yield self


@pytest.fixture
def gate(tmp_path: Path) -> SqliteGate:
    return SqliteGate(tmp_path, sqlite_source(build_shop(tmp_path / "shop.db")))


def refuse(
    gate: SqliteGate | FailingGate,
    tool: str,
    arguments: dict[str, Any],
    client: tuple[str, str] = ("peer", "1"),
    actor: Actor = READER,
    **own: str,
) -> tuple[dict[str, Any], int]:
    """The error of a call, and its HTTP status, with settings of the surface."""

    async def whole() -> tuple[dict[str, Any], int]:
        settings = WorkbenchSettings(**own)  # pyright: ignore[reportArgumentType]
        async with gate.opened():
            peer = Peer(workbench.surface(gate, settings=settings), actor, client=client)
            await peer.open()
            return await peer.error(tool, **arguments), peer.status

    return asyncio.run(whole())


# The bridge's own never come from a gate.
@pytest.mark.parametrize("code", [code for code in Code if not code.value.startswith("bridge.")])
def test_every_code_has_its_json_rpc_code_and_status(code: Code) -> None:
    error, status = refuse(FailingGate(code), "execute_query", QUERY)
    assert error["code"] == ERRORS[code].rpc
    assert error["data"]["code"] == code.value
    assert error["data"]["hint"]
    if error["code"] == -32000:
        assert status in (429, 502, 503)
    else:
        assert status == SEED_STATUS[error["code"]]


@pytest.mark.parametrize("code", [Code.POLICY_READ_ONLY, Code.INTERNAL, Code.LIMIT_RATE])
def test_compat_and_an_old_python_client_get_200(code: Code) -> None:
    def status(mode: str, client: tuple[str, str] = ("peer", "1")) -> int:
        own = {"http_error_status": mode, "errors": "document"}
        return refuse(FailingGate(code), "execute_query", QUERY, client=client, **own)[1]

    old = ("mcp", "0.1.0")
    assert status("compat") == 200
    assert status("auto", old) == 200
    assert status("seed", old) == ERRORS[code].http


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("connect", {}, "Missing required parameter: connection_id"),
        ("connect", {"connection_id": 7}, "Missing required parameter: connection_id"),
        ("connect", {"connection_id": None}, "Missing required parameter: connection_id"),
        ("connect", {"connection_id": "shop"}, "Invalid UUID for parameter: connection_id"),
        ("describe_table", {"connection_id": SHOP_ID}, "Missing required parameter: table"),
        (
            "execute_query",
            QUERY | {"max_rows": "five"},
            "Invalid value for parameter: max_rows",
        ),
        (
            "list_tables",
            {"connection_id": SHOP_ID, "include_row_counts": 1},
            "Invalid value for parameter: include_row_counts",
        ),
    ],
)
def test_wrong_arguments_are_named(
    gate: SqliteGate, tool: str, arguments: dict[str, Any], message: str
) -> None:
    error, status = refuse(gate, tool, arguments)
    assert (error["code"], status) == (-32602, 200)
    assert error["message"] == f"Invalid params: {message}"


REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", MODERN]
WRONG = QUERY | {"query": "SELECT nope FROM customers"}


async def reply_to(
    gate: SqliteGate, revision: str, client: str = "peer", **own: str
) -> dict[str, Any]:
    """The reply to a call whose SQL is wrong."""
    settings = WorkbenchSettings(**own)  # pyright: ignore[reportArgumentType]
    async with gate.opened():
        surface = workbench.surface(gate, settings=settings)
        peer = Peer(surface, READER, revision, client=(client, "0.1.0"))
        meta: dict[str, Any] = {}
        if revision == MODERN:
            meta = {"_meta": modern_meta(client)}
        else:
            await peer.open()
        return await peer.request("tools/call", name="execute_query", arguments=WRONG, **meta)


@pytest.mark.parametrize("client", ["peer", "mcp", "mcp-use (via mcp-remote 0.15.1)"])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_error_has_the_form_that_its_revision_and_client_need(
    gate: SqliteGate, revision: str, client: str
) -> None:
    reply = await reply_to(gate, revision, client)
    if revision == MODERN or client != "peer":
        assert reply["result"]["isError"] is True
        said = reply["result"]["content"][0]["text"]
    else:
        assert reply["error"]["code"] == -32602
        said = reply["error"]["message"]
    assert "no such column: nope" in said


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_operator_can_choose_the_form_of_errors(gate: SqliteGate, revision: str) -> None:
    assert "error" in await reply_to(gate, revision, "mcp", errors="document")
    assert (await reply_to(gate, revision, errors="protocol"))["result"]["isError"] is True


@pytest.mark.parametrize("mode", ["auto", "seed", "compat"])
@pytest.mark.parametrize("revision", REVISIONS[:3])
async def test_statuses_are_those_of_json_rpc_errors(revision: str, mode: str) -> None:
    refused = FailingGate(Code.POLICY_READ_ONLY)

    async def status(client: str, version: str, errors: str) -> tuple[bool, int]:
        settings = WorkbenchSettings(http_error_status=mode, errors=errors)  # pyright: ignore[reportArgumentType]
        surface = workbench.surface(refused, settings=settings)
        peer = Peer(surface, READER, revision, client=(client, version))
        await peer.open()
        reply = await peer.request("tools/call", name="execute_query", arguments=QUERY)
        return "error" in reply, peer.status

    by_table = 200 if mode == "compat" else SEED_STATUS[-32007]
    spared = 200 if mode == "auto" else by_table
    assert await status("peer", "1", "auto") == (True, by_table)
    assert await status("my-program", "1.9.0", "auto") == (True, by_table)
    assert await status("mcp", "0.1.0", "auto") == (False, 200)
    assert await status("mcp", "0.1.0", "document") == (True, spared)
    assert await status("peer", "1", "protocol") == (False, 200)


def test_an_unknown_tool_is_a_method_not_found(gate: SqliteGate) -> None:
    error, status = refuse(gate, "no_such_tool", {})
    assert (error["code"], status) == (-32601, 200)
    assert error["message"] == "Method not found: tools/call:no_such_tool"


def test_unknown_arguments_are_ignored(gate: SqliteGate) -> None:
    async def whole() -> dict[str, Any]:
        async with gate.opened():
            peer = Peer(workbench.surface(gate))
            await peer.open()
            return await peer.result("execute_query", **QUERY, nonsense=1)

    assert asyncio.run(whole())["structuredContent"]["row_count"] == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("connect", {"connection_id": SHOP_ID.replace("9", "8")}, "Connection not found"),
        ("describe_table", {"connection_id": SHOP_ID, "table": "nope"}, "Table not found: nope"),
        (
            "list_tables",
            {"connection_id": SHOP_ID, "schema": "nope"},
            "Schema not found: nope",
        ),
        (
            "list_tables",
            {"connection_id": SHOP_ID, "database": "nope"},
            "Database not found: nope",
        ),
        ("execute_query", QUERY | {"database": "nope"}, "Database not found: nope"),
        ("execute_query", QUERY | {"schema": "nope"}, "Schema not found: nope"),
        ("execute_query", QUERY | {"query": "SELECT * FROM nope"}, "no such table: nope"),
    ],
)
def test_what_is_not_there_is_invalid_params(
    gate: SqliteGate, tool: str, arguments: dict[str, Any], words: str
) -> None:
    error, status = refuse(gate, tool, arguments)
    assert (error["code"], status) == (-32602, 200)
    assert error["message"] == f"Invalid params: {words}"


def test_closing_a_closed_connection_is_an_error(tmp_path: Path) -> None:
    shop = build_shop(tmp_path / "shop.db")
    gate = SqliteGate(tmp_path, sqlite_source(shop, access="write"))
    error, status = refuse(gate, "disconnect", {"connection_id": SHOP_ID}, actor=WRITER)
    assert (error["code"], status) == (-32602, 200)
    assert error["message"] == "Invalid params: Connection is not open"


@pytest.mark.parametrize(
    ("code", "message", "shown"),
    [
        (
            Code.POLICY_READ_ONLY,
            "Connection is read-only for external clients",
            "Forbidden: Connection is read-only for external clients",
        ),
        (
            Code.POLICY_SCOPE,
            "Principal lacks tools:write scope required for write queries",
            "Forbidden: Principal lacks tools:write scope required for write queries",
        ),
        (Code.SQL_TOO_LONG, "", "Invalid params: Query exceeds 100KB limit"),
        (
            Code.SQL_MULTIPLE,
            "",
            "Invalid params: Multi-statement queries are not supported."
            " Send one statement at a time.",
        ),
    ],
)
def test_refusals_use_the_documents_words(code: Code, message: str, shown: str) -> None:
    assert refuse(FailingGate(code, message), "execute_query", QUERY)[0]["message"] == shown


def test_a_tool_that_the_scope_does_not_cover_says_so() -> None:
    gate = FailingGate(Code.POLICY_SCOPE, "Too little")
    error, status = refuse(gate, "disconnect", {"connection_id": SHOP_ID})
    assert (error["code"], status) == (-32007, 403)
    assert error["message"] == "Forbidden: Tool 'disconnect' requires additional scopes"


def test_an_unknown_resource_is_404_by_the_table_and_200_in_compat(gate: SqliteGate) -> None:
    async def status(mode: str) -> int:
        settings = WorkbenchSettings(http_error_status=mode)  # pyright: ignore[reportArgumentType]
        peer = Peer(workbench.surface(gate, settings=settings))
        await peer.open()
        reply = await peer.request("resources/read", uri="tablepro://nowhere")
        assert reply["error"]["code"] == -32601
        return peer.status

    assert asyncio.run(status("seed")) == 404
    assert asyncio.run(status("compat")) == 200


async def test_an_unknown_resource_is_a_wrong_parameter_since_2026_07_28(gate: SqliteGate) -> None:
    async with gate.opened():
        peer = Peer(workbench.surface(gate), READER, MODERN)
        meta = modern_meta()
        reply = await peer.request("resources/read", uri="tablepro://nowhere", _meta=meta)
    assert (reply["error"]["code"], peer.status) == (-32602, 200)
    assert reply["error"]["data"]["uri"] == "tablepro://nowhere"


async def test_a_listener_is_promised_no_change_that_does_not_come(gate: SqliteGate) -> None:
    async with gate.opened():
        surface = workbench.surface(gate)
        peer = Peer(surface, READER, MODERN)
        wanted = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": ["tablepro://connections"],
        }
        listening = asyncio.ensure_future(
            peer.request("subscriptions/listen", notifications=wanted, _meta=modern_meta())
        )
        while not peer.notes.messages:
            await asyncio.sleep(0)
        peer.kernel.end_listening()
        await listening
    assert peer.notes.messages[0]["params"]["notifications"] == {}
