"""Hostile texts are answered with a code after bounded work. That it is bounded shows by the test
ending at all: unbounded, most of these would run for hours or end the process."""

from __future__ import annotations

import pytest

from support.judge_cases import load
from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql import parse
from tidegate.sql.judge import judge_uncached

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb", "oracle")
DEEP = {
    "brackets": ("SELECT ", "(", "1", ")"),
    "subqueries": ("SELECT ", "(SELECT ", "1", ")"),
    "calls": ("SELECT ", "lower(", "1", ")"),
    "types": ("SELECT ", "decimal(", "1", ")"),
    "arrays": ("SELECT ", "ARRAY[", "1", "]"),
    "structs": ("SELECT ", "STRUCT(", "1", ")"),
    "casts": ("SELECT ", "cast(", "1", " AS int)"),
    "cases": ("SELECT ", "CASE WHEN ", "1", " THEN 1 END"),
    "nots": ("SELECT ", "NOT ", "1", ""),
    "signs": ("SELECT ", "- ", "1", ""),
    "joins": ("SELECT * FROM t", " JOIN int", "", ""),
    "joins without ON": ("SELECT a -> 'b' FROM t", " JOIN u", "", ""),
    "outer joins without ON": ("SELECT a -> 'b' FROM t", " LEFT JOIN u", "", ""),
    "unions": ("SELECT 1", " UNION SELECT 1", "", ""),
    "disjunctions": ("SELECT 1 WHERE a = 1", " OR a = 1", "", ""),
    "subscripts": ("SELECT a", "[1]", "", ""),
    "members": ("SELECT a", ".a[1]", "", ""),
    "methods": ("SELECT a", ".lower(1)", "", ""),
    "lists": ("SELECT ", "[", "1", "]"),
    "lambdas": ("SELECT lower(", "x -> ", "1)", ""),
    "limits": ("SELECT ", "varchar(10) LIMIT json(", "1", ")"),
    "nested joins": ("SELECT * FROM ", "(SELECT 1 FROM t JOIN ", "t", " ON 1)"),
    "open joins": ("SELECT * FROM t", " JOIN (SELECT * FROM t", "", " JOIN u)"),
    "comments": ("SELECT 1 ", "/* ", "", " */"),
    "quotes": ("SELECT ", "'", "", ""),
    "dollars": ("SELECT ", "$a$ $b$ ", "", ""),
    "open dollars": ("SELECT ", "$a", "", ""),
    "operators": ("SELECT 1 ", "+", " 1", ""),
    "backslashes": ("SELECT '", "\\", "'", ""),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("shape", DEEP)
def test_deep_and_long_statements_are_answered(shape: str, dialect: str) -> None:
    start, opening, middle, closing = DEEP[shape]
    for depth in (3, 30, 300, 5_000, 40_000):
        judgement = judge_uncached(start + opening * depth + middle + closing * depth, dialect)
        assert judgement.effect is Effect.READ or Code(judgement.code)


def test_five_thousand_brackets_are_too_deep() -> None:
    judgement = judge_uncached("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "postgres")
    assert judgement.code == Code.SQL_TOO_DEEP.value


@pytest.mark.parametrize("dialect", DIALECTS)
def test_long_lists_of_literals_are_read(dialect: str) -> None:
    numbers = ",".join("7" for _ in range(50_000))
    assert judge_uncached(f"SELECT * FROM t WHERE a IN ({numbers})", dialect).effect is Effect.READ
    words = ",".join("'it''s'" for _ in range(10_000))
    assert judge_uncached(f"SELECT * FROM t WHERE a IN ({words})", dialect).effect is Effect.READ


@pytest.mark.parametrize("dialect", DIALECTS)
def test_many_rows_of_literals_are_read(dialect: str) -> None:
    rows = ",".join(f"({n}, 'name {n}', NULL, -1.5)" for n in range(2_500))
    assert (
        judge_uncached(f"INSERT INTO t (a, b, c, d) VALUES {rows}", dialect).effect is Effect.WRITE
    )
    assert judge_uncached(f"VALUES {rows}", dialect).effect is Effect.READ


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_behind_many_rows_is_seen(dialect: str) -> None:
    rows = ",".join("(7, 'x')" for _ in range(1_000))
    judgement = judge_uncached(f"VALUES {rows}, (7, no_such_function(1)), (7, 'x')", dialect)
    assert judgement.code == Code.SQL_FUNCTION.value


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_table_behind_many_rows_is_reported(dialect: str) -> None:
    rows = ",".join("(7, 'x')" for _ in range(1_000))
    judgement = judge_uncached(f"VALUES {rows}, (7, (SELECT a FROM hidden))", dialect)
    assert judgement.tables == ("hidden",)


@pytest.mark.needs("duckdb", "jdbc", "mysql")
def test_ordinary_reads_take_little_of_the_work_that_is_granted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parse, "FUEL", 200)
    monkeypatch.setattr(parse, "FUEL_PER_TOKEN", 6)
    for case in load():
        if case.expected == "allow":
            assert judge_uncached(case.sql, case.dialect).effect is Effect.READ, case


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT '\ud800'",
        b"SELECT '\xff\xfe'".decode("utf-8", "surrogateescape"),
        "SELECT 1\0; DROP TABLE t",
        "SELECT 'a' AS \u202eb\u202c FROM t",
        "\u2066" * 30_000,
        "\0" * 102_400,
        "\ufffd" * 34_133,
        "/**/" * 25_600,
        "-- x\n" * 20_000,
        ";" * 102_400,
        "SELECT " + "a " * 10_000,
        "SELECT " + "a, " * 10_000 + "a FROM t",
        "x" * 102_401,
    ],
    ids=range(13),
)
def test_what_is_no_text_of_sql_is_refused_with_a_code(text: str, dialect: str) -> None:
    judgement = judge_uncached(text, dialect)
    assert judgement.effect is Effect.UNKNOWN
    assert Code(judgement.code) and judgement.rule != "judge.failed"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_behind_a_long_list_is_seen(dialect: str) -> None:
    numbers = ",".join("7" for _ in range(40_000))
    text = f"SELECT * FROM t WHERE a IN ({numbers}, no_such_function(1))"
    assert judge_uncached(text, dialect).code == Code.SQL_FUNCTION.value


def test_a_list_of_a_hundred_thousand_items_is_too_long() -> None:
    text = f"SELECT * FROM t WHERE a IN ({','.join(str(n) for n in range(100_000))})"
    assert judge_uncached(text, "sqlite").code == Code.SQL_TOO_LONG.value


@pytest.mark.parametrize("dialect", DIALECTS)
def test_too_many_words_are_too_long(dialect: str) -> None:
    text = "SELECT " + ",".join("a" for _ in range(20_000))
    assert judge_uncached(text, dialect).code == Code.SQL_TOO_LONG.value


def test_size_is_counted_in_bytes() -> None:
    assert judge_uncached("SELECT '" + "x" * 102_391 + "'", "sqlite").effect is Effect.READ
    assert (
        judge_uncached("SELECT '" + "x" * 102_392 + "'", "sqlite").code == Code.SQL_TOO_LONG.value
    )
    assert judge_uncached("SELECT '" + "語" * 34_130 + "'", "sqlite").effect is Effect.READ
    assert (
        judge_uncached("SELECT '" + "語" * 34_131 + "'", "sqlite").code == Code.SQL_TOO_LONG.value
    )
