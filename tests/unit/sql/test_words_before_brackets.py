"""Words that may be names: before a bracket each is a keyword where its clause has it, and the call
of someone's function anywhere else."""

from __future__ import annotations

import re

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.dialects.common import AFTER
from tidegate.sql.dialects.model import INFIX
from tidegate.sql.judge import judge

CLAUSES = [
    ("mysql", "SELECT a FROM t WHERE MATCH (a) AGAINST ('x')"),
    ("postgres", "SELECT a FROM t TABLESAMPLE BERNOULLI (10)"),
    ("duckdb", "SELECT a FROM t TABLESAMPLE BERNOULLI (10)"),
    ("duckdb", "SELECT a FROM t USING SAMPLE BERNOULLI (10 PERCENT)"),
    ("postgres", "SELECT a FROM t GROUP BY (a)"),
    ("postgres", "SELECT a FROM t ORDER BY (a)"),
    ("postgres", "SELECT sum(a) OVER (PARTITION BY (b)) FROM t"),
    ("mysql", "SELECT * FROM JSON_TABLE('[]', '$[*]' COLUMNS (a INT PATH '$.a')) j"),
    ("postgres", "SELECT * FROM JSON_TABLE(a, '$[*]' COLUMNS (a INT PATH '$.a')) j"),
    ("duckdb", "SELECT * EXCLUDE (a) FROM t"),
    ("postgres", "SELECT sum(a) FILTER (WHERE a > 1) FROM t"),
    ("postgres", "SELECT a FROM t FETCH FIRST (1) ROWS ONLY"),
    ("postgres", "SELECT COLLATION FOR (a) FROM t"),
    ("postgres", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t"),
    ("mysql", "SELECT a FROM t USE INDEX (i)"),
    ("mysql", "SELECT a FROM t FORCE INDEX (i)"),
    ("mysql", "SELECT a FROM t IGNORE INDEX (i)"),
    ("mysql", "SELECT a FROM t USE KEY (i)"),
    ("mysql", "SELECT a FROM t FORCE KEY (i)"),
    ("mysql", "SELECT a FROM t IGNORE KEY (i)"),
    ("postgres", "WITH a AS MATERIALIZED (SELECT 1) SELECT * FROM a"),
    ("postgres", "WITH a AS NOT MATERIALIZED (SELECT 1) SELECT * FROM a"),
    ("duckdb", "SELECT * FROM t UNPIVOT INCLUDE NULLS (a FOR b IN (c))"),
    ("mysql", "SELECT 1 MEMBER OF ('[1]')"),
    ("postgres", "SELECT sum(a) OVER (ORDER BY b) FROM t"),
    ("duckdb", "SELECT first_value(a) IGNORE NULLS OVER (ORDER BY b) FROM t"),
    ("postgres", "SELECT json_exists(a, '$' PASSING (1) AS x) FROM t"),
    ("postgres", "SELECT a FROM t TABLESAMPLE system(10) REPEATABLE (1)"),
    ("duckdb", "SELECT * RENAME (a AS b) FROM t"),
    ("duckdb", "SELECT * EXCLUDE (a) RENAME (a AS b) FROM t"),
    ("duckdb", "SELECT * REPLACE (1 AS b) FROM t"),
    ("duckdb", "SELECT a FROM t TABLESAMPLE RESERVOIR (10)"),
    ("duckdb", "SELECT a FROM t USING SAMPLE RESERVOIR (10 ROWS)"),
    ("postgres", "SELECT a FROM t GROUP BY GROUPING SETS ((a), ())"),
    ("duckdb", "SELECT a::STRUCT(x int) FROM t"),
    ("duckdb", "SELECT CAST(a AS STRUCT(x int)) FROM t"),
    ("postgres", "SELECT a FROM t TABLESAMPLE SYSTEM (10)"),
    ("duckdb", "SELECT a FROM t USING SAMPLE SYSTEM (10 PERCENT)"),
    ("postgres", "SELECT a SIMILAR TO ('b') FROM t"),
    ("postgres", "SELECT INTERVAL '1' SECOND (3)"),
    ("duckdb", 'SELECT * FROM "t" PIVOT (sum(a) FOR b IN (1))'),
    ("duckdb", "SELECT * FROM (SELECT 1) PIVOT (sum(a) FOR b IN (1))"),
    ("duckdb", 'SELECT * FROM "t" UNPIVOT (a FOR b IN (c))'),
    ("duckdb", "SELECT * FROM (SELECT 1) UNPIVOT (a FOR b IN (c))"),
    ("duckdb", "SELECT a FROM t USING SAMPLE 10 PERCENT (bernoulli)"),
    ("postgres", "SELECT json_object('a' VALUE (1))"),
    ("mysql", "SELECT 7 DIV (2)"),
    ("mysql", "SELECT a FROM t WHERE a LIKE 'x' ESCAPE ('y')"),
    ("sqlite", "SELECT a FROM t WHERE a GLOB ('x*')"),
    ("postgres", "SELECT a FROM t WHERE a ILIKE ('x')"),
    ("sqlite", "SELECT a FROM t WHERE a MATCH ('x')"),
    ("postgres", "SELECT (a, b) OVERLAPS (c, d) FROM t"),
    ("mysql", "SELECT a FROM t WHERE a REGEXP ('x')"),
    ("mysql", "SELECT a FROM t WHERE a RLIKE ('x')"),
    ("postgres", "SELECT a FROM t WHERE a NOT SIMILAR TO ('x')"),
    ("mysql", "SELECT 1 XOR (0)"),
]
NO_CLAUSE = {"ONLY", "RECURSIVE", "SIMILAR"}
"""Before a bracket the parser reads these nowhere (`SIMILAR TO (`)."""
LISTED = {
    "COLUMNS": {"duckdb"},
    "DIV": {"postgres"},
    "FIRST": {"duckdb"},
    "GLOB": {"sqlite"},
    "MATCH": {"sqlite"},
    "OVERLAPS": {"postgres"},
    "PIVOT": {"duckdb"},
    "REGEXP": {"sqlite"},
    "SECOND": {"mysql", "duckdb"},
    "UNPIVOT": {"duckdb"},
}
"""Words that are functions, or begin a clause, in some dialects as well."""


@pytest.mark.parametrize(("dialect", "text"), CLAUSES)
def test_a_clause_with_such_a_word_is_a_read(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is Effect.READ


def test_every_such_word_has_a_clause_here() -> None:
    seen = " ".join(text for _, text in CLAUSES).upper()
    assert {word for word in {*AFTER, *INFIX} if not re.search(rf"\b{word} ?\(", seen)} == NO_CLAUSE


@pytest.mark.parametrize("word", sorted({*AFTER, *INFIX}))
@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb"])
def test_a_function_that_has_the_name_of_such_a_word_is_not_called(word: str, dialect: str) -> None:
    if dialect in LISTED.get(word, ()):
        return
    for text in (
        f"SELECT {word}(a) FROM t",
        f"SELECT a FROM t WHERE b = {word}(a)",
        f"SELECT a, {word.lower()} (1) FROM t",
        f"SELECT a FROM t ORDER BY {word}(a)",
    ):
        assert judge(text, dialect).effect is Effect.UNKNOWN, text


CALLS = [
    ("postgres", "SELECT 1 BETWEEN SYMMETRIC {word}(1) AND 5"),
    ("postgres", "SELECT now() AT TIME ZONE {word}('x')"),
    ("postgres", "SELECT SUBSTRING(a FROM 1 FOR {word}(1)) FROM t"),
    ("postgres", "SELECT OVERLAY(a PLACING {word}(1) FROM 1) FROM t"),
    ("postgres", "SELECT TRIM(BOTH {word}(1) FROM a) FROM t"),
    ("postgres", "SELECT TRIM(LEADING {word}(1) FROM a) FROM t"),
    ("postgres", "SELECT a FROM t WHERE NOT {word}(1)"),
    ("postgres", "SELECT a, {word}(1) FROM t"),
    ("postgres", "SELECT ALL {word}(1)"),
    ("postgres", "SELECT DISTINCT {word}(1)"),
    ("postgres", "SELECT a FROM t, LATERAL {word}(1) x"),
    ("postgres", "SELECT sum(a) OVER (ROWS {word}(1) PRECEDING) FROM t"),
    ("postgres", "SELECT CASE {word}(1) WHEN 1 THEN 2 END"),
    ("postgres", "SELECT a[{word}(1)] FROM t"),
    ("postgres", "SELECT a FROM t GROUP BY DISTINCT {word}(1)"),
    ("postgres", "SELECT a FROM t FETCH FIRST {word}(1) ROWS ONLY"),
    ("postgres", "SELECT json_object('a' VALUE {word}(1))"),
    ("postgres", "SELECT json_exists(a, '$' PASSING {word}(1) AS x) FROM t"),
    ("postgres", "EXPLAIN SELECT a, {word}(1) FROM t"),
    ("postgres", "SELECT a FROM t WHERE a LIKE b ESCAPE {word}(1)"),
    ("postgres", "SELECT a SIMILAR TO b ESCAPE {word}(1) FROM t"),
    ("postgres", "SELECT * FROM t, ONLY (t2), {word}(1)"),
    ("mysql", "SELECT SQL_NO_CACHE {word}(1)"),
    ("mysql", "SELECT SQL_CALC_FOUND_ROWS {word}(1)"),
    ("mysql", "SELECT HIGH_PRIORITY {word}(1)"),
    ("mysql", "SELECT STRAIGHT_JOIN {word}(1)"),
    ("mysql", "SELECT SQL_SMALL_RESULT {word}(1)"),
    ("mysql", "SELECT SQL_BIG_RESULT {word}(1)"),
    ("mysql", "SELECT SQL_BUFFER_RESULT {word}(1)"),
    ("mysql", "SELECT DISTINCTROW {word}(1)"),
    ("mysql", "SELECT BINARY {word}(1)"),
    ("mysql", "SELECT a, {word}(1) FROM t"),
    ("mysql", "SELECT NOT {word}(1)"),
    ("mysql", "SELECT a MOD {word}(1) FROM t"),
    ("mysql", "SELECT a DIV {word}(1) FROM t"),
    ("mysql", "SELECT a REGEXP {word}(1) FROM t"),
    ("mysql", "SELECT a SOUNDS LIKE {word}(1) FROM t"),
    ("mysql", "SELECT INTERVAL {word}(1) DAY + a FROM t"),
    ("mysql", "SELECT a + INTERVAL {word}(1) DAY FROM t"),
    ("mysql", "SELECT a FROM t LIMIT 1, {word}(1)"),
    ("mysql", "SELECT a FROM t WHERE a RLIKE {word}(1)"),
    ("mysql", "SELECT a XOR {word}(1) FROM t"),
]


@pytest.mark.parametrize(("dialect", "text"), CALLS)
def test_such_a_word_is_called_wherever_an_operand_may_begin(dialect: str, text: str) -> None:
    """A keyword, an operator or another infix word before it ends no operand."""
    for word in sorted({*AFTER, *INFIX}):
        judgement = judge(text.format(word=word), dialect)
        is_known = word.lower() in judgement.functions
        assert is_known or judgement.effect is Effect.UNKNOWN, word


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "SELECT a FROM t WHERE a NOT ILIKE ('x')"),
        ("postgres", "SELECT a FROM t WHERE t.a ILIKE ('x')"),
        ("postgres", "SELECT a FROM t WHERE \"a\" ILIKE ('x')"),
        ("postgres", "SELECT a FROM t WHERE a COLLATE \"C\" ILIKE ('x')"),
        ("postgres", "SELECT a FROM t WHERE a::text ILIKE ('x')"),
        ("postgres", "SELECT a FROM t WHERE a::character varying ILIKE ('x')"),
        ("postgres", "SELECT a FROM t WHERE lower(a) ILIKE ('x')"),
        ("postgres", "SELECT a FROM t WHERE a LIKE b ESCAPE ('!')"),
        ("postgres", "SELECT a FROM t WHERE a LIKE 'b' ESCAPE ('!')"),
        ("postgres", "SELECT DISTINCT a ILIKE ('x') FROM t"),
        ("postgres", "SELECT CASE WHEN a ILIKE ('x') THEN b END FROM t"),
        ("postgres", "SELECT a FROM t WHERE b AND a ILIKE ('x')"),
        ("sqlite", "SELECT a FROM t WHERE a COLLATE nocase GLOB ('x')"),
        ("mysql", "SELECT SQL_NO_CACHE a REGEXP ('x') FROM t"),
        ("mysql", "SELECT BINARY a REGEXP ('x') FROM t"),
        ("mysql", "SELECT 7 DIV (2)"),
        ("mysql", "SELECT @a XOR (0)"),
        ("duckdb", "SELECT a FROM t WHERE a NOT SIMILAR TO ('x')"),
    ],
)
def test_an_infix_word_behind_an_operand_is_no_call(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is Effect.READ
