"""Checks on what a model mistakes: tables that nothing connects, joins by wrong columns, texts."""

from __future__ import annotations

import pytest

from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.products.pgedge.text_to_sql.binding import bind
from tidegate.products.pgedge.text_to_sql.connections import doubtful_joins, unconnected
from tidegate.products.pgedge.text_to_sql.knowledge import Knowledge, KnownJoin
from tidegate.products.pgedge.text_to_sql.literals import literal_probes, near_texts
from tidegate.search.joins import Joins


def table(name: str, columns: str, *keys: tuple[str, str, str]) -> Table:
    made = tuple(
        ColumnInfo(word.rstrip("*"), "text" if "name" in word else "int", key=int("*" in word))
        for word in columns.split()
    )
    found = tuple(ForeignKey("f", (own,), to, (ref,), "public") for own, to, ref in keys)
    return Table("public", name, "table", made, foreign_keys=found)


CATALOG = Catalog(
    "library",
    "public",
    ("public",),
    (
        table("author", "aid* name born"),
        table("paper", "pid* name year cid", ("cid", "venue", "cid")),
        table("venue", "cid* name city_name"),
        table("writes", "aid pid place", ("aid", "author", "aid"), ("pid", "paper", "pid")),
        table("cites", "citing cited weight"),
        table("lab", "country lid"),
        table("person", "nid born lid"),
    ),
    "1",
    (),
    "postgres",
)


def said(sql: str, knowledge: Knowledge = Knowledge()) -> list[str]:  # noqa: B008
    bound = bind(sql, CATALOG)
    assert bound is not None
    joins = Joins(CATALOG.tables)
    found: list[str] = []
    for scope in bound.scopes:
        found += [check.name for check in unconnected(scope)]
        for join in doubtful_joins(scope, joins, knowledge, {}):
            found.append("doubtful" if join.against else "values decide")
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.name, count(*) FROM author a JOIN writes w ON true GROUP BY 1",
        "SELECT a.name, count(*) FROM author a JOIN writes w ON 1 = 1 GROUP BY 1",
        "SELECT count(*) FROM author a, writes w WHERE w.place = 1 AND a.born > 1900",
        "SELECT count(*) FROM author a CROSS JOIN paper p",
        "SELECT p.name FROM paper p JOIN writes w ON w.pid = p.pid JOIN author a ON a.born > 1",
        "SELECT name FROM author WHERE aid IN (SELECT w.aid FROM writes w, paper p)",
        "WITH w AS (SELECT aid, count(*) AS n FROM writes GROUP BY aid)"
        " SELECT a.name, w.n FROM author a JOIN w ON w.n > 1",
        "SELECT count(DISTINCT a.aid) FROM author a, paper p WHERE p.year = 2020",
        "SELECT a.name, g.n FROM author a, (SELECT generate_series(1, 9) AS n) g",
    ],
)
def test_tables_that_nothing_connects_are_found(sql: str) -> None:
    assert "unconnected" in said(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.name FROM author a JOIN writes w USING (aid) JOIN paper p USING (pid)",
        "SELECT a.name FROM author a NATURAL JOIN writes",
        "SELECT a.name, b.name FROM author a JOIN author b ON a.born < b.born",
        "SELECT a.name FROM author a, writes w WHERE (a.aid = w.aid AND w.place = 1)",
        "SELECT a.name, t.n FROM author a CROSS JOIN (SELECT count(*) AS n FROM paper) t",
        "SELECT name FROM author a WHERE EXISTS (SELECT 1 FROM writes w, paper p"
        " WHERE w.aid = a.aid AND p.year = a.born AND p.pid = w.pid)",
        "SELECT name FROM author a WHERE EXISTS (SELECT 1 FROM writes w, paper p"
        " WHERE w.aid = a.aid AND p.year = a.born)",
        "SELECT a.name FROM author a, paper p WHERE p.pid = 7 AND a.born > 1900",
        "SELECT count(DISTINCT a.aid), count(DISTINCT p.pid) FROM author a, paper p",
        "SELECT x.born - y.born FROM (SELECT born FROM author WHERE name = 'X') x,"
        " (SELECT born FROM author WHERE name = 'Y') y",
        "SELECT a.name, g FROM author a, generate_series(1, 3) g",
    ],
)
def test_tables_that_a_condition_connects_are_left_alone(sql: str) -> None:
    assert "unconnected" not in said(sql) and "doubtful" not in said(sql)


