"""The rows of changes that are kept are in no record, no file and no backup in the clear."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from support.undo_shops import PERSON, SqliteShop, gate_of
from tidegate.errors import Code
from tidegate.model.changes import DescribeUndo, UndoChange

SECRET = "quagga-7719"  # what the row held before, which no statement names
CHANGE = "UPDATE items SET name = 'plain' WHERE id = 1"


@pytest.fixture
def shop(tmp_path: Path) -> SqliteShop:
    made = SqliteShop(tmp_path)
    made.script(f"UPDATE items SET name = '{SECRET}' WHERE id = 1")
    return made


def files_with(directory: Path, text: str) -> list[str]:
    """The files below a directory that hold the text."""
    return [
        str(file.relative_to(directory))
        for file in sorted(directory.rglob("*"))
        if file.is_file() and text.encode() in file.read_bytes()
    ]


async def test_no_record_and_no_file_holds_a_row(shop: SqliteShop) -> None:
    state = shop.directory / "state"
    async with gate_of(shop) as gate:
        page = await gate.change(CHANGE)
        assert files_with(state, SECRET) == []
        preview = await gate.ask(DescribeUndo(page.change))
        assert SECRET in repr(preview)
        await gate.undo(page.change)
        gate.app.history.flush()
    assert files_with(state, SECRET) == []
    assert shop.rows("SELECT name FROM items WHERE id = 1") == [(SECRET,)]
    records = "".join(path.read_text() for path in (state / "audit").glob("*.jsonl"))
    assert page.change in records and '"undo"' in records


async def test_the_key_is_for_its_owner_alone(shop: SqliteShop) -> None:
    async with gate_of(shop) as gate:
        await gate.change(CHANGE)
    assert (shop.directory / "state" / "undo.key").stat().st_mode & 0o077 == 0


async def test_a_copy_of_the_database_without_the_key_shows_and_restores_nothing(
    shop: SqliteShop,
) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change(CHANGE)
    (shop.directory / "state" / "undo.key").unlink()
    async with gate_of(shop) as gate:
        error = await gate.error(UndoChange(page.change), PERSON)
        assert error.code is Code.UNDO_UNAVAILABLE and "decrypt" in error.message
    assert shop.rows("SELECT name FROM items WHERE id = 1") == [("plain",)]


async def test_rows_of_one_change_cannot_be_put_in_the_place_of_another(shop: SqliteShop) -> None:
    async with gate_of(shop) as gate:
        first = await gate.change(CHANGE)
        second = await gate.change("UPDATE items SET name = 'other' WHERE id = 1")
    connection = apsw.Connection(str(shop.directory / "state" / "state.db"))
    for table in ("change_keys", "change_images"):
        column = table.removeprefix("change_").removesuffix("s")
        connection.execute(
            f"UPDATE {table} SET {column} = (SELECT {column} FROM {table} WHERE id = ?)"
            " WHERE id = ?",
            (first.change, second.change),
        )
    connection.close()
    async with gate_of(shop) as gate:
        error = await gate.error(UndoChange(second.change), PERSON)
        assert error.code is Code.UNDO_UNAVAILABLE and "tampered" in error.message
    assert shop.rows("SELECT name FROM items WHERE id = 1") == [("other",)]


async def test_a_change_is_forgotten_with_its_key_when_it_is_too_old(shop: SqliteShop) -> None:
    state = shop.directory / "state"
    async with gate_of(shop, config={"undo": {"keep_days": 0.000_01}}) as gate:
        page = await gate.change(CHANGE)
        stored = gate.app.state.changes.image(page.change)
        assert stored is not None
        gate.app.undo_log._clock = lambda: 4e9
        error = await gate.error(UndoChange(page.change), PERSON)
        assert error.code is Code.UNDO_UNAVAILABLE
        assert await gate.changes() == ()
    for file in state.iterdir():
        if file.is_file():
            content = file.read_bytes()
            assert stored[0] not in content and stored[1][-64:] not in content, file


async def test_a_source_that_points_elsewhere_is_not_touched(
    shop: SqliteShop, tmp_path: Path
) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change(CHANGE)
        saved = gate.app.connections.sources()[0]
        (tmp_path / "copy").mkdir()
        other = SqliteShop(tmp_path / "copy")
        other.script("UPDATE items SET name = 'plain' WHERE id = 1")
    from msgspec import structs

    async with gate_of(other, config={"state": str(shop.directory / "state")}) as gate:
        (now,) = gate.app.connections.sources()
        assert now.id != saved.id
        connection = apsw.Connection(str(shop.directory / "state" / "state.db"))
        connection.execute("UPDATE changes SET source_id = ?", (now.id,))
        connection.close()
        error = await gate.error(UndoChange(page.change), structs.replace(PERSON))
        assert error.code is Code.UNDO_UNAVAILABLE and "another database" in error.message
    assert other.rows("SELECT name FROM items WHERE id = 1") == [("plain",)]
