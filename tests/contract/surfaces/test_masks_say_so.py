"""Masked columns are marked where tables are described, and named once by a result that touched
them, on both surfaces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from contract.surfaces.engine_shops import EngineShop
from support.surface_client import Peer
from support.surface_gateway import SHOP_ID
from tidegate.model.source_settings import Mask
from tidegate.surfaces import core

SAID = "customers.email is masked: conditions and counts use the mask, not the value"
# A table of that name in another schema has no such column, and does not close the source.
MASKS = (Mask("customers.email", "hash"),)


def _workbench(engine_shop: EngineShop, talk: Callable[[Peer], Awaitable[Any]]) -> Any:
    return engine_shop.converse(talk, gate=engine_shop.gate(masks=MASKS))


def _query(engine_shop: EngineShop, text: str) -> dict[str, Any]:
    async def talk(peer: Peer) -> Any:
        return await peer.result("execute_query", connection_id=SHOP_ID, query=text)

    return _workbench(engine_shop, talk)["structuredContent"]


def test_a_result_that_touches_a_masked_column_says_so(engine_shop: EngineShop) -> None:
    for text in (
        "SELECT email FROM customers",
        "SELECT count(*) FROM customers WHERE email = 'ada@example.org'",
        "SELECT full_name FROM customers ORDER BY email",
    ):
        assert SAID in _query(engine_shop, text)["status_message"], text
    for text in ("SELECT full_name FROM customers", "SELECT count(*) FROM customers"):
        assert "masked" not in _query(engine_shop, text).get("status_message", ""), text
    if engine_shop.elsewhere is not None:
        found = _query(engine_shop, f"SELECT nickname FROM {engine_shop.elsewhere}.customers")
        assert found["rows"] == [["the other one"]]


def test_a_description_marks_the_masked_column(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> Any:
        return await peer.result("describe_table", connection_id=SHOP_ID, table="customers")

    columns = _workbench(engine_shop, talk)["structuredContent"]["columns"]
    assert {column["name"]: column.get("masked") for column in columns} == {
        "id": None,
        "email": "hash",
        "full_name": None,
        "city": None,
    }


def test_an_export_says_that_masked_columns_are_in_it(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> Any:
        return await peer.result(
            "export_data", connection_id=SHOP_ID, format="csv", tables=["customers", "orders"]
        )

    customers, orders = _workbench(engine_shop, talk)["structuredContent"]["exports"]
    assert customers["note"] == SAID
    assert "note" not in orders


def test_core_says_it_once_and_marks_columns(engine_shop: EngineShop) -> None:
    async def scenario() -> list[str]:
        gate = engine_shop.gate(masks=MASKS)
        async with gate.opened():
            peer = Peer(core.surface(gate))
            await peer.open()
            first = await peer.text("query", sql="SELECT email FROM customers", max_rows=1)
            handle = first.partition('"more":"')[2].partition('"')[0]
            return [
                first,
                await peer.text("more", handle=handle),
                await peer.text("query", sql="SELECT city FROM customers"),
                await peer.text("describe", tables=["customers"]),
                await peer.text("search", words="customers"),
            ]

    first, rest, other, described, listed = asyncio.run(scenario())
    assert first.count("masked") == 1 and SAID in first
    assert "masked" not in rest and "masked" not in other
    assert "masked:hash" in described and described.count("masked") == 1
    assert "masked:hash" in listed
