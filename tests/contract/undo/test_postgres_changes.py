"""What is particular to PostgreSQL: what is not offered, identities, triggers, other writers."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import support.postgres_server as postgres_server
from support.eventually import until
from support.undo_shops import KINDS, Gate, PostgresShop, gate_of
from tidegate.approvals.render import describe
from tidegate.errors import Code
from tidegate.model.changes import DescribeUndo, UndoChange
from tidegate.model.requests import Query
from tidegate.model.statements import Statement


@pytest.fixture(params=["postgres", "postgres-debian"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PostgresShop]:
    made = KINDS[request.param].make(tmp_path)
    assert isinstance(made, PostgresShop)
    yield made
    made.close()


UNKEPT = {
    "CREATE UNLOGGED TABLE t (a int PRIMARY KEY, b int)": "ordinary table with a log",
    "CREATE TABLE t (a int PRIMARY KEY, b int) PARTITION BY RANGE (a);"
    "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10)": "ordinary table",
    "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE TABLE u () INHERITS (t)": "ordinary table",
    "CREATE TABLE t (a int, b int)": "no primary key",
    "CREATE TABLE t (a int PRIMARY KEY, b int);ALTER TABLE t ENABLE ROW LEVEL SECURITY": "security",
    "CREATE TABLE t (a int PRIMARY KEY, b int);"
    "CREATE RULE r AS ON DELETE TO t DO ALSO SELECT 1": "rules",
    "CREATE TABLE t (a int PRIMARY KEY, b int);"
    "CREATE TABLE c (a int REFERENCES t ON DELETE CASCADE)": "follow",
}


@pytest.mark.parametrize("table", UNKEPT)
async def test_what_is_not_offered_is_known_before_the_yes(shop: PostgresShop, table: str) -> None:
    shop.script(table)
    shop.script("INSERT INTO t VALUES (1, 1)")
    text = "DELETE FROM t WHERE a = 1"
    async with gate_of(shop, approval_for="writes") as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.APPROVAL_NEEDED
        reversible = gate.app.approvals.list()[0].subject.reversible
        assert reversible is not None and not reversible.possible
        assert UNKEPT[table] in reversible.reason
    async with gate_of(shop) as gate:
        page = await gate.change(text)
        assert (page.affected, page.change) == (1, "")
        assert shop.rows("SELECT * FROM t") == []


async def test_rows_with_identities_and_generated_columns_return(shop: PostgresShop) -> None:
    shop.script(
        "CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int,"
        " twice int GENERATED ALWAYS AS (a * 2) STORED)"
    )
    shop.script("INSERT INTO numbered (a) VALUES (1), (2)")
    before = shop.contents("numbered")
    async with gate_of(shop) as gate:
        for text in ("DELETE FROM numbered", "UPDATE numbered SET a = 7"):
            page = await gate.change(text)
            await gate.undo(page.change)
            assert shop.contents("numbered") == before


TRIGGER = """
CREATE TABLE log (price int);
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO log VALUES (OLD.price); NEW.price = coalesce(NEW.price, 0) + 1;
    RETURN NEW; END $$;
