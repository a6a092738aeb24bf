"""What is SQLite's own in edits of rows: storage classes, triggers, and rows that follow."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.row_edits import Editor
from support.undo_shops import Shop, SqliteShop, gate_of
from tidegate.errors import Code, TidegateError
from tidegate.model.row_changes import DEFAULT, ReadImages


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = SqliteShop(tmp_path)
    yield made
    made.close()


CLASSES = [5, "5", 5.0, b"5", None, "", "a\0b", 2**63 - 1, -(2**63), 0.1, float("inf"), "é"]


@pytest.mark.parametrize("value", CLASSES, ids=repr)
async def test_a_value_keeps_its_class(shop: Shop, value: Any) -> None:
    shop.script("CREATE TABLE any_class (id INTEGER PRIMARY KEY, x, y)")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "any_class")
        found = await editor.read()
        await editor.submit(found, editor.insert(found, id=1, x=value, y=1))
        (stored,) = shop.rows("SELECT x FROM any_class")
        assert repr(stored[0]) == repr(value)
        found = await editor.read(("1",))
        await editor.submit(found, editor.update(found, 0, y=2))
        assert repr(shop.rows("SELECT x FROM any_class")[0][0]) == repr(value)


@pytest.mark.parametrize(
    ("was", "now"), [("5", "'5'"), ("'a'", "'A'"), ("x'61'", "'a'"), ("1", "1.0")]
)
async def test_another_class_or_case_is_another_value(shop: Shop, was: str, now: str) -> None:
    shop.script("CREATE TABLE any_class (id INTEGER PRIMARY KEY, x COLLATE NOCASE)")
    shop.script(f"INSERT INTO any_class VALUES (1, {was})")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "any_class")
        found = await editor.read(("1",))
        shop.script(f"UPDATE any_class SET x = {now}")
        before = shop.contents("any_class")
        error = await editor.refused(found, editor.update(found, 0, x="mine"))
        assert error.code is Code.ROWS_CONFLICT
        assert shop.contents("any_class") == before


async def test_a_key_without_a_type_is_found_by_its_text_unless_that_is_two_keys(
    shop: Shop,
) -> None:
    shop.script("CREATE TABLE keys (k NOT NULL, v, PRIMARY KEY (k)) WITHOUT ROWID")
    shop.script("INSERT INTO keys VALUES (5, 'number'), ('6', 'text'), (7, 'a'), ('7', 'b')")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "keys")
        found = await editor.read(("5",), ("6",), ("8",))
        assert [row and row.shown[1] for row in found.rows] == ["number", "text", None]
        await editor.submit(found, editor.update(found, 0, v="n"), editor.delete(found, 1))
        expected = [(5, "n"), (7, "a"), ("7", "b")]
        assert shop.rows("SELECT k, v FROM keys") == expected
        with pytest.raises(Exception, match="written so"):
            await editor.read(("7",))


async def test_a_strict_table_refuses_another_class(shop: Shop) -> None:
    shop.script("CREATE TABLE narrow (id INTEGER PRIMARY KEY, n INTEGER, a ANY) STRICT")
    shop.script("INSERT INTO narrow VALUES (1, 1, '5')")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "narrow")
        found = await editor.read(("1",))
        error = await editor.refused(found, editor.update(found, 0, n="x"))
        assert error.code is Code.SQL_FAILED
        await editor.submit(found, editor.update(found, 0, n=2, a=5))
        assert shop.rows("SELECT n, a FROM narrow") == [(2, 5)]


async def test_what_triggers_and_keys_change_is_one_change_that_can_be_taken_back(
    shop: Shop,
) -> None:
    shop.script("""
        CREATE TABLE parents (id INTEGER PRIMARY KEY, name, changed DEFAULT 0);
        CREATE TABLE children (id INTEGER PRIMARY KEY, parent REFERENCES parents (id)
          ON DELETE CASCADE ON UPDATE CASCADE);
        CREATE TABLE log (n INTEGER PRIMARY KEY, what);
        CREATE TRIGGER touched AFTER UPDATE OF name ON parents BEGIN
          UPDATE parents SET changed = changed + 1 WHERE id = new.id;
          INSERT INTO log (what) VALUES (new.name); END;
        INSERT INTO parents (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c');
        INSERT INTO children VALUES (1, 1), (2, 2), (3, 3);
    """)
    tables = ("parents", "children", "log")
    before = shop.contents(*tables)
    async with gate_of(shop) as gate:
        editor = Editor(gate, "parents")
        found = await editor.read(("1",), ("2",), ("3",))
        done = await editor.submit(
            found,
            editor.update(found, 0, name="new"),
            editor.delete(found, 1),
            editor.update(found, 2, id=30),
        )
        assert editor.shown(done.rows[0], found) == {"id": 1, "name": "new", "changed": 1}
        assert shop.rows("SELECT parent FROM children ORDER BY id") == [(1,), (30,)]
        assert shop.rows("SELECT what FROM log") == [("new",)]
        await gate.undo(done.change)
        assert shop.contents(*tables) == before


async def test_a_trigger_that_ignores_a_row_ends_the_change(shop: Shop) -> None:
    shop.script("""CREATE TRIGGER ignoring BEFORE UPDATE ON items WHEN new.price < 0
        BEGIN SELECT RAISE(IGNORE); END""")
    async with gate_of(shop) as gate:
        editor = Editor(gate)
        found = await editor.read(("1",), ("2",))
        before = shop.contents("items")
        error = await editor.refused(
            found, editor.update(found, 0, name="n"), editor.update(found, 1, price=-1)
        )
        assert error.code is Code.SQL_FAILED and "trigger" in error.message
        assert shop.contents("items") == before


async def test_a_table_that_replaces_rows_on_a_conflict_replaces_none(shop: Shop) -> None:
    shop.script("CREATE TABLE codes (id INTEGER PRIMARY KEY, code UNIQUE ON CONFLICT REPLACE)")
    shop.script("INSERT INTO codes VALUES (1, 'a'), (2, 'b')")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "codes")
        found = await editor.read(("2",))
        before = shop.contents("codes")
        for edit in (editor.update(found, 0, code="a"), editor.insert(found, id=3, code="a")):
            assert (await editor.refused(found, edit)).code is Code.SQL_FAILED
            assert shop.contents("codes") == before


async def test_computed_columns_are_left_to_the_database(shop: Shop) -> None:
    shop.script("""CREATE TABLE made (id INTEGER PRIMARY KEY, t TEXT DEFAULT (lower('ABC')),
        up TEXT AS (upper(t)) STORED, n AS (id * 2))""")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "made")
        found = await editor.read()
        assert found.shape.names == ("id", "t")
        done = await editor.submit(found, editor.insert(found), editor.insert(found, t="x"))
        assert [row and row.shown for row in done.rows] == [(1, "abc"), (2, "x")]
        found = await editor.read(("2",))
        await editor.submit(found, editor.update(found, 0, t=DEFAULT))
        assert shop.rows("SELECT up, n FROM made") == [("ABC", 2), ("ABC", 4)]
        reasons = {each.name: each.reason for each in (await editor.describe()).columns}
        assert bool(reasons["up"]) and bool(reasons["n"]) and not reasons["t"]


async def test_deferred_keys_are_checked_before_anything_is_kept(shop: Shop) -> None:
    shop.script("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
    shop.script("""CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER
        REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)""")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "children")
        found = await editor.read()
        error = await editor.refused(found, editor.insert(found, id=1, parent=7))
        assert error.code is Code.SQL_FAILED
        assert shop.rows("SELECT count(*) FROM children") == [(0,)]
        assert (await editor.submit(found, editor.insert(found, id=1, parent=None))).change


MASKS: dict[str, Any] = {"masks": [{"column": "people.salary"}]}


def make_people(shop: Shop) -> None:
    shop.script("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, salary INTEGER)")
    shop.script("INSERT INTO people VALUES (1, 'ann', 100), (2, 'bob', 200)")


async def test_masked_columns_are_neither_read_nor_written_nor_compared(shop: Shop) -> None:
    make_people(shop)
    async with gate_of(shop, **MASKS) as gate:
        editor = Editor(gate, "people")
        found = await editor.read(("1",), ("2",))
        assert found.shape.names == ("id", "name")
        assert "100" not in repr(found)
        shop.script("UPDATE people SET salary = 101 WHERE id = 1")
        done = await editor.submit(found, editor.update(found, 0, name="anna"))
        assert done.change
        assert shop.rows("SELECT * FROM people") == [(1, "anna", 101), (2, "bob", 200)]
        described = {each.name: each for each in (await editor.describe()).columns}
        assert described["salary"].masked and described["salary"].reason
        assert not described["name"].reason


async def test_a_fault_of_the_state_is_no_reason_against_edits(shop: Shop) -> None:
    make_people(shop)
    key = shop.directory / "state" / "mask.key"
    async with gate_of(shop, **MASKS) as gate:
        key.unlink(missing_ok=True)
        key.mkdir()
        with pytest.raises(TidegateError) as fault:
            await Editor(gate, "people").describe()
        assert fault.value.code is Code.STATE_FAILED
        key.rmdir()
        assert not (await Editor(gate, "people").describe()).reason


async def test_an_edit_cannot_name_a_masked_column_by_its_own_shape(shop: Shop) -> None:
    make_people(shop)
    async with gate_of(shop) as gate:
        whole = await Editor(gate, "people").read(("1",))
    async with gate_of(shop, **MASKS) as gate:
        editor = Editor(gate, "people")
        for edit in (editor.update(whole, 0, name="x"), editor.update(whole, 0, salary=1)):
            error = await editor.refused(whole, edit)
            assert error.code is Code.POLICY_MASKED
    assert shop.rows("SELECT * FROM people") == [(1, "ann", 100), (2, "bob", 200)]


async def test_a_trigger_beside_a_mask_or_a_row_filter_refuses_edits(shop: Shop) -> None:
    make_people(shop)
    filters = {"filters": [{"table": "people", "where": "id = 1"}]}
    async with gate_of(shop, **filters) as gate:
        editor = Editor(gate, "people")
        described = await editor.describe()
        assert not described.editable and "hidden" in described.reason
        error = await gate.error(ReadImages(table="people", schema="main", keys=(("1",),)))
        assert error.code is Code.POLICY_MASKED
    shop.script("CREATE TRIGGER t AFTER UPDATE ON people BEGIN SELECT 1; END")
    async with gate_of(shop, **MASKS) as gate:
        editor = Editor(gate, "people")
        assert not (await editor.describe()).editable
        found = await editor.read(("1",))
        error = await editor.refused(found, editor.update(found, 0, name="x"))
        assert error.code is Code.POLICY_MASKED
