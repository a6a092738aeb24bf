"""A change that turns out to be about every row of its table is not committed unasked, whatever its
form: what the text does not tell, the rows do."""

from __future__ import annotations

from typing import Any

import pytest

from support.undo_shops import Shop, gate_of
from tidegate.errors import Code
from tidegate.model.requests import Query
from tidegate.model.statements import Statement
from tidegate.model.transactions import BeginTransaction, TransactionModes

MORE = "CREATE TABLE staff (id INTEGER PRIMARY KEY, name VARCHAR(200), rank INTEGER);"
ROWS = "INSERT INTO staff VALUES (1, 'ann', 5), (2, 'bob', 6), (3, 'cy', 7), (4, 'di', 7);"
OF_CONSTANTS = ("rank BETWEEN 5 AND 7", "id IN (1, 2, 3, 4)")
CONDITIONS = [
    *OF_CONSTANTS,
    "name LIKE '%'",
    "id IN (SELECT id FROM staff)",
    "EXISTS (SELECT 1 FROM staff AS other WHERE other.id = staff.id)",
    "id >= (SELECT min(id) FROM (SELECT id FROM staff) AS s)",
    "length(name) >= 0",
    "COALESCE(rank, 1) > 0",
    "id % 1 = 0",
]
OF_SOME = [
    "id IN (SELECT id FROM staff WHERE rank = 7)",
    "name LIKE '%y'",
    "id = 1",
    "rank = 7 OR rank = 6",
    "id < 0",
]
EVERY_ROW = [f"DELETE FROM staff WHERE {each}" for each in CONDITIONS]
EVERY_ROW += [f"UPDATE staff SET rank = 7 WHERE {each}" for each in CONDITIONS]
SOME_ROWS = [f"DELETE FROM staff WHERE {each}" for each in OF_SOME]
SOME_ROWS += [f"UPDATE staff SET rank = rank + 1 WHERE {each}" for each in OF_SOME]
SOME_ROWS += ["INSERT INTO staff SELECT id + 10, name, rank FROM staff"]
MERGES = "MERGE INTO staff USING {} AS s ON staff.id = s.id + 0 WHEN MATCHED THEN "
OWN = {
    "sqlite": (
        "REPLACE INTO keyed VALUES (1, 2, 3)",
        "INSERT OR REPLACE INTO keyed (a, b, c) SELECT 1, 2, 3",
        "INSERT OR REPLACE INTO keyed VALUES (9, 9, 1), (1, 2, 3)",
        "UPDATE OR REPLACE keyed SET b = 2, c = 3 WHERE a = 1",
        "UPDATE OR REPLACE staff SET rank = 1 WHERE name LIKE '%'",
        "DELETE FROM seen WHERE name LIKE '%'",
        "REPLACE INTO staff SELECT * FROM staff",
        "INSERT OR REPLACE INTO staff SELECT id, name, 1 FROM staff WHERE name LIKE '%'",
        "WITH c AS (SELECT id FROM staff) UPDATE staff SET rank = 1 WHERE id IN c",
        "DELETE FROM staff WHERE name GLOB '*' RETURNING id",
        "REPLACE INTO staff VALUES (1, '', 1), (2, '', 1), (3, '', 1), (4, '', 1)",
    ),
    "postgres": (
        "DELETE FROM staff WHERE id = ANY (SELECT id FROM staff)",
        "WITH c AS (SELECT id FROM staff) DELETE FROM staff WHERE id IN (SELECT id FROM c)",
        "WITH d AS (DELETE FROM staff WHERE name LIKE '%' RETURNING *) SELECT count(*) FROM d",
        "WITH d AS (UPDATE staff SET rank = 1 WHERE id < 9 RETURNING *) SELECT count(*) FROM d",
        'UPDATE public."staff" AS s SET rank = 1 FROM items AS i WHERE i.id <> s.id',
        "DELETE FROM staff WHERE name LIKE '%' RETURNING id",
        "EXPLAIN ANALYZE DELETE FROM staff WHERE name LIKE '%'",
        "INSERT INTO staff SELECT * FROM staff WHERE id > 0.5 ON CONFLICT (id) DO UPDATE"
        " SET rank = 1",
    ),
    "mysql": (
        "REPLACE INTO keyed VALUES (1, 2, 3)",
        "REPLACE keyed SET a = 1, b = 2, c = 3",
        "REPLACE INTO keyed SELECT 1, 2, 3",
        "REPLACE INTO staff SELECT * FROM staff",
        "UPDATE staff AS s JOIN staff AS o ON o.id = s.id + 0 SET s.rank = 1",
        "DELETE s FROM staff AS s JOIN staff AS o ON o.id = s.id + 0",
        "INSERT INTO staff SELECT id, name, 1 FROM staff AS s WHERE s.name LIKE '%'"
        " ON DUPLICATE KEY UPDATE rank = 9",
        "DELETE FROM staff WHERE name REGEXP '' ORDER BY id LIMIT 900",
    ),
    "duckdb": (
        "INSERT OR REPLACE INTO staff SELECT id, name, 1 FROM staff WHERE name LIKE '%'",
        "DELETE FROM staff WHERE id = ANY (SELECT id FROM staff)",
        "DELETE FROM staff WHERE name LIKE '%' RETURNING id",
        MERGES.format("(SELECT * FROM staff WHERE id > 0)") + "DELETE",
    ),
}
OWN_OF_SOME = {
    "sqlite": (
        "REPLACE INTO keyed VALUES (1, 2, 8)",
        "REPLACE INTO keyed VALUES (8, 8, 8)",
        "REPLACE INTO keyed VALUES (1, 8, 9), (2, 9, 8)",
        "UPDATE OR REPLACE keyed SET b = 2 WHERE a = 1",
        "UPDATE OR REPLACE staff SET rank = 1 WHERE name LIKE '%' AND id < 3",
        "DELETE FROM seen WHERE id < 3",
        "INSERT INTO keyed VALUES (1, 1, 1) ON CONFLICT (a) DO UPDATE SET b = 7",
        "REPLACE INTO staff SELECT * FROM staff WHERE id < 3",
        "INSERT INTO items SELECT 100 + id, name, 1 FROM staff WHERE true"
        " ON CONFLICT (id) DO UPDATE SET price = 1",
    ),
    "postgres": (
        MERGES.format("items") + "UPDATE SET rank = 1",
        MERGES.format("items") + "DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, 1)",
        "WITH d AS (DELETE FROM staff WHERE id < 3 RETURNING *) SELECT count(*) FROM d",
        "UPDATE staff SET rank = 1 FROM items AS i WHERE i.id = staff.id",
        "EXPLAIN ANALYZE UPDATE staff SET rank = 1 WHERE id = 1",
        "WITH d AS (UPDATE staff SET rank = 1 WHERE id = 1 RETURNING *)"
        " SELECT d.id FROM d, generate_series(1, 99)",
    ),
    "mysql": (
        "REPLACE INTO keyed VALUES (1, 2, 8)",
        "REPLACE INTO keyed VALUES (1, 8, 9), (2, 9, 8)",
        "INSERT INTO keyed VALUES (1, 2, 3) ON DUPLICATE KEY UPDATE c = 7",
        "UPDATE staff AS s JOIN items AS i ON i.id = s.id SET s.rank = 1",
        "UPDATE items AS i JOIN staff AS s ON s.id = i.id SET s.rank = 1",
        "UPDATE staff SET rank = 1 WHERE name LIKE '%' LIMIT 2",
        "REPLACE INTO staff SELECT * FROM staff WHERE id < 3",
    ),
    "duckdb": (MERGES.format("items") + "UPDATE SET rank = 1",),
}


