"""What `core` says after a mistake, in each database's own words for it."""

from __future__ import annotations

import asyncio

from contract.surfaces.engine_shops import EngineShop
from support.surface_client import Peer
from tidegate.surfaces import core


def answer(shop: EngineShop, sql: str) -> str:
    async def whole() -> str:
        async with shop.gate().opened() as gate:
            peer = Peer(core.surface(gate))
            await peer.open()
            return await peer.text("query", sql=sql)

    return asyncio.run(whole())


def test_an_unknown_column_gets_the_nearest_with_its_type(engine_shop: EngineShop) -> None:
    said = answer(engine_shop, "SELECT emial FROM customers")
    assert said.startswith("sql.failed: ")
    assert "Nearest: customers.email varchar(60)" in said or "customers.email varchar." in said


def test_a_column_of_the_tables_in_the_statement_comes_first(engine_shop: EngineShop) -> None:
    assert "Nearest: customers.full_name" in answer(
        engine_shop, "SELECT c.fullname FROM customers c"
    )


def test_an_unknown_table_gets_the_nearest(engine_shop: EngineShop) -> None:
    assert "orders" in answer(engine_shop, "SELECT 1 FROM ordes").partition("Nearest:")[2]


def test_an_ambiguous_column_names_both(engine_shop: EngineShop) -> None:
    said = answer(
        engine_shop, "SELECT id FROM customers JOIN orders ON customers.id = orders.customer_id"
    )
    both = said.partition("Say which: ")[2]
    assert "customers.id int" in both and "orders.id int" in both


def test_a_clash_of_types_gets_the_cast(engine_shop: EngineShop) -> None:
    said = answer(engine_shop, "SELECT id FROM orders WHERE placed_at > 5")
    if engine_shop.product in ("PostgreSQL", "DuckDB"):
        assert "CAST(" in said.partition("Cast one side: ")[2]
    else:
        assert said.startswith('{"columns":["id"]')  # these databases compare them


def test_two_statements_in_one_text_are_to_be_sent_as_an_array(engine_shop: EngineShop) -> None:
    said = answer(engine_shop, "SELECT 1; SELECT 2")
    assert said.endswith("The text holds several statements. Send the others in `also`.")
