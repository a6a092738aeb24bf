"""What a record keeps of a statement: names and keywords, but no values and no secrets."""

from __future__ import annotations

import pytest

from tidegate.sql.redaction import redact_statement, without_values


@pytest.mark.parametrize(
    ("text", "dialect", "kept"),
    [
        ("SELECT \"a\" FROM t WHERE b = 'x'", "postgres", 'SELECT "a" FROM t WHERE b = ?'),
        ("SELECT \"a\" FROM t WHERE b = 'x'", "duckdb", 'SELECT "a" FROM t WHERE b = ?'),
        ('SELECT a FROM t WHERE b = "x"', "mysql", "SELECT a FROM t WHERE b = ?"),
        ("SELECT `a` FROM t WHERE b = 'x'", "mysql", "SELECT `a` FROM t WHERE b = ?"),
        ("SELECT 1, $$x$$, 'y'", "postgres", "SELECT 1, ?, ?"),
    ],
)
def test_strings_are_values_and_quoted_names_are_none(text: str, dialect: str, kept: str) -> None:
    assert without_values(text, dialect, "?", numbers=False) == kept


def test_numbers_are_values_where_that_is_asked_for() -> None:
    assert without_values("SELECT a1, 12.5", "sqlite", "?", numbers=True) == "SELECT a1, ?"


@pytest.mark.parametrize(
    "text",
    [
        'SELECT a, U&"\\0061bc" FROM t',
        "SELECT a, 'bc",
        "SELECT a, $$bc",
        "SELECT a, /* bc",
    ],
)
def test_of_what_cannot_be_read_to_its_end_nothing_is_kept(text: str) -> None:
    kept = without_values(text, "postgres", "?", numbers=True)
    assert kept == "SELECT a, ..."


def test_a_secret_behind_the_last_token_that_can_be_read_is_hidden() -> None:
    """A comment without an end is no token: what stands in it may be a password."""
    text = "SELECT 1 /* password hunter2"
    assert redact_statement(text, "postgres") == "SELECT 1 ***"
    assert redact_statement("SELECT 'shown' /* password hunter2", "postgres").endswith("***")
    assert redact_statement("SELECT 1 /* a note", "postgres") == "SELECT 1 /* a note"
