"""Each statement for cloud providers has its kind and class, and a text has one statement."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import Code
from tidegate.products.cloud.language.statements import (
    CloudStatement,
    DescribeStatement,
    ExecStatement,
    RegistryStatement,
    ShownCondition,
    ShowStatement,
    SqlStatement,
    read_statement,
)
from tidegate.sql.finding import Refusal


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SHOW PROVIDERS", ShowStatement("providers", ())),
        (
            "show extended services in aws like '%x';",
            ShowStatement("services", ("aws",), True, "%x"),
        ),
        ('SHOW RESOURCES IN a."b-c"', ShowStatement("resources", ("a", "b-c"))),
        ("SHOW METHODS IN a.b-c.d", ShowStatement("methods", ("a", "b-c", "d"))),
        (
            "SHOW METHODS IN a.b.c WHERE SQLVerb = 'SELECT' and MethodName like 'list%'",
            ShowStatement(
                "methods",
                ("a", "b", "c"),
                conditions=(
                    ShownCondition("SQLVerb", "=", "SELECT"),
                    ShownCondition("MethodName", "LIKE", "list%"),
                ),
            ),
        ),
        (
            "SHOW SERVICES IN a LIKE 'b%' WHERE title <> 'it''s'",
            ShowStatement(
                "services",
                ("a",),
                like="b%",
                conditions=(ShownCondition("title", "<>", "it's"),),
            ),
        ),
        ("DESCRIBE a.b.c", DescribeStatement(("a", "b", "c"))),
        ("DESCRIBE METHOD EXTENDED a.b.c.d", DescribeStatement(("a", "b", "c", "d"), True)),
        ("REGISTRY LIST", RegistryStatement("list")),
        ("REGISTRY LIST google", RegistryStatement("list", "google")),
        ("REGISTRY PULL google", RegistryStatement("pull", "google")),
        ("REGISTRY PULL google v23.01.00104", RegistryStatement("pull", "google", "v23.01.00104")),
        ("REGISTRY PULL google 'v1.0.0'", RegistryStatement("pull", "google", "v1.0.0")),
        ("SELECT 1 -- ;\n", SqlStatement("select", "SELECT 1 --")),
        (
            "SELECT replace(a, 'x', ';') FROM p.s.r ;; ",
            SqlStatement("select", "SELECT replace(a, 'x', ';') FROM p.s.r"),
        ),
    ],
)
def test_statements_are_read(text: str, statement: CloudStatement) -> None:
    read = read_statement(text)
    assert (read.statement, read.statement_class, read.is_explained) == (statement, "select", False)


def test_an_exec_has_its_method_and_values() -> None:
    read = read_statement(
        "EXEC /*+ AWAIT */ p.s.r.stop @project = 'it''s', @n=-1.5, @on=true, @none=null,"
        """ @@json='{"a": [1]}'"""
    )
    assert read.statement_class == "lifecycle"
    assert read.statement == ExecStatement(
        ("p", "s", "r", "stop"),
        {"project": "it's", "n": -1.5, "on": 1, "none": None},
        {"a": [1]},
        awaits=True,
    )


@pytest.mark.parametrize(
    ("text", "verb", "statement_class"),
    [
        ("INSERT INTO p.s.r(a) SELECT 'x'", "insert", "mutation_create"),
        ("UPDATE p.s.r SET a = 'x' WHERE b = 'y'", "update", "mutation_create"),
        ("REPLACE p.s.r SET a = 'x' WHERE b = 'y'", "replace", "mutation_create"),
        ("/* c */ delete from p.s.r where a in ('x')", "delete", "mutation_delete"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "select", "select"),
        ("VALUES (1)", "select", "select"),
    ],
)
def test_the_class_is_that_of_the_statement(text: str, verb: str, statement_class: str) -> None:
    read = read_statement(text)
    assert isinstance(read.statement, SqlStatement)
    assert (read.statement.verb, read.statement_class) == (verb, statement_class)
    explained = read_statement(f"EXPLAIN {text}")
    assert (explained.is_explained, explained.statement_class) == (True, "select")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", Code.SQL_EMPTY),
        ("-- nothing", Code.SQL_EMPTY),
        (";;", Code.SQL_EMPTY),
        ("SELECT 1; DELETE FROM p.s.r", Code.SQL_MULTIPLE),
        ("EXPLAIN SELECT 1; DELETE FROM p.s.r", Code.SQL_MULTIPLE),
        ("SHOW PROVIDERS; EXEC p.s.r.m", Code.SQL_MULTIPLE),
        ("WITH x AS (DELETE FROM p.s.r RETURNING *) SELECT * FROM x", Code.SQL_UNKNOWN),
        ("WITH x AS (SELECT 1) INSERT INTO p.s.r SELECT * FROM x", Code.SQL_UNKNOWN),
        ("WITH x AS (SELECT replace('a', 'b', 'c')) DELETE FROM p.s.r", Code.SQL_UNKNOWN),
        ("DROP TABLE x", Code.SQL_UNKNOWN),
        ("SET a = 1", Code.SQL_UNKNOWN),
        ("AUTH LOGIN google", Code.SQL_UNKNOWN),
        ("PURGE", Code.SQL_UNKNOWN),
        ("MERGE INTO p.s.r", Code.SQL_UNKNOWN),
        ("CREATE VIEW v AS SELECT 1", Code.SQL_UNKNOWN),
        ("EXPLAIN", Code.SQL_UNREADABLE),
        ("EXPLAIN EXPLAIN SELECT 1", Code.SQL_UNREADABLE),
        ("SHOW", Code.SQL_UNREADABLE),
        ("SHOW TABLES", Code.SQL_UNREADABLE),
        ("SHOW INSERT a", Code.SQL_UNREADABLE),
        ("SHOW INSERT INTO a.b", Code.SQL_UNREADABLE),
        ("SHOW VERSION", Code.SQL_UNKNOWN),
        ("SHOW PROVIDERS WHERE", Code.SQL_UNREADABLE),
        ("SHOW PROVIDERS WHERE name", Code.SQL_UNREADABLE),
        ("SHOW PROVIDERS WHERE name = b", Code.SQL_UNREADABLE),
        ("SHOW PROVIDERS WHERE name > 'b'", Code.SQL_UNREADABLE),
        ("SHOW PROVIDERS WHERE name = 'b' OR name = 'c'", Code.SQL_UNREADABLE),
        ("SHOW PROVIDERS WHERE (name = 'b')", Code.SQL_UNREADABLE),
        ("SHOW SERVICES IN a.b", Code.SQL_UNREADABLE),
        ("SHOW SERVICES IN a b", Code.SQL_UNREADABLE),
        ("SHOW SERVICES IN 'a'", Code.SQL_UNREADABLE),
        ("DESCRIBE a.b", Code.SQL_UNREADABLE),
        ("REGISTRY", Code.SQL_UNREADABLE),
        ("REGISTRY PULL a ../../x", Code.SQL_UNREADABLE),
        ("EXEC a.b.c", Code.SQL_UNREADABLE),
        ("EXEC a.b.c.d @x", Code.SQL_UNREADABLE),
        ("EXEC a.b.c.d @x='1' @y='2'", Code.SQL_UNREADABLE),
        ("EXEC a.b.c.d @x='1', @x='2'", Code.SQL_UNREADABLE),
        ("EXEC a.b.c.d @@json='[1]'", Code.SQL_UNREADABLE),
        ("EXEC a.b.c.d @@other='{}'", Code.SQL_UNREADABLE),
        ("SELECT 'open", Code.SQL_UNREADABLE),
        ("SELECT 1 /* open", Code.SQL_UNREADABLE),
    ],
)
def test_what_is_not_one_known_statement_is_refused(text: str, code: Code) -> None:
    with pytest.raises(Refusal) as caught:
        read_statement(text)
    assert caught.value.finding.code is code


_WORDS = """SELECT DELETE EXEC EXPLAIN SHOW REGISTRY PULL IN a a.b.c @x = 'v' ; -- /* */ ' " ( )
- @@json 1 ."""
_PIECES = st.sampled_from([*_WORDS.split(), "\n"])


@given(st.lists(_PIECES, max_size=10).map(" ".join))
@settings(max_examples=500)
def test_any_text_is_one_statement_or_refused(text: str) -> None:
    try:
        read = read_statement(text)
    except Refusal:
        return
    assert read.statement_class == "select" or not read.is_explained
    # Reading what was read gives the same: nothing behind the statement was left out of it.
    if isinstance(read.statement, SqlStatement):
        assert read_statement(read.statement.text).statement == read.statement


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE VIEW v AS SELECT 1", "WITH"),
        ("create or replace temp view v as select 1", "WITH"),
        ("DROP VIEW v", "WITH"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "snapshot"),
        ("REFRESH MATERIALIZED VIEW v", "snapshot"),
        ("CREATE TABLE t (a)", "source.schema.table"),
        ("SET x = 1", "cloud.providers"),
        ("AUTH LOGIN google", "cloud.providers"),
        ("PURGE CONSERVATIVE", "FRESH"),
        ("NATIVEQUERY 'SELECT 1'", "SELECT"),
    ],
)
def test_what_stackql_has_and_this_has_not_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_statement(text)
    finding = caught.value.finding
    assert finding.code is Code.SQL_UNKNOWN and finding.rule == "cloud.unsupported"
    assert words in (finding.hint or "")


def test_a_resource_may_have_the_name_of_what_is_refused() -> None:
    replaced = read_statement("REPLACE view.a.b SET x = 1 WHERE y = 2")
    assert replaced.statement_class == "mutation_create"
