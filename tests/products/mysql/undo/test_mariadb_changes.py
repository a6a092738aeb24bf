"""What is particular to MariaDB: triggers, cascades, unchanged rows, character sets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.undo_shops import MariadbShop, gate_of
from tidegate.approvals.render import describe
from tidegate.errors import Code
from tidegate.model.changes import UndoChange
from tidegate.model.requests import Query
from tidegate.model.statements import Statement


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[MariadbShop]:
    made = MariadbShop(tmp_path)
    yield made
    made.close()


UNKEPT = {
    "CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE = MyISAM": "InnoDB",
    "CREATE TABLE t (a INT, b INT)": "no primary key",
    "CREATE TABLE t (a DOUBLE PRIMARY KEY, b INT)": "floating-point",
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, p POINT)": "type that is not kept",
    "CREATE TABLE t (a INT PRIMARY KEY, b INT) WITH SYSTEM VERSIONING": "InnoDB",
    "CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES"
    " t (a) ON DELETE CASCADE)": "follow",
}


@pytest.mark.parametrize("table", UNKEPT)
async def test_what_is_not_offered_is_known_before_the_yes(shop: MariadbShop, table: str) -> None:
    shop.script(table)
    shop.script("INSERT INTO t (a, b) VALUES (1, 1)")
    text = "UPDATE t SET b = 2 WHERE a = 1"
    async with gate_of(shop, approval_for="writes") as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.APPROVAL_NEEDED
        reversible = gate.app.approvals.list()[0].subject.reversible
        assert reversible is not None and not reversible.possible
        assert UNKEPT[table] in reversible.reason
    async with gate_of(shop) as gate:
        page = await gate.change(text)
        assert (page.affected, page.change) == (1, "")
        assert shop.rows("SELECT b FROM t") == [(2,)]


async def test_rows_that_an_update_leaves_as_they_are_do_not_count(shop: MariadbShop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 10")
        assert page.affected == 2  # one has that price
        shop.script("UPDATE items SET name = 'mine' WHERE id = 1")
        done = await gate.undo(page.change)
        assert done.rows == 2
        shop.script("UPDATE items SET name = 'one' WHERE id = 1")
        assert shop.contents("items") == before


async def test_triggers_are_named_and_what_they_change_again_is_said(shop: MariadbShop) -> None:
    shop.script(
        "CREATE TABLE log (price INT);"
        "CREATE TRIGGER stamps BEFORE UPDATE ON items FOR EACH ROW SET NEW.price = NEW.price + 1;"
        "CREATE TRIGGER notes_it AFTER UPDATE ON items FOR EACH ROW INSERT INTO log VALUES (1)"
    )
    text = "UPDATE items SET name = 'x' WHERE id = 1"
    async with gate_of(shop, approval_for="writes") as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.APPROVAL_NEEDED
        (question,) = gate.app.approvals.list()
        reversible = question.subject.reversible
        assert reversible is not None and reversible.triggers == ("notes_it", "stamps")
        assert "in other rows does not go back" in describe(question)
    async with gate_of(shop) as gate:
        page = await gate.change(text)
        done = await gate.undo(page.change)
        assert "triggers changed 1" in done.remarks[0]
        assert "other rows was not put back (notes_it, stamps" in done.remarks[1]
        assert shop.rows("SELECT name, price FROM items WHERE id = 1") == [("one", 11)]
        assert len(shop.rows("SELECT * FROM log")) == 2


async def test_a_column_whose_characters_cannot_be_read_keeps_its_bytes(shop: MariadbShop) -> None:
    shop.script(
        "CREATE TABLE odd (a INT PRIMARY KEY, b VARCHAR(9) CHARACTER SET latin1,"
        " c VARCHAR(9) CHARACTER SET koi8r)"
    )
    shop.script("INSERT INTO odd VALUES (1, _latin1 X'81A4', _koi8r X'C1C2')")
    before = shop.rows("SELECT a, HEX(b), HEX(c) FROM odd")
    async with gate_of(shop) as gate:
        for text in ("UPDATE odd SET b = 'x', c = 'y'", "DELETE FROM odd"):
            page = await gate.change(text)
            await gate.undo(page.change)
            assert shop.rows("SELECT a, HEX(b), HEX(c) FROM odd") == before


async def test_children_that_came_since_prevent_that_their_row_goes(shop: MariadbShop) -> None:
    shop.script(
        "CREATE TABLE parts (id INT PRIMARY KEY, item INT,"
        " FOREIGN KEY (item) REFERENCES items (id))"
    )
    async with gate_of(shop) as gate:
        page = await gate.change("INSERT INTO items (id) VALUES (9)")
        shop.script("INSERT INTO parts VALUES (1, 9)")
        before = shop.contents("items", "parts")
        assert (await gate.error(UndoChange(page.change))).code is Code.SQL_FAILED
        assert shop.contents("items", "parts") == before
