"""Masked columns are marked where tables are described, and named by a result and an export that
touched them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from contract.surfaces.engine_shops import EngineShop
from contract.surfaces.test_masks_say_so import MASKS, SAID
from support.surface_client import Peer
from support.surface_gateway import SHOP_ID


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
