"""How a statement would run, as text and, where the database knows how, as JSON."""

import json

import msgspec
import pytest

from tidegate.errors import TidegateError

AS_JSON = {
    "postgres": "EXPLAIN (FORMAT JSON) SELECT name FROM items WHERE id = 1",
    "mysql": "EXPLAIN FORMAT=JSON SELECT name FROM items WHERE id = 1",
    "duckdb": "EXPLAIN (FORMAT json) SELECT name FROM items WHERE id = 1",
    "files": "EXPLAIN (FORMAT json) SELECT name FROM items WHERE name = 'items'",
    "sqlite": "EXPLAIN (FORMAT JSON) SELECT name FROM items WHERE id = 1",
    "memory": "EXPLAIN (FORMAT JSON) TABLE items",
}
AS_JSON |= {
    "jdbc-postgresql": AS_JSON["postgres"],
    "jdbc-mariadb": AS_JSON["mysql"],
    **dict.fromkeys(("jdbc-h2", "jdbc-hsqldb", "jdbc-derby", "jdbc-sqlite"), AS_JSON["sqlite"]),
}


async def test_an_explanation_comes_as_json_where_the_database_has_it(case):
    text = AS_JSON.get(case.name) or AS_JSON[case.name.partition("-")[0]]
    async with case.opened() as engine:
        if not engine.capabilities.explains_as_json:
            with pytest.raises(TidegateError):
                await case.ask(engine, text)
            return
        (row,) = await case.ask(engine, text)
    cell = row[-1]
    written = bytes(cell) if isinstance(cell, msgspec.Raw) else cell
    assert "items" in json.dumps(json.loads(written))


PLACEHOLDER = {"sqlite": "?", "postgres": "$1"}


async def test_a_statement_with_placeholders_is_planned_for_any_value_or_refused_in_words(case):
    name = case.name.partition("-")[0]
    if name not in ("sqlite", "postgres", "mysql", "duckdb"):
        return
    text = f"SELECT name FROM items WHERE id = {PLACEHOLDER.get(name, '?')}"
    async with case.opened() as engine:
        if name in ("mysql", "duckdb"):
            with pytest.raises(TidegateError, match="values"):
                await case.explain(engine, text)
            assert "items" in str(await case.explain(engine, text, (1,)))
            return
        for _ in range(3):  # nothing of a plan is left on the session
            plan = str(await case.explain(engine, text)).lower()
            assert "items" in plan and "one-time filter" not in plan
        assert await case.ask(engine, text, (1,)) == [("item 1",)]
        if name == "postgres":
            with pytest.raises(TidegateError, match="no_such"):
                await case.explain(engine, "SELECT no_such FROM items WHERE id = $1")
            assert "items" in str(await case.explain(engine, text))
