"""What calls something without brackets is no read in any dialect: sequences, and variables that
tell of the statement before. Where any function is called so, `bare_names` finds it.
"""

from __future__ import annotations

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.dialects import DIALECTS
from tidegate.sql.judge import judge

NAMED = ("oracle", "tsql", "db2", "firebird", "snowflake")
"""Databases that have the tables of the default dialect."""

SEQUENCES = (
    "SELECT NEXT VALUE FOR s FROM t",
    "SELECT a FROM t WHERE NEXT VALUE FOR s > 1",
    "INSERT INTO t SELECT NEXTVAL FOR s FROM t",
)
DOTTED = (
    "SELECT s.NEXTVAL FROM t",
    'SELECT "s"."NEXTVAL" FROM t',
    "SELECT s . nextval FROM t",
    "SELECT a FROM t ORDER BY x.s.NextVal",
    "INSERT INTO t VALUES (s.NEXTVAL)",
    "WITH q AS (SELECT s.CURRVAL AS a FROM t) SELECT a FROM q",
)
ATTRIBUTES = {"mysql", "mariadb", "h2", "hsqldb", "derby", *NAMED}
"""Dialects of databases that have sequences as `s.NEXTVAL`, or may have them."""


@pytest.mark.parametrize("dialect", [*DIALECTS, *NAMED])
def test_what_moves_a_sequence_is_no_read(dialect: str) -> None:
    texts = SEQUENCES[:2] + (DOTTED[:4] if dialect in ATTRIBUTES else ())
    for text in texts:
        assert judge(text, dialect).effect is not Effect.READ, text


@pytest.mark.parametrize("dialect", ["h2", "hsqldb", "derby", *NAMED])
def test_the_state_of_a_sequence_is_no_column(dialect: str) -> None:
    for text in DOTTED:
        assert judge(text, dialect).effect is Effect.UNKNOWN, text


@pytest.mark.parametrize("dialect", [*DIALECTS, *NAMED])
def test_who_and_when_are_read(dialect: str) -> None:
    assert judge("SELECT CURRENT_DATE, CURRENT_TIMESTAMP FROM t", dialect).effect is Effect.READ
