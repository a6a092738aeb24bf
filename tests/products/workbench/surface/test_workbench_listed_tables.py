"""A caller that may use two tables only learns nothing of other tables from the workbench."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.surfaces.engine_shops import EngineShop
from contract.surfaces.test_listed_tables import LISTED, OTHERS
from support.surface_client import WRITER, Peer
from support.surface_gateway import SHOP_ID
from tidegate.config.model import Config
from tidegate.model.actors import Actor, Scope

EXTENDED = Config(surface={"workbench": {"extended": True}})

METADATA: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_databases", {}),
    ("list_schemas", {}),
    ("list_tables", {}),
    ("list_tables", {"include_row_counts": True}),
    ("describe_table", {"table": "orders"}),
    ("describe_table", {"table": "big_orders"}),
    ("get_table_ddl", {"table": "orders"}),
    ("get_table_ddl", {"table": "big_orders"}),
    ("search_query_history", {"query": "select"}),
    ("list_recent_tabs", {}),
    ("get_connection_status", {}),
    ("list_connections", {}),
    ("browse_table", {"table": "orders"}),
    ("count_rows", {"table": "orders", "exact": True}),
    ("list_indexes", {}),
    ("list_indexes", {"table": "orders"}),
    ("list_foreign_keys", {}),
    ("list_foreign_keys", {"table": "orders"}),
    ("find_tables", {"words": "customers orders void"}),
    ("search_schema", {"term": "cust"}),
    ("search_schema", {"term": "o"}),
    ("get_server_dashboard", {}),
    ("explain_query", {"query": "SELECT * FROM orders"}),
    ("execute_query", {"query": "SELECT customer_ FROM orders"}),
    ("execute_query", {"query": "SELECT emai FROM orders"}),
)
NAMING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("describe_table", {"table": "void"}),
    ("get_table_ddl", {"table": "void"}),
    ("open_table_tab", {"table_name": "void"}),
    ("browse_table", {"table": "void"}),
    ("count_rows", {"table": "void", "exact": True}),
    ("list_indexes", {"table": "void"}),
    ("list_foreign_keys", {"table": "void"}),
    ("insert_rows", {"table": "void", "columns": ["id"], "rows": [[1]]}),
    ("export_data", {"format": "csv", "tables": ["void"]}),
    ("export_data", {"format": "csv", "query": "SELECT * FROM void"}),
    ("explain_query", {"query": "SELECT * FROM void"}),
    ("execute_query", {"query": "SELECT * FROM void"}),
    ("execute_query", {"query": "INSERT INTO void (id) VALUES (1)"}),
    ("confirm_destructive_operation",
     {"query": "DROP TABLE void", "confirmation_phrase": "I understand this is irreversible"}),
)  # fmt: skip


async def _leave_traces(peer: Peer) -> None:
    """What someone else did before."""
    await peer.result("open_table_tab", connection_id=SHOP_ID, table_name="customers")
    await peer.result("open_table_tab", connection_id=SHOP_ID, table_name="orders")
    await peer.result(
        "execute_query", connection_id=SHOP_ID, query="SELECT full_name FROM customers"
    )


def test_no_tool_tells_of_another_table(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> list[tuple[str, str]]:
        reported = []
        for tool, arguments in METADATA:
            reply = await peer.call(tool, **({"connection_id": SHOP_ID} | arguments))
            reported.append((tool, json.dumps(reply)))
        for uri in (
            f"tablepro://connections/{SHOP_ID}/schema",
            f"tablepro://connections/{SHOP_ID}/history",
        ):
            reported.append((uri, json.dumps(await peer.request("resources/read", uri=uri))))
        return reported

    gate = engine_shop.gate()
    engine_shop.converse(_leave_traces, WRITER, gate=gate)
    reported = engine_shop.converse(talk, LISTED, gate=gate, config=EXTENDED)
    assert not [reply for _, reply in reported if "argument.invalid" in reply or "-32601" in reply]
    leaks = [(tool, reply) for tool, reply in reported if OTHERS.search(reply)]
    assert leaks == []
    assert engine_shop.second_database is None or not any(
        engine_shop.second_database in reply for _, reply in reported
    )
    by_tool = dict(reported)
    assert "orders" in by_tool["list_tables"] and "big_orders" in by_tool["list_tables"]
    assert "customer_id" in by_tool["describe_table"]
    assert "orders" in by_tool["list_recent_tabs"]


def test_another_table_is_refused_as_if_there_were_none(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> list[tuple[str, str, str]]:
        said = []
        for tool, arguments in NAMING:
            given = {"connection_id": SHOP_ID} | arguments
            absent = json.loads(json.dumps(given).replace("void", "nowhere"))
            one, other = await peer.call(tool, **given), await peer.call(tool, **absent)
            del one["id"], other["id"]
            said.append((tool, json.dumps(one), json.dumps(other)))
        return said

    before = engine_shop.count("void"), engine_shop.count("orders")
    for tool, one, other in engine_shop.converse(talk, LISTED, config=EXTENDED):
        assert '"error"' in one or '"isError": true' in one, (tool, one)
        assert one.replace("void", "nowhere") == other, tool
    assert (engine_shop.count("void"), engine_shop.count("orders")) == before


def test_a_tab_of_another_table_is_not_found(engine_shop: EngineShop) -> None:
    gate = engine_shop.gate()

    async def opened(peer: Peer) -> str:
        reply = await peer.result("open_table_tab", connection_id=SHOP_ID, table_name="customers")
        return reply["structuredContent"]["tab_id"]

    tab = engine_shop.converse(opened, WRITER, gate=gate)
    error = engine_shop.converse(
        lambda peer: peer.error("focus_query_tab", tab_id=tab), LISTED, gate=gate
    )
    assert "tab not found" in error["message"]


def test_listed_tables_are_read_and_written_as_ever(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        for query in (
            "SELECT count(*) FROM orders",
            "SELECT id FROM big_orders",
            "INSERT INTO orders (id, customer_id, placed_at) VALUES (9, 1, '2026-02-02')",
        ):
            await peer.result("execute_query", connection_id=SHOP_ID, query=query)
        await peer.result("open_table_tab", connection_id=SHOP_ID, table_name="orders")

    engine_shop.converse(talk, LISTED)
    assert engine_shop.count("orders") == 4


def test_another_database_or_schema_has_no_listed_table(engine_shop: EngineShop) -> None:
    if engine_shop.second_database is None and engine_shop.elsewhere is None:
        pytest.skip("this engine has one database and one schema")
    actor = Actor("tok_2", "two", Scope.READ_ONLY, tables=frozenset({"customers"}))
    place = engine_shop.second_database or engine_shop.elsewhere

    async def talk(peer: Peer) -> list[dict[str, Any]]:
        replies = [
            await peer.call("execute_query", connection_id=SHOP_ID, query=query)
            for query in ("SELECT * FROM customers", f"SELECT * FROM {place}.customers")
        ]
        tool = "switch_database" if engine_shop.second_database else "switch_schema"
        await peer.call(tool, connection_id=SHOP_ID, **{tool.removeprefix("switch_"): place})
        replies.append(
            await peer.call("execute_query", connection_id=SHOP_ID, query="SELECT * FROM customers")
        )
        return replies

    here, named, switched = engine_shop.converse(talk, actor)
    assert "Lovelace" in json.dumps(here)
    assert "error" in named and "nickname" not in json.dumps(named)
    assert "nickname" not in json.dumps(switched)
