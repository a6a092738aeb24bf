"""What is the servers' own in edits of rows: partitions, other storage engines, labels as keys."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.eventually import wait_until
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


async def test_a_row_that_row_security_keeps_from_changes_is_not_called_gone(
    postgres: Shop,
) -> None:
    role = f"limited_{postgres.rows('SELECT current_database()')[0][0]}"
    postgres.script(
        "ALTER TABLE items ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY see ON items FOR SELECT USING (true);"
        "CREATE POLICY own ON items FOR UPDATE USING (price < 20);"
        f"CREATE ROLE {role} LOGIN; GRANT ALL ON items TO {role}"
    )
    async with gate_of(postgres, url=postgres.url.replace("postgres@", f"{role}@")) as gate:
        editor = Editor(gate)
        found = await editor.read(("1",), ("2",))
        one, two = editor.update(found, 0, name="x"), editor.update(found, 1, name="y")
        error = await editor.refused(found, one, two)
        assert error.code is Code.SQL_FAILED and "row security" in error.message, error
        assert "1 row " in error.message
        await editor.submit(found, one)
        assert postgres.rows("SELECT name FROM items WHERE id < 3 ORDER BY id") == [
            ("x",),
            ("two",),
        ]


async def test_keys_are_compared_whole_and_computed_ones_not_at_all(postgres: Shop) -> None:
    postgres.script(
        "CREATE TABLE short (k varchar(3) PRIMARY KEY, v int); INSERT INTO short VALUES ('abc', 1);"
        "CREATE TABLE twice (a int, k int GENERATED ALWAYS AS (a * 2) STORED PRIMARY KEY);"
        "INSERT INTO twice VALUES (1)"
    )
    async with gate_of(postgres) as gate:
        editor = Editor(gate, "short")
        found = await editor.read(("abcdef",))
        assert found.rows == (None,)
        error = await editor.refused(found, editor.insert(found, k="abcd"))
        assert error.code is Code.SQL_FAILED and "too long" in error.message
        assert "computed" in (await Editor(gate, "twice").describe()).reason
        await gate.change("UPDATE twice SET a = 3")  # whose rows cannot be kept for undo
        assert postgres.rows("SELECT k FROM twice") == [(6,)]


async def test_a_row_that_a_trigger_moves_is_not_kept_as_deleted(
    postgres: Shop, maria: Shop
) -> None:
    postgres.script(
        "CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN UPDATE items SET id = id + 100 WHERE id = NEW.id; RETURN NULL; END';"
        "CREATE TRIGGER moves AFTER UPDATE ON items FOR EACH ROW WHEN (NEW.id < 100)"
        " EXECUTE FUNCTION move()"
    )
    maria.script("CREATE TRIGGER moves BEFORE UPDATE ON items FOR EACH ROW SET NEW.id = NEW.id+100")
    for shop in (postgres, maria):
        async with gate_of(shop) as gate:
            editor = Editor(gate)
            found = await editor.read(("1",))
            done = await editor.submit(found, editor.update(found, 0, name="x"))
            assert done.rows == (None,) and done.change == ""
            assert any("another key" in each for each in done.remarks), done.remarks
        assert shop.rows("SELECT name FROM items WHERE id = 101") == [("x",)]


async def test_a_connection_that_is_lost_before_the_commit_leaves_no_doubt(
    postgres: Shop, maria: Shop
) -> None:
    slow = {
        "postgres": "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END';"
        "CREATE TRIGGER waits BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION wait()",
        "mysql": "CREATE TRIGGER waits BEFORE UPDATE ON items FOR EACH ROW"
        " SET NEW.price = SLEEP(60)",
    }
    cut = {
        "postgres": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event = 'PgSleep'",
        "mysql": "SELECT id FROM information_schema.processlist"
        " WHERE db = DATABASE() AND info LIKE 'UPDATE%'",
    }
    for shop in (postgres, maria):
        shop.script(slow[shop.name])

        def end(shop: Shop = shop) -> bool:
            found = shop.rows(cut[shop.name])
            for (thread,) in found if shop.name == "mysql" else ():
                shop.script(f"KILL {thread}")
            return bool(found)

        async with gate_of(shop) as gate:
            editor = Editor(gate)
            found = await editor.read(("1",))
            edit = editor.update(found, 0, name="x")
            waiting = asyncio.create_task(editor.refused(found, edit))
            assert await asyncio.to_thread(wait_until, end, "the change at its trigger")
            error = await waiting
            assert error.code is Code.SOURCE_UNREACHABLE, error
        assert shop.rows("SELECT name FROM items WHERE id = 1") == [("one",)]
