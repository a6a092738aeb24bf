"""`?` is a placeholder right behind an operator, where the database reads it so."""

from __future__ import annotations

import duckdb
import pytest

from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

TERMS = ["i=?", "i>=?", "i<>?", "?=?", "i+?", "-?", "1=-?", "i||?", "i BETWEEN ? AND?", "(?)=i"]


@pytest.mark.parametrize("term", TERMS)
def test_duckdb_and_the_judge_read_the_same_placeholders(term: str) -> None:
    text = f"SELECT {term} FROM (SELECT 1 AS i)"
    count = text.count("?")
    assert duckdb.execute(text, [1] * count).fetchall()
    assert judge(text, "duckdb").effect is Effect.READ


@pytest.mark.parametrize("text", ["SELECT a ?| b FROM t", "SELECT a ? 'x' FROM t"])
def test_postgresql_keeps_its_operators_of_json(text: str) -> None:
    assert judge(text, "postgres").effect is Effect.READ


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("term", ["a=@b", "a=~?b", "a<@>?"])
def test_an_operator_that_is_not_listed_is_refused(term: str) -> None:
    assert judge(f"SELECT {term} FROM t", "duckdb").effect is not Effect.READ
