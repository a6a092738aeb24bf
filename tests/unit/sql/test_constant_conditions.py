"""A WHERE that holds for every row is none; one that selects rows raises no alarm."""

from __future__ import annotations

import itertools

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.sql.judge import judge, judge_uncached

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb")
EVERY_ROW = """
true; 1 = 1; 1; '1'; 2 > 1; -1 < 0; 1 IN (1, 2); NOT false; NOT 1 = 0; ((true)); 'a' = 'a'; 1.0 = 1
1e5 = 1e5; length('a') = 1; (SELECT true); EXISTS (SELECT 1); EXISTS (SELECT count(*) FROM u)
id = id; t.id = id; ID = id; id >= id; id IN (id); id BETWEEN id AND id; x LIKE x; NOT (id <> id)
id + 1 = id + 1; lower(x) = lower(x); coalesce(x, 1) = coalesce(x, 1); (id = id) IS TRUE
id IN (SELECT id FROM t); id IS NULL OR id IS NOT NULL; id > 0 OR id <= 0; x = 3 OR x <> 3
id < 5 OR id = 5 OR id > 5; 5 > id OR id >= 5; x = 3 OR NOT x = 3; x = 3 OR 1 = 1
(1 = 1) AND (2 = 2); CASE WHEN x = 1 THEN true ELSE 1 = 1 END; id IN (SELECT t.id FROM t)
id > 0; id IS NOT NULL; length(x) >= 0; EXISTS (SELECT 1 FROM u); id IN (SELECT v.id FROM t AS v)
"""
SOME_ROWS = """
id = 1; id > 7; id <> id; a = b; t.a = b; name IS NOT NULL; name LIKE 'a'; id IN (1, 2); a = 1e5
1 = 0; false; NULL; 0; 1 = 2 OR id = 3; 1 = 1 AND id = 3; id = id AND x = 3; x = 3 OR x = 4
x = 3 OR NOT x = 4; x < 3 OR x > 3; id IN (SELECT a FROM u); id IN (SELECT id FROM t WHERE a = 1)
id IN (SELECT id FROM t LIMIT 1); id IN (SELECT a FROM t)
EXISTS (SELECT 1 FROM u WHERE u.id = t.id); id > (SELECT avg(id) FROM t); lower(a) = lower(b)
a + 1e5 = a + 1e6; a = 'é' OR a <> 'ü'; a BETWEEN 1 AND 2; a = 0x10 OR a <> 0x11; u.id = t.id
id IN (SELECT id FROM u.t); id NOT IN (SELECT a FROM t)
"""


def conditions(text: str) -> list[str]:
    return [each.strip() for line in text.strip().splitlines() for each in line.split(";")]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("change", ["DELETE FROM t", "UPDATE t SET a = 2"])
def test_a_condition_that_holds_for_every_row_counts_as_none(change: str, dialect: str) -> None:
    missed = [
        condition
        for condition in conditions(EVERY_ROW)
        if not judge(f"{change} WHERE {condition}", dialect).unqualified
    ]
    assert missed == []


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("change", ["DELETE FROM t", "UPDATE t SET a = 2"])
def test_a_condition_that_selects_rows_is_one(change: str, dialect: str) -> None:
    alarms = [
        condition
        for condition in conditions(SOME_ROWS)
        if judge(f"{change} WHERE {condition}", dialect).unqualified
    ]
    assert alarms == []


def test_columns_whose_names_differ_in_case_alone_are_two_where_quotes_say_so() -> None:
    text = 'DELETE FROM t WHERE "Id" = id'
    assert not judge(text, "postgres").unqualified
    assert judge(text, "sqlite").unqualified


VALUES = st.sampled_from(
    ["a", "b", "t.a", "0", "1", "2", "a + 1", "b * 2", "(a)", "a + b", "1 - 1"]
)
SIGNS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"])
SIMPLE = st.one_of(
    st.tuples(VALUES, SIGNS, VALUES).map(" ".join),
    st.tuples(VALUES, VALUES, VALUES).map(lambda each: "{} BETWEEN {} AND {}".format(*each)),
    st.tuples(VALUES, VALUES, VALUES).map(lambda each: "{} IN ({}, {})".format(*each)),
    VALUES.map(lambda value: f"{value} IS NOT NULL"),
    VALUES,
)
CONDITIONS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
            lambda each: "({}) {} ({})".format(*each)
        ),
        inner.map(lambda each: f"NOT ({each})"),
        inner.map(lambda each: f"CASE WHEN {each} THEN 1 ELSE 0 END"),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(CONDITIONS)
def test_what_is_marked_is_about_every_row_as_the_database_sees_it(condition: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER NOT NULL)")
    for row in itertools.product(range(-2, 4), repeat=2):
        connection.execute("INSERT INTO t VALUES (?, ?)", row)
    ((left,),) = connection.execute(f"SELECT count(*) FROM t WHERE NOT ({condition})").fetchall()
    if judge_uncached(f"DELETE FROM t WHERE {condition}", "sqlite").unqualified:
        assert left == 0 or {"a", "b"}.isdisjoint(condition.replace("t.", ""))


KNOWN = [each for each in conditions(EVERY_ROW) if "1e5" not in each and "length" not in each]
"""But for those that only are the same for all rows: beside another one they decide nothing."""


@settings(max_examples=100, deadline=None)
@given(CONDITIONS, st.sampled_from(KNOWN), st.booleans())
def test_another_alternative_does_not_hide_one_that_always_holds(
    condition: str, always: str, first: bool
) -> None:
    parts = (always, condition) if first else (condition, always)
    text = "DELETE FROM t WHERE ({}) OR ({})".format(*parts)
    assert judge_uncached(text, "sqlite").unqualified
