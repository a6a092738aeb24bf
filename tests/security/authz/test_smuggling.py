"""Ways round the gate that were open elsewhere: each must end in a refusal and change nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from support.surface_client import OWNER, READER, Peer
from support.surface_gateway import SHOP_ID, SqliteGate, sqlite_source
from support.surface_shop import build_shop
from tidegate.config.model import Config
from tidegate.model.actors import Actor, Scope
from tidegate.surfaces.registry import open_surface

ResultT = TypeVar("ResultT")
OTHER = Actor("tok_other", "other", Scope.READ_ONLY)
WRITES = (
    "DELETE FROM orders",
    "DROP TABLE orders",
    "INSERT INTO customers (email, full_name) VALUES ('x', 'x')",
    "UPDATE orders SET total = 0",
    "WITH gone AS (SELECT 1) DELETE FROM orders",
    "CREATE TABLE t (i)",
    "PRAGMA user_version = 7",
    "VACUUM INTO 'copy.db'",
)
INJECTIONS = (
    "orders; DROP TABLE orders",
    "orders' --",
    'orders"; DELETE FROM orders; --',
    "main.orders",
    "sqlite_master",
    "../../etc/passwd",
    "orders\x00",
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return build_shop(tmp_path / "shop.db")


def contents(path: Path) -> tuple[list[str], int]:
    """Everything in the database, as SQL, and its user version."""
    connection = sqlite3.connect(path)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return list(connection.iterdump()), version
    finally:
        connection.close()


def converse(
    shop: Path,
    name: str,
    talk: Callable[[Callable[[Actor], Awaitable[Peer]]], Awaitable[ResultT]],
) -> ResultT:
    """Run `talk` with a maker of peers on one open server; the database must stay as it was."""

    async def whole() -> ResultT:
        async with SqliteGate(shop.parent, sqlite_source(shop)).opened() as gate:
            surface = open_surface(name, gate, Config())

            async def peer(actor: Actor) -> Peer:
                opened = Peer(surface, actor)
                await opened.open()
                return opened

            return await talk(peer)

    before = contents(shop)
    result = asyncio.run(whole())
    assert contents(shop) == before
    return result


@pytest.mark.parametrize("text", WRITES)
def test_explaining_a_write_does_not_write(shop: Path, text: str) -> None:
    async def talk(peer: Callable[[Actor], Awaitable[Peer]]) -> list[str]:
        owner, reader = await peer(OWNER), await peer(READER)
        return [
            await owner.text("explain", sql=text),
            await reader.text("explain", sql=text),
            await reader.text("query", sql=f"EXPLAIN QUERY PLAN {text}"),
        ]

    is_plain = not text.startswith(("PRAGMA", "VACUUM"))
    start = '{"columns":["id","parent",' if is_plain else "policy.denied: "
    for reply in converse(shop, "core", talk):
        assert reply.startswith(start), reply


@pytest.mark.parametrize("text", WRITES)
def test_a_write_in_disguise_is_refused(shop: Path, text: str) -> None:
    async def talk(peer: Callable[[Actor], Awaitable[Peer]]) -> list[dict[str, Any]]:
        reader = await peer(READER)
        disguises = (f"/* SELECT */ {text}", f"SELECT 1; {text}", f"\ufeff{text}", f"({text})")
        return [await reader.call("query", sql=disguise) for disguise in disguises]

    for reply in converse(shop, "core", talk):
        assert reply["result"]["isError"] is True


@pytest.mark.needs("workbench")
@pytest.mark.parametrize("name", INJECTIONS)
@pytest.mark.parametrize("tool", ["describe_table", "get_table_ddl", "list_tables"])
def test_a_name_is_a_name_and_never_sql(shop: Path, tool: str, name: str) -> None:
    async def talk(peer: Callable[[Actor], Awaitable[Peer]]) -> list[dict[str, Any]]:
        reader = await peer(READER)
        fields: tuple[str, ...] = ("schema", "database")
        if tool != "list_tables":
            fields = ("table", "schema")
        replies: list[dict[str, Any]] = []
        for field in fields:
            arguments = {"connection_id": SHOP_ID, field: name}
            if field != "table" and "table" in fields:
                arguments["table"] = "orders"
            replies.append(await reader.call(tool, **arguments))
        return replies

    for reply in converse(shop, "workbench", talk):
        assert reply["error"]["code"] == -32602


@pytest.mark.needs("workbench")
@pytest.mark.parametrize("field", ["database", "schema"])
def test_a_query_cannot_be_moved_elsewhere(shop: Path, field: str) -> None:
    async def talk(peer: Callable[[Actor], Awaitable[Peer]]) -> dict[str, Any]:
        arguments = {"connection_id": SHOP_ID, "query": "SELECT 1", field: "/etc/passwd"}
        return await (await peer(READER)).error("execute_query", **arguments)

    assert converse(shop, "workbench", talk)["code"] == -32602


def test_a_handle_is_of_no_use_to_another_actor(shop: Path) -> None:
    async def talk(peer: Callable[[Actor], Awaitable[Peer]]) -> tuple[str, str]:
        owner = await peer(OWNER)
        said = await owner.text("query", sql="SELECT id FROM customers", max_rows=1)
        handle = msgspec.json.decode(said)["more"]
        stolen = await (await peer(OTHER)).text("more", handle=handle)
        return stolen, await owner.text("more", handle=handle)

    stolen, own = converse(shop, "core", talk)
    assert stolen.startswith("result.gone: ")
    assert msgspec.json.decode(own)["rows"] == [[2], [3]]


def test_search_words_and_table_names_of_core_are_never_sql(shop: Path) -> None:
    async def talk(peer: Callable[[Actor], Awaitable[Peer]]) -> list[tuple[str, str, str]]:
        reader = await peer(READER)
        return [
            (
                name,
                await reader.text("search", words=name),
                await reader.text("describe", tables=[name]),
            )
            for name in INJECTIONS
        ]

    for name, found, described in converse(shop, "core", talk):
        assert "orders" in found and "argument.invalid" not in found
        if name == "main.orders":
            assert described.startswith("orders(")
        else:
            assert described.startswith("source.unknown_table: ")


@pytest.mark.needs("workbench")
def test_a_resource_address_is_a_uuid_or_nothing(shop: Path) -> None:
    async def talk(peer: Callable[[Actor], Awaitable[Peer]]) -> list[dict[str, Any]]:
        reader = await peer(READER)
        return [
            await reader.request("resources/read", uri=uri)
            for uri in (
                "tablepro://connections/../schema",
                "tablepro://connections/%2e%2e/schema",
                f"tablepro://connections/{SHOP_ID}/schema/../../x",
                f"tablepro://connections/{SHOP_ID}/history?sql=DROP",
                "tablepro://connections/shop/schema",
                "file:///etc/passwd",
            )
        ]

    for reply in converse(shop, "workbench", talk):
        assert reply["error"]["code"] in (-32601, -32602)
