"""Statements come out of replies as they went in, whatever form a model chooses."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.statements import Effect
from tidegate.products.pgedge.text_to_sql.replies import (
    MOST_CHARS,
    NoStatement,
    Readings,
    Reply,
    Unanswerable,
    Written,
    read_reply,
)
from tidegate.sql.judge import judge

AWKWARD = [
    "SELECT 'a;b', 'a--b', \"c;d\" FROM t",
    "SELECT 'it''s', '{\"sql\": 1}' FROM t -- why; not\nWHERE a = '```'",
    "SELECT /* DROP; */ 1\n\n\nFROM t",
    "WITH a AS (\n  SELECT 1\n)\nSELECT * FROM a",
    "SELECT 1;",
    "SELECT 'Here is the query: SELECT 2'",
    "SELECT '\t\\n' || E'\\\\' FROM t",
]
FORMS = {
    "json": lambda sql: json.dumps({"sql": sql}),
    "json in a fence": lambda sql: f"```json\n{json.dumps({'sql': sql}, indent=2)}\n```",
    "json after prose": lambda sql: f"Sure.\n{json.dumps({'sql': sql})}\nThat is all.",
    "json after thinking": lambda sql: (
        f"<think>{{}} maybe SELECT 9</think>\n{json.dumps({'sql': sql})}"
    ),
    "fence": lambda sql: f"```sql\n{sql}\n```",
    "fence in prose": lambda sql: f"Here:\n\n```postgresql\n{sql}\n```\nIt counts.",
    "fence without a name": lambda sql: f"```\n{sql}\n```",
    "alone": lambda sql: sql,
    "after prose": lambda sql: f"Here is the query you asked for:\n\n{sql}",
}


def read(text: str) -> Reply:
    return read_reply(text, lambda sql: judge(sql, "postgres").effect is not Effect.UNKNOWN)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sql", AWKWARD)
def test_a_statement_is_not_changed(sql: str, form: str) -> None:
    assert read(FORMS[form](sql)) == Written(sql)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_any_text_in_json_is_not_changed(text: str) -> None:
    sql = f"SELECT '{text}'".strip()
    assert read(json.dumps({"sql": sql}, ensure_ascii=False)) == Written(sql)


def test_line_breaks_in_json_strings_are_read() -> None:
    assert read('{"sql": "SELECT 1\nFROM t", "assumptions": "one"}') == Written(
        "SELECT 1\nFROM t", ("one",)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"unanswerable": "no suppliers"}', Unanswerable("no suppliers")),
        ('{"readings": ["a", "b"]}', Readings(("a", "b"))),
    ],
)
def test_other_replies_are_read(text: str, expected: Reply) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "I cannot do that.",
        "```sql\n```",
        '{"sql": null}',
        "[1, 2]",
        "{" * 5_000,
        "<html>",
    ],
)
def test_what_has_no_statement_is_no_statement(text: str) -> None:
    assert isinstance(read(text), NoStatement)


@pytest.mark.parametrize(
    "text", ["`" * 90_000, "~~~" + " " * 90_000, "```" * 30_000 + "x", "{" * 900]
)
def test_a_hostile_reply_costs_no_more_than_its_length(text: str) -> None:
    assert isinstance(read_reply(text, lambda _: False), NoStatement)


def test_a_reply_that_is_too_long_is_not_read() -> None:
    reply = json.dumps({"sql": "SELECT 1"}) + " " * MOST_CHARS
    assert isinstance(read_reply(reply, lambda _: True), NoStatement)
