"""Queries that differ in plain values only: DuckDB is asked once about one of them, and each still
comes with its own columns, types and values. The oracle is DuckDB itself, past the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.duckdb_types import Oracle, make_types
from support.engine_cases import CASES, Case
from tidegate.engines.api import Engine
from tidegate.errors import TidegateError
from tidegate.model.statements import Effect, Statement
from tidegate.results.json_values import encode_rows
from tidegate.sql.fingerprint import fingerprint
from tidegate.sql.judge import judge

SHOP = """
CREATE TABLE items (id INTEGER, name VARCHAR, price DECIMAL(9, 2), day DATE, big HUGEINT);
INSERT INTO items
SELECT i, 'name ' || i, i * 1.25, DATE '2026-01-01' + i::INTEGER, i FROM range(9) t(i);
CREATE VIEW dear AS SELECT id, price > 5 AS dear, day FROM items;
"""

ALIKE = {
    "a value that is compared": [f"SELECT id, name FROM items WHERE id = {n}" for n in (1, 5, 99)],
    "a text that is compared": [
        f"SELECT id FROM items WHERE name = '{name}'" for name in ("name 1", "it''s", "")
    ],
    "a type that DuckDB writes as text": [
        f"SELECT price, day FROM items WHERE id < {n} ORDER BY id" for n in (2, 4)
    ],
    "a number's type by its size": [
        f"SELECT {n} AS n FROM items LIMIT 2"
        for n in (1, 3_000_000_000, 9_223_372_036_854_775_808, 2**127)
    ],
    "a decimal's type by its digits": [f"SELECT {n} AS n" for n in ("1.5", "17.25", "0.00001")],
    "a number in an expression": [f"SELECT id + {n} AS n FROM items" for n in (1, 3_000_000_000)],
    "a list's type by its numbers": [f"SELECT list_value({n}, 2) AS l" for n in (1, 3_000_000_000)],
    "a branch": [f"SELECT CASE WHEN id > {n} THEN {n} END c FROM items" for n in (3, 2**40)],
    "the place of a column": [f"SELECT id, name FROM items ORDER BY {n}" for n in (1, 2)],
    "a view": [f"SELECT * FROM dear WHERE id = {n}" for n in (1, 7)],
    "a limit": [f"SELECT id FROM items ORDER BY id LIMIT {n}" for n in (0, 1, 3)],
    "a range": [f"SELECT * FROM range({n})" for n in (0, 3)],
    "a decimal that is too long": [f"SELECT {n} AS n" for n in (f"1.{'2' * 40}", "17.25")],
    "a part by its place": [
        f"SELECT struct_extract(row(id, day, price), {n}) AS part FROM items WHERE id < {m}"
        for n, m in ((1, 4), (2, 5), (3, 6))
    ],
    "an argument by name": [f"SELECT struct_pack(a := {n}) AS s" for n in (1, 3_000_000_000)],
}


@pytest.fixture
def shop(tmp_path: Path) -> Case:
    path = tmp_path / "alike.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(SHOP)
    case = CASES["duckdb"].prepare(tmp_path)
    case.url = f"duckdb:///{path}"
    case.source = type(case.source)("s1", "shop", case.url, "duckdb", "duckdb")
    return case


def what_duckdb_says(case: Case, text: str) -> tuple[list[tuple[str, str]], list[list[Any]]]:
    """The names and types of a query's columns, and its values as DuckDB writes them."""
    with duckdb.connect(case.url.removeprefix("duckdb:///"), read_only=True) as made:
        columns = [(row[0], row[1]) for row in made.execute(f"DESCRIBE {text}").fetchall()]
        values = ", ".join(f"CAST(#{place} AS VARCHAR)" for place in range(1, len(columns) + 1))
        rows = made.execute(f"SELECT {values} FROM ({text})").fetchall()
        return columns, [list(row) for row in rows]


async def answer(
    case: Case, engine: Engine, text: str
) -> tuple[list[tuple[str, str]], list[list[Any]]]:
    judgement = judge(text, "duckdb")
    assert judgement.effect is Effect.READ, judgement
    found = await engine.inspect(Statement(text), judgement)
    assert found is not None
    assert found.effect is Effect.READ
    cursor = await case.start(engine, text)
    columns = [(column.name, column.type) for column in cursor.columns]
    rows = await cursor.fetch(100)
    await cursor.close()
    return columns, [list(row) for row in rows]


def as_text(value: Any) -> Any:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"'{name}': {one}" for name, one in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


@pytest.mark.parametrize("order", ["as written", "turned round"])
async def test_each_query_has_its_own_types_and_values(shop: Case, order: str) -> None:
    wrong: list[object] = []
    async with shop.opened() as engine:
        for name, texts in ALIKE.items():
            assert len({fingerprint(text) for text in texts}) == 1, name
            for text in texts if order == "as written" else reversed(texts):
                wanted = what_duckdb_says(shop, text)
                columns, rows = await answer(shop, engine, text)
                found = columns, [[as_text(value) for value in row] for row in rows]
                if found != wanted:
                    wrong.append((name, text, found, wanted))
    assert wrong == []


async def test_a_column_of_every_type_comes_alike_whether_it_was_bound_or_ran_at_once(
    shop: Case, tmp_path: Path
) -> None:
    url = make_types(tmp_path / "types.duckdb")
    oracle = Oracle(url)
    names = ['"' + name.replace('"', '""') + '"' for name in oracle.columns]
    oracle.close()
    shop.source = type(shop.source)("s1", "shop", url, "duckdb", "duckdb")
    async with shop.opened() as engine:
        for name in names:
            found = []
            for number in (5, 6):
                cursor = await shop.start(engine, f"SELECT {name} FROM types LIMIT {number}")
                rows = encode_rows(await cursor.fetch(10))
                found.append((cursor.columns, rows))
                await cursor.close()
            assert found[0] == found[1], name


