"""Schema search by words: what is found, in which order, and when an index is built again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.search.words import Index, PerCatalog, split, stem


def table(name: str, *columns: str, to: tuple[str, ...] = (), comment: str | None = None) -> Table:
    return Table(
        "main",
        name,
        "table",
        columns=tuple(ColumnInfo(column, "text") for column in columns),
        foreign_keys=tuple(ForeignKey("", (f"{other}_id",), other, ("id",)) for other in to),
        comment=comment,
    )


def catalog(*tables: Table, stamp: str = "1") -> Catalog:
    return Catalog("shop", "main", ("main",), tables, stamp)


SHOP = catalog(
    table("customers", "id", "full_name", "email", "city"),
    table("orders", "id", "customer_id", "placed_at", "status", to=("customers",)),
    table("order_items", "id", "order_id", "product_id", "qty", to=("orders", "products")),
    table("products", "id", "sku", "unitPrice", "category_id", to=("categories",)),
    table("categories", "id", "label", comment="How the merchandise is grouped"),
    table("audit_log", "id", "actor", "at"),
    table("payroll_runs", "id", "city"),
)


def found(words: str, limit: int = 10, within: Catalog = SHOP) -> list[str]:
    return [match.table.name for match in Index(within).search(words, limit)[0]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("order_items", ["order", "item"]),
        ("OrderItems", ["order", "item"]),
        ("orderItems2", ["order", "item", "2"]),
        ("HTTPServerLog", ["http", "server", "log"]),
        ("ADDRESS", ["address"]),
        ("größenÄnderung", ["grössen", "änderung"]),
        ("顧客_注文", ["顧客", "注文"]),
        ("___", []),
    ],
)
def test_identifiers_fall_into_their_words(name: str, words: list[str]) -> None:
    assert split(name) == words


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("orders", "order"),
        ("categories", "category"),
        ("boxes", "box"),
        ("addresses", "address"),
        ("status", "status"),
        ("class", "class"),
        ("analysis", "analysis"),
        ("gas", "gas"),
    ],
)
def test_only_plural_endings_are_taken_off(plural: str, singular: str) -> None:
    assert stem(plural) == singular


def test_a_table_name_outranks_a_column_and_a_column_outranks_a_comment() -> None:
    within = catalog(
        table("notes", "id", comment="about a city"), table("shops", "city"), table("city", "id")
    )
    assert found("city", within=within) == ["city", "shops", "notes"]


def test_a_whole_name_outranks_a_part_of_a_name() -> None:
    assert found("order")[:2] == ["orders", "order_items"]


def test_two_words_find_two_tables_first() -> None:
    assert set(found("customers products", limit=2)) == {"customers", "products"}


def test_prefixes_and_substrings_find_less_surely() -> None:
    assert found("cust")[0] == "customers"
    assert found("duct")[0] == "products"
    assert found("orderitems")[0] == "order_items"


def test_matching_columns_are_named_best_first() -> None:
    matches, _ = Index(SHOP).search("price")
    assert matches[0].table.name == "products"
    assert matches[0].columns == ("unitPrice",)


def test_a_neighbor_by_foreign_key_raises_a_table() -> None:
    within = catalog(
        table("visit_notes", "id"),
        table("visit_facts", "id", to=("clinics",)),
        table("clinics", "id", "visit_day"),
    )
    assert found("visit", within=within) == ["visit_facts", "visit_notes", "clinics"]


def test_small_words_are_noise_unless_nothing_else_is_asked() -> None:
    assert found("find the tables for customers") == found("customers")
    assert found("at") == ["audit_log", *[name for name in found("at") if name != "audit_log"]]


def test_nothing_asked_or_nothing_alike_finds_nothing() -> None:
    assert Index(SHOP).search("") == ([], 0)
    assert Index(SHOP).search("!!") == ([], 0)
    assert Index(SHOP).search("zebra") == ([], 0)


def test_a_schema_that_is_not_the_default_one_is_found_by_its_name() -> None:
    sales = msgspec.structs.replace(table("orders", "id"), schema="sales")
    within = catalog(table("orders", "id"), sales)
    matches, _ = Index(within).search("sales orders")
    assert [match.table.schema for match in matches] == ["sales", "main"]
    assert Index(within).search("main") == ([], 0)


def test_the_count_tells_how_many_more_there_are() -> None:
    matches, total = Index(SHOP).search("id", limit=2)
    assert len(matches) == 2
    assert total == 7


def test_an_index_is_kept_while_the_catalog_is_the_same() -> None:
    indexes = PerCatalog(Index)
    first = indexes.of(SHOP)
    assert indexes.of(SHOP) is first
    assert indexes.of(msgspec.structs.replace(SHOP)) is first


def test_another_stamp_or_other_contents_have_an_index_of_their_own() -> None:
    indexes = PerCatalog(Index)
    first = indexes.of(SHOP)
    assert indexes.of(msgspec.structs.replace(SHOP, version="2")) is not first
    fewer = msgspec.structs.replace(SHOP, tables=SHOP.tables[:1])
    assert indexes.of(fewer).search("orders") == ([], 0)
    assert indexes.of(SHOP) is first


def test_the_least_used_index_is_dropped() -> None:
    indexes = PerCatalog(Index, most=2)
    other, third = (msgspec.structs.replace(SHOP, version=stamp) for stamp in ("b", "c"))
    first, second = indexes.of(SHOP), indexes.of(other)
    assert indexes.of(SHOP) is first
    indexes.of(third)
    assert indexes.of(SHOP) is first
    assert indexes.of(other) is not second


@given(st.text(max_size=40))
def test_any_text_can_be_searched_for(words: str) -> None:
    matches, total = Index(SHOP).search(words, 3)
    assert len(matches) <= 3
    assert total >= len(matches)
    assert len({match.table.name for match in matches}) == len(matches)


@given(st.text(min_size=1, max_size=20))
def test_a_table_is_found_by_its_own_name(name: str) -> None:
    within = catalog(table("first", "id"), table(name, "id"), table("last", "id"))
    if split(name):
        assert name in found(name, within=within)


def test_an_abbreviation_is_found_by_the_whole_word() -> None:
    tables = catalog(
        table("hr_dept", "nm"), table("pay", "ccy", "amt"), table("ord_hdr", "stat"), table("x")
    )
    assert found("department", within=tables) == ["hr_dept"]
    assert found("currency", within=tables) == ["pay"]
    assert found("amount", within=tables) == ["pay"]
    assert found("status", within=tables) == ["ord_hdr"]
    assert found("order header", within=tables) == ["ord_hdr"]
    assert found("partment", within=tables) == []