@pytest.mark.parametrize(
    "condition",
    ["w.pid = a.aid", "w.place = a.aid", "w.aid = a.born", "a.aid = w.pid AND w.place = 1"],
)
def test_a_join_by_another_column_than_the_key_is_doubtful(condition: str) -> None:
    assert said(f"SELECT count(*) FROM author a JOIN writes w ON {condition}") == ["doubtful"]


@pytest.mark.parametrize("condition", ["p.nid = l.lid", "l.lid = p.born"])
def test_what_both_tables_call_an_id_is_better_than_another_column(condition: str) -> None:
    assert said(f"SELECT count(*) FROM person p JOIN lab l ON {condition}") == ["doubtful"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM person p JOIN lab l ON p.lid = l.lid",
        "SELECT count(*) FROM author a JOIN writes w ON w.aid = a.aid",
        "SELECT count(*) FROM writes w JOIN writes v ON w.pid = v.pid AND w.aid <> v.aid",
        "SELECT count(*) FROM author a JOIN writes w ON w.aid = a.aid AND w.place = a.born",
    ],
)
def test_a_join_by_keys_is_not_doubtful(sql: str) -> None:
    assert said(sql) == []


def test_values_decide_where_no_key_and_no_name_speaks() -> None:
    sql = "SELECT count(*) FROM cites c JOIN paper p ON c.cited = p.pid"
    assert said(sql) == ["values decide"]
    assert said(sql, Knowledge(joins=(KnownJoin("cites.cited", "paper.pid"),))) == []


def probes(sql: str, catalog: Catalog = CATALOG) -> list[tuple[str, bool]]:
    bound = bind(sql, catalog)
    assert bound is not None
    found = literal_probes(bound, catalog.dialect)
    return [(each.sql.partition(" WHERE ")[2], each.is_alternative) for each in found]


def test_each_text_that_a_column_is_compared_with_is_looked_for_without_not() -> None:
    sql = (
        "SELECT count(*) FILTER (WHERE lower(v.city_name) NOT LIKE '%Rome%') FROM paper p"
        " JOIN venue v ON v.cid = p.cid WHERE p.name <> 'X' AND v.name IN ('A', 'B')"
    )
    assert set(probes(sql)) == {
        ("LOWER(\"city_name\") LIKE '%Rome%' LIMIT 1", False),
        ("\"name\" = 'X' LIMIT 1", False),
        ("\"name\" = 'A' LIMIT 1", True),
        ("\"name\" = 'B' LIMIT 1", True),
    }


def test_no_text_of_a_masked_column_a_moment_or_a_number_is_looked_for() -> None:
    masked = ColumnInfo("name", "text", masked="hash")
    hidden = Table("public", "author", "table", (ColumnInfo("aid", "int"), masked))
    catalog = Catalog("x", "public", ("public",), (hidden,), "1", (), "postgres")
    assert probes("SELECT 1 FROM author WHERE name = 'Ada'", catalog) == []
    assert probes("SELECT 1 FROM paper WHERE name = '2024-01-01' OR name = '17'") == []
    assert probes("SELECT 1 FROM paper WHERE year = 'x'") == []


def test_texts_that_are_alike_are_named() -> None:
    bound = bind("SELECT 1 FROM venue WHERE city_name = 'ROME'", CATALOG)
    assert bound is not None
    (probe,) = literal_probes(bound, "postgres")
    assert near_texts(probe, b'[["Rome"],["Oslo"],[null]]') == "'Rome'"
    assert near_texts(probe, b'[["Oslo"]]') == ""
