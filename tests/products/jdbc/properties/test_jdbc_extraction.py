"""What is extracted from a query for JDBC is a part of it, and every `?` that counts is counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.products.jdbc.extraction.extraction import extract

# (text, parameters)
EXPRESSIONS = [
    ("?", 1),
    ("a", 0),
    ("t.b", 0),
    ("'it''s ?'", 0),
    ("''", 0),
    ('"n?, FROM"', 0),
    ("count(*)", 0),
    ("f(?, 'x?')", 2 - 1),
    ("a + ?", 1),
    ("/* ? */ ?", 1),
    ("a -- ? WHERE\n", 0),
    ("{fn ucase(?)}", 1),
    ("{d '2020-01-01'}", 0),
    ("(SELECT max(x) FROM k WHERE y = ? AND z = '?')", 1),
    ("CASE WHEN a = ? AND b THEN 'x' ELSE ? END", 2),
    ("extract(year FROM ts)", 0),
]
CONDITIONS = [
    ("a = ?", 1),
    ("? < b", 1),
    ("c LIKE 'x?'", 0),
    ("NOT d IN (?, ?)", 2),
    ("e BETWEEN ? AND ?", 2),
    ("(f = ? OR g IS NULL)", 1),
    ("h IN (SELECT i FROM k WHERE j > ?)", 1),
    ("EXISTS (SELECT 1 FROM k WHERE j = '?')", 0),
    ("lower(m) = lower(?)", 1),
    ("o <> {ts '2020-01-01 00:00:00'}", 0),
]

expressions = st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=6)
conditions = st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=6)
dialects = st.sampled_from(["generic", "postgres", "sqlite", "h2", "oracle"])
joiners = st.sampled_from([" AND ", " OR ", "\nand\n"])


@given(expressions, conditions, dialects, joiners)
def test_parts_of_the_text_and_the_number_of_parameters(fields, wheres, dialect, joiner):
    listed = ", ".join(text for text, _ in fields)
    where = joiner.join(text for text, _ in wheres)
    query = f"SELECT {listed} FROM t WHERE {where}"
    found = extract(query, dialect)
    assert len(found.fields) == len(fields)
    assert len(found.parameters) == sum(count for _, count in (*fields, *wheres))
    for field in found.fields:
        assert field.text in query
    for each in (*found.conditions, *found.filters):
        assert each.field in query
        assert each.value in query
    in_select = sum(each.clause == "SELECT" for each in found.parameters)
    assert in_select <= sum(count for _, count in fields)


@given(st.text(alphabet="SELECT FROMwhere?'\"`[](){};,.-/*$1a\n\\=<>:#", max_size=80))
def test_any_text_is_read_or_refused_with_a_code(text):
    try:
        found = extract(f"SELECT {text}")
    except TidegateError as error:
        assert error.hint
        return
    for field in found.fields:
        assert field.text in f"SELECT {text}*"  # a list without entries counts as all columns


@pytest.mark.parametrize("dialect", ["mysql", "postgres", "sqlite", "duckdb"])
@given(text=st.text(alphabet="?'\"`[]$-/*#\\ ab\n{}", max_size=40))
def test_no_dialect_counts_more_parameters_than_there_are_marks(dialect, text):
    try:
        found = extract(f"SELECT a FROM t WHERE b = {text}", dialect)
    except TidegateError:
        return
    assert len(found.parameters) <= text.count("?")
