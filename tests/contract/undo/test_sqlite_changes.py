"""What is particular to SQLite: triggers, cascades, keys, virtual tables, and other writers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.undo_shops import Shop, SqliteShop, gate_of
from tidegate.errors import Code
from tidegate.model.changes import DescribeUndo, UndoChange
from tidegate.model.requests import Query
from tidegate.model.statements import Statement

MORE = """
CREATE TABLE parts (id INTEGER PRIMARY KEY,
  item INTEGER REFERENCES items(id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE loans (id INTEGER PRIMARY KEY,
  item INTEGER REFERENCES items(id) ON DELETE SET NULL ON UPDATE CASCADE);
INSERT INTO parts VALUES (1, 1), (2, 1), (3, 2);
INSERT INTO loans VALUES (1, 1), (2, 2);
CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT, at TEXT);
CREATE TRIGGER noted AFTER UPDATE ON items BEGIN
  INSERT INTO log (what, at) VALUES (new.name, 'then');
  UPDATE items SET price = price + 1000 WHERE id = new.id;
END;
"""
ALL = ("items", "notes", "parts", "loans", "log")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = SqliteShop(tmp_path)
    made.script(MORE)
    yield made
    made.close()


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM items WHERE id = 1",
        "DELETE FROM items",
        "UPDATE items SET name = 'x'",
        "UPDATE items SET id = id + 100",
        "INSERT OR REPLACE INTO items VALUES (1, 'other', 1)",
        "INSERT INTO items VALUES (1, 'x', 1) ON CONFLICT (id) DO UPDATE SET name = 'upsert'",
        "UPDATE OR REPLACE notes SET b = 'x' WHERE a = 1",
    ],
)
async def test_rows_that_triggers_and_foreign_keys_change_go_back_as_well(
    shop: Shop, text: str
) -> None:
    before = shop.contents(*ALL)
    async with gate_of(shop) as gate:
        page = await gate.change(text)
        changed = shop.contents(*ALL)
        assert changed != before
        done = await gate.undo(page.change)
        assert shop.contents(*ALL) == before
        await gate.undo(done.change)
        assert shop.contents(*ALL) == changed


async def test_triggers_do_not_fire_while_rows_go_back_and_do_afterwards(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET name = 'x' WHERE id = 1")
        assert len(shop.rows("SELECT * FROM log")) == 1
        await gate.undo(page.change)
        assert shop.rows("SELECT * FROM log") == []
        await gate.change("UPDATE items SET name = 'y' WHERE id = 1")
        assert len(shop.rows("SELECT * FROM log")) == 1


async def test_rows_of_triggers_and_foreign_keys_count(shop: Shop) -> None:
    before = shop.contents(*ALL)
    for text in ("DELETE FROM items WHERE id = 1", "UPDATE items SET name = 'x' WHERE id = 1"):
        async with gate_of(shop, max_rows_changed=2) as gate:
            error = await gate.error(Query(Statement(text)))
            assert error.code is Code.LIMIT_CHANGES
            assert shop.contents(*ALL) == before


async def test_rows_that_others_refer_to_since_do_not_go(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("INSERT INTO items VALUES (9, 'nine', 9)")
        shop.script("INSERT INTO parts VALUES (9, 9)")
        before = shop.contents(*ALL)
        error = await gate.error(UndoChange(page.change))
        assert error.code is Code.UNDO_UNAVAILABLE and "refer" in error.message
        assert shop.contents(*ALL) == before


async def test_a_constraint_that_no_longer_admits_the_rows_prevents_it(shop: Shop) -> None:
    shop.script("CREATE TABLE unique_names (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
    shop.script("INSERT INTO unique_names VALUES (1, 'a')")
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE unique_names SET name = 'b'")
        shop.script("INSERT INTO unique_names VALUES (2, 'a')")
        before = shop.contents("unique_names")
        error = await gate.error(UndoChange(page.change))
        assert error.code is Code.UNDO_UNAVAILABLE and "constraint" in error.message
        assert shop.contents("unique_names") == before


async def test_swapped_unique_values_go_back(shop: Shop) -> None:
    shop.script("CREATE TABLE ranks (id INTEGER PRIMARY KEY, place INTEGER UNIQUE)")
    shop.script("INSERT INTO ranks VALUES (1, 10), (2, 20), (3, 30)")
    before = shop.contents("ranks")
    async with gate_of(shop) as gate:
        page = await gate.change("INSERT OR REPLACE INTO ranks VALUES (1, 20), (2, 30), (3, 10)")
        await gate.undo(page.change)
        assert shop.contents("ranks") == before


UNKEPT = {
    "CREATE TABLE t (a TEXT PRIMARY KEY, b)": "can hold NULL",
    "CREATE TABLE t (a INTEGER PRIMARY KEY DESC, b)": "can hold NULL",
    "CREATE TABLE t (a, b)": "no primary key",
    "CREATE VIRTUAL TABLE t USING fts5(a, b)": "not an ordinary table",
    "CREATE TABLE t (a INTEGER PRIMARY KEY, b); CREATE VIRTUAL TABLE f USING fts5(x);"
    " CREATE TRIGGER tf AFTER INSERT ON t BEGIN INSERT INTO f VALUES (new.b); END": "ordinary",
}


@pytest.mark.parametrize("table", UNKEPT)
async def test_tables_whose_rows_cannot_be_told_apart_are_not_kept(shop: Shop, table: str) -> None:
    shop.script(table)
    text = "INSERT INTO t (a, b) VALUES (1, 'x')"
    async with gate_of(shop, approval_for="writes") as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.APPROVAL_NEEDED
        reversible = gate.app.approvals.list()[0].subject.reversible
        assert reversible is not None and not reversible.possible
        assert UNKEPT[table] in reversible.reason
    async with gate_of(shop) as gate:
        page = await gate.change(text)
        assert (page.affected, page.change) == (1, "")


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE t (a TEXT NOT NULL PRIMARY KEY, b)",
        "CREATE TABLE t (a TEXT PRIMARY KEY, b) WITHOUT ROWID",
        "CREATE TABLE t (b, a INTEGER PRIMARY KEY)",
        "CREATE TABLE t (a TEXT COLLATE NOCASE NOT NULL PRIMARY KEY, b)",
        'CREATE TABLE t (a INTEGER PRIMARY KEY, "b" TEXT, "odd ""name" TEXT DEFAULT 1) STRICT',
    ],
)
async def test_declared_keys_of_every_form_are_kept(shop: Shop, table: str) -> None:
    shop.script(table)
    shop.script("INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')")
    before = shop.contents("t")
    async with gate_of(shop) as gate:
        for text in ("UPDATE t SET b = 'z'", "DELETE FROM t", "UPDATE t SET a = 5 WHERE b = 'x'"):
            page = await gate.change(text)
            assert shop.contents("t") != before
            await gate.undo(page.change)
            assert shop.contents("t") == before


async def test_a_text_that_is_not_valid_is_not_kept(shop: Shop) -> None:
    shop.script("UPDATE items SET name = CAST(x'ff' AS TEXT) WHERE id = 1")
    async with gate_of(shop) as gate:
        page = await gate.change("DELETE FROM items WHERE id = 1")
        assert (page.affected, page.change) == (1, "")


async def test_a_whole_number_is_another_value_than_a_real_one(shop: Shop) -> None:
    shop.script("CREATE TABLE loose_types (id INTEGER PRIMARY KEY, v)")
    shop.script("INSERT INTO loose_types VALUES (1, 'x')")
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE loose_types SET v = 1")
        shop.script("UPDATE loose_types SET v = 1.0")
        error = await gate.error(UndoChange(page.change))
        assert error.code is Code.UNDO_CONFLICT
        assert shop.rows("SELECT typeof(v) FROM loose_types") == [("real",)]


async def test_changes_of_a_view_are_kept_by_the_tables_behind_it(shop: Shop) -> None:
    shop.script("CREATE VIEW names AS SELECT id, name FROM items")
    shop.script(
        "CREATE TRIGGER renames INSTEAD OF UPDATE ON names BEGIN"
        " UPDATE items SET name = new.name WHERE id = old.id; END"
    )
    before = shop.contents(*ALL)
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE names SET name = 'seen' WHERE id = 1")
        assert page.change
        await gate.undo(page.change)
        assert shop.contents(*ALL) == before


async def test_the_preview_compares_without_changing(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET name = 'x' WHERE id = 1")
        before = shop.contents(*ALL)
        preview = await gate.ask(DescribeUndo(page.change))
        assert preview.possible and {table.table for table in preview.tables} == {"items", "log"}
        assert shop.contents(*ALL) == before
