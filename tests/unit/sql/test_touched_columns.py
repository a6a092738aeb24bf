"""Columns that a statement means without naming them."""

from __future__ import annotations

import pytest

from tidegate.sql.dialects import find
from tidegate.sql.masking.parsed_statement import ParsedStatement
from tidegate.sql.masking.touched_columns import wants_all_columns
from tidegate.sql.scan import scan


@pytest.mark.parametrize(
    ("text", "dialect", "all_of_them"),
    [
        ("SELECT a FROM t NATURAL JOIN u", "postgres", True),
        ("SELECT a FROM t NATURAL JOIN u", "sqlite", True),
        ("FROM t", "duckdb", True),
        ("SELECT a FROM (FROM t)", "duckdb", True),
        ("SELECT a FROM t JOIN u USING (b)", "postgres", False),
        ("SELECT a FROM t WHERE b IN (SELECT c FROM u)", "duckdb", False),
    ],
)
def test_a_natural_join_and_a_query_without_a_list_mean_columns_that_they_do_not_name(
    text: str, dialect: str, all_of_them: bool
) -> None:
    parsed = ParsedStatement(text, scan(text, find(dialect)), find(dialect))
    assert wants_all_columns(parsed) is all_of_them
