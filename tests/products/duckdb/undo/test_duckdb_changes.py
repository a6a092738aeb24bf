"""What is particular to DuckDB: foreign keys, types, indexes, and the limit of rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.undo_shops import DuckdbShop, Shop, gate_of
from tidegate.errors import Code
from tidegate.model.requests import Query
from tidegate.model.statements import Statement
from tidegate.sql.change_outline import outline_change


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = DuckdbShop(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE items SET price = 1",
        "DELETE FROM items",
        "DELETE FROM items RETURNING id",
        "INSERT INTO items (id) SELECT id + 10 FROM items",
        "INSERT INTO items (id) VALUES (11), (12), (13) RETURNING id",
    ],
)
async def test_a_change_of_more_rows_is_rolled_back(shop: Shop, text: str) -> None:
    before = shop.contents("items")
    async with gate_of(shop, undo="off", max_rows_changed=2) as gate:
        error = await gate.error(Query(Statement(text)))
        assert error.code is Code.LIMIT_CHANGES
        assert (error.details["limit"], error.details["rows"]) == (2, 3)
    assert shop.contents("items") == before
    async with gate_of(shop, undo="off", max_rows_changed=3) as gate:
        page = await gate.change(text)
        assert page.affected == 3
    assert shop.contents("items") != before


async def test_no_person_is_asked_about_what_a_dry_run_shows_to_be_too_much(shop: Shop) -> None:
    async with gate_of(shop, undo="off", approval_for="writes", max_rows_changed=2) as gate:
        error = await gate.error(Query(Statement("UPDATE items SET price = 1")))
        assert error.code is Code.LIMIT_CHANGES
        assert gate.app.approvals.list() == ()


UNKEPT = {
    "CREATE TABLE t (a INTEGER, b INTEGER)": "no primary key",
    "CREATE TABLE t (a DOUBLE PRIMARY KEY, b INTEGER)": "floating-point",
    "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER, c INTEGER[])": "type that is not kept",
    "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER);"
    "CREATE TABLE c (a INTEGER REFERENCES t (a))":
        "foreign key",
    "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER);"
    "CREATE TRIGGER noted AFTER UPDATE ON items INSERT INTO loose VALUES (3)": "triggers",
}  # fmt: skip


@pytest.mark.parametrize("table", UNKEPT)
async def test_what_is_not_offered_is_known_before_the_yes(shop: Shop, table: str) -> None:
    shop.script(table)
    shop.script("INSERT INTO t (a, b) VALUES (1, 1)")
    text = "UPDATE t SET b = 2 WHERE a = 1"
    async with gate_of(shop, approval_for="writes") as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.APPROVAL_NEEDED
        reversible = gate.app.approvals.list()[0].subject.reversible
        assert reversible is not None and not reversible.possible
        assert UNKEPT[table] in reversible.reason
    before = shop.contents("t")
    async with gate_of(shop, undo="require") as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.UNDO_UNAVAILABLE
    assert shop.contents("t") == before
    async with gate_of(shop) as gate:
        page = await gate.change(text)
        assert (page.affected, page.change) == (1, "")
    assert shop.rows("SELECT b FROM t") == [(2,)]


@pytest.mark.parametrize(
    "steps",
    [
        ("DELETE FROM named WHERE id = 1", "INSERT INTO named VALUES (1, 'a', 1)"),
        ("UPDATE named SET name = 'z' WHERE id = 1", "UPDATE named SET name = 'a' WHERE id = 1"),
        ("UPDATE named SET made = 9 WHERE id = 1", "DELETE FROM named WHERE id = 1"),
        ("INSERT INTO named VALUES (9, 'z', 9)", "DELETE FROM named WHERE id = 9"),
    ],
)
def test_the_database_takes_a_key_again_that_one_transaction_has_deleted(
    shop: Shop, steps: tuple[str, ...]
) -> None:
    """Older versions refused that. Rows of indexed tables are put back by what this shows."""
    shop.script(
        "CREATE TABLE named (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE, made INTEGER);"
        "CREATE INDEX by_time ON named (made); INSERT INTO named VALUES (1, 'a', 1), (2, 'b', 2)"
    )
    shop.script(";".join(["BEGIN", *steps, "COMMIT"]))
    shop.script(";".join(["BEGIN", "DELETE FROM named WHERE id = 2", "INSERT INTO named VALUES"
        " (2, 'b', 2)", "COMMIT"]))  # fmt: skip
    assert shop.rows("SELECT count(*) FROM named WHERE id = 2") == [(1,)]


async def test_rows_of_indexed_and_unique_columns_go_back(shop: Shop) -> None:
    shop.script(
        "CREATE TABLE named (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE, made INTEGER);"
        "CREATE INDEX by_time ON named (made); INSERT INTO named VALUES (1, 'a', 1), (2, 'b', 2)"
    )
    before = shop.contents("named")
    async with gate_of(shop) as gate:
        for text in ("UPDATE named SET name = name || 'x', made = 7", "DELETE FROM named"):
            page = await gate.change(text)
            assert shop.contents("named") != before
            await gate.undo(page.change)
            assert shop.contents("named") == before


PARAMETERS = (
    ("INSERT INTO items (id, name) VALUES (?, ?), (8, ?)", (7, "a", "b")),
    ("WITH n AS (SELECT ? AS k) UPDATE items SET price = ? FROM n WHERE k = id AND name = ?",
     (1, 5, "one")),
    ("DELETE FROM items WHERE id IN (?, ?) RETURNING name", (1, 2)),
    ("UPDATE items SET price = $2 WHERE id = $1 OR price = $2", (1, 20)),
)  # fmt: skip


async def test_parameters_are_bound_to_the_query_that_reads_the_rows(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        for text, params in PARAMETERS:
            page = await gate.ask(Query(Statement(text, params)))
            assert page.change and shop.contents("items") != before, text
            await gate.undo(page.change)
            assert shop.contents("items") == before, text
    async with gate_of(shop, approval_for="writes") as gate:
        for text, params in PARAMETERS[:2]:
            assert (await gate.error(Query(Statement(text, params)))).code is Code.APPROVAL_NEEDED
        shown = [each.subject.reversible for each in gate.app.approvals.list()]
        assert [each.possible for each in shown if each] == [True, True]


@pytest.mark.parametrize("mark", ["?2", "$a"])
def test_other_placeholders_are_none_that_can_be_bound_to_it(mark: str) -> None:
    text = f"UPDATE items SET price = {mark} WHERE id = 1"
    assert outline_change(text, "duckdb") == "its parameters are not plain placeholders"
