"""What is the servers' own in edits of rows: partitions, other storage engines, labels as keys."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.row_edits import Editor
from support.undo_shops import MariadbShop, PostgresShop, Shop, gate_of
from tidegate.errors import Code


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Shop]:
    made = PostgresShop(tmp_path)
    yield made
    made.close()


@pytest.fixture
def maria(tmp_path: Path) -> Iterator[Shop]:
    made = MariadbShop(tmp_path)
    yield made
    made.close()


async def test_rows_of_a_partitioned_table_are_edited_also_into_another_part(
    postgres: Shop,
) -> None:
    postgres.script(
        "CREATE TABLE parted (id int, region text, x text, PRIMARY KEY (id, region))"
        " PARTITION BY LIST (region);"
        "CREATE TABLE north PARTITION OF parted FOR VALUES IN ('n');"
        "CREATE TABLE south PARTITION OF parted FOR VALUES IN ('s');"
        "INSERT INTO parted VALUES (1, 'n', 'a')"
    )
    async with gate_of(postgres) as gate:
        editor = Editor(gate, "parted")
        found = await editor.read(("1", "n"))
        done = await editor.submit(found, editor.update(found, 0, region="s", x="b"))
        assert postgres.rows("SELECT * FROM south") == [(1, "s", "b")]
        assert done.change == "" and any("taken back" in each for each in done.remarks)


async def test_triggers_fire_and_the_stored_row_is_shown(postgres: Shop) -> None:
    postgres.script(
        "CREATE FUNCTION louder() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN NEW.name = upper(NEW.name); RETURN NEW; END';"
        "CREATE TRIGGER loud BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION louder();"
        "CREATE FUNCTION skipping() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF NEW.price < 0 THEN RETURN NULL; END IF; RETURN NEW; END';"
        "CREATE TRIGGER no BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION skipping()"
    )
    async with gate_of(postgres) as gate:
        editor = Editor(gate)
        found = await editor.read(("1",), ("2",))
        done = await editor.submit(found, editor.update(found, 0, name="soft"))
        assert editor.shown(done.rows[0], found)["name"] == "SOFT"
        error = await editor.refused(found, editor.update(found, 1, price="-1"))
        assert error.code is Code.SQL_FAILED and "trigger" in error.message


async def test_a_table_of_another_storage_engine_is_not_edited(maria: Shop) -> None:
    maria.script("CREATE TABLE old (id int PRIMARY KEY, x int) ENGINE=MyISAM")
    maria.script("CREATE TABLE past (id int PRIMARY KEY, x int) WITH SYSTEM VERSIONING")
    async with gate_of(maria) as gate:
        assert "InnoDB" in (await Editor(gate, "old").describe()).reason
        assert "system versioned" in (await Editor(gate, "past").describe()).reason


async def test_labels_are_written_as_labels_and_never_as_numbers(maria: Shop) -> None:
    maria.script(
        "CREATE TABLE moods (mood enum('2', '1', 'x') PRIMARY KEY, s set('1', '2'), d date)"
    )
    maria.script("SET sql_mode = ''; INSERT INTO moods VALUES ('2', '1,2', '0000-00-00')")
    async with gate_of(maria) as gate:
        editor = Editor(gate, "moods")
        found = await editor.read(("2",))
        assert editor.shown(found.rows[0], found) == {"mood": "2", "s": "1,2", "d": "0000-00-00"}
        done = await editor.submit(
            found, editor.update(found, 0, mood="1", s="2"), editor.insert(found, mood="x")
        )
        assert [editor.shown(row, found)["mood"] for row in done.rows] == ["1", "x"]
        (column, several, _) = (await editor.describe()).columns
        assert column.labels == ("2", "1", "x") and column.editor == "enum"
        assert several.labels == () and several.editor == "text"  # it takes several at once
    assert maria.rows("SELECT mood + 0, s + 0, CAST(d AS CHAR) FROM moods ORDER BY 1") == [
        (2.0, 2.0, "0000-00-00"),
        (3.0, None, None),
    ]