OPEN = (
    *(f"DELETE FROM {{0}} WHERE {each}" for each in CONDITIONS if each not in OF_CONSTANTS),
    "DELETE FROM {0}",
    "DELETE FROM {0} WHERE id * 0 = 0",
    "DELETE FROM {0} WHERE id IS NOT NULL",
    "UPDATE {0} SET rank = 7 WHERE 1 IN (1)",
    "UPDATE {0} SET rank = 7 WHERE NOT false",
    "DELETE FROM {0} WHERE coalesce(1, 0) = 1",
    "DELETE FROM {0} WHERE id = id + 0",
    "DELETE FROM {0} WHERE EXISTS (SELECT 1)",
    "DELETE FROM {0} WHERE rank = 7 OR NOT rank = 7",
    "DELETE FROM {0} WHERE rank = 7 OR rank <> 7",
    "DELETE FROM {0} WHERE (SELECT min(id) FROM items WHERE id = 1) = 1",
    "UPDATE {0} SET rank = 7 WHERE name <> ''",
)
"""Changes of all rows that compare no column with a constant."""
OPEN_OF_MYSQL = (
    "DELETE FROM {0} LIMIT 900",
    "REPLACE INTO {0} SELECT * FROM staff",
    "UPDATE {0} AS s JOIN items AS i ON i.id = 1 SET s.rank = 1",
    "DELETE FROM {0} WHERE `id` DIV 100 = 0",
)
KEYED = "CREATE TABLE keyed (a INTEGER UNIQUE, b INTEGER UNIQUE, c INTEGER UNIQUE);"
KEYED_ROWS = "INSERT INTO keyed VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3);"
SEEN = """CREATE VIEW seen AS SELECT * FROM staff;
CREATE TRIGGER unseen INSTEAD OF DELETE ON seen BEGIN DELETE FROM staff WHERE id = old.id; END;"""


