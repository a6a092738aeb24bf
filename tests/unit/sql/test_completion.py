"""A statement is completed from a catalogue, wherever its reader is in it."""

from __future__ import annotations

import pytest

from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.sql.completion import MOST_ITEMS, Item, complete


def table(
    name: str, columns: str, keys: tuple[ForeignKey, ...] = (), schema: str = "public"
) -> Table:
    infos = tuple(ColumnInfo(each, "integer") for each in columns.split())
    return Table(schema, name, "table", infos, foreign_keys=keys)


CATALOG = Catalog(
    "shop",
    "public",
    ("public", "audit"),
    (
        table("customers", "id name city"),
        table(
            "orders",
            "id customer_id total",
            (ForeignKey("of", ("customer_id",), "customers", ("id",)),),
        ),
        table("Odd Names", "select Größe"),
        table("lines", "at", schema="audit"),
    ),
    "1",
)


def at(text: str, dialect: str = "postgres") -> list[Item]:
    """The proposals at the sign | of a text."""
    return complete(text.replace("|", "", 1), text.index("|"), dialect, CATALOG).items


def names(items: list[Item], kind: str) -> list[str]:
    return [item.label for item in items if item.kind == kind]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("SELECT * FROM cu|", "table", ["customers"]),
        ("SELECT * FROM customers, or|", "table", ["orders"]),
        ("INSERT INTO or|", "table", ["orders"]),
        ("UPDATE or|", "table", ["orders"]),
        ("SELECT * FROM audit.|", "table", ["lines"]),
        ("SELECT * FROM aud|", "schema", ["audit"]),
        ("SELECT c.| FROM customers c", "column", ["id", "name", "city"]),
        ("SELECT c.ci| FROM customers AS c", "column", ["city"]),
        ("SELECT customers.na| FROM customers", "column", ["name"]),
        ("SELECT tot| FROM orders WHERE 1", "column", ["total"]),
        ("SELECT 1 FROM orders WHERE tot|", "column", ["total"]),
        ("SELECT 1 FROM orders ORDER BY tot|", "column", ["total"]),
        ("UPDATE orders SET tot|", "column", ["total"]),
        ("SELECT (SELECT na| FROM customers) FROM orders", "column", ["name"]),
        ("SELECT 1; SELECT ci| FROM customers; SELECT 2", "column", ["city"]),
        ("SELECT count(ci|) FROM customers", "column", ["city"]),
        ("SELECT ci| FROM", "column", []),
    ],
)
def test_what_may_come_is_proposed(text: str, kind: str, expected: list[str]) -> None:
    assert names(at(text), kind) == expected


def test_a_join_is_proposed_by_the_foreign_key_whichever_table_has_it() -> None:
    for text, condition in (
        ("SELECT 1 FROM orders o JOIN customers c ON |", "o.customer_id = c.id"),
        ("SELECT 1 FROM customers JOIN orders ON |", "orders.customer_id = customers.id"),
    ):
        assert at(text)[0].insert == condition
    assert names(at("SELECT 1 FROM orders JOIN |"), "table")[0] == "customers"


def test_names_are_written_as_the_dialect_reads_them() -> None:
    (odd,) = [item for item in at("SELECT * FROM odd|") if item.kind == "table"]
    assert (odd.label, odd.insert) == ("Odd Names", '"Odd Names"')
    (other,) = [item for item in at("SELECT * FROM lin|") if item.kind == "table"]
    assert other.insert == "audit.lines"
    inserts = [item.insert for item in at('SELECT o.| FROM "Odd Names" o')]
    assert inserts[0] == '"select"'
    found = complete('SELECT * FROM "Od', 17, "postgres", CATALOG)
    assert (found.start, found.end, found.items[0].insert) == (14, 17, '"Odd Names"')


def test_a_column_of_two_tables_is_written_with_its_table() -> None:
    items = [item for item in at("SELECT id| FROM orders o, customers c") if item.kind == "column"]
    assert [item.insert for item in items] == ["o.id", "c.id", "customer_id"]


def test_the_most_fitting_proposals_come_first_and_are_bounded() -> None:
    items = at("SELECT | FROM customers")
    assert len(items) <= MOST_ITEMS
    assert [item.kind for item in items[:3]] == ["column"] * 3
    assert names(at("SELECT id FROM orders wher|"), "keyword") == ["WHERE"]


@pytest.mark.parametrize(
    "text", ["SELECT 'or|'", "SELECT 'or|", "SELECT 1 -- or|", "SELECT /* or| */ 1", "SELECT 12|3"]
)
def test_nothing_is_proposed_in_strings_comments_and_numbers(text: str) -> None:
    assert at(text) == []


def test_parameters_of_the_text_are_proposed_behind_a_colon() -> None:
    items = at("SELECT * FROM orders WHERE id = :order_id AND total = :o|")
    assert [(item.label, item.kind) for item in items] == [(":order_id", "parameter")]


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb", "cloud"])
def test_no_text_is_too_broken_to_be_completed(dialect: str) -> None:
    text = "SELECT 'é😀\" $$ ` [ FROM orders JOIN ( ; -- x\n/* WHERE id = :a . , AS o.cu"
    for place in range(len(text) + 1):
        for end in (place, len(text)):
            found = complete(text[:end], place, dialect, CATALOG)
            assert 0 <= found.start <= place <= found.end <= end
