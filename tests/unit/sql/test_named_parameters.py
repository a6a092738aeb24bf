"""Named parameters become the placeholders of each dialect, and nothing else of a text changes."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.sql.named_parameters import bind_names


@pytest.mark.parametrize(
    ("dialect", "text", "bound", "params"),
    [
        ("sqlite", "SELECT :a, :b, :a", "SELECT ?, ?, ?", (1, 2, 1)),
        ("mysql", "SELECT :a, :b, :a", "SELECT ?, ?, ?", (1, 2, 1)),
        ("postgres", "SELECT :a, :b, :a", "SELECT $1, $2, $1", (1, 2)),
        ("duckdb", "SELECT :a, $b, :a", "SELECT $1, $2, $1", (1, 2)),
        ("sqlite", "SELECT $a + :b", "SELECT ? + ?", (1, 2)),
        ("postgres", "SELECT :a::text, l[1:2], :b", "SELECT $1::text, l[1:2], $2", (1, 2)),
        ("postgres", "SELECT ':a', \":a\" -- :a\n, :a + :b /* :b */",
         "SELECT ':a', \":a\" -- :a\n, $1 + $2 /* :b */", (1, 2)),
    ],
)  # fmt: skip
def test_names_become_placeholders_and_strings_and_comments_stay(dialect, text, bound, params):
    assert bind_names(text, {"a": 1, "b": 2}, dialect) == (bound, params)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", "duckdb", "default"])
def test_a_name_that_the_statement_lacks_is_refused(dialect):
    with pytest.raises(TidegateError) as caught:
        bind_names("SELECT 1", {"a": 1}, dialect)
    assert caught.value.code is Code.ARGUMENT_INVALID
    assert ":a" in caught.value.message


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("sqlite", "SELECT :a, ?"),
        ("sqlite", "SELECT :a, :other"),
        ("postgres", "SELECT :a, $1"),
        ("mysql", "SELECT :a, ?"),
        ("duckdb", "SELECT :a, $other"),
    ],
)
def test_names_beside_other_placeholders_are_refused(dialect, text):
    with pytest.raises(TidegateError) as caught:
        bind_names(text, {"a": 1}, dialect)
    assert caught.value.code is Code.ARGUMENT_INVALID


def test_a_text_that_cannot_be_read_is_refused():
    with pytest.raises(TidegateError) as caught:
        bind_names("SELECT 'open", {"a": 1}, "sqlite")
    assert caught.value.code is Code.SQL_UNREADABLE
