"""How a workbench call runs: clamps, progress, revisions, and what reaches the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from support.eventually import PATIENCE_S, until
from support.surface_client import READER, Peer
from support.surface_gateway import SHOP_ID, SqliteGate, sqlite_source
from support.surface_shop import build_shop
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Query
from tidegate.products.workbench import surface as workbench

ResultT = TypeVar("ResultT")


@pytest.fixture
def gate(tmp_path: Path) -> SqliteGate:
    return SqliteGate(tmp_path, sqlite_source(build_shop(tmp_path / "shop.db")))


def converse(
    gate: SqliteGate, talk: Callable[[Peer], Awaitable[ResultT]], actor: Actor = READER
) -> ResultT:
    """What one client gets that talks to the workbench."""

    async def whole() -> ResultT:
        async with gate.opened():
            peer = Peer(workbench.surface(gate), actor, client=("inspector", "2.1"))
            await peer.open()
            return await talk(peer)

    return asyncio.run(whole())


def query(gate: SqliteGate, **arguments: Any) -> Query:
    """Run a query and return what reached the gate."""
    given = {"connection_id": SHOP_ID, "query": "SELECT 1"} | arguments
    converse(gate, lambda peer: peer.result("execute_query", **given))
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
    listed = converse(gate, lambda peer: peer.result("list_databases", connection_id=SHOP_ID))
    (database,) = listed["structuredContent"]["databases"]
    request = query(gate, database=database, schema="main")
    assert (request.database, request.schema) == (database, "main")
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
    converse(gate, lambda peer: peer.call("disconnect", connection_id=SHOP_ID))
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
    async def talk(peer: Peer) -> tuple[dict[str, Any], ...]:
        return (
            await peer.request("prompts/list"),
            await peer.request("prompts/get", name="x"),
            await peer.request(
                "completion/complete",
                ref={"type": "ref/prompt", "name": "x"},
                argument={"name": "a", "value": ""},
            ),
        )

    listed, got, completed = converse(gate, talk)
    assert listed["result"]["prompts"] == []
    assert got["error"]["code"] == -32601
    assert completed["result"]["completion"]["values"] == []


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


def test_progress_tells_four_stages_to_who_gave_a_token(gate: SqliteGate) -> None:
    async def talk(peer: Peer) -> list[dict[str, Any]]:
        await peer.result("execute_query", connection_id=SHOP_ID, query="SELECT 1")
        assert peer.notes.messages == []
        await peer.request(
            "tools/call",
            name="execute_query",
            arguments={"connection_id": SHOP_ID, "query": "SELECT 1", "schema": "main"},
            _meta={"progressToken": "t1"},
        )
        return peer.notes.messages

    notes = converse(gate, talk)
    assert {note["method"] for note in notes} == {"notifications/progress"}
    assert [
        (note["params"]["progress"], note["params"]["total"], note["params"]["message"])
        for note in notes
    ] == [
        (0.0, 1.0, "Connecting"),
        (0.2, 1.0, "Executing"),
        (0.8, 1.0, "Formatting result"),
        (1.0, 1.0, "Done"),
    ]
    assert {note["params"]["progressToken"] for note in notes} == {"t1"}


def test_metadata_reports_no_progress(gate: SqliteGate) -> None:
    async def talk(peer: Peer) -> list[dict[str, Any]]:
        await peer.request(
            "tools/call",
            name="describe_table",
            arguments={"connection_id": SHOP_ID, "table": "orders"},
            _meta={"progressToken": 7},
        )
        return peer.notes.messages

    assert converse(gate, talk) == []


def test_a_cancelled_query_ends_with_its_own_code(gate: SqliteGate) -> None:
    async def talk(peer: Peer) -> dict[str, Any]:
        # The first call opens the source, so that the cancelled one is surely running.
        await peer.result("execute_query", connection_id=SHOP_ID, query="SELECT 1")
        running = asyncio.ensure_future(
            peer.call("execute_query", connection_id=SHOP_ID, query=ENDLESS)
        )
        await until(lambda: peer.session.running, "the call")
        (id,) = peer.session.running
        await peer.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": int(id), "reason": "enough"},
            }
        )
        return await asyncio.wait_for(running, PATIENCE_S)

    assert converse(gate, talk)["error"]["code"] == -32002


def test_a_query_that_takes_too_long_is_stopped_in_the_database(gate: SqliteGate) -> None:
    async def talk(peer: Peer) -> tuple[dict[str, Any], dict[str, Any]]:
        error = await peer.error(
            "execute_query", connection_id=SHOP_ID, query=ENDLESS, timeout_seconds=1
        )
        after = await peer.result("execute_query", connection_id=SHOP_ID, query="SELECT 1")
        return error, after["structuredContent"]

    error, after = converse(gate, talk)
    assert error["code"] == -32003
    assert error["message"].startswith("Request timeout: ")
    assert after["rows"] == [["1"]]


def test_a_row_limit_of_ten_thousand_holds(gate: SqliteGate) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)"
    answer = converse(
        gate,
        lambda peer: peer.result(
            "execute_query",
            connection_id=SHOP_ID,
            query=f"{numbers} SELECT i FROM n",
            max_rows=20_000,
        ),
    )["structuredContent"]
    assert answer["row_count"] == len(answer["rows"]) == 10_000
    assert answer["is_truncated"] is True
    assert answer["rows"][-1] == ["10000"]
