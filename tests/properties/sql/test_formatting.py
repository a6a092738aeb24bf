"""A formatted statement has the tokens and comments of the one that was written, in the same order.

Another reader than our own says so as well: sqlglot reads both as the same tree, and the databases
that are here give the same rows.
"""

from __future__ import annotations

import random
import re
import sqlite3

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.errors import SqlglotError

from support.judge_cases import load
from support.judge_splices import splice
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.formatting import WIDTH, format_text
from tidegate.sql.lex import lex

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb", "default")
GLOT = {"default": ""}
BLANK = re.compile(r"\s+")


def tokens(text: str, dialect: str) -> list[tuple[str, str, str]] | None:
    try:
        return [token[:3] for token in lex(text, find(dialect).lexical_rules)]
    except Refusal:
        return None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_of_the_cases_keeps_its_tokens(dialect: str) -> None:
    changed = 0
    for case in load():
        formatted = format_text(case.sql, dialect)
        assert tokens(formatted, dialect) == tokens(case.sql, dialect), case.sql
        assert BLANK.sub("", formatted) == BLANK.sub("", case.sql), case.sql
        assert format_text(formatted, dialect) == formatted, case.sql
        changed += formatted != case.sql
    assert changed > 100, "formatting changes most of them"


@given(st.integers(0, 2**32), st.sampled_from(DIALECTS))
def test_texts_that_no_one_would_write_keep_their_tokens(seed: int, dialect: str) -> None:
    text = splice(random.Random(seed))
    formatted = format_text(text, dialect)
    assert tokens(formatted, dialect) == tokens(text, dialect)
    assert BLANK.sub("", formatted) == BLANK.sub("", text)
    assert format_text(formatted, dialect) == formatted


@pytest.mark.parametrize("dialect", DIALECTS)
def test_another_parser_reads_the_same_tree(dialect: str) -> None:
    compared = 0
    name = GLOT.get(dialect, dialect)
    for case in load():
        if case.dialect != dialect and dialect != "default":
            continue
        try:
            before = sqlglot.parse(case.sql, read=name)
        except (SqlglotError, RecursionError, TypeError):
            continue
        if any(isinstance(each, (exp.Command, exp.Set)) for each in before):
            continue  # it keeps the rest of these as it is written
        # With a space: sqlglot cannot read two quotes at the very end.
        after = sqlglot.parse(f"{format_text(case.sql, dialect)} ", read=name)
        assert before == after, case.sql
        compared += 1
    assert compared > 20


def test_sqlite_gives_the_same_rows() -> None:
    connection = sqlite3.connect(":memory:")
    compared = 0
    for case in load():
        reads = case.sql.lstrip().upper().startswith(("SELECT", "VALUES", "WITH"))
        if case.expected != "allow" or not reads:
            continue  # some of the others would never end
        try:
            before = connection.execute(case.sql).fetchall()
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            continue
        formatted = format_text(case.sql, "sqlite")
        after = connection.execute(formatted).fetchall()
        if before and not re.search("random|now|sqlite_stmt", case.sql, re.IGNORECASE):
            assert after == before, case.sql
            compared += 1
    connection.close()
    assert compared > 20


@pytest.mark.parametrize(
    ("dialect", "text", "formatted"),
    [
        (
            "postgres",
            "select a,b from t where x between 1 and 2 and y or z order by a",
            "select a, b\nfrom t\nwhere x between 1 and 2\n  and y\n  or z\norder by a",
        ),
        (
            "sqlite",
            "SELECT * FROM (SELECT a FROM t) AS x LEFT JOIN u ON x.a=u.a",
            "SELECT *\nFROM (\n  SELECT a\n  FROM t\n) AS x\nLEFT JOIN u ON x.a=u.a",
        ),
        (
            "postgres",
            "insert into t(a) values (1) on conflict (a) do update set a=2 returning a",
            "insert into t(a)\nvalues (1)\non conflict (a) do update set a=2\nreturning a",
        ),
        ("sqlite", "SELECT 1;SELECT 2", "SELECT 1;\n\nSELECT 2"),
        ("sqlite", "SELECT a -- first\n, b FROM t", "SELECT a -- first\n, b\nFROM t"),
        ("sqlite", "-- why\nSELECT 1", "-- why\nSELECT 1"),
        (
            "sqlite",
            "SELECT CASE WHEN a AND b THEN 1 END FROM t",
            "SELECT CASE WHEN a AND b THEN 1 END\nFROM t",
        ),
        ("mysql", "select count (*), left('x',1) from t", "select count (*), left('x', 1)\nfrom t"),
        ("postgres", "SELECT 'a'\n'b'", "SELECT 'a'\n'b'"),
        ("postgres", "SELECT $$ a\n  b $$ FROM t", "SELECT $$ a\n  b $$\nFROM t"),
        ("sqlite", 'SELECT t.from, "from" FROM t', 'SELECT t.from, "from"\nFROM t'),
        ("sqlite", "", ""),
    ],
)
def test_clauses_begin_lines(dialect: str, text: str, formatted: str) -> None:
    assert format_text(text, dialect) == formatted


@pytest.mark.parametrize("text", ["SELECT 'x", "SELECT /* x", "SELECT \u202e 1"])
def test_what_cannot_be_read_stays_as_it_is(text: str) -> None:
    assert format_text(text, "sqlite") == text


def test_long_lists_are_broken_at_their_commas() -> None:
    text = "SELECT " + ", ".join(f"column_{number}" for number in range(100)) + " FROM t"
    lines = format_text(text, "sqlite").split("\n")
    assert max(map(len, lines)) <= WIDTH
    assert all(line.endswith(",") for line in lines[:-2])


def test_deep_queries_are_not_indented_without_end() -> None:
    text = "SELECT * FROM (" * 1_000 + "SELECT 1"
    assert len(format_text(text, "postgres")) < 20 * len(text)
