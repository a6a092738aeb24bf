"""Telling SQL from a question by the text alone, for `query_database` in its automatic mode."""

from __future__ import annotations

import pytest

from tidegate.surfaces.postgres.sql_or_question import is_sql


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "select 1;",
        "SELECT * FORM users",
        "SELECT * FROM t WHERE a = 'x",
        "SELECT `a` FROM t",
        "(select 1)",
        "-- first\nSELECT 1",
        "with x as (select 1) select * from x",
        "values (1)",
        "TABLE users",
        "EXPLAIN SELECT 1",
        "EXPLAIN (ANALYZE) SELECT 1",
        "SHOW work_mem",
        "SHOW ALL",
        "show transaction isolation level",
        "show app.name",
        "DELETE FROM users",
        "UPDATE users SET a = 1",
        "DROP TABLE users",
        "SET TRANSACTION READ WRITE",
    ],
)
def test_statements_are_sql_also_with_a_mistake_in_them(text: str) -> None:
    assert is_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "Show me all active users",
        "Show users",
        "How many users are there?",
        "What's the user's total?",
        "Select the best customers",
        "Select all users who bought more than 3 items",
        "Explain the sales trend",
        "Update me on sales",
        "delete old users",
        "Delete the test's rows?",
        "grant me access to sales?",
        "count of orders by month",
        "الطلبات المفتوحة",
        "",
    ],
)
def test_sentences_are_questions_also_with_the_first_word_of_a_statement(text: str) -> None:
    assert not is_sql(text)
