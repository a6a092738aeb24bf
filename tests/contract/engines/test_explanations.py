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
