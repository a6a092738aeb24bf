"""Rows are edited as one change over what the person saw, or not at all and for a reason."""

from collections.abc import Callable

import pytest

from support.audit_records import records
from support.row_edits import Editor, meanwhile
from support.undo_shops import AGENT, READER, Shop, gate_of
from tidegate.engines.api import RowsConflictError
from tidegate.errors import Code
from tidegate.model.requests import SearchHistory
from tidegate.model.row_changes import DEFAULT


async def test_rows_are_added_changed_and_deleted_as_one_change(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        editor = Editor(gate)
        found = await editor.read(("1",), ("2",), ("3",))
        before = shop.contents("items")
        done = await editor.submit(
            found,
            editor.update(found, 0, name="first", price="11"),
            editor.delete(found, 1),
            editor.insert(found, id="9", name="nine"),
        )
        assert sorted(shop.rows("SELECT id, name, price FROM items")) == [
            (1, "first", 11),
            (3, None, None),
            (9, "nine", None),
        ]
        stored = [None if row is None else tuple(map(_plain, row.shown)) for row in done.rows]
        assert stored == [("1", "first", "11"), None, ("9", "nine", None)]
        assert done.affected == 3 and done.change
        await gate.undo(done.change)
        assert shop.contents("items") == before


def _plain(value: object) -> str | None:
    return None if value is None else str(value)


async def test_null_the_empty_text_and_the_default_are_three_values(shop: Shop) -> None:
    shop.script("CREATE TABLE pets (id INTEGER PRIMARY KEY, name VARCHAR(20) DEFAULT 'rex')")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "pets")
        found = await editor.read()
        values = {"1": None, "2": "", "3": DEFAULT, "4": "NULL"}
        edits = [editor.insert(found, id=id, name=name) for id, name in values.items()]
        await editor.submit(found, *edits)
        expected = [(1, None), (2, ""), (3, "rex"), (4, "NULL")]
        assert sorted(shop.rows("SELECT id, name FROM pets")) == expected
        found = await editor.read(*[(id,) for id in values])
        await editor.submit(
            found,
            editor.update(found, 0, name=DEFAULT),
            editor.update(found, 1, name=None),
            editor.update(found, 2, name=""),
        )
        expected = [(1, "rex"), (2, None), (3, ""), (4, "NULL")]
        assert sorted(shop.rows("SELECT id, name FROM pets")) == expected


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("UPDATE items SET price = 12 WHERE id = 1", "changed"),
        ("DELETE FROM items WHERE id = 1", "gone"),
        ("INSERT INTO items VALUES (9, 'other', 1)", "exists"),
    ],
)
async def test_what_differs_by_now_prevents_all_of_it(shop: Shop, what: str, problem: str) -> None:
    async with gate_of(shop) as gate:
        editor = Editor(gate)
        found = await editor.read(("1",), ("2",))
        edits = (
            editor.update(found, 0, name="first"),
            editor.delete(found, 1),
            editor.insert(found, id="9"),
        )
        await meanwhile(gate, what)
        before = shop.contents("items")
        error = await editor.refused(found, *edits)
        assert isinstance(error, RowsConflictError) and error.code is Code.ROWS_CONFLICT
        (conflict,) = error.conflicts
        assert (conflict.problem, error.count) == (problem, 1)
        assert conflict.edit == (2 if problem == "exists" else 0)
        if problem == "changed":
            assert str(editor.shown(conflict.now, found)["price"]) == "12"
        assert (conflict.now is None) == (problem == "gone")
        assert shop.contents("items") == before


