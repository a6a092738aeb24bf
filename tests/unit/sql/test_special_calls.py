"""Calls of SQL/JSON and XML, whose arguments have words of their own, are read like other calls."""

from __future__ import annotations

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.dialects import find
from tidegate.sql.dml_parser import DmlStatement, parse_dml
from tidegate.sql.function_syntax import simplify
from tidegate.sql.judge import judge
from tidegate.sql.scan import scan


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("JSON_ARRAY(NULL ON NULL)", "json_array"),
        ("JSON_ARRAY(a ABSENT ON NULL)", "json_array"),
        ("JSON_VALUE(a FORMAT JSON, '$.b')", "json_value"),
        ("JSON_VALUE(a, '$.b' DEFAULT 1 ON EMPTY)", "json_value"),
        ("JSON_VALUE(a, '$' PASSING b AS c RETURNING int)", "json_value"),
        ("JSON_VALUE(t.a::jsonb, '$')", "json_value"),
        ("JSON_QUERY(a, '$' KEEP QUOTES)", "json_query"),
        ("JSON_QUERY(a, '$' WITH UNCONDITIONAL WRAPPER)", "json_query"),
        ("JSON_OBJECT('k' : a FORMAT JSON ENCODING UTF8)", "json_object"),
        ("JSON_OBJECT('k' VALUE a WITH UNIQUE KEYS)", "json_object"),
        ("JSON_OBJECT(KEY 'a' VALUE b NULL ON NULL RETURNING jsonb)", "json_object"),
        ("XMLEXISTS('//a' PASSING BY VALUE b)", "xmlexists"),
        ("XMLROOT(a, VERSION '1.0', STANDALONE NO VALUE)", "xmlroot"),
    ],
)
def test_a_call_is_read_with_its_tables_and_functions(call: str, function: str) -> None:
    found = judge(f"SELECT {call} FROM t", "postgres")
    assert (found.effect, found.tables, found.functions) == (Effect.READ, ("t",), (function,))
    hidden = judge(f"SELECT {call}, pg_reload_conf() FROM t", "postgres")
    assert hidden.effect is not Effect.READ


@pytest.mark.parametrize("column", ["json_value", "xmlroot", "json_array"])
def test_a_column_that_is_called_so_is_no_call(column: str) -> None:
    found = judge(f"SELECT {column} FROM t", "postgres")
    assert (found.effect, found.tables, found.functions) == (Effect.READ, ("t",), ())


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t (a) VALUES ((TABLE u))",
        "INSERT INTO t (a) VALUES ((SELECT 1))",
        "INSERT INTO t (a) VALUES ((WITH w AS (SELECT 1) SELECT * FROM w))",
        "INSERT INTO t (a) SELECT b[1] FROM u ON CONFLICT DO NOTHING",
        "INSERT INTO t (a) SELECT b[1] FROM u RETURNING a",
    ],
)
def test_an_insert_that_is_more_than_plain_is_not_tried(text: str) -> None:
    assert isinstance(parse_dml(text, "postgres"), str)


@pytest.mark.parametrize(
    "text", ["INSERT INTO t (a) VALUES (ARRAY[1, 2])", "INSERT INTO t (a) SELECT b[1] FROM u"]
)
def test_a_plain_insert_is_tried(text: str) -> None:
    found = parse_dml(text, "postgres")
    assert isinstance(found, DmlStatement) and found.verb == "insert"


def simplified(text: str) -> str:
    postgres = find("postgres")
    return " ".join(each.text for each in simplify(scan(text, postgres), postgres.worded))


@pytest.mark.parametrize(
    "column", ["version", "standalone", "content", "document", "name", "key", "value", "format"]
)
def test_a_column_stays_that_is_called_like_a_word_of_another_call(column: str) -> None:
    for text in (f"JSON_ARRAY({column})", f"JSON_ARRAY(a, {column})", f"JSON_ARRAY({column}, a)"):
        assert column in simplified(f"SELECT {text} FROM t").split(), text


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("XMLROOT(a, VERSION '1.0', STANDALONE NO VALUE)", "a , '1.0' ,"),
        ("XMLROOT(a, VERSION NO VALUE, STANDALONE YES)", "a , ,"),
        ("JSON_OBJECT('k' VALUE a)", "'k' , a"),
        ("JSON_OBJECT(KEY 'k' VALUE a ABSENT ON NULL)", "'k' , a"),
        ("JSON_VALUE(a, '$' DEFAULT b ON EMPTY)", "a , '$' , b"),
        ("JSON_VALUE(a, '$' RETURNING numeric(5, 2) NULL ON ERROR)", "a , '$'"),
        ("JSON_QUERY(a, '$' PASSING b AS c, d AS e)", "a , '$' , b , d"),
        ("JSON_QUERY(a, '$' WITH UNCONDITIONAL ARRAY WRAPPER)", "a , '$'"),
        ("JSON_QUERY(a, '$' OMIT QUOTES ON SCALAR STRING)", "a , '$'"),
    ],
)
def test_words_of_a_call_are_left_out_and_every_expression_stays(call: str, arguments: str) -> None:
    expected = f"SELECT JSON_BUILD_ARRAY ( {arguments} )".replace("'", "")
    assert simplified(f"SELECT {call}") == expected
