"""Telling SQL from a question by the text alone, for `query_database` in its automatic mode."""

from __future__ import annotations

import pytest

from tidegate.model.schema import Catalog, Table
from tidegate.products.pgedge.text_to_sql.detection import is_sql


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
        "SELECT name FROM users WHERE note = 'it's'",
        "SELECT name FROM users WHERE note = it's",
        "SELECT 'a'",
        "SELECT E'a\\'b' AS a",
        "SELECT'a'",
        "ANALYZE users",
        "ANALYZE VERBOSE users",
        "SELECT count(*) FROM users WHERE status = 'active",
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
        "Show me each user's email",
        "Show the users' orders",
        "show users who've left and haven't paid",
        "select the customers who don't pay",
        "select the customers who don't pay or won't pay",
        "Explain why users aren't active",
        "Delete what isn't needed",
        "Analyze May's sales and June's",
        "Table of the users' orders",
        "Show me what is in C:\\temp",
        "Show the users of `shop`",
        "",
    ],
)
def test_sentences_are_questions_also_with_the_first_word_of_a_statement(text: str) -> None:
    assert not is_sql(text)


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb"])
@pytest.mark.parametrize("verb", ["Analyze", "Check", "Compare", "Fetch", "Find", "Get", "List"])
def test_what_is_asked_for_by_a_verb_is_a_question_in_each_dialect(verb: str, dialect: str) -> None:
    assert not is_sql(f"{verb} the number of orders by month", dialect)
    assert not is_sql(f"{verb} each customer's orders", dialect)


@pytest.mark.needs("mysql")
@pytest.mark.parametrize(
    "text", ["GET DIAGNOSTICS @n = NUMBER", "CHECK TABLE t", "FETCH NEXT FROM c"]
)
def test_statements_that_begin_with_such_a_verb_are_sql(text: str) -> None:
    assert is_sql(text, "mysql")


CATALOG = Catalog("shop", "public", ("public",), (Table("public", "customers", "table"),), "1")


@pytest.mark.parametrize(
    ("text", "alone", "with_catalog"),
    [
        ("select customers", True, False),
        ("select customers from berlin", True, False),
        ("select name from customers", True, True),
        ("select 1", True, True),
        ("select now()", True, True),
        ("-- a comment", False, True),
        ("which customers are there", False, False),
        ("explain the customers table", False, False),
        ("explain table customers", True, True),
        ("values", False, False),
    ],
)
def test_the_catalog_decides_where_words_can_be_both(
    text: str, alone: bool, with_catalog: bool
) -> None:
    assert is_sql(text) is alone
    assert is_sql(text, "postgres", CATALOG) is with_catalog


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        ("SHOW TABLES", "mysql", True),
        ("show customers", "mysql", False),
        ("PRAGMA table_info(customers)", "sqlite", True),
        ("SELECT `a` FROM t", "mysql", True),
        ("FROM customers SELECT name", "duckdb", True),
    ],
)
def test_each_dialect_has_its_own_statements(text: str, dialect: str, expected: bool) -> None:
    assert is_sql(text, dialect) is expected


@pytest.mark.parametrize(
    ("beginning", "part", "expected"),
    [
        ("SELECT ", "a, ", True),
        ("-- a list\n /* of */ (SELECT ", "a, ", True),
        ("", "word ", False),
        ("", "(", False),
        ("", "/*", False),
        ("/*", " */ /*", False),
    ],
)
def test_the_first_word_decides_of_a_text_that_is_too_long_for_a_question(
    beginning: str, part: str, expected: bool
) -> None:
    text = beginning + part * (10_000_000 // len(part))
    assert is_sql(text) is expected


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SELECT current_user", True),
        ("select current_date;", True),
        ("SELECT session_user AS me", True),
        ("SELECT DISTINCT current_schema", True),
        ("SELECT null", True),
        ("select user", True),
        ("select current_timestamp now", True),
        ("select user names", False),
        ("select customers", False),
        ("select current customers", False),
        ("select true love stories", False),
    ],
)
def test_values_that_sql_has_names_for_are_no_question(text: str, statement: bool) -> None:
    catalog = Catalog("d", "public", ("public",), (Table("public", "users", "table"),), "1", (), "")
    assert is_sql(text, "postgres", catalog) is statement
