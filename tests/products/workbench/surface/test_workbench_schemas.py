"""Where a caller's statements run: `database` and `schema` of a call, and what it switched to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from contract.surfaces.engine_shops import EngineShop
from support.surface_client import READER, Peer
from support.surface_gateway import SHOP_ID
from tidegate.config.model import Config
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.results import Page
from tidegate.model.statements import Statement
from tidegate.products.workbench import surface as workbench

OTHER_WRITER = Actor("tok_other", "other", Scope.READ_WRITE)
EXTENDED = Config(surface={"workbench": {"extended": True}})


@pytest.fixture
def schemas(engine_shop: EngineShop) -> EngineShop:
    if engine_shop.elsewhere is None:
        pytest.skip("it has one schema")
    return engine_shop


@pytest.fixture
def databases(engine_shop: EngineShop) -> EngineShop:
    if engine_shop.second_database is None:
        pytest.skip("it has one database")
    return engine_shop


async def ask(peer: Peer, tool: str, **arguments: Any) -> dict[str, Any]:
    given = {"connection_id": SHOP_ID} | arguments
    return (await peer.result(tool, **given))["structuredContent"]


async def amounts(peer: Peer, **place: Any) -> list[list[str]]:
    return (await ask(peer, "execute_query", query="SELECT amount FROM totals", **place))["rows"]


async def tables(peer: Peer) -> list[str]:
    return [table["name"] for table in (await ask(peer, "list_tables"))["tables"]]


def test_a_writers_schema_stays_after_the_call(schemas: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        assert await amounts(peer, schema=schemas.elsewhere) == [["42"]]
        assert await amounts(peer) == [["42"]]
        assert await tables(peer) == ["customers", "totals"]
        assert (await ask(peer, "get_connection_status"))["current_schema"] == schemas.elsewhere
        columns = (await ask(peer, "describe_table", table="customers"))["columns"]
        assert [column["name"] for column in columns] == ["id", "nickname"]
        exported = await ask(peer, "export_data", format="csv", tables=["customers"])
        assert exported["data"] == "id,nickname\r\n7,the other one\r\n"
        plan = await ask(peer, "explain_query", query="SELECT nickname FROM customers")
        assert plan["plan_text"]
        browsed = await ask(peer, "browse_table", table="customers")
        assert browsed["rows"] == [["7", "the other one"]]
        await ask(peer, "switch_schema", schema=schemas.schema)
        assert "orders" in await tables(peer)

    schemas.converse(talk, config=EXTENDED)


def test_a_readers_schema_holds_for_one_call(schemas: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        assert await amounts(peer, schema=schemas.elsewhere) == [["42"]]
        assert "orders" in await tables(peer)
        error = await peer.error(
            "execute_query", connection_id=SHOP_ID, query="SELECT amount FROM totals"
        )
        assert error["code"] == -32602

    schemas.converse(talk, READER)


def test_on_a_read_only_source_a_writers_schema_holds_for_one_call(schemas: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        assert await amounts(peer, schema=schemas.elsewhere) == [["42"]]
        assert "orders" in await tables(peer)
        error = await peer.error("switch_schema", connection_id=SHOP_ID, schema=schemas.elsewhere)
        assert error["code"] == -32007
        assert "orders" in await tables(peer)

    schemas.converse(talk, gate=schemas.gate(access="read"))


def test_a_write_goes_where_the_call_says(schemas: EngineShop) -> None:
    schemas.result(
        "execute_query", query="INSERT INTO totals VALUES (2, 7)", schema=schemas.elsewhere
    )
    assert schemas.count(f"{schemas.elsewhere}.totals") == 2


def test_a_refused_statement_moves_no_one(schemas: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        for query in ("DROP TABLE totals", "SELECT 1; SELECT 2", "SELECT nope FROM totals"):
            await peer.error(
                "execute_query", connection_id=SHOP_ID, query=query, schema=schemas.elsewhere
            )
        assert "orders" in await tables(peer)

    schemas.converse(talk)
    assert schemas.count(f"{schemas.elsewhere}.totals") == 1


def test_a_switch_is_the_callers_own(schemas: EngineShop) -> None:
    gate = schemas.gate()

    async def talk(peer: Peer) -> None:
        await ask(peer, "switch_schema", schema=schemas.elsewhere)
        other = Peer(workbench.surface(gate), OTHER_WRITER)
        await other.open()
        assert "orders" in await tables(other)
        assert await tables(peer) == ["customers", "totals"]

    schemas.converse(talk, gate=gate)


def test_a_switch_moves_no_statement_of_the_caller_on_another_road(schemas: EngineShop) -> None:
    """Such as psql with the same token: its INSERT would go to another table of the same name."""
    gate = schemas.gate()

    async def talk(peer: Peer) -> None:
        await ask(peer, "switch_schema", schema=schemas.elsewhere)
        elsewhere = await amounts(peer)
        for road in ("core", "pg", "cli"):
            call = Call(peer.actor, road, road, Query(Statement("SELECT count(*) FROM orders")))
            assert isinstance((await gate.handle(call)).payload, Page), road
        assert await amounts(peer) == elsewhere

    schemas.converse(talk, gate=gate)


def test_a_switch_outlasts_a_reconnection(schemas: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        await ask(peer, "switch_schema", schema=schemas.elsewhere)
        await ask(peer, "disconnect")
        assert (await ask(peer, "connect"))["current_schema"] == schemas.elsewhere
        assert await amounts(peer) == [["42"]]

    schemas.converse(talk)


def test_another_database_is_followed_by_every_tool(databases: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        switched = await ask(peer, "switch_database", database=databases.second_database)
        assert switched == {"status": "switched", "current_database": databases.second_database}
        query = "SELECT * FROM visits"
        assert (await ask(peer, "execute_query", query=query))["rows"] == [["5"]]
        assert (await ask(peer, "explain_query", query=query))["plan_text"]
        assert "visits" in await tables(peer)
        assert (await ask(peer, "get_table_ddl", table="visits"))["ddl"]
        assert (await ask(peer, "describe_table", table="visits"))["columns"]
        exported = await ask(peer, "export_data", format="csv", tables=["visits"])
        assert exported["data"] == "id\r\n5\r\n"
        assert (await ask(peer, "connect"))["current_database"] == databases.second_database
        found = await ask(peer, "search_query_history", query="visits")
        assert {entry["database_name"] for entry in found["entries"]} == {databases.second_database}

    databases.converse(talk, config=EXTENDED)


def test_a_database_for_one_call(databases: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        query = "SELECT * FROM visits"
        shown = await ask(peer, "execute_query", query=query, database=databases.second_database)
        assert shown["rows"] == [["5"]]
        assert "orders" in await tables(peer)
        plan = await ask(peer, "explain_query", query=query, database=databases.second_database)
        assert plan["plan_text"]
        await peer.error("explain_query", connection_id=SHOP_ID, query=query)

    databases.converse(talk, READER, config=EXTENDED)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("switch_schema", {"schema": "nope"}, "Schema not found: nope"),
        ("switch_database", {"database": "nope"}, "Database not found: nope"),
        ("execute_query", {"query": "SELECT 1", "schema": "nope"}, "Schema not found: nope"),
        ("execute_query", {"query": "SELECT 1", "database": "nope"}, "Database not found: nope"),
    ],
)
def test_an_unknown_place_is_refused(
    engine_shop: EngineShop, tool: str, arguments: dict[str, Any], words: str
) -> None:
    error = engine_shop.error(tool, **arguments)
    assert (error["code"], error["message"]) == (-32602, f"Invalid params: {words}")


@pytest.mark.parametrize(
    ("tool", "argument"), [("switch_schema", "schema"), ("switch_database", "database")]
)
def test_a_reader_may_not_switch(engine_shop: EngineShop, tool: str, argument: str) -> None:
    place = (
        engine_shop.elsewhere or engine_shop.schema
        if argument == "schema"
        else engine_shop.database
    )
    error = engine_shop.error(tool, READER, **{argument: place})
    assert error["code"] == -32007
    assert error["message"] == f"Forbidden: Tool '{tool}' requires additional scopes"


def test_a_hint_names_the_places_there_are(engine_shop: EngineShop) -> None:
    error = engine_shop.error("switch_schema", schema="nope")
    assert engine_shop.schema in error["data"]["hint"]
    assert "nope" not in msgspec.json.encode(error["data"]).decode()
