"""Each form of a change on each engine: its rows go back exactly, or it is known before the yes why
they cannot. A form that is not in the table has no place in it by accident: what begins a change in
a dialect, and each reason, has a row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from support.undo_shops import KINDS, ROWS, DuckdbShop, Gate, PostgresShop, Shop, gate_of
from tidegate.errors import Code
from tidegate.model.requests import Query
from tidegate.model.results import Page
from tidegate.model.statements import Statement
from tidegate.sql.change_outline import REASONS, outline_change
from tidegate.sql.dialects import find

KEPT = ""
PG, OLDER, MARIADB, SQLITE, DUCK = "postgres", "postgres-debian", "mysql", "sqlite", "duckdb"
DIALECT = {
    PG: "postgres", OLDER: "postgres", MARIADB: "mysql", SQLITE: "sqlite", DUCK: "duckdb"
}  # fmt: skip
NO_ROWS = "does not show the rows"
SEVERAL = "several tables"


class Form(NamedTuple):
    """A statement, and on each engine that has it `KEPT`, or a piece of the reason."""

    text: str
    outcomes: dict[str, str]


def everywhere(text: str, **others: str) -> Form:
    named = {"older": OLDER, "pg": PG, "mariadb": MARIADB, "sqlite": SQLITE,
        "duck": DUCK}  # fmt: skip
    outcomes = dict.fromkeys((PG, OLDER, MARIADB, SQLITE, DUCK), KEPT)
    return Form(text, outcomes | {named[name]: reason for name, reason in others.items()})


def only(*engines: str, text: str, reason: str = KEPT) -> Form:
    return Form(text, dict.fromkeys(engines, reason))


FORMS = (
    everywhere("UPDATE items SET price = 7"),
    everywhere("UPDATE items SET price = price + 1, name = 'x' WHERE id < 3 AND name <> 'two'"),
    everywhere("DELETE FROM items WHERE id = 2"),
    everywhere("DELETE FROM items"),
    everywhere("INSERT INTO items VALUES (8, 'eight', NULL), (9, NULL, 9)"),
    everywhere("INSERT INTO items (id) SELECT id + 10 FROM items"),
    everywhere("INSERT INTO items (id, name) SELECT a + 10, max(b) FROM notes GROUP BY a"),
    everywhere("INSERT INTO items (id, price) VALUES (50, 5), (51, 6) RETURNING price, id"),
    everywhere("INSERT INTO items (id) VALUES (50) RETURNING *"),
    everywhere("DELETE FROM items WHERE id < 3 RETURNING name"),
    everywhere("DELETE FROM items WHERE id IN (SELECT a FROM notes WHERE b = 'x')"),
    everywhere("UPDATE items SET price = (SELECT count(*) FROM notes WHERE a = items.id)"),
    everywhere(
        "UPDATE items SET name = 'noted' WHERE EXISTS (SELECT 1 FROM notes WHERE a = items.id)"
    ),
    everywhere("UPDATE items SET name = REPLACE(name, 'o', '0') WHERE id = 1"),
    everywhere("UPDATE items SET price = CASE WHEN id = 1 THEN 100 ELSE price END WHERE id < 3"),
    everywhere("UPDATE items SET id = id + 10", pg="key", older="key", mariadb="key", duck="key"),
    everywhere("DELETE FROM loose", pg="no primary key", older="no primary key",
        mariadb="no primary key", sqlite="no primary key", duck="no primary key"),
    only(PG, OLDER, SQLITE, DUCK, text="UPDATE items SET price = 3 WHERE id < 3"
        " RETURNING name, price"),
    only(PG, OLDER, SQLITE, DUCK, text="UPDATE items AS i SET price = n.a FROM notes AS n"
        " WHERE n.a = i.id"),
    only(PG, OLDER, SQLITE, DUCK, text="UPDATE items SET price = 1"
        " WHERE price IS DISTINCT FROM 20"),
    only(PG, OLDER, SQLITE, DUCK, text="INSERT INTO items (id) VALUES (1), (60) ON CONFLICT (id)"
        " DO NOTHING"),
    Form("INSERT INTO items (id, name) VALUES (1, 'a'), (60, 'b') ON CONFLICT (id) DO UPDATE"
        " SET price = 4, name = excluded.name",
        {PG: KEPT, OLDER: NO_ROWS, SQLITE: KEPT, DUCK: NO_ROWS}),
    Form("INSERT INTO items (id) VALUES (1), (60) ON CONFLICT (id) DO UPDATE SET price = 4"
        " WHERE items.price < 5 RETURNING id, price",
        {PG: KEPT, OLDER: NO_ROWS, SQLITE: KEPT, DUCK: NO_ROWS}),
    Form("INSERT INTO items (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 77",
        {PG: "key", OLDER: NO_ROWS, SQLITE: KEPT, DUCK: NO_ROWS}),
    only(PG, OLDER, DUCK, text="DELETE FROM items USING notes AS n WHERE n.a = items.id"),
    only(PG, OLDER, text="DELETE FROM items AS i USING notes AS n JOIN loose AS l ON l.x = n.a"
        " WHERE n.a = i.id RETURNING i.id, n.b"),
    only(PG, OLDER, SQLITE, DUCK, text="WITH n AS (SELECT 1 AS k) DELETE FROM items"
        " WHERE id IN (SELECT k FROM n)"),
    only(PG, OLDER, text="WITH n AS (SELECT 1 AS k) UPDATE items SET price = 0 FROM n"
        " WHERE n.k = items.id RETURNING items.*"),
    only(PG, OLDER, SQLITE, DUCK, text="WITH n AS (SELECT 40 AS k) INSERT INTO items (id)"
        " SELECT k FROM n RETURNING id"),
    only(PG, OLDER, text="WITH items AS (SELECT 1 AS id) UPDATE items SET price = 1",
        reason="called like its table"),
    only(PG, OLDER, text="WITH gone AS (DELETE FROM notes RETURNING a) INSERT INTO items (id)"
        " SELECT a + 20 FROM gone WHERE a = 2", reason="changes rows as well"),
    only(PG, OLDER, text="DELETE FROM items WHERE id IN (SELECT id FROM items ORDER BY id LIMIT 1"
        " FOR UPDATE SKIP LOCKED)"),
    Form("MERGE INTO items USING notes ON id = a AND b = 'x' WHEN MATCHED AND a = 1 THEN UPDATE"
        " SET price = 1 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name)"
        " VALUES (a + 70, b)", {PG: KEPT, OLDER: NO_ROWS, DUCK: NO_ROWS}),
    only(PG, OLDER, text="INSERT INTO items (id, price) OVERRIDING SYSTEM VALUE VALUES (70, 1)"),
    only(PG, OLDER, text="UPDATE items SET (name, price) = (SELECT 'x', 2) WHERE id = 1"),
    only(PG, OLDER, text="UPDATE ONLY items SET price = 1", reason="no plain UPDATE"),
    only(PG, OLDER, text="UPDATE items SET price = 1 WHERE random() < 2", reason="more than"),
    only(PG, OLDER, text="UPDATE items SET price = (random() * 100)::int"),
    only(PG, OLDER, text="UPDATE items SET price = 1 FROM notes TABLESAMPLE SYSTEM (100)"
        " WHERE a = id", reason="sample"),
    only(MARIADB, text="UPDATE items SET price = 1 WHERE RAND() < 2", reason="more than compute"),
    only(MARIADB, text="INSERT INTO items (id, name) VALUES (50, UUID())"),
    only(MARIADB, text="INSERT INTO items SET id = 50, name = 'x'"),
    only(MARIADB, text="REPLACE INTO items VALUES (1, 'x', 1)", reason="REPLACE removes"),
    only(MARIADB, text="INSERT INTO items VALUES (1, 'x', 1) ON DUPLICATE KEY UPDATE price = 4",
        reason="ON DUPLICATE KEY UPDATE"),
    only(MARIADB, text="INSERT IGNORE INTO items VALUES (1, 'x', 1), (70, 'y', 2)",
        reason="IGNORE leaves out"),
    only(MARIADB, text="UPDATE IGNORE items SET price = 1", reason="IGNORE leaves out"),
    only(MARIADB, text="DELETE FROM items ORDER BY id LIMIT 1", reason="LIMIT"),
    only(MARIADB, text="DELETE FROM items LIMIT 1", reason="LIMIT"),
    only(MARIADB, text="UPDATE items SET price = 1 LIMIT 1", reason="LIMIT"),
    only(MARIADB, text="UPDATE items JOIN notes ON notes.a = items.id SET price = 3",
        reason=SEVERAL),
    only(MARIADB, text="UPDATE items, notes SET price = 3 WHERE a = id", reason=SEVERAL),
    only(MARIADB, text="DELETE items FROM items JOIN notes ON a = id", reason="no plain DELETE"),
    only(MARIADB, text="DELETE FROM items USING items JOIN notes ON a = id", reason=SEVERAL),
    only(DUCK, text="UPDATE items SET price = 1 WHERE random() < 2", reason="more than compute"),
    only(DUCK, text="UPDATE items SET price = (random() * 100)::INTEGER"),
    only(DUCK, text="INSERT INTO items BY NAME SELECT 80 AS id, 'x' AS name"),
    only(DUCK, text="INSERT OR REPLACE INTO items VALUES (1, 'x', 1)", reason="no plain INSERT"),
    only(DUCK, text="INSERT OR IGNORE INTO items VALUES (70, 'x', 1)", reason="no plain INSERT"),
    only(SQLITE, text="INSERT OR REPLACE INTO items VALUES (1, 'x', 1)"),
    only(SQLITE, text="REPLACE INTO items VALUES (1, 'x', 1)"),
    only(SQLITE, text="UPDATE OR IGNORE items SET price = 1"),
    only(SQLITE, text="INSERT OR IGNORE INTO items VALUES (1, 'x', 1), (70, 'y', 2)"),
)  # fmt: skip
CASES = [(form.text, kind) for form in FORMS for kind in form.outcomes]
SHOWN = ("items", "notes", "loose")


class Run(NamedTuple):
    """What a form answers and leaves behind where nothing keeps its rows."""

    page: Page
    after: dict[str, list[str]]


@pytest.mark.parametrize("of_kind", sorted(DIALECT))
async def test_each_form_goes_back_or_says_before_the_yes_why_not(
    of_kind: str, tmp_path: Path
) -> None:
    """A gate for each step serves all forms: starting one takes longer than what a form does."""
    forms = {form.text: form.outcomes[of_kind] for form in FORMS if of_kind in form.outcomes}
    reasons = {text: reason for text, reason in forms.items() if reason}
    kept = [text for text, reason in forms.items() if not reason]
    shop = KINDS[of_kind].make(tmp_path)
    try:
        before = contents(shop)
        async with gate_of(shop, approval_for="writes") as gate:
            for text, reason in forms.items():
                await check_what_is_said(gate, text, reason)
        assert contents(shop) == before
        async with gate_of(shop) as gate:
            for text in reasons:
                assert (await gate.change(text)).change == "", text
                assert contents(shop) != before, text
                await refill(gate, before)
        async with gate_of(shop, undo="off") as gate:
            runs: dict[str, Run] = {}
            for text in kept:
                runs[text] = Run(await gate.change(text), contents(shop))
                assert runs[text].after != before, text
                await refill(gate, before)
        async with gate_of(shop, undo="require") as gate:
            for text, reason in reasons.items():
                error = await gate.error(Query(Statement(text)))
                assert error.code is Code.UNDO_UNAVAILABLE and reason in error.message, text
                assert contents(shop) == before, text
            for text in kept:
                await check_that_it_goes_back(gate, text, before, runs[text])
                await refill(gate, before)
    finally:
        shop.close()


def contents(shop: Shop) -> dict[str, list[str]]:
    return shop.contents(*SHOWN)


async def refill(gate: Gate, before: dict[str, list[str]]) -> None:
    """Put the rows in that each form begins with, in their order."""
    now = contents(gate.shop)
    empty = "TRUNCATE" if isinstance(gate.shop, PostgresShop) else "DELETE FROM"
    statements: list[str] = []
    for name in SHOWN:
        if now[name] != before[name]:
            statements += [f"{empty} {name}", *re.findall(rf"INSERT INTO {name}[^;]+", ROWS)]
    if isinstance(gate.shop, DuckdbShop):  # the gate has the file open
        for statement in statements:
            await gate.change(statement)
    else:
        gate.shop.script(";".join(statements))
    assert contents(gate.shop) == before


async def check_what_is_said(gate: Gate, text: str, reason: str) -> None:
    """Before the yes: whether it can be taken back, or why not."""
    error = await gate.error(Query(Statement(text)))
    assert error.code is Code.APPROVAL_NEEDED, text
    (asked,) = (each for each in gate.app.approvals.list() if each.subject.statement == text)
    reversible = asked.subject.reversible
    assert reversible is not None, text
    said = reversible.possible, reason in reversible.reason
    assert said == (not reason, True), (text, reversible)


async def check_that_it_goes_back(
    gate: Gate, text: str, before: dict[str, list[str]], plain: Run
) -> None:
    """That it answers as it does where nothing is kept, and goes back and forth exactly."""
    page = await gate.change(text)
    for name in ("columns", "affected", "row_count"):
        assert getattr(page, name) == getattr(plain.page, name), text
    assert page.change, text
    left = contents(gate.shop)
    if "random" not in text and "UUID" not in text:
        assert left == plain.after and page.rows == plain.page.rows, text
    done = await gate.undo(page.change)
    assert contents(gate.shop) == before, text
    await gate.undo(done.change)
    assert contents(gate.shop) == left, text


@pytest.mark.parametrize("kind", sorted(DIALECT))
def test_whatever_begins_a_change_in_a_dialect_has_a_row(kind: str) -> None:
    starts = {form.text.split()[0] for form in FORMS if kind in form.outcomes}
    roots = find(DIALECT[kind]).roots
    missing = {key for key, form in roots.items() if form == "change"} - starts
    assert missing - {"MERGE"} == set()  # SQLite and MariaDB have none


def test_each_reason_of_a_word_has_a_row() -> None:
    found = {outline_change(text, DIALECT[kind]) for text, kind in CASES if kind != SQLITE}
    missing = {word for word, reason in REASONS.items() if reason not in found}
    assert missing <= {"FETCH", "CURRENT", "PORTION", "PARTITION"}


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("UPDATE items SET price = 1 WHERE CURRENT OF c", "postgres"),
        ("DELETE FROM items FOR PORTION OF at FROM '2024-01-01' TO '2025-01-01'", "postgres"),
        ("DELETE FROM items PARTITION (p0)", "mysql"),
        ("INSERT INTO items PARTITION (p0) VALUES (1)", "mysql"),
        ("DELETE FROM items FETCH FIRST 1 ROW ONLY", "postgres"),
        ("TRUNCATE items", "mysql"),
        ("LOAD DATA INFILE 'x' INTO TABLE items", "mysql"),
        ("CALL change_items()", "mysql"),
        ("COPY items FROM STDIN", "postgres"),
        ("SELECT change_items()", "postgres"),
        ("UPSERT INTO items VALUES (1)", "postgres"),
        ("UPDATE items SET price = 1 RETURNING id WHERE id = 1", "postgres"),
        ("UPDATE items WHERE id = 1", "postgres"),
        ("DELETE FROM items SET price = 1", "postgres"),
        ("DELETE items", "postgres"),
        ("UPDATE a b c SET price = 1", "postgres"),
        ("DELETE FROM items WHERE id = 1 WHERE id = 2", "postgres"),
    ],
)
def test_a_form_that_is_not_known_has_no_outline(text: str, dialect: str) -> None:
    assert isinstance(outline_change(text, dialect), str)