CREATE TRIGGER stamps BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION stamp();
"""


async def test_triggers_are_named_before_and_what_they_change_again_is_said(
    shop: PostgresShop,
) -> None:
    shop.script(TRIGGER)
    text = "UPDATE items SET name = 'x' WHERE id = 1"
    async with gate_of(shop, approval_for="writes") as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.APPROVAL_NEEDED
        (question,) = gate.app.approvals.list()
        reversible = question.subject.reversible
        assert reversible is not None and reversible.possible
        assert reversible.triggers == ("stamps",)
        assert "in other rows does not go back" in describe(question)
        gate.app.approvals.resolve(question.id, "allowed", "ada")
        page = await gate.change(text)
    async with gate_of(shop) as gate:
        assert (await gate.ask(DescribeUndo(page.change))).triggers == ("stamps",)
        done = await gate.undo(page.change)
        assert "triggers changed 1" in done.remarks[0]
        assert "other rows was not put back (stamps" in done.remarks[1]
        assert shop.rows("SELECT name, price FROM items WHERE id = 1") == [("one", 11)]
        assert len(shop.rows("SELECT * FROM log")) == 2


async def test_children_that_came_since_prevent_that_their_row_goes(shop: PostgresShop) -> None:
    shop.script("CREATE TABLE parts (id int PRIMARY KEY, item int REFERENCES items)")
    async with gate_of(shop) as gate:
        page = await gate.change("INSERT INTO items (id) VALUES (9)")
        shop.script("INSERT INTO parts VALUES (1, 9)")
        before = shop.contents("items", "parts")
        error = await gate.error(UndoChange(page.change))
        assert error.code is Code.SQL_FAILED
        assert shop.contents("items", "parts") == before


# Other writers


def writer(shop: PostgresShop) -> psycopg.Connection:
    server = postgres_server.shared(shop.server)
    return psycopg.connect(server.conninfo(shop.url.split("/")[3].partition("?")[0]))


async def blocked(shop: PostgresShop) -> None:
    """Return when a statement waits for a lock."""

    def waits() -> bool:
        text = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        return shop.rows(text)[0][0] > 0

    await until(waits, "a statement waits for a lock")


async def test_a_change_that_meets_another_one_is_tried_again_and_kept_as_it_was(
    shop: PostgresShop,
) -> None:
    async with gate_of(shop) as gate:
        with writer(shop) as other:
            other.execute("UPDATE items SET price = 500 WHERE id = 1")
            change = asyncio.ensure_future(gate.change("UPDATE items SET name = 'x'"))
            await blocked(shop)
            other.commit()
            page = await change
        assert page.affected == 3
        await gate.undo(page.change)
        found = shop.rows("SELECT name, price FROM items WHERE id = 1")
        assert found == [("one", 500)]


async def test_of_two_undos_at_once_one_puts_the_rows_back(shop: PostgresShop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 5")
        with writer(shop) as other:
            other.execute("SELECT * FROM items FOR UPDATE")
            tries = [asyncio.ensure_future(undone(gate, page.change)) for _ in range(4)]
            await blocked(shop)
            other.rollback()
            outcomes = await asyncio.gather(*tries)
        assert sorted(outcomes) == ["done", "refused", "refused", "refused"]
        assert shop.contents("items") == before


async def undone(gate: Gate, change: str) -> str:
    try:
        await gate.undo(change)
    except Exception:  # noqa: BLE001
        return "refused"
    return "done"


ZONED = (("TimeZone", "Asia/Tokyo"), ("DateStyle", "ISO, DMY"))


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE logged SET note = 'later' WHERE day = '03/04/2025'",
        "DELETE FROM logged WHERE at::date = '02/02/2025'",
        "INSERT INTO logged VALUES ('01/02/2025 08:00', '05/04/2025', 'new')",
    ],
)
async def test_a_change_of_a_session_in_another_time_zone_is_taken_back(
    shop: PostgresShop, text: str
) -> None:
    shop.script(
        "CREATE TABLE logged (at timestamptz PRIMARY KEY, day date, note text);"
        "INSERT INTO logged VALUES ('2025-02-01 20:00+00', '2025-04-03', 'here'),"
        " ('2025-02-01 10:00+00', '2025-03-04', 'stays')"
    )
    before = shop.contents("logged")
    async with gate_of(shop) as gate:
        page = await gate.ask(Query(Statement(text), settings=ZONED))
        assert page.affected == 1
        changed = shop.contents("logged")
        assert changed != before
        assert "stays" in repr(changed)
        undone = await gate.undo(page.change)
        assert shop.contents("logged") == before, undone


async def test_a_statement_runs_with_no_other_setting_of_a_session(shop: PostgresShop) -> None:
    async with gate_of(shop) as gate:
        for name, value in (("DateStyle", "German"), ("role", "postgres"), ("work_mem", "1GB")):
            request = Query(Statement("SELECT 1"), settings=((name, value),))
            assert (await gate.error(request)).code is Code.UNSUPPORTED
