"""A definition is a plain write only if it is known to keep every row and to stay inside."""

from __future__ import annotations

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.judge import judge


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mysql", "ALTER TABLE t TRUNCATE PARTITION ALL"),
        ("mysql", "ALTER TABLE d.t EXCHANGE PARTITION p WITH TABLE x"),
        ("mysql", "ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (1))"),
        ("mysql", "ALTER TABLE t COALESCE PARTITION 2"),
        ("mysql", "ALTER TABLE t REMOVE PARTITIONING"),
        ("mysql", "ALTER TABLE t ENGINE=MEMORY"),
        ("mysql", "ALTER TABLE t COMMENT='x' ENGINE MEMORY"),
        ("postgres", "ALTER TABLE t ALTER COLUMN a TYPE int USING 0"),
        ("postgres", "ALTER TABLE ONLY s.t ADD b int, ALTER a SET DATA TYPE int USING (0)"),
        ("duckdb", "ALTER TABLE t ALTER a TYPE int USING 0"),
        ("mysql", "ALTER IGNORE TABLE t ADD UNIQUE (a)"),
        ("mysql", "ALTER ONLINE IGNORE TABLE t ADD UNIQUE (a)"),
        ("mysql", "ALTER TABLE t MODIFY a DATE"),
        ("mysql", "ALTER TABLE t ADD b int, MODIFY COLUMN IF EXISTS `text` tinyint NOT NULL"),
        ("mysql", "ALTER TABLE t CHANGE text b VARCHAR(3)"),
        ("mysql", "ALTER TABLE t CHANGE COLUMN a text decimal(5, 2), ADD c text"),
        ("mysql", "ALTER TABLE t CONVERT TO CHARACTER SET latin1"),
        ("mysql", "ALTER TABLE t CONVERT TO CHARSET 'ascii' COLLATE ascii_bin"),
        ("mysql", "CREATE OR REPLACE SEQUENCE s"),
        ("mysql", "CREATE OR REPLACE UNIQUE INDEX i ON t (a)"),
        ("mysql", "DELETE HISTORY FROM t"),
        ("postgres", "ALTER TABLE t ALTER a TYPE int"),
        ("postgres", "ALTER TABLE t ALTER COLUMN text TYPE varchar(3), ADD b text"),
        ("postgres", "ALTER TABLE t ALTER type TYPE date"),
        ("postgres", 'ALTER TABLE t ALTER a SET DATA TYPE "char"'),
        ("postgres", "ALTER TABLE t SET UNLOGGED"),
        ("postgres", "ALTER TYPE c ALTER ATTRIBUTE a TYPE int CASCADE"),
        ("postgres", "REFRESH MATERIALIZED VIEW m WITH NO DATA"),
        ("duckdb", "ALTER TABLE t ALTER a SET DATA TYPE INT"),
        ("duckdb", "CREATE OR REPLACE SCHEMA s"),
        ("duckdb", "CREATE OR REPLACE TYPE k AS ENUM ('a')"),
        ("sqlite", "INSERT INTO ft(ft) VALUES('delete-all')"),
        ("sqlite", "INSERT INTO main.ft(FT) VALUES(?)"),
        ("sqlite", "INSERT INTO ft(rowid, ft, a) VALUES (1, 'delete', 'x')"),
    ],
)
def test_what_may_lose_rows_is_destructive(dialect, text):
    assert judge(text, dialect).effect is Effect.DESTRUCTIVE


