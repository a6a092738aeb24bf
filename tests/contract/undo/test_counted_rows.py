"""Rows that triggers and foreign keys change count for `max_rows_changed`, on each engine; where
they cannot be counted, a person is asked, and the question says which rows do not count."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from msgspec import structs

from support.undo_shops import AGENT, MariadbShop, PostgresShop, Shop, SqliteShop, gate_of
from tidegate.errors import Code
from tidegate.model.requests import Query
from tidegate.model.statements import Statement
from tidegate.model.transactions import (
    BeginTransaction,
    CommitTransaction,
    MarkTransaction,
    TransactionModes,
)

KEYS = """
CREATE TABLE parts (id INTEGER PRIMARY KEY, item INTEGER,
  FOREIGN KEY (item) REFERENCES items (id) ON DELETE CASCADE);
INSERT INTO parts VALUES (1, 1), (2, 1), (3, 1), (4, 2);
CREATE TABLE screws (id INTEGER PRIMARY KEY, part INTEGER,
  FOREIGN KEY (part) REFERENCES parts (id) ON DELETE SET NULL);
INSERT INTO screws VALUES (1, 1), (2, 2);
"""
LOG = "CREATE TABLE log (what VARCHAR(200));"
TRIGGER = {
    "sqlite": "CREATE TRIGGER noted AFTER UPDATE ON items BEGIN"
    " INSERT INTO log VALUES ('a'), ('b'); END;",
    "postgres": "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " INSERT INTO log VALUES ('a'), ('b'); RETURN NEW; END $$;"
    "CREATE TRIGGER noted AFTER UPDATE ON items FOR EACH ROW EXECUTE FUNCTION note();",
    "duckdb": "CREATE TRIGGER noted AFTER UPDATE ON items INSERT INTO log VALUES ('a')",
    "mysql": "CREATE TRIGGER noted AFTER UPDATE ON items FOR EACH ROW INSERT INTO log VALUES ('a'),"
    " ('b');",
}
WRITES = BeginTransaction(modes=TransactionModes(reads_only=False))


class Case(NamedTuple):
    """A change, the tables that it is about, and how many rows of them it changes."""

    text: str
    tables: tuple[str, ...]
    rows: int


CASCADE = Case("DELETE FROM items WHERE id = 1", ("items", "parts", "screws"), 6)
FIRED = Case("UPDATE items SET price = 5 WHERE id < 3", ("items", "log"), 6)


UNCOUNTED = {("mysql", CASCADE): "refer to items", ("duckdb", FIRED): "triggers change"}


def prepared(shop: Shop, case: Case) -> None:
    text = KEYS if case is CASCADE else LOG + TRIGGER[shop.name]
    shop.script(text.strip())
    if case is FIRED and isinstance(shop, MariadbShop):
        # A trigger may change tables of any database, and another test may have some with cascades.
        shop.url = shop.confined()


@pytest.mark.parametrize("undo", ["off", "keep"])
@pytest.mark.parametrize("case", [CASCADE, FIRED], ids=["foreign keys", "triggers"])
async def test_rows_that_follow_are_counted_or_a_person_is_asked(
    shop: Shop, case: Case, undo: str
) -> None:
    if shop.name == "duckdb" and case is CASCADE:
        pytest.skip("its foreign keys change no rows")
    uncounted = UNCOUNTED.get((shop.name, case), "")
    prepared(shop, case)
    before = shop.contents(*case.tables)
    query = Query(Statement(case.text))
    async with gate_of(shop, undo=undo, max_rows_changed=case.rows - 1) as gate:
        error = await gate.error(query)
        if uncounted:
            assert error.code is Code.APPROVAL_NEEDED
            (question,) = gate.app.approvals.list()
            assert uncounted in question.subject.uncounted
        else:
            assert error.code is Code.LIMIT_CHANGES
            assert error.details == {"limit": case.rows - 1, "rows": case.rows}
        assert shop.contents(*case.tables) == before
    if uncounted:
        return
    async with gate_of(shop, undo=undo, max_rows_changed=case.rows) as gate:
        assert (await gate.change(case.text)).affected > 0
    assert shop.contents(*case.tables) != before


async def test_a_question_says_that_rows_that_follow_count(shop: Shop) -> None:
    async with gate_of(shop, approval_for="writes", max_rows_changed=2) as gate:
        await gate.error(Query(Statement("UPDATE items SET price = 1 WHERE id = 1")))
        (question,) = gate.app.approvals.list()
        assert (question.subject.max_rows_changed, question.subject.uncounted) == (2, "")


@pytest.mark.parametrize("undo", ["off", "keep"])
async def test_rows_that_follow_count_in_a_block(shop: Shop, undo: str) -> None:
    if shop.name == "duckdb":
        pytest.skip("it has no transactions over several statements")
    prepared(shop, FIRED)
    before = shop.contents("items", "log")
    async with gate_of(shop, undo=undo, max_rows_changed=6) as gate:
        block = (await gate.ask(WRITES)).id
        one = "UPDATE items SET price = 5 WHERE id = 1"
        await gate.change(one, transaction=block)
        await gate.ask(MarkTransaction("savepoint", "here"), transaction=block)
        await gate.change(one.replace("5", "6"), transaction=block)
        await gate.ask(MarkTransaction("rollback to", "here"), transaction=block)
        await gate.change(one.replace("5", "7"), transaction=block)
        error = await gate.error(Query(Statement(one.replace("5", "8"))), transaction=block)
        assert error.code is Code.LIMIT_CHANGES and error.details["rows"] == 9
        assert not (await gate.ask(CommitTransaction(), transaction=block)).committed
    assert shop.contents("items", "log") == before


# PostgreSQL


@pytest.fixture
def postgres(shop: Shop) -> PostgresShop:
    if not isinstance(shop, PostgresShop):
        pytest.skip("about PostgreSQL")
    return shop


async def test_a_database_without_tables_is_no_server_that_does_not_count(
    postgres: PostgresShop,
) -> None:
    postgres.script("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    async with gate_of(postgres, undo="off", max_rows_changed=5) as gate:
        error = await gate.error(Query(Statement("INSERT INTO missing VALUES (1)")))
        assert "missing" in error.message
        postgres.script("CREATE TABLE missing (id int)")
        await gate.change("INSERT INTO missing VALUES (1)")


DEFERRED = """
CREATE TABLE log (what text);
CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO log SELECT 'x' FROM generate_series(1, 5); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON items DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION later();
"""


async def test_rows_that_are_changed_at_the_commit_count(postgres: PostgresShop) -> None:
    postgres.script(DEFERRED)
    before = postgres.contents("items", "log")
    text = "UPDATE items SET price = 5 WHERE id = 1"
    async with gate_of(postgres, undo="off", max_rows_changed=5) as gate:
        error = await gate.error(Query(Statement(text)))
        assert (error.code, error.details["rows"]) == (Code.LIMIT_CHANGES, 6)
        block = (await gate.ask(WRITES)).id
        await gate.change(text, transaction=block)
        with pytest.raises(Exception, match="at most 4"):
            await gate.ask(CommitTransaction(), transaction=block)
        assert postgres.contents("items", "log") == before
    async with gate_of(postgres, undo="off", max_rows_changed=6) as gate:
        await gate.change(text)
        assert len(postgres.rows("SELECT * FROM log")) == 5


@pytest.mark.parametrize(
    "text",
    [
        "WITH gone AS (DELETE FROM items RETURNING id) SELECT id FROM gone",
        "WITH gone AS (DELETE FROM items RETURNING id) INSERT INTO loose SELECT id FROM gone",
        "MERGE INTO items USING notes ON id = a WHEN MATCHED AND b = 'x' THEN UPDATE SET price = 1"
        " WHEN NOT MATCHED BY TARGET THEN INSERT (id) VALUES (a + 50)",
        "INSERT INTO items (id) VALUES (1), (2), (3) ON CONFLICT (id) DO UPDATE SET price = 4",
    ],
)
async def test_each_form_of_a_change_is_counted(postgres: PostgresShop, text: str) -> None:
    if "MERGE" in text:
        postgres.script("INSERT INTO notes VALUES (3, 'x', NULL)")
        text = text.replace(" BY TARGET", "")
    before = postgres.contents("items", "loose")
    async with gate_of(postgres, undo="off", max_rows_changed=2) as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.LIMIT_CHANGES
    assert postgres.contents("items", "loose") == before


async def test_counts_of_other_transactions_of_the_connection_do_not_add_up(
    postgres: PostgresShop,
) -> None:
    async with gate_of(postgres, undo="off", max_rows_changed=3) as gate:
        for price in range(8):
            await gate.change(f"UPDATE items SET price = {price}")
            assert (await gate.error(Query(Statement("DELETE FROM nothing")))).code is (
                Code.SQL_FAILED
            )


async def test_a_limit_holds_for_the_caller_of_a_role_as_well(postgres: PostgresShop) -> None:
    actor = structs.replace(AGENT, max_rows_changed=2)
    async with gate_of(postgres, undo="off") as gate:
        error = await gate.error(Query(Statement("UPDATE items SET price = 1")), actor)
        assert error.code is Code.LIMIT_CHANGES


# SQLite


async def test_rows_that_replace_removes_are_not_counted_and_a_person_is_asked(shop: Shop) -> None:
    if not isinstance(shop, SqliteShop):
        pytest.skip("about SQLite")
    shop.script(
        "CREATE TABLE named (id INTEGER PRIMARY KEY, a TEXT UNIQUE, b TEXT UNIQUE ON CONFLICT"
        " REPLACE); INSERT INTO named VALUES (1, 'x', 'p'), (2, 'y', 'q')"
    )
    before = shop.contents("named", "items")
    async with gate_of(shop, max_rows_changed=1) as gate:
        for text in (
            "INSERT INTO named VALUES (3, 'z', 'p')",
            "REPLACE INTO items VALUES (1, 'x', 1)",
            "INSERT OR REPLACE INTO items VALUES (1, 'x', 1)",
        ):
            error = await gate.error(Query(Statement(text)))
            assert error.code is Code.APPROVAL_NEEDED
        found = {question.subject.uncounted for question in gate.app.approvals.list()}
        assert found == {"rows that REPLACE removes"}
    assert shop.contents("named", "items") == before


# MariaDB


async def test_an_account_that_cannot_see_followers_needs_a_person(shop: Shop) -> None:
    if not isinstance(shop, MariadbShop):
        pytest.skip("about MariaDB")
    user = shop.account("SELECT, INSERT, UPDATE, DELETE")
    async with gate_of(shop, undo="off", max_rows_changed=9, url=user) as gate:
        error = await gate.error(Query(Statement("DELETE FROM items WHERE id = 1")))
        assert error.code is Code.APPROVAL_NEEDED
        (question,) = gate.app.approvals.list()
        assert "may not see" in question.subject.uncounted


@pytest.mark.parametrize("undo", ["off", "keep"])
async def test_a_trigger_that_comes_right_before_a_change_counts(
    shop: Shop, undo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(shop, MariadbShop):
        pytest.skip("about MariaDB")
    from tidegate.products.mysql.engine.row_counts import RowCounter

    shop.script(LOG)
    begin = RowCounter.begin

    async def comes_behind(*given: Any) -> RowCounter | None:
        counter = await begin(*given)
        shop.script(TRIGGER["mysql"].rstrip(";"))
        return counter

    monkeypatch.setattr(RowCounter, "begin", comes_behind)
    before = shop.contents("items", "log")
    async with gate_of(shop, undo=undo, max_rows_changed=5) as gate:
        error = await gate.error(Query(Statement(FIRED.text)))
        assert (error.code, error.details["rows"]) == (Code.LIMIT_CHANGES, 6)
    assert shop.contents("items", "log") == before
