"""The workbench document, word for word: names, hints, inputs, outputs and their key order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from support.surface_client import WRITER, Peer
from support.surface_gateway import SHOP_ID, SqliteGate, sqlite_source
from support.surface_shop import build_shop
from tidegate.model.actors import Actor
from tidegate.products.workbench import surface as workbench

ResultT = TypeVar("ResultT")


@pytest.fixture
def gate(tmp_path: Path) -> SqliteGate:
    shop = build_shop(tmp_path / "shop.db")
    return SqliteGate(tmp_path, sqlite_source(shop, access="write"))


def converse(
    gate: SqliteGate, talk: Callable[[Peer], Awaitable[ResultT]], actor: Actor = WRITER
) -> ResultT:
    async def whole() -> ResultT:
        async with gate.opened():
            peer = Peer(workbench.surface(gate), actor)
            await peer.open()
            return await talk(peer)

    return asyncio.run(whole())


def result(gate: SqliteGate, tool: str, **arguments: Any) -> dict[str, Any]:
    return converse(gate, lambda peer: peer.result(tool, **arguments))


def structured(gate: SqliteGate, tool: str, **arguments: Any) -> dict[str, Any]:
    return result(gate, tool, **arguments)["structuredContent"]


# name: ((readOnly, destructive, idempotent, openWorld), required, all parameters)
DOCUMENT = {
    # The document's takes nothing; both arguments may be left out.
    "list_connections": ((True, False, True, False), [], ["limit", "cursor"]),
    "connect": ((False, False, True, True), ["connection_id"], ["connection_id"]),
    "disconnect": ((False, False, True, True), ["connection_id"], ["connection_id"]),
    "get_connection_status": ((True, False, True, False), ["connection_id"], ["connection_id"]),
    "list_databases": ((True, False, True, False), ["connection_id"], ["connection_id"]),
    "list_schemas": (
        (True, False, True, False),
        ["connection_id"],
        ["connection_id", "database"],
    ),
    "list_tables": (
        (True, False, True, False),
        ["connection_id"],
        ["connection_id", "database", "schema", "include_row_counts"],
    ),
    "describe_table": (
        (True, False, True, False),
        ["connection_id", "table"],
        ["connection_id", "table", "schema"],
    ),
    "get_table_ddl": (
        (True, False, True, False),
        ["connection_id", "table"],
        ["connection_id", "table", "schema"],
    ),
    "execute_query": (
        (False, False, False, True),
        ["connection_id", "query"],
        ["connection_id", "query", "max_rows", "timeout_seconds", "database", "schema"],
    ),
    "confirm_destructive_operation": (
        (False, True, False, True),
        ["connection_id", "query", "confirmation_phrase"],
        ["connection_id", "query", "confirmation_phrase"],
    ),
    "export_data": (
        (False, False, False, True),
        ["connection_id", "format"],
        ["connection_id", "format", "query", "tables", "output_path", "max_rows"],
    ),
    "switch_database": (
        (False, False, True, False),
        ["connection_id", "database"],
        ["connection_id", "database"],
    ),
    "switch_schema": (
        (False, False, True, False),
        ["connection_id", "schema"],
        ["connection_id", "schema"],
    ),
    "open_connection_window": (
        (False, False, True, False),
        ["connection_id"],
        ["connection_id"],
    ),
    "open_table_tab": (
        (False, False, True, False),
        ["connection_id", "table_name"],
        ["connection_id", "table_name", "database_name", "schema_name"],
    ),
    "focus_query_tab": ((False, False, True, False), ["tab_id"], ["tab_id"]),
    "list_recent_tabs": ((True, False, True, False), [], ["limit"]),
    "search_query_history": (
        (True, False, True, False),
        ["query"],
        ["query", "connection_id", "limit", "since", "until"],
    ),
}


def test_tools_have_the_documents_names_hints_and_inputs(gate: SqliteGate) -> None:
    listed = converse(gate, lambda peer: peer.request("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in listed] == list(DOCUMENT)
    for tool in listed:
        hints, required, properties = DOCUMENT[tool["name"]]
        reported = tool["annotations"]
        keys = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        assert tuple(reported[key] for key in keys) == hints, tool["name"]
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        assert schema.get("required", []) == required
        assert list(schema["properties"]) == properties
        assert "additionalProperties" not in schema
        assert "$ref" not in msgspec.json.encode(tool).decode()
        assert tool["title"]
        assert tool["outputSchema"]["type"] == "object"


def test_list_connections_shows_every_field_in_order(gate: SqliteGate) -> None:
    (connection,) = structured(gate, "list_connections")["connections"]
    assert list(connection.items()) == [
        ("id", SHOP_ID),
        ("name", "shop"),
        ("type", "SQLite"),
        ("host", ""),
        ("port", 0),
        ("database", "shop"),
        ("username", ""),
        ("is_connected", False),
        ("ai_policy", "alwaysAllow"),
        ("safe_mode", "silent"),
    ]


def test_a_server_address_is_taken_apart_and_no_password_is_shown(tmp_path: Path) -> None:
    url = "postgresql://app:${env:PW}@db.example.com:6432/app?sslmode=require"
    source = msgspec.structs.replace(
        sqlite_source(tmp_path), url=url, engine="postgres", dialect="postgres"
    )
    (connection,) = structured(SqliteGate(tmp_path, source), "list_connections")["connections"]
    assert connection["type"] == "PostgreSQL"
    assert (connection["host"], connection["port"]) == ("db.example.com", 6432)
    assert (connection["database"], connection["username"]) == ("app", "app")
    assert "PW" not in msgspec.json.encode(connection).decode()


def test_connect_status_and_disconnect_tell_where_the_connection_stands(gate: SqliteGate) -> None:
    async def talk(peer: Peer) -> list[dict[str, Any]]:
        tools = ("connect", "connect", "get_connection_status", "list_connections", "disconnect")
        return [
            (await peer.result(tool, connection_id=SHOP_ID))["structuredContent"] for tool in tools
        ]

    connected, again, during, listed, gone = converse(gate, talk)
    assert list(connected) == ["status", "current_database", "current_schema", "server_version"]
    assert (connected["status"], connected["current_schema"]) == ("connected", "main")
    assert connected["server_version"].startswith("SQLite 3.")
    assert again == connected
    assert list(during) == [*connected, "connected_at", "last_active_at"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", during["connected_at"])
    assert listed["connections"][0]["is_connected"] is True
    assert gone == {"status": "disconnected"}


def test_metadata_tools_list_names(gate: SqliteGate) -> None:
    assert len(structured(gate, "list_databases", connection_id=SHOP_ID)["databases"]) == 1
    assert structured(gate, "list_schemas", connection_id=SHOP_ID) == {"schemas": ["main"]}
    assert structured(gate, "list_tables", connection_id=SHOP_ID) == {
        "tables": [
            {"name": "big_orders", "type": "view"},
            {"name": "customers", "type": "table"},
            {"name": "orders", "type": "table"},
        ]
    }


def test_row_counts_come_when_asked_for(gate: SqliteGate) -> None:
    listed = structured(gate, "list_tables", connection_id=SHOP_ID, include_row_counts=True)
    tables = {table["name"]: table for table in listed["tables"]}
    assert list(tables["orders"].items()) == [
        ("name", "orders"),
        ("type", "table"),
        ("row_count", 3),
    ]
    assert tables["customers"]["row_count"] == 3


def test_describe_table_shows_columns_indexes_keys_and_ddl(gate: SqliteGate) -> None:
    orders = structured(gate, "describe_table", connection_id=SHOP_ID, table="orders")
    assert list(orders) == ["columns", "indexes", "foreign_keys", "ddl"]
    assert orders["columns"][:2] == [
        {"name": "id", "data_type": "INTEGER", "is_nullable": False, "is_primary_key": True},
        {"name": "customer_id", "data_type": "INTEGER", "is_nullable": False},
    ]
    assert orders["indexes"] == [
        {
            "name": "orders_by_customer",
            "columns": ["customer_id", "placed_at"],
            "is_unique": False,
            "is_primary": False,
            "type": "btree",
        }
    ]
    (key,) = orders["foreign_keys"]
    assert list(key) == [
        "name", "column", "referenced_table", "referenced_column", "on_delete", "on_update",
    ]  # fmt: skip
    assert (key["column"], key["referenced_table"], key["referenced_column"]) == (
        "customer_id", "customers", "id",
    )  # fmt: skip
    assert key["on_delete"] == "CASCADE"
    assert orders["ddl"].startswith("CREATE TABLE orders")
    city = structured(gate, "describe_table", connection_id=SHOP_ID, table="customers")["columns"][
        3
    ]
    assert city["default_value"] == "'Paris'"


def test_get_table_ddl_shows_the_statement_and_nothing_else(gate: SqliteGate) -> None:
    shown = structured(gate, "get_table_ddl", connection_id=SHOP_ID, table="Orders", schema="main")
    assert list(shown) == ["ddl"]
    assert shown["ddl"].startswith("CREATE TABLE orders")


def test_execute_query_answers_text_cells_in_the_documents_order(gate: SqliteGate) -> None:
    shown = structured(
        gate,
        "execute_query",
        connection_id=SHOP_ID,
        query="SELECT id, full_name, city FROM customers ORDER BY id",
    )
    assert list(shown) == [
        "columns", "rows", "row_count", "rows_affected", "execution_time_ms", "is_truncated",
    ]  # fmt: skip
    assert shown["columns"] == ["id", "full_name", "city"]
    assert shown["rows"][1] == ["2", "葛飾 北斎", None]
    assert (shown["row_count"], shown["rows_affected"]) == (3, 0)
    assert isinstance(shown["execution_time_ms"], int)
    assert shown["is_truncated"] is False


@pytest.mark.parametrize(("max_rows", "cut"), [(2, True), (3, False), (4, False)])
def test_n_rows_of_n_are_not_truncated(gate: SqliteGate, max_rows: int, cut: bool) -> None:
    shown = structured(
        gate,
        "execute_query",
        connection_id=SHOP_ID,
        query="SELECT id FROM customers",
        max_rows=max_rows,
    )
    assert shown["row_count"] == min(max_rows, 3)
    assert shown["is_truncated"] is cut


def test_structured_content_is_mirrored_as_text(gate: SqliteGate) -> None:
    for tool, arguments in (
        ("list_connections", {}),
        ("describe_table", {"connection_id": SHOP_ID, "table": "orders"}),
        ("execute_query", {"connection_id": SHOP_ID, "query": "SELECT * FROM customers"}),
    ):
        shown = result(gate, tool, **arguments)
        (block,) = shown["content"]
        assert block["type"] == "text"
        assert msgspec.json.decode(block["text"]) == shown["structuredContent"]


def test_outputs_validate_against_their_schemas(gate: SqliteGate) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    listed = converse(gate, lambda peer: peer.request("tools/list"))["result"]["tools"]
    schemas = {tool["name"]: tool["outputSchema"] for tool in listed}
    arguments: dict[str, dict[str, Any]] = {
        "list_connections": {},
        "describe_table": {"table": "customers"},
        "get_table_ddl": {"table": "customers"},
        "execute_query": {"query": "SELECT * FROM orders"},
        "list_tables": {"include_row_counts": True},
        "export_data": {"format": "csv", "tables": ["orders", "customers"]},
        "switch_schema": {"schema": "main"},
        "switch_database": {"database": "shop"},
        "open_table_tab": {"table_name": "orders"},
        "search_query_history": {"query": "orders"},
    }

    async def talk(peer: Peer) -> None:
        opened = await peer.result("open_table_tab", connection_id=SHOP_ID, table_name="orders")
        arguments["focus_query_tab"] = {"tab_id": opened["structuredContent"]["tab_id"]}
        left_out = ("disconnect", "confirm_destructive_operation")
        for tool in [*(t for t in schemas if t not in left_out), "disconnect"]:
            given = {"connection_id": SHOP_ID} | arguments.get(tool, {})
            shown = await peer.result(tool, **given)
            jsonschema.validate(shown["structuredContent"], schemas[tool])
            (block,) = shown["content"]
            assert msgspec.json.decode(block["text"]) == shown["structuredContent"], tool

    converse(gate, talk)


def test_resources_show_connections_and_schemas(gate: SqliteGate) -> None:
    async def talk(peer: Peer) -> list[dict[str, Any]]:
        listed = await peer.request("resources/list")
        reads = [
            await peer.request("resources/read", uri=uri)
            for uri in (
                "tablepro://connections",
                f"tablepro://connections/{SHOP_ID}/schema",
                "tablepro://connections/nonsense/schema",
                "tablepro://elsewhere",
            )
        ]
        templates = await peer.request("resources/templates/list")
        return [*reads, listed, templates]

    connections, schema, bad, unknown, listed, templates = converse(gate, talk)
    (contents,) = connections["result"]["contents"]
    assert contents["mimeType"] == "application/json"
    assert msgspec.json.decode(contents["text"])["connections"][0]["id"] == SHOP_ID
    (contents,) = schema["result"]["contents"]
    shown = msgspec.json.decode(contents["text"])
    assert [table["name"] for table in shown["tables"]] == ["big_orders", "customers", "orders"]
    assert (shown["truncated"], shown["total_tables"]) == (False, 3)
    assert bad["error"]["code"] == -32602
    assert unknown["error"]["code"] == -32601
    assert [r["uri"] for r in listed["result"]["resources"]] == ["tablepro://connections"]
    assert [r["uriTemplate"] for r in templates["result"]["resourceTemplates"]] == [
        "tablepro://connections/{id}/schema",
        "tablepro://connections/{id}/history{?limit,search,date_filter}",
    ]
