"""How a workbench call runs: clamps, progress, revisions, and what reaches the gate."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from surface_gate import SHOP_ID, SqliteGate, sqlite_source
from surface_peer import Peer
from surface_shop import build_shop
from tidegate.surfaces import workbench
from tidegate.types import Query, Scope


@pytest.fixture
def gate(tmp_path: Path) -> SqliteGate:
    return SqliteGate(sqlite_source(build_shop(tmp_path / "shop.db")))


async def opened(gate: SqliteGate, revision: str = "2025-11-25") -> Peer:
    peer = Peer(workbench.surface(gate), revision=revision, client=("inspector", "2.1"))
    await peer.open()
    return peer


def query(gate: SqliteGate, **arguments: Any) -> Query:
    """Run a query and return what reached the gate."""

    async def whole() -> None:
        peer = await opened(gate)
        given = {"connection_id": SHOP_ID, "query": "SELECT 1"} | arguments
        await peer.result("execute_query", **given)

    asyncio.run(whole())
    request = gate.calls[-1].request
    assert isinstance(request, Query)
    return request


@pytest.mark.parametrize(
    ("asked", "rows"), [(None, 500), (0, 1), (-5, 1), (1, 1), (10_000, 10_000), (99_999, 10_000)]
)
def test_max_rows_is_clamped(gate: SqliteGate, asked: int | None, rows: int) -> None:
    assert query(gate, max_rows=asked).limits.max_rows == rows


@pytest.mark.parametrize(
    ("asked", "seconds"), [(None, 30), (0, 1), (-1, 1), (300, 300), (3_000, 300)]
)
def test_timeout_is_clamped(gate: SqliteGate, asked: int | None, seconds: int) -> None:
    assert query(gate, timeout_seconds=asked).limits.timeout_s == seconds


def test_database_and_schema_go_with_the_statement(gate: SqliteGate) -> None:
    request = query(gate, database="shop.db", schema="main")
    assert (request.database, request.schema) == ("shop.db", "main")
    assert request.cells == "text"


def test_a_call_tells_who_asks_through_what(gate: SqliteGate) -> None:
    query(gate)
    call = gate.calls[-1]
    assert (call.surface, call.tool, call.client) == ("workbench", "execute_query", "inspector/2.1")
    assert call.source == SHOP_ID
    assert call.scope is Scope.READ_ONLY


def test_an_upper_case_uuid_is_the_same_connection(gate: SqliteGate) -> None:
    query(gate, connection_id=SHOP_ID.upper())
    assert gate.calls[-1].source == SHOP_ID


def test_disconnect_demands_the_write_scope_of_the_gate(gate: SqliteGate) -> None:
    async def whole() -> None:
        peer = await opened(gate)
        await peer.call("disconnect", connection_id=SHOP_ID)

    asyncio.run(whole())
    assert gate.calls[-1].scope is Scope.READ_WRITE


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ],
)
def test_a_revision_of_the_document_is_echoed_and_others_get_the_newest(
    gate: SqliteGate, asked: str, answered: str
) -> None:
    async def whole() -> dict[str, Any]:
        return await Peer(workbench.surface(gate), revision=asked).open()

    assert asyncio.run(whole())["protocolVersion"] == answered


def test_prompts_are_none_and_completions_are_empty(gate: SqliteGate) -> None:
    async def whole() -> tuple[dict[str, Any], ...]:
        peer = await opened(gate)
        return (
            await peer.request("prompts/list"),
            await peer.request("prompts/get", name="x"),
            await peer.request(
                "completion/complete",
                ref={"type": "ref/prompt", "name": "x"},
                argument={"name": "a", "value": ""},
            ),
        )

    listed, got, completed = asyncio.run(whole())
    assert listed["result"]["prompts"] == []
    assert got["error"]["code"] == -32601
    assert completed["result"]["completion"]["values"] == []
