"""Definitions that name Java code administer the database; the same words as names do not."""

from __future__ import annotations

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

CODE = [
    *(("h2", f'CREATE {kind}TABLE t (a INT) ENGINE "a.B"') for kind in ("", "LOCAL TEMPORARY ")),
    ("h2", 'CREATE TABLE IF NOT EXISTS t (a INT) engine "a.B" WITH "p"'),
    ("h2", 'CREATE TABLE t (a INT) NOT PERSISTENT ENGINE/**/"a.B"'),
    ("h2", 'CREATE TABLE engine ENGINE "a.B" AS SELECT 1'),
    ("h2", 'CREATE TABLE as (a INT) ENGINE "a.B"'),
    ("h2", "CREATE ALIAS a FOR 'a.B.c'"),
    ("h2", "CREATE FORCE ALIAS a FOR 'a.B.c'"),
    ("h2", "CREATE AGGREGATE a FOR 'a.B'"),
    ("h2", "CREATE TRIGGER t BEFORE INSERT ON x CALL 'a.B'"),
    ("h2", "CREATE LINKED TABLE l('a.B', 'jdbc:x', '', '', 'T')"),
    ("h2", "CREATE GLOBAL TEMPORARY LINKED TABLE l('a.B', 'jdbc:x', '', '', 'T')"),
    ("hsqldb", "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVA EXTERNAL NAME 'CLASSPATH:a.B.c'"),
    ("hsqldb", "CREATE PROCEDURE p() LANGUAGE JAVA EXTERNAL NAME 'CLASSPATH:a.B.c'"),
    ("hsqldb", 'CREATE TRIGGER t AFTER INSERT ON x CALL "a.B"'),
    ("derby", "CREATE PROCEDURE p() PARAMETER STYLE JAVA LANGUAGE JAVA EXTERNAL NAME 'a.B.c'"),
    ("derby", "CREATE TYPE t EXTERNAL NAME 'a.B' LANGUAGE JAVA"),
    ("derby", "CREATE DERBY AGGREGATE a FOR INT EXTERNAL NAME 'a.B'"),
    ("default", "CREATE TABLE t (a INT) ENGINE = Executable('x', 'CSV')"),
]
DATA = [
    "CREATE TABLE t (engine INT, language INT, external INT)",
    "CREATE TABLE language (a INT)",
    "CREATE TABLE IF NOT EXISTS p.engine (a INT)",
    "CREATE INDEX i ON language (a)",
    "CREATE TABLE t AS SELECT 1",
    "CREATE VIEW v AS SELECT engine FROM language",
]


@pytest.mark.parametrize(("dialect", "text"), CODE)
def test_a_definition_that_names_code_administers(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect in (Effect.ADMIN, Effect.UNKNOWN)


@pytest.mark.parametrize("dialect", ["h2", "hsqldb", "derby", "default"])
@pytest.mark.parametrize("text", DATA)
def test_the_words_as_names_define_data(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is Effect.WRITE
