"""An undo runs what a gate has kept, on the source, for the caller and in the database that it was
kept of, and once: whoever can write the tables of the state, and has no key, changes nothing of it.
"""

import apsw
import psycopg
import pytest

from support import postgres_state
from support.undo_shops import AGENT, OTHER, PERSON, PostgresShop, SqliteShop, gate_of
from tidegate.errors import Code
from tidegate.model.changes import DescribeUndo, UndoChange

KEY = "${ENV:PGTEST_KEY}"
CHANGE = "UPDATE items SET price = 5 WHERE id < 3"


class Attacked:
    """A gate before a shop, and SQL past the gate in its state."""

    def __init__(self, shop, directory, state):
        self.shop = shop
        self.config = {"state_key": KEY}
        self._path = str(directory / "state" / "state.db")
        self._url = postgres_state.state_url() if state == "postgres" else ""
        if self._url:
            self.config["state_url"] = self._url

    def gate(self, **more):
        return gate_of(self.shop, config={**self.config, **more})

    def ask(self, sql, *values):
        if self._url:
            with psycopg.connect(self._url) as connection:
                connection.execute("SET search_path = tidegate")
                cursor = connection.execute(sql, values or None)
                return cursor.fetchall() if cursor.description else []
        connection = apsw.Connection(self._path)
        try:
            return connection.execute(sql.replace("%s", "?"), values).fetchall()
        finally:
            connection.close()

    def keep(self, *tables):
        """What puts the rows of the tables back."""
        kept = {table: self.ask(f"SELECT * FROM {table}") for table in tables}

        def put_back():
            for table, rows in kept.items():
                self.ask(f"DELETE FROM {table}")
                for row in rows:
                    marks = ", ".join(["%s"] * len(row))
                    self.ask(f"INSERT INTO {table} VALUES ({marks})", *row)

        return put_back


@pytest.fixture(params=["sqlite", "postgres"])
def attacked(request, tmp_path, monkeypatch):
    monkeypatch.setenv("PGTEST_KEY", "a key of the gates in this test, long enough")
    if request.param == "postgres":
        postgres_state.empty_state()
    shop = SqliteShop(tmp_path)
    yield Attacked(shop, tmp_path, request.param)
    shop.close()


async def refused(gate, change, actor, source="shop"):
    before = gate.shop.contents("items")
    errors = [
        await gate.error(request(change), actor, source=source)
        for request in (DescribeUndo, UndoChange)
    ]
    assert {each.code for each in errors} == {Code.UNDO_UNAVAILABLE}
    assert all(each.hint for each in errors)
    assert gate.shop.contents("items") == before
    return errors[-1].message


async def test_a_change_is_not_taken_back_by_another_caller_whose_id_was_written_to_it(attacked):
    async with attacked.gate() as gate:
        page = await gate.change(CHANGE)
        attacked.ask("UPDATE changes SET actor = %s", OTHER.id)
        for actor in (OTHER, AGENT, PERSON):
            assert "past the gates" in await refused(gate, page.change, actor)
        attacked.ask("UPDATE changes SET actor = %s", AGENT.id)
        await gate.undo(page.change)


async def test_a_change_is_not_taken_back_by_another_name_of_its_database(attacked):
    """There the caller may have other rights, and other rows may be hidden."""
    twin = {"name": "twin", "url": attacked.shop.url, "access": "write", "undo": "keep"}
    shop = {**twin, "name": "shop", "unqualified": "allow"}
    async with attacked.gate(sources=[shop, {**twin, "unqualified": "allow"}]) as gate:
        mine = await gate.change(CHANGE)
        theirs = await gate.change("UPDATE notes SET note = 'n'", source="twin")
        attacked.ask(
            "UPDATE changes SET source = 'twin', source_id = (SELECT source_id FROM changes"
            " WHERE id = %s) WHERE id = %s",
            *(theirs.change, mine.change),
        )
        for source in ("twin", "shop"):
            assert "past the gates" in await refused(gate, mine.change, PERSON, source)


async def test_a_change_says_truly_how_many_rows_of_which_tables_it_puts_back(attacked):
    """The limit of rows, the rules of tables and the person who is asked go by it."""
    async with attacked.gate() as gate:
        page = await gate.change(CHANGE)
        for forged in ("rows = 1", "tables = '[\"notes\"]'", "undoes = 'x'", "approval = 'a'"):
            put_back = attacked.keep("changes")
            attacked.ask(f"UPDATE changes SET {forged}")
            assert "past the gates" in await refused(gate, page.change, AGENT)
            put_back()
        await gate.undo(page.change)


@pytest.mark.parametrize("by", [AGENT, PERSON])
async def test_a_change_that_was_taken_back_is_not_taken_back_again(attacked, by):
    """Though its row and its stamp are put back, and its rows are as it left them by chance."""
    async with attacked.gate() as gate:
        page = await gate.change(CHANGE)
        put_back = attacked.keep("changes", "stamps")
        await gate.undo(page.change, by)
        gate.shop.script(CHANGE)
        before = gate.shop.contents("items")
        for _ in range(2):
            error = await gate.error(UndoChange(page.change), by)
            assert error.code is Code.UNDO_UNAVAILABLE and "already" in error.message
            assert gate.shop.contents("items") == before
            put_back()
        preview = await gate.ask(DescribeUndo(page.change), by)
        assert not preview.possible and "already" in preview.reason


async def test_a_change_that_was_made_of_nothing_is_not_taken_back(attacked):
    async with attacked.gate() as gate:
        page = await gate.change(CHANGE)
        for table in ("changes", "change_keys", "change_images"):
            attacked.ask(f"CREATE TABLE more AS SELECT * FROM {table}")
            attacked.ask("UPDATE more SET id = 'ffffffffffff'")
            if table == "changes":
                attacked.ask("UPDATE more SET serial = 99")
            attacked.ask(f"INSERT INTO {table} SELECT * FROM more")
            attacked.ask("DROP TABLE more")
        assert "past the gates" in await refused(gate, "ffffffffffff", AGENT)
        assert [each.id for each in await gate.changes()] == [page.change]
        await gate.undo(page.change)


async def test_a_change_is_not_taken_back_in_another_database_of_the_server(tmp_path, monkeypatch):
    monkeypatch.setenv("PGTEST_KEY", "a key of the gates in this test, long enough")
    shop, other = PostgresShop(tmp_path), PostgresShop(tmp_path)
    attacked = Attacked(shop, tmp_path, "sqlite")
    for each in (shop, other):
        each.script("UPDATE items SET price = 1")
    async with attacked.gate() as gate:
        page = await gate.change(CHANGE)
        other.script(CHANGE)
        before = other.contents("items")
        attacked.ask("UPDATE changes SET database = %s", other._database)
        assert "past the gates" in await refused(gate, page.change, AGENT)
        assert other.contents("items") == before
    shop.close()
    other.close()