async def test_keys_of_several_columns_are_compared_whole_and_can_change(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        editor = Editor(gate, "notes")
        found = await editor.read(("1", "x"), ("1", "y"))
        done = await editor.submit(
            found, editor.update(found, 0, b="z", note="moved"), editor.delete(found, 1)
        )
        assert sorted(shop.rows("SELECT a, b, note FROM notes")) == [
            (1, "z", "moved"),
            (2, "x", "ex"),
        ]
        assert _plain(editor.shown(done.rows[0], found)["b"]) == "z"


async def test_a_key_that_is_freed_can_be_taken_in_the_same_change(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        editor = Editor(gate)
        found = await editor.read(("1",))
        await editor.submit(found, editor.delete(found, 0), editor.insert(found, id="1", name="n"))
        assert ("n",) in shop.rows("SELECT name FROM items WHERE id = 1")


async def test_unique_values_move_from_row_to_row_and_are_not_exchanged(shop: Shop) -> None:
    shop.script("CREATE TABLE queue (id INTEGER PRIMARY KEY, spot INTEGER UNIQUE, x INTEGER)")
    shop.script("INSERT INTO queue VALUES (1, 10, 0), (2, 20, 0), (3, 30, 0)")
    async with gate_of(shop) as gate:
        editor = Editor(gate, "queue")
        keys = ("1",), ("2",), ("3",)
        for places in ((20, 30, 40), (10, 20, 30)):
            found = await editor.read(*keys)
            edits = [editor.update(found, at, spot=str(to)) for at, to in enumerate(places)]
            if shop.name != "duckdb":  # whose transactions end with the first error
                edits[1] = editor.update(found, 1, spot=str(places[1]), x="1")
            done = await editor.submit(found, *edits, editor.insert(found, id=f"{places[0]}"))
            assert done.change
            assert [row and row.shown[1] for row in done.rows[:3]] == [*map(_as(shop), places)]
            assert shop.rows("SELECT spot FROM queue WHERE id < 4 ORDER BY id") == [
                (place,) for place in places
            ]
            if places[0] == 10:
                await gate.undo(done.change)
                assert shop.rows("SELECT spot FROM queue WHERE id < 4 ORDER BY id") == [
                    (20,),
                    (30,),
                    (40,),
                ]
        found = await editor.read(*keys)
        up = [editor.update(found, at, id=str(at + 2)) for at in range(3)]
        await editor.submit(found, *up)
        found = await editor.read(("2",), ("3",))
        edits = [editor.update(found, 0, spot="30"), editor.update(found, 1, spot="20")]
        if shop.name == "duckdb":  # it deletes such rows, and adds them again
            await editor.submit(found, *edits)
            return
        before = shop.contents("queue")
        error = await editor.refused(found, *edits)
        assert error.code is Code.SQL_FAILED and "exchange" in str(error.hint)
        assert shop.contents("queue") == before


def _as(shop: Shop) -> Callable[[int], int | str]:
    """A number as the database shows it: SQLite keeps the class of what was written."""
    return int if shop.name == "sqlite" else str


async def test_a_row_that_the_database_refuses_leaves_nothing(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        editor = Editor(gate, "notes")
        found = await editor.read(("1", "x"), ("1", "y"))
        before = shop.contents("notes")
        error = await editor.refused(
            found, editor.update(found, 0, note="new"), editor.update(found, 1, b=None)
        )
        assert error.code is Code.SQL_FAILED
        assert shop.contents("notes") == before


async def test_without_undo_rows_are_edited_all_the_same(shop: Shop) -> None:
    async with gate_of(shop, undo="off") as gate:
        editor = Editor(gate)
        found = await editor.read(("1",))
        done = await editor.submit(found, editor.update(found, 0, price=None))
        assert done.change == ""
        assert shop.rows("SELECT price FROM items WHERE id = 1") == [(None,)]


async def test_more_rows_than_may_change_are_rolled_back(shop: Shop) -> None:
    async with gate_of(shop, max_rows_changed=1) as gate:
        editor = Editor(gate)
        found = await editor.read(("1",), ("2",))
        before = shop.contents("items")
        edits = (editor.update(found, 0, price="0"), editor.delete(found, 1))
        error = await editor.refused(found, *edits)
        assert error.code is Code.LIMIT_CHANGES
        assert shop.contents("items") == before
        await editor.submit(found, edits[0])


async def test_a_caller_or_a_source_that_only_reads_edits_nothing(shop: Shop) -> None:
    async with gate_of(shop, undo="off", access="read") as gate:
        editor = Editor(gate)
        found = await editor.read(("1",))
        error = await editor.refused(found, editor.delete(found, 0))
        assert error.code is Code.POLICY_READ_ONLY
        described = await editor.describe()
        assert not described.editable and "read-only" in described.reason
    async with gate_of(shop) as gate:
        editor = Editor(gate, actor=READER)
        found = await editor.read(("1",))
        error = await editor.refused(found, editor.delete(found, 0))
        assert error.code is Code.POLICY_SCOPE
        assert not (await editor.describe()).editable


async def test_a_table_with_another_definition_is_not_changed(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        editor = Editor(gate)
        found = await editor.read(("1",))
        await meanwhile(gate, "ALTER TABLE items ADD COLUMN more INTEGER")
        before = shop.contents("items")
        error = await editor.refused(found, editor.delete(found, 0))
        assert error.code is Code.ROWS_CONFLICT and "definition" in error.message
        assert shop.contents("items") == before


async def test_what_can_be_edited_is_said_before(shop: Shop) -> None:
    shop.script("CREATE VIEW shown AS SELECT id FROM items")
    async with gate_of(shop) as gate:
        described = await Editor(gate).describe()
        assert described.editable and described.undo and not described.asks
        by_name = {column.name: column for column in described.columns}
        assert by_name["id"].key == 1 and by_name["price"].editor == "integer"
        assert "primary key" in (await Editor(gate, "loose").describe()).reason
        assert "view" in (await Editor(gate, "shown").describe()).reason
        error = await gate.error(Editor(gate, "none").request(await Editor(gate).read()))
        assert error.code is Code.ARGUMENT_INVALID


async def test_the_change_is_shown_recorded_and_remembered_as_statements(shop: Shop) -> None:
    async with gate_of(shop, approval_for="writes") as gate:
        editor = Editor(gate)
        found = await editor.read(("1",), ("2",))
        edits = (editor.update(found, 0, name="o'ne"), editor.delete(found, 1))
        error = await editor.refused(found, *edits)
        assert error.code is Code.APPROVAL_NEEDED
        (question,) = gate.app.approvals.list()
        text = question.subject.statement
        assert text.startswith("DELETE FROM ") and "o''ne" in text and text.count(";") == 2
        assert question.dry_run is not None and question.dry_run.affected == 2
        assert question.subject.reversible is not None and question.subject.reversible.possible
        gate.app.approvals.resolve(question.id, "allowed", "ada")
        # Other values are another change.
        other = (editor.update(found, 0, name="two"), edits[1])
        assert (await editor.refused(found, *other)).code is Code.APPROVAL_NEEDED
        done = await editor.submit(found, *edits)
        run = gate.app.approvals.find(question.id).run
        assert run is not None and (run.state, run.change_id) == ("done", done.change)
        entry = (await gate.ask(SearchHistory(), AGENT)).entries[0]
        assert entry.text == text and entry.row_count == 2
    state = shop.directory / "state"
    found_records = [each for each in records(state) if each.get("request") == "change_rows"]
    assert [each["phase"] for each in found_records] == ["refusal", "refusal", "intent", "outcome"]
    assert found_records[-1]["statement"] == text, found_records[-1]
    assert found_records[-1]["arguments"]["updates"] == "1"


async def test_the_same_values_over_other_images_are_another_change(shop: Shop) -> None:
    async with gate_of(shop, approval_for="writes") as gate:
        editor = Editor(gate)
        found = await editor.read(("1",))
        await editor.refused(found, editor.update(found, 0, name="new"))
        (question,) = gate.app.approvals.list()
        gate.app.approvals.resolve(question.id, "allowed", "ada")
        await meanwhile(gate, "UPDATE items SET price = 12 WHERE id = 1")
        again = await editor.read(("1",))
        error = await editor.refused(again, editor.update(again, 0, name="new"))
        assert error.code is Code.APPROVAL_NEEDED
        # What was approved is about a row that is no longer there.
        error = await editor.refused(found, editor.update(found, 0, name="new"))
        assert error.code is Code.ROWS_CONFLICT


async def test_a_person_is_not_asked_about_rows_that_differ_by_now(shop: Shop) -> None:
    async with gate_of(shop, approval_for="writes") as gate:
        editor = Editor(gate)
        found = await editor.read(("1",))
        await meanwhile(gate, "UPDATE items SET price = 12 WHERE id = 1")
        error = await editor.refused(found, editor.delete(found, 0))
        assert error.code is Code.ROWS_CONFLICT and not gate.app.approvals.list()
