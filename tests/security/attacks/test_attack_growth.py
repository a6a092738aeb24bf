"""Attacks by texts that grow: a few hundred bytes that the database writes out to gigabytes.

SQLite prepares a statement without feeling an interrupt or a time limit. Twenty-two nested queries
of 600 bytes together took it 3 s and 1 GB, twenty-eight would have taken all there is.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from support.attack_target import Target
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

SUM = "+".join(["id"] * 300)


def doubled(depth: int, start: str | None = None, name: str = "a") -> str:
    """Each query doubles the terms of the one inside it."""
    text = start or f"SELECT id AS {name} FROM items"
    for _ in range(depth):
        text = f"SELECT {name} + {name} AS {name} FROM ({text})"
    return text


def chained(depth: int, more: str = "a + a AS a") -> str:
    """The same by common table expressions."""
    parts = [f", c{n + 1} AS (SELECT {more} FROM c{n})" for n in range(depth)]
    return f"WITH c0 AS (SELECT id AS a FROM items){''.join(parts)} SELECT a FROM c{depth}"


GROWING = {
    "nested": doubled(30),
    "chained": chained(30),
    "chained, renamed": "WITH c0(z) AS (SELECT id FROM items)"
    + "".join(f", c{n + 1}(z) AS (SELECT z + z FROM c{n})" for n in range(20))
    + " SELECT z FROM c20",
    "by case": chained(20, "A+a AS A"),
    "quoted": chained(20, '"a"+[a] AS `a`'),
    "odd names": doubled(20, name='"ä ö"'),
    "through a star": chained(20).replace("FROM c9)", "FROM (SELECT * FROM c9))"),
    "through a qualified star": doubled(8, f"SELECT x.* FROM ({doubled(12)}) AS x"),
    "in a bracket": doubled(8, f"SELECT a FROM ((({doubled(12)}) AS x JOIN items ON 1))"),
    "in a join": doubled(8, f"SELECT x.a FROM items LEFT JOIN ({doubled(12)}) x ON x.a = items.id"),
    "in a union": doubled(8, f"SELECT 1 AS a UNION ALL {doubled(12)}"),
    "in a condition": f"SELECT 1 FROM items WHERE id IN ({doubled(20)})",
    "in a column": f"SELECT ({doubled(20)})",
    "in a table function": f"SELECT * FROM json_each(({doubled(20)}))",
    "correlated": f"SELECT (SELECT x.a + x.a) FROM ({doubled(20)}) AS x",
    "by an alias": f"SELECT {SUM} AS b FROM items WHERE {' AND '.join(['b > 1'] * 300)}",
    "by positions": f"SELECT {SUM} AS b FROM items ORDER BY {','.join(['1'] * 1500)}",
    "by groups": f"SELECT {SUM} AS b FROM items GROUP BY {','.join(['b'] * 300)}",
    "by windows": f"SELECT {','.join(['sum(1) OVER w'] * 200)} FROM items"
    f" WINDOW w AS (PARTITION BY {','.join(['id'] * 300)})",
    "multiplied": f"SELECT {'+'.join(['b'] * 300)} FROM (SELECT {SUM} AS b FROM items)",
}


@pytest.mark.parametrize("text", GROWING.values(), ids=GROWING.keys())
def test_a_text_that_grows_beyond_measure_is_refused(text: str) -> None:
    judgement = judge(text, "sqlite")
    assert (judgement.effect, judgement.rule) == (Effect.UNKNOWN, "text.growth")


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", "duckdb"])
def test_it_is_refused_whatever_the_database(dialect: str) -> None:
    text = "SELECT id AS a FROM items"
    for number in range(25):
        text = f"SELECT a + a AS a FROM ({text}) AS q{number}"
    assert judge(text, dialect).rule == "text.growth"


@pytest.mark.parametrize(
    "text",
    [
        doubled(4),
        chained(5),
        "SELECT 1" + " UNION ALL SELECT 1" * 300,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9) SELECT i FROM n",
        f"SELECT {', '.join(f'id AS c{n}' for n in range(300))} FROM items ORDER BY 1, 2, 3",
        "WITH a AS (SELECT id, name, price, CASE WHEN price > 10 THEN 'dear' ELSE 'cheap' END AS k"
        " FROM items), b AS (SELECT k, count(*) AS n, sum(price) AS s FROM a GROUP BY k),"
        " c AS (SELECT k, n, s, s / n AS mean, rank() OVER (ORDER BY s DESC) AS r FROM b)"
        " SELECT c.*, b.n FROM c JOIN b USING (k) JOIN a ON a.k = c.k WHERE c.r < 3 ORDER BY 1",
        f"SELECT * FROM (SELECT {SUM} AS b FROM items) WHERE b > 1 AND b < 5",
    ],
)
def test_an_ordinary_text_is_not(text: str) -> None:
    assert judge(text, "sqlite").effect is Effect.READ
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE items (id INTEGER, name TEXT, price REAL)")
        connection.execute(text)


def test_neither_query_nor_explain_prepares_it(server: Target) -> None:
    for text in (doubled(30), chained(30), f"EXPLAIN {doubled(30)}"):
        for tool in ("query", "explain"):
            assert server.call(tool, sql=text).refused
    assert server.query("SELECT 1").text == '{"columns":["1"],"rows":[[1]]}'
    assert server.memory_mb() < 200
