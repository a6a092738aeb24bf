"""Ordinary changes are classified as changes, and a change hides no call that may do more."""

from __future__ import annotations

import re

import pytest

from support.judge_cases import kinds
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

CHANGES = (Effect.WRITE, Effect.DESTRUCTIVE)
KINDS = kinds("writes", "ordinary_changes")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_ordinary_change_is_classified_as_one(kind: str) -> None:
    judged = [(case, judge(case.sql, case.dialect)) for case in KINDS[kind]]
    lasting = [each for each in judged if each[1].rule != "session.temporary"]
    assert [each for each in lasting if each[1].effect not in CHANGES] == []
    temporary = re.compile(r"(?i)\b(?:CREATE\b.*\bTEMP|INTO\s+(?:@|TEMP)|TEMP\.)")
    assert all(temporary.search(case.sql) for case, j in judged if j.rule == "session.temporary")


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "INSERT INTO t VALUES (dblink('x'))"),
        ("postgres", "INSERT INTO t VALUES (pg_notify('a','b'))"),
        ("postgres", "INSERT INTO t SELECT lo_import('/x')"),
        ("postgres", "UPDATE t SET a = pg_read_file('x')"),
        ("postgres", "INSERT INTO t VALUES (pg_advisory_lock(1))"),
        ("postgres", "DELETE FROM t WHERE pg_terminate_backend(1)"),
        ("postgres", "CREATE TABLE dblink (a text DEFAULT dblink('x'))"),
        ("postgres", "CREATE TABLE x (a int DEFAULT dblink('x'))"),
        ("postgres", "CREATE INDEX i ON t (gin(a))"),
        ("postgres", "CREATE INDEX i ON t USING gin (gin(a))"),
        ("postgres", "CREATE INDEX i ON t USING f (a)"),
        ("postgres", "CREATE TABLE x AS SELECT a FROM t JOIN u ON t(a)"),
        ("postgres", "CREATE VIEW v AS SELECT nextval('s')"),
        ("postgres", "CREATE VIEW v AS SELECT range(a) FROM t ORDER BY range(a)"),
        ("postgres", "CREATE TABLE x AS SELECT * FROM t ORDER BY list(a)"),
        ("postgres", "CREATE INDEX i ON t (a) WHERE t(a)"),
        ("postgres", "ALTER TABLE t ADD CHECK (t(a))"),
        ("postgres", "ALTER TABLE t ALTER a TYPE int USING gin(a)"),
        (
            "postgres",
            "MERGE INTO t USING u ON a WHEN MATCHED THEN"
            " UPDATE SET a = CASE WHEN a THEN insert(1) END",
        ),
        ("postgres", "MERGE INTO t USING u ON true WHEN MATCHED THEN UPDATE SET a = dblink('x')"),
        ("postgres", "CREATE TABLE x (a int REFERENCES t (id) DEFAULT t(1))"),
        ("postgres", "INSERT INTO t SELECT set_config('role','x',false)"),
        ("postgres", "INSERT INTO t SELECT default(1)"),
        ("postgres", "INSERT INTO t SELECT unique(1)"),
        ("postgres", "CREATE DOMAIN d AS int DEFAULT dblink('x')"),
        ("postgres", "CREATE TABLE x (a int, b int DEFAULT hash(1))"),
        ("postgres", "CREATE VIEW v2 (x) AS SELECT v2(1)"),
        ("postgres", "CREATE INDEX i ON dblink (dblink('x'))"),
        ("mysql", "INSERT INTO t VALUES (LOAD_FILE('x'))"),
        ("mysql", "REPLACE INTO t SELECT LOAD_FILE('x')"),
        ("mysql", "INSERT INTO t SELECT GET_LOCK('a',1)"),
        ("mysql", "REPLACE INTO t SELECT * FROM u INTO OUTFILE 'x'"),
        ("mysql", "CREATE TABLE x (a INT DEFAULT (f(10)))"),
        ("mysql", "CREATE TABLE x (a INT CHECK (a(10)), KEY k (a(10)))"),
        ("mysql", "CREATE TABLE x (a INT PRIMARY KEY DEFAULT (f(1)))"),
        ("mysql", "CREATE TABLE x (a INT KEY AS (f(1)))"),
        ("mysql", "CREATE TABLE x (a INT, KEY k (a(10), f('x')))"),
        ("mysql", "CREATE TABLE x (a int, CHECK (g(1, f(10))))"),
        ("mysql", "ALTER TABLE t ADD COLUMN b INT DEFAULT (ak(1)), ADD KEY ak (b)"),
        ("mysql", "CREATE TABLE k (a INT DEFAULT (k(1)))"),
        ("mysql", "CREATE TABLE x (a int default (`key`(1)), primary key (a))"),
        ("mysql", "REPLACE INTO t SELECT sys_exec('x')"),
        ("mysql", "CREATE INDEX f ON t (f(10, 2))"),
        ("mysql", "CREATE VIEW v AS SELECT nextval(s)"),
        ("mysql", "CREATE TABLE x SELECT load_file('x')"),
        ("sqlite", "REPLACE INTO t VALUES (load_extension('x'))"),
        ("sqlite", "CREATE TABLE x2(a DEFAULT (load_extension('x')))"),
        ("sqlite", "CREATE TABLE x2(a, b, CHECK(x2(a)))"),
        ("sqlite", "UPDATE OR REPLACE t SET a = writefile('x','y')"),
        ("sqlite", "CREATE TABLE load_extension(a DEFAULT (load_extension('x'))) STRICT"),
        ("sqlite", "CREATE VIEW v AS SELECT load_extension('x')"),
        ("duckdb", "INSERT INTO t SELECT * FROM read_csv('x')"),
        ("duckdb", "CREATE TABLE x AS FROM read_text('x')"),
        ("duckdb", "CREATE VIEW v AS FROM t SELECT nextval('s')"),
        ("duckdb", "CREATE VIEW v AS ((FROM t ORDER BY key(a)))"),
        ("duckdb", "CREATE TABLE x AS FROM glob('*')"),
        ("duckdb", "INSERT INTO t SELECT getenv('x')"),
        ("duckdb", "CREATE TABLE x (a int default getenv('x'))"),
    ],
)
def test_a_change_that_calls_more_is_unknown(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is Effect.UNKNOWN


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "EXPLAIN INSERT INTO t VALUES (nextval('s'))"),
        ("mysql", "EXPLAIN REPLACE INTO t VALUES (1)"),
        ("sqlite", "EXPLAIN UPDATE OR IGNORE t SET a = 1"),
        ("duckdb", "EXPLAIN CREATE TABLE x (a STRUCT(x INT))"),
        ("postgres", "SELECT nextval('s')"),
        ("mysql", "SELECT last_insert_id(5)"),
        ("duckdb", "SELECT 's'.nextval()"),
        ("sqlite", "SELECT default(1)"),
        ("postgres", "SELECT a FROM t ORDER BY hash(a)"),
    ],
)
def test_what_only_a_change_may_hold_makes_no_read(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is not Effect.READ