async def test_a_value_that_duckdb_refuses_is_refused_after_one_that_it_takes(
    shop: Case,
) -> None:
    async with shop.opened() as engine:
        assert (await answer(shop, engine, "SELECT id FROM items ORDER BY 1"))[1][0] == [0]
        with pytest.raises(TidegateError, match="ORDER term out of range"):
            await answer(shop, engine, "SELECT id FROM items ORDER BY 5")


async def test_one_opinion_stands_for_all_reads_that_differ_in_plain_values(
    shop: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shop.opened() as engine:
        asked: list[str] = []
        ask = engine._ask

        async def count(verb: str, *args: Any) -> Any:
            asked.append(verb)
            return await ask(verb, *args)

        monkeypatch.setattr(engine, "_ask", count)
        for number in range(5):
            await answer(shop, engine, f"SELECT name FROM items WHERE id = {number}")
        assert asked.count("inspect") == 1
        change = "UPDATE items SET name = 'x' WHERE id = {}"
        for number in range(2):
            text = change.format(number)
            await engine.inspect(Statement(text), judge(text, "duckdb"))
        assert asked.count("inspect") == 3


@pytest.mark.parametrize(
    "end", ["ORDER BY 2", "WHERE day = '2026-01-01'", "WHERE day < '2026-01-01' LIMIT 5", ""]
)
async def test_a_view_that_writes_is_seen_whatever_duckdb_makes_of_other_values(
    shop: Case, end: str
) -> None:
    """What stands for the values may be nothing that DuckDB can plan: no date, no such column."""
    with duckdb.connect(shop.url.removeprefix("duckdb:///")) as made:
        made.execute("CREATE SEQUENCE s")
        made.execute("CREATE VIEW counted AS SELECT nextval('s') AS n, DATE '2026-01-01' AS day")
    text = f"SELECT n, day FROM counted {end}"
    judgement = judge(text, "duckdb")
    assert judgement.effect is Effect.READ
    async with shop.opened() as engine:
        found = await engine.inspect(Statement(text), judgement)
        assert found is not None
        assert found.effect is Effect.WRITE


async def test_a_query_that_runs_again_for_its_types_has_its_parameters(shop: Case) -> None:
    text = "SELECT struct_extract(row(id, day), {}) AS part FROM items WHERE id = $1"
    found: list[object] = []
    async with shop.opened() as engine:
        for place in (1, 2):
            cursor = await shop.start(engine, text.format(place), (3,))
            found.append([list(row) for row in await cursor.fetch(10)])
            await cursor.close()
    assert found == [[[3]], [["2026-01-04"]]]


@pytest.mark.parametrize(("text", "form"), [("SELECT $1 AS n", "{}"), ("SELECT [$1] AS n", "{}[]")])
async def test_one_text_has_the_types_that_the_sizes_of_its_parameters_give(
    shop: Case, text: str, form: str
) -> None:
    sizes = [(31, "INTEGER", "BIGINT"), (63, "BIGINT", "UBIGINT"), (64, "UBIGINT", "HUGEINT"),
             (127, "HUGEINT", "UHUGEINT")]  # fmt: skip
    wanted = [(2**n - 1, below) for n, below, _ in sizes] + [(2**n, at) for n, _, at in sizes]
    wanted += [(-(2**31), "INTEGER"), (-(2**31) - 1, "BIGINT"), (-(2**63) - 1, "HUGEINT")]
    async with shop.opened() as engine:
        for value, kind in wanted:
            cursor = await shop.start(engine, text, (value,))
            assert [each.type for each in cursor.columns] == [form.format(kind)], value
            await cursor.close()


@pytest.mark.parametrize("text", ["SELECT n FROM v WHERE id = 5", "SELECT n FROM v"])
async def test_what_duckdb_said_of_a_view_holds_until_the_view_is_another(
    shop: Case, text: str
) -> None:
    path = shop.url.removeprefix("duckdb:///")
    judgement = judge(text, "duckdb")
    views = ["nextval('s')", "1", "nextval('s')"]
    effects: list[Effect] = []
    async with shop.opened() as engine:
        for view in views:
            await engine._let_go()  # another process may write the file
            with duckdb.connect(path) as made:
                made.execute("CREATE SEQUENCE IF NOT EXISTS s")
                made.execute(f"CREATE OR REPLACE VIEW v AS SELECT {view} AS n, 5 AS id")
            found = await engine.inspect(Statement(text), judgement)
            assert found is not None
            effects.append(found.effect)
    assert effects == [Effect.WRITE, Effect.READ, Effect.WRITE]


async def test_what_duckdb_said_of_a_view_in_memory_is_asked_again(shop: Case) -> None:
    shop.source = type(shop.source)("s1", "shop", "duckdb:///:memory:", "duckdb", "duckdb")
    text = "SELECT n FROM v WHERE id = 5"
    judgement = judge(text, "duckdb")
    effects: list[Effect] = []
    async with shop.opened() as engine:
        made = ["CREATE SEQUENCE s", "CREATE VIEW v AS SELECT 1 AS n, 5 AS id"]
        replaced = ["CREATE OR REPLACE VIEW v AS SELECT nextval('s') AS n, 5 AS id"]
        for changes in (made, replaced):
            for change in changes:
                cursor = await shop.start(engine, change, effect=Effect.WRITE)
                await cursor.close()
            found = await engine.inspect(Statement(text), judgement)
            assert found is not None
            effects.append(found.effect)
    assert effects == [Effect.READ, Effect.WRITE]
