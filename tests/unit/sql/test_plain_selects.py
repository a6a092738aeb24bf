"""Which queries are read by the grammar of plain ones, and what the tables of its words are for."""

from __future__ import annotations

import pytest

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge
from tidegate.sql.lex import STRING, lex
from tidegate.sql.masking.verification import table_names
from tidegate.sql.normalization import MAX_POSTFIXES
from tidegate.sql.select_grammar import tables_of_select

WINDOWS = (
    "ORDER BY b",
    "PARTITION BY a ORDER BY b DESC",
    "ORDER BY b ROWS UNBOUNDED PRECEDING",
    "ORDER BY b ROWS 2 PRECEDING",
    "ORDER BY b ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ORDER BY b RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING",
    "ORDER BY b GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb"])
def test_a_window_with_any_frame_is_a_plain_query(dialect: str, window: str) -> None:
    rules = find(dialect)
    tokens = lex(f"SELECT sum(a) OVER ({window}), c FROM t", rules.lexical_rules)
    assert tables_of_select(tokens, rules) == [("t",)]


@pytest.mark.parametrize("frame", ["ROWS 'x' PRECEDING", "ROWS a PRECEDING", "ROWS (1) PRECEDING"])
def test_a_frame_of_anything_else_goes_to_the_general_parser(frame: str) -> None:
    rules = find("postgres")
    tokens = lex(f"SELECT sum(a) OVER (ORDER BY b {frame}) FROM t", rules.lexical_rules)
    assert tables_of_select(tokens, rules) is None


@pytest.mark.parametrize("what", ["CATALOGS", "DATABASES", "SCHEMAS", "TABLES", "VIEWS"])
def test_what_spark_shows_is_read(what: str) -> None:
    assert judge(f"SHOW {what}", "spark").effect is Effect.READ
    assert judge("SHOW ROLES", "spark").effect is not Effect.READ


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb", "default"])
def test_a_text_may_begin_with_a_string(dialect: str) -> None:
    (token,) = lex("'a'", find(dialect).lexical_rules)
    assert token.kind == STRING


def test_a_string_does_not_continue_one_with_backslashes() -> None:
    refused = judge("SELECT E'a'\n'b\\'", "postgres")
    assert refused.effect is Effect.UNKNOWN and refused.code == Code.SQL_UNREADABLE.value


OPENS = (
    *("FROM", "JOIN", "TABLE", "INTO", "UPDATE", "PIVOT", "UNPIVOT", "SUMMARIZE", "DESCRIBE"),
    *("DESC", "LATERAL", "ONLY", "STRAIGHT_JOIN"),
)


@pytest.mark.parametrize("word", OPENS)
def test_a_name_behind_each_word_that_a_table_follows_stands_where_a_table_can(word: str) -> None:
    for dialect in ("duckdb", "mysql"):
        rules = find(dialect)
        for text in (f"{word} secret", f"{word} a.secret", f"{word} (secret"):
            tokens = lex(text, rules.lexical_rules)
            assert [tokens[at].text for at in table_names(tokens, rules)] == ["secret"], text


@pytest.mark.parametrize("word", ["SELECT", "WHERE", "GROUP BY", "HAVING", "LIMIT", "VALUES"])
def test_a_name_behind_another_word_stands_nowhere_a_table_can(word: str) -> None:
    rules = find("postgres")
    tokens = lex(f"FROM t {word} secret", rules.lexical_rules)
    assert [tokens[at].text for at in table_names(tokens, rules)] == ["t"]


@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
def test_subscripts_have_a_bound(dialect: str) -> None:
    few, many = (f"SELECT (a){'[1]' * n} FROM t" for n in (3, MAX_POSTFIXES + 2))
    assert judge(few, dialect).effect is Effect.READ
    assert judge(many, dialect).code == Code.SQL_TOO_DEEP.value
