"""Joins that no key declares: `core` confirms them by values that the caller may see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contract.surfaces.core_conversation import converse, samples
from contract.surfaces.engine_shops import ENGINE_SHOPS, EngineShop
from tidegate.model.source_settings import Mask, RowFilter

LIBRARY = """
CREATE TABLE readers (id INTEGER PRIMARY KEY, city VARCHAR(20));
CREATE TABLE shelf (shelf_code VARCHAR(10), floor INTEGER);
CREATE TABLE loans (loan_no INTEGER PRIMARY KEY, reader_id INTEGER, shelf_code VARCHAR(10),
  ticket_id INTEGER, days INTEGER);
CREATE TABLE tickets (id INTEGER PRIMARY KEY, state VARCHAR(20));
INSERT INTO readers VALUES (11, 'Oslo'), (12, 'Oslo'), (13, 'Lima'), (14, 'Lima');
INSERT INTO shelf VALUES ('A-1', 1), ('A-2', 1), ('B-1', 2);
INSERT INTO tickets VALUES (901, 'open'), (902, 'open');
INSERT INTO loans VALUES (1, 11, 'A-1', 1, 5), (2, 11, 'A-1', 2, 6), (3, 12, 'B-1', 3, 7),
  (4, 13, 'B-1', 4, 8), (5, 14, 'A-1', 5, 9);
"""


def described(shop: EngineShop, **rules: Any) -> str:
    shop.script(LIBRARY)
    line, _ = converse(shop, lambda peer: peer.text("describe", tables=["loans"]), **rules)
    return line


def test_values_confirm_joins_find_others_and_contradict_names(engine_shop: EngineShop) -> None:
    line = described(engine_shop)
    assert "~>readers.id" in line
    assert "~>shelf.shelf_code" in line  # no key of `shelf` is declared
    assert "tickets" not in line  # `ticket_id` has none of the tickets


def test_a_masked_column_is_not_compared(engine_shop: EngineShop) -> None:
    mask = Mask(f"{engine_shop.schema}.loans.ticket_id")
    line = described(engine_shop, masks=(mask,))
    assert "~?>tickets.id" in line  # by its name alone
    assert "~>readers.id" in line
    assert not any("ticket_id" in event["statement"] for event in samples(engine_shop))


def test_a_row_that_is_filtered_away_contradicts_nothing(engine_shop: EngineShop) -> None:
    few = RowFilter(f"{engine_shop.schema}.readers", "city = 'Nowhere'")
    assert "~?>readers.id" in described(engine_shop, filters=(few,))


def test_a_table_that_cannot_be_read_leaves_the_other_joins(tmp_path: Path) -> None:
    shop = ENGINE_SHOPS["postgres"](tmp_path)
    shop.script("CREATE TABLE seed (shelf_code VARCHAR(10), days INTEGER);")
    shop.script("CREATE MATERIALIZED VIEW copies AS SELECT shelf_code, days FROM seed;")
    line = described(shop, masks=(Mask("seed.days"),))  # `copies` has rows of a masked table
    refused = [each for each in samples(shop) if each["phase"] == "refusal"]
    assert any("copies" in each["statement"] and "loans" in each["statement"] for each in refused)
    assert "~>readers.id" in line
    assert "~>shelf.shelf_code" in line


def test_what_is_compared_stays_in_the_database(engine_shop: EngineShop) -> None:
    described(engine_shop)
    compared = [each for each in samples(engine_shop) if "EXISTS" in each["statement"]]
    assert compared
    assert all("'" not in each["statement"] for each in compared)
