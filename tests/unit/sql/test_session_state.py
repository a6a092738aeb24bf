"""What tells of an earlier statement is refused with the reason: sessions are shared."""

from __future__ import annotations

import pytest

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

CASES = {
    "mysql": """
        ROW_COUNT()| FOUND_ROWS()| @@last_insert_id| @@session.last_insert_id| @@LOCAL.`identity`
        @@identity| @@warning_count| @@session . error_count| @@`insert_id`| found_rows () + 1
        @@rand_seed1| @@last_gtid| @@SESSION.last_gtid""",
    "sqlite": "changes()| total_changes()| last_insert_rowid()| CHANGES ( )",
}


@pytest.mark.parametrize(
    ("dialect", "term"),
    [
        (dialect, term.strip())
        for dialect, terms in CASES.items()
        for term in terms.replace("\n", "|").split("|")
        if term.strip()
    ],
)
def test_the_result_of_the_statement_before_is_not_told(dialect: str, term: str) -> None:
    for text in (f"SELECT {term}", f"INSERT INTO t SELECT {term} FROM t"):
        found = judge(text, dialect)
        assert (found.effect, found.code) == (Effect.UNKNOWN, Code.SQL_FUNCTION.value), text
        assert "any caller" in found.reason, text


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mysql", "SELECT GET_LOCK('a', 1)"),
        ("mysql", "SELECT RELEASE_ALL_LOCKS()"),
        ("mysql", "SELECT IS_USED_LOCK('a')"),
        ("mysql", "SELECT PREVIOUS VALUE FOR s"),
        ("mysql", "SELECT @a := 1"),
        ("h2", "SELECT IDENTITY()"),
        ("h2", "SELECT LAST_INSERT_ID()"),
        ("h2", "SELECT SCOPE_IDENTITY()"),
        ("h2", "SELECT SESSION_ID()"),
        ("hsqldb", "CALL IDENTITY()"),
        ("hsqldb", "SELECT IDENTITY() FROM t"),
        ("hsqldb", "SELECT DIAGNOSTICS(ROW_COUNT) FROM t"),
        ("derby", "VALUES IDENTITY_VAL_LOCAL()"),
        ("tsql", "SELECT @@IDENTITY"),
        ("tsql", "SELECT @@ROWCOUNT"),
        ("tsql", "SELECT SCOPE_IDENTITY()"),
        ("oracle", "SELECT s.CURRVAL FROM dual"),
        ("default", "SELECT LAST_INSERT_ID()"),
    ],
)
def test_no_dialect_reads_the_state_of_a_session(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is not Effect.READ


@pytest.mark.parametrize(
    "text", ["SELECT @@sql_mode", "SELECT @@session.time_zone, t.identity FROM t", "SELECT @a"]
)
def test_other_variables_are_read(text: str) -> None:
    assert judge(text, "mysql").effect is Effect.READ