@pytest.mark.needs("mysql")
@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t DISCARD TABLESPACE",
        "ALTER TABLE t IMPORT PARTITION p TABLESPACE",
        "CREATE TABLE t (a int) DATA DIRECTORY='/x'",
        "CREATE TABLE t (a int) PARTITION BY HASH(a) (PARTITION p DATA DIRECTORY = '/x')",
        "CREATE TABLE t (a int) ENGINE=CONNECT TABLE_TYPE=CSV FILE_NAME='x'",
        "CREATE TABLE t (a int) ENGINE 'FEDERATED' CONNECTION='mysql://x'",
        "CREATE TABLE t (a int) ENGINE=InnoDB CONNECTION='mysql://x'",
        "CREATE TABLE t (a int) ENGINE=SPIDER",
        "ALTER TABLE t ENGINE=CONNECT",
        "ALTER TABLE t ADD b int, DATA DIRECTORY '/x'",
    ],
)
def test_what_reaches_outside_is_administration(text):
    assert judge(text, "mysql").effect >= Effect.ADMIN


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mysql", "ALTER TABLE t ADD COLUMN engine varchar(3), MODIFY b text"),
        ("mysql", "CREATE TABLE t (engine int, connection int) ENGINE=InnoDB DEFAULT CHARSET=utf8"),
        ("mysql", "ALTER TABLE t ADD INDEX i (a) USING BTREE"),
        ("postgres", "ALTER TABLE t ADD CONSTRAINT u UNIQUE USING INDEX i"),
        ("postgres", "ALTER TABLE t ALTER COLUMN a SET DATA TYPE text"),
        ("postgres", "ALTER TABLE IF EXISTS ONLY t RENAME TO u"),
        ("mysql", "ALTER TABLE t ADD COLUMN modify int, CHANGE a b LONGTEXT NOT NULL"),
        ("mysql", "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4"),
        ("mysql", "ALTER TABLE t ADD COLUMN type int"),
        ("mysql", "ALTER TABLE t ADD INDEX i (a, modify)"),
        ("mysql", "ALTER TABLE t ADD (a int)"),
        ("mysql", "ALTER TABLE d.t ADD (a int, b int)"),
        ("postgres", "ALTER TABLE t ALTER a TYPE character varying, ADD type date"),
        ("postgres", "ALTER TABLE t ALTER type SET DEFAULT 1"),
        ("postgres", "ALTER TYPE c ADD ATTRIBUTE b int"),
        ("postgres", "ALTER TYPE e ADD VALUE 'type'"),
        ("postgres", "ALTER DOMAIN d SET DEFAULT 1"),
        ("postgres", "ALTER VIEW attribute RENAME TO type"),
        ("postgres", "ALTER TABLE t SET LOGGED"),
        ("postgres", "CREATE UNLOGGED TABLE t (a int)"),
        ("postgres", "REFRESH MATERIALIZED VIEW m"),
        ("mysql", "CREATE OR REPLACE VIEW v AS SELECT 1"),
        ("sqlite", "INSERT INTO ft(ft) VALUES('rebuild')"),
        ("sqlite", "INSERT INTO t(a) VALUES('delete-all')"),
    ],
)
def test_what_keeps_rows_stays_a_write(dialect, text):
    assert judge(text, dialect).effect is Effect.WRITE


def test_a_virtual_table_is_named_among_the_tables() -> None:
    judgement = judge("CREATE VIRTUAL TABLE IF NOT EXISTS v USING fts5(a)", "sqlite")
    assert (judgement.effect, judgement.tables) == (Effect.WRITE, ("v",))


def test_a_table_of_what_a_prepared_statement_gives_is_not_made() -> None:
    for text in ("CREATE TABLE t AS EXECUTE p", "EXPLAIN ANALYZE CREATE TABLE t AS EXECUTE p"):
        assert judge(text, "postgres").rule == "create.execute"
        assert judge(text, "postgres").effect is Effect.UNKNOWN
    assert judge("CREATE TABLE t AS SELECT 1 AS execute", "postgres").effect is Effect.WRITE


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX CONCURRENTLY i ON t (a)",
        "create unique index concurrently i on t (a)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON t (a);",
        "DROP INDEX CONCURRENTLY i",
        "REINDEX INDEX CONCURRENTLY i",
        "REINDEX (VERBOSE) TABLE CONCURRENTLY t",
        "REINDEX SCHEMA s",
        "REINDEX DATABASE d",
        "REINDEX SYSTEM d",
        "CLUSTER",
        "CLUSTER VERBOSE",
        "CLUSTER (VERBOSE)",
        "ALTER TABLE t DETACH PARTITION p CONCURRENTLY",
        "ALTER TABLE t DETACH PARTITION p CONCURRENTLY;",
    ],
)
def test_what_postgresql_runs_in_no_transaction_is_known(statement: str) -> None:
    assert judge(statement, "postgres").refuses_transaction
    assert not judge(statement, "mysql").refuses_transaction


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX i ON t (a)",
        "CREATE INDEX i ON concurrently (a)",
        "CREATE UNIQUE INDEX i ON t (a)",
        "CREATE TABLE concurrently (a int)",
        "DROP INDEX i",
        "DROP TABLE concurrently",
        "REINDEX INDEX i",
        "REINDEX TABLE t",
        "CLUSTER t",
        "CLUSTER t USING i",
        "ALTER TABLE t DETACH PARTITION p",
        "ALTER TABLE t ADD COLUMN concurrently int",
        "ALTER TABLE t RENAME TO concurrently",
        "SELECT 1",
        "INSERT INTO t VALUES (1)",
    ],
)
def test_what_postgresql_runs_in_a_transaction_is_rolled_back_as_a_whole(statement: str) -> None:
    assert not judge(statement, "postgres").refuses_transaction
