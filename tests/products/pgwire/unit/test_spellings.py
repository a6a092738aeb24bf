"""PostgreSQL's spellings in statements for cloud providers, as SQLite writes them."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.products.pgwire.spellings import spell

pytestmark = pytest.mark.needs("cloud")


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("SELECT a::int", "SELECT CAST(a AS INTEGER)"),
        ("SELECT a :: int + 1", "SELECT CAST(a  AS INTEGER) + 1"),
        ("SELECT t.a::pg_catalog.int8", "SELECT CAST(t.a AS INTEGER)"),
        ("SELECT p.s.r.a::varchar(10)", "SELECT CAST(p.s.r.a AS TEXT)"),
        ('SELECT "a b"::character varying(3)', 'SELECT CAST("a b" AS TEXT)'),
        ("SELECT f(a, (b))::double precision", "SELECT CAST(f(a, (b)) AS REAL)"),
        ("SELECT (1 + 1)::text", "SELECT CAST((1 + 1) AS TEXT)"),
        ("WHERE x IN ('1', '2')::text", "WHERE x IN CAST(('1', '2') AS TEXT)"),
        ("SELECT a::text::int", "SELECT CAST(CAST(a AS TEXT) AS INTEGER)"),
        ("SELECT '1'::text::int", "SELECT CAST('1'::text AS INTEGER)"),
        ("SELECT '1'::int, $1::int, 5::text", "SELECT '1'::int, $1::int, 5::text"),
        ("SELECT a::bool", "SELECT (lower(a) IN ('t', 'true', 'y', 'yes', 'on', '1'))"),
        ("SELECT a::date, a::timestamp without time zone", "SELECT date(a), datetime(a)"),
        ("SELECT CASE WHEN b THEN CASE WHEN c THEN 1 END END::int",
         "SELECT CAST(CASE WHEN b THEN CASE WHEN c THEN 1 END END AS INTEGER)"),
        ("WHERE a ILIKE 'x%' OR b not ilike 'y'", "WHERE a LIKE 'x%' OR b not LIKE 'y'"),
        ("SELECT now()::text, t.now(), \"now\"()",
         "SELECT CAST(strftime('%Y-%m-%dT%H:%M:%SZ', 'now') AS TEXT), t.now(), \"now\"()"),
        ('SELECT * FROM Ops."a.b".c, ops.d.e', 'SELECT * FROM "a.b".c, ops.d.e'),
        ("SELECT 'a ILIKE now() b::int', \"c::int\" -- ilike d::int",
         "SELECT 'a ILIKE now() b::int', \"c::int\" -- ilike d::int"),
        ("SELECT a::nothing, a::int[], ::int", "SELECT a::nothing, a::int[], ::int"),
        ("SELECT 'unterminated ILIKE", "SELECT 'unterminated ILIKE"),
    ],
)  # fmt: skip
def test_a_spelling_of_postgresql_is_written_as_sqlite_writes_it(asked: str, written: str):
    assert spell(asked, "cloud", "ops") == written


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "duckdb", "mysql"])
def test_statements_for_other_sources_stay_as_they_are(dialect: str):
    text = "SELECT a::int, now() FROM t WHERE a ILIKE 'x'"
    assert spell(text, dialect, "ops") == text


_VALUES = st.sampled_from(["'7'", "x", "(x + 1)", "abs(x)", "CASE WHEN x THEN 2 ELSE 3 END"])
_TYPES = st.sampled_from(["int", "bigint", "text", "numeric(10, 2)", "real", "varchar(9)", "bool"])


@given(_VALUES, st.lists(_TYPES, min_size=1, max_size=4))
def test_casts_of_any_depth_are_read_by_sqlite(value: str, types: list[str]):
    text = spell(f"SELECT 0, x, {value}{''.join(f'::{each}' for each in types)} AS c", "cloud", "o")
    first = f"::{types[0]}"
    if value == "'7'":  # a constant's own cast is left out later
        assert text.count("::") == 1
        text = text.replace(first, "", 1)
    assert "::" not in text
    with sqlite3.connect(":memory:") as file:
        (zero, x, cast) = file.execute(f"{text} FROM (SELECT 5 AS x)").fetchone()
    file.close()
    assert (zero, x) == (0, 5)
    assert cast is not None


@given(st.text(alphabet="ax.\"'():[]1 -\nILKEnow", max_size=40))
def test_any_text_is_spelled_or_left(text: str):
    assert isinstance(spell(text, "cloud", "a"), str)
