"""Points of the workbench's document that a client meets at the edges of its contract."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contract.surfaces.engine_shops import EngineShop
from support.surface_client import READER, Notes, Peer
from support.surface_gateway import SHOP_ID, SqliteGate, sqlite_source
from support.surface_shop import build_shop
from tidegate.config.model import Config
from tidegate.products.workbench import surface as workbench
from tidegate.surfaces import core
from tidegate.surfaces.surface import Surface


@pytest.fixture
def gate(tmp_path: Path) -> SqliteGate:
    return SqliteGate(tmp_path, sqlite_source(build_shop(tmp_path / "shop.db")))


def _surface(gate: SqliteGate, rejected: list[tuple[str, str]] | None = None) -> Surface:
    def note(context: Any, tool: str, reason: str) -> None:
        if rejected is not None:
            rejected.append((tool, reason))

    return workbench.surface(gate, config=Config(), on_rejected_call=note)


def test_what_is_connected_is_listed_as_resources(gate: SqliteGate) -> None:
    async def scenario() -> None:
        async with gate.opened():
            peer = Peer(_surface(gate))
            await peer.open()
            first = await peer.request("resources/list")
            assert [each["uri"] for each in first["result"]["resources"]] == [
                "tablepro://connections"
            ]
            await peer.result("connect", connection_id=SHOP_ID)
            after = await peer.request("resources/list")
            uris = [each["uri"] for each in after["result"]["resources"]]
            assert uris[1:] == [
                f"tablepro://connections/{SHOP_ID}/schema",
                f"tablepro://connections/{SHOP_ID}/history",
            ]
            for uri in uris:
                assert "result" in await peer.request("resources/read", uri=uri)

    asyncio.run(scenario())


def test_a_resource_of_a_connection_that_is_not_there_is_not_found(gate: SqliteGate) -> None:
    async def scenario() -> None:
        async with gate.opened():
            peer = Peer(_surface(gate))
            await peer.open()
            uri = "tablepro://connections/00000000-0000-0000-0000-000000000000/schema"
            reply = await peer.request("resources/read", uri=uri)
            assert (reply["error"]["code"], peer.status) == (-32004, 404)
            error = await peer.error(
                "connect", connection_id="00000000-0000-0000-0000-000000000000"
            )
            assert error["code"] == -32602

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "asked", [{}, {"protocolVersion": "2023-01-01"}, {"protocolVersion": "2027-01-01"}]
)
def test_initialize_without_a_version_gets_the_newest_of_the_document(
    gate: SqliteGate, asked: dict[str, Any]
) -> None:
    async def scenario() -> None:
        async with gate.opened():
            peer = Peer(_surface(gate))
            client = {"name": "x", "version": "1"}
            reply = await peer.request("initialize", capabilities={}, clientInfo=client, **asked)
            assert reply["result"]["protocolVersion"] == "2025-11-25"

    asyncio.run(scenario())


def test_a_client_of_2025_03_26_gets_titles_and_structured_content(gate: SqliteGate) -> None:
    async def scenario() -> None:
        async with gate.opened():
            peer = Peer(_surface(gate), revision="2025-03-26")
            assert (await peer.open())["protocolVersion"] == "2025-03-26"
            tools = (await peer.request("tools/list"))["result"]["tools"]
            assert all(tool["title"] and "outputSchema" in tool for tool in tools)
            result = await peer.result("list_connections")
            assert result["structuredContent"]["connections"][0]["id"] == SHOP_ID

    asyncio.run(scenario())


def test_a_whole_number_may_be_written_with_a_point(gate: SqliteGate) -> None:
    async def scenario() -> None:
        async with gate.opened():
            peer = Peer(_surface(gate))
            await peer.open()
            arguments = {"connection_id": SHOP_ID, "query": "SELECT id FROM customers"}
            found = await peer.result("execute_query", max_rows=2.0, **arguments)
            assert found["structuredContent"]["row_count"] == 2
            error = await peer.error("execute_query", max_rows=2.5, **arguments)
            assert error["code"] == -32602
            shown = Peer(core.surface(gate))
            await shown.open()
            assert '"rows":[[1]]' in await shown.text(
                "query", sql="SELECT id FROM customers", max_rows=1.0
            )

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (
            "confirm_destructive_operation",
            {"connection_id": SHOP_ID, "query": "DROP TABLE orders", "confirmation_phrase": "yes"},
        ),
        (
            "export_data",
            {
                "connection_id": SHOP_ID,
                "format": "csv",
                "tables": ["orders"],
                "output_path": "/etc/x.csv",
            },
        ),
        ("connect", {"connection_id": "not-a-uuid"}),
        ("execute_query", {"connection_id": SHOP_ID}),
        ("execute_query", {"connection_id": SHOP_ID, "query": 7}),
        ("no_such_tool", {}),
    ],
)
def test_what_the_surface_refuses_by_itself_is_on_record(
    gate: SqliteGate, tool: str, arguments: dict[str, Any]
) -> None:
    async def scenario() -> None:
        rejected: list[tuple[str, str]] = []
        async with gate.opened():
            peer = Peer(_surface(gate, rejected))
            await peer.open()
            assert "error" in await peer.call(tool, **arguments)
            assert [name for name, _ in rejected] == [tool]
            rejected.clear()
            refused = {"connection_id": SHOP_ID, "query": "DELETE FROM orders WHERE id = 1"}
            assert "error" in await peer.call("execute_query", **refused)
            assert rejected == []  # the gate records what it refuses

    asyncio.run(scenario())


def test_progress_goes_to_the_sessions_stream_where_the_reply_is_json(gate: SqliteGate) -> None:
    class Closed(Notes):
        open = False

    async def scenario() -> None:
        async with gate.opened():
            peer = Peer(_surface(gate), READER)
            await peer.open()
            peer.notes = Closed()
            stream = Notes()
            stream.open = True  # pyright: ignore[reportAttributeAccessIssue]
            peer.session.attach(stream)
            reply = await peer.request(
                "tools/call",
                name="execute_query",
                arguments={"connection_id": SHOP_ID, "query": "SELECT 1"},
                _meta={"progressToken": "p"},
            )
            assert "result" in reply
            stages = [note["params"]["message"] for note in stream.messages]
            assert stages == ["Connecting", "Executing", "Formatting result", "Done"]
            assert peer.notes.messages == []

    asyncio.run(scenario())


def test_an_sql_error_names_its_sqlstate_and_place(engine_shop: EngineShop) -> None:
    error = engine_shop.error("execute_query", query="SELECT nothing_there FROM customers")
    if engine_shop.product == "PostgreSQL":
        assert (error["data"]["sqlstate"], error["data"]["position"]) == ("42703", 8)
    elif engine_shop.product in ("MySQL", "MariaDB"):
        assert error["data"]["sqlstate"] == "42S22"
    else:
        assert "sqlstate" not in error["data"]


def test_the_description_of_an_export_says_how_much_it_returns_inline(gate: SqliteGate) -> None:
    async def scenario() -> None:
        async with gate.opened():
            peer = Peer(_surface(gate))
            await peer.open()
            tools = (await peer.request("tools/list"))["result"]["tools"]
            (export,) = [tool for tool in tools if tool["name"] == "export_data"]
            assert "4 MiB at most" in export["description"]

    asyncio.run(scenario())