@pytest.fixture
def staff(shop: Shop) -> Shop:
    shop.script(MORE + KEYED)
    shop.script(ROWS + KEYED_ROWS)
    if shop.name == "sqlite":
        shop.script(SEEN)
    return shop


@pytest.mark.parametrize("undo", ["off", "keep"])
async def test_no_change_of_every_row_is_committed_unasked(staff: Shop, undo: str) -> None:
    before = staff.contents("staff", "items", "keyed")
    found: dict[str, Any] = {}
    async with gate_of(staff, undo=undo, unqualified="confirm") as gate:
        for text in (*EVERY_ROW, *OWN[staff.name]):
            error = await gate.error(Query(Statement(text)))
            found[text] = error.code
            if staff.contents("staff", "items", "keyed") != before:
                raise AssertionError(text)
    assert found == dict.fromkeys(found, Code.POLICY_CONFIRM)


async def test_a_change_of_some_rows_runs_unasked(staff: Shop) -> None:
    async with gate_of(staff, undo="off", unqualified="confirm") as gate:
        for text in (*SOME_ROWS, *OWN_OF_SOME[staff.name]):
            await gate.change(text)
            staff.script("DELETE FROM staff; DELETE FROM keyed;")
            staff.script(ROWS + KEYED_ROWS)


async def test_a_source_that_admits_none_refuses_them_and_one_that_admits_all_runs_them(
    staff: Shop,
) -> None:
    before, text = staff.contents("staff"), EVERY_ROW[0]
    async with gate_of(staff, undo="off", unqualified="deny") as gate:
        error = await gate.error(Query(Statement(text)))
        assert (error.code, error.details["rule"]) == (Code.POLICY_DENIED, "rows.every")
        assert staff.contents("staff") == before
    async with gate_of(staff, undo="off", unqualified="allow") as gate:
        await gate.change(text)
    assert staff.contents("staff")["staff"] == []


async def test_what_does_not_roll_back_is_judged_by_its_text_and_never_limited(
    staff: Shop, request: pytest.FixtureRequest
) -> None:
    if staff.name != "mysql":
        pytest.skip("all of its tables roll back")
    other = f"{staff.url.rsplit('/', 1)[-1].partition('?')[0]}_other"
    staff.script(
        "CREATE VIEW seen AS SELECT * FROM staff; ALTER TABLE staff ENGINE = MyISAM;"
        f"CREATE DATABASE {other}; CREATE VIEW {other}.far AS SELECT s.* FROM seen AS s;"
    )
    request.addfinalizer(lambda: staff.script(f"DROP DATABASE {other}"))
    before = staff.contents("staff")
    for table in ("staff", "seen", f"{other}.far"):
        text = f"DELETE FROM {table} WHERE id < 1000"
        async with gate_of(staff, undo="off", max_rows_changed=1) as gate:
            error = await gate.error(Query(Statement(text)))
        assert error.code is Code.UNSUPPORTED
        assert "staff (MyISAM)" in error.message
        assert staff.contents("staff") == before
        async with gate_of(staff, undo="off", unqualified="confirm") as gate:
            for open_text in (*OPEN, *OPEN_OF_MYSQL):
                error = await gate.error(Query(Statement(open_text.format(table))))
                assert error.code is Code.POLICY_CONFIRM, open_text
                assert staff.contents("staff") == before, open_text
            await gate.change(text)
            assert staff.contents("staff")["staff"] == []
        staff.script(ROWS)


async def test_a_person_is_asked_about_what_was_confirmed(staff: Shop) -> None:
    before = staff.contents("staff")
    async with gate_of(staff, undo="off", unqualified="confirm") as gate:
        error = await gate.error(Query(Statement(EVERY_ROW[0])), confirmed=True)
    assert error.code is Code.APPROVAL_NEEDED
    assert staff.contents("staff") == before


async def test_the_only_row_of_a_table_and_an_empty_table_are_changed_unasked(staff: Shop) -> None:
    staff.script("DELETE FROM staff WHERE id > 1;")
    async with gate_of(staff, undo="off", unqualified="confirm") as gate:
        for _ in range(2):
            await gate.change("DELETE FROM staff WHERE name LIKE '%'")
    assert staff.contents("staff")["staff"] == []


async def test_a_transaction_block_asks_as_well(staff: Shop) -> None:
    before = staff.contents("staff")
    async with gate_of(staff, undo="off", unqualified="confirm") as gate:
        if staff.name == "duckdb":
            pytest.skip("it has no transaction blocks")
        begun = await gate.ask(BeginTransaction(modes=TransactionModes(reads_only=False)))
        error = await gate.error(Query(Statement(EVERY_ROW[0])), transaction=begun.id)
        assert error.code is Code.POLICY_CONFIRM
    assert staff.contents("staff") == before
