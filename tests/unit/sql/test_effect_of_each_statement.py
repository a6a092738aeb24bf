"""What each kind of statement would do, exactly: neither less, which would let it run, nor more."""

from __future__ import annotations

import pytest

from tidegate.sql.judge import judge

STATEMENTS = {
    "sqlite": {
        "read": (
            "PRAGMA user_version",
            "EXPLAIN DELETE FROM t WHERE a = 1",
            "EXPLAIN QUERY PLAN SELECT 1",
            "VALUES (1)",
        ),
        "session": (
            "BEGIN",
            "COMMIT",
            "SAVEPOINT s",
        ),
        "write": (
            "CREATE VIRTUAL TABLE f USING fts5(a)",
            "CREATE VIRTUAL TABLE f USING rtree(a,b,c)",
            "CREATE TABLE t (a INT)",
            "CREATE TABLE t AS SELECT 1 AS a",
            "CREATE INDEX i ON t (a)",
            "CREATE UNIQUE INDEX i ON t (a)",
            "CREATE VIEW v AS SELECT 1 AS a",
            "ALTER TABLE t ADD COLUMN b INT",
            "ALTER TABLE t RENAME TO u",
            "ALTER TABLE t RENAME COLUMN a TO b",
            "INSERT INTO t VALUES (1)",
            "REPLACE INTO t VALUES (1)",
            "UPDATE t SET a = 1 WHERE a = 2",
            "DELETE FROM t WHERE a = 1",
            "WITH x AS (SELECT 1) DELETE FROM t WHERE a IN (SELECT * FROM x)",
        ),
        "write of every row": (
            "UPDATE t SET a = 1",
            "DELETE FROM t",
        ),
        "destructive": (
            "ALTER TABLE t DROP COLUMN a",
            "DROP TABLE t",
            "DROP INDEX i",
            "DROP VIEW v",
            "INSERT INTO f(f) VALUES ('delete-all')",
        ),
        "admin": (
            "CREATE VIRTUAL TABLE f USING csv(filename='x')",
            "CREATE VIRTUAL TABLE f",
            "PRAGMA user_version = 3",
            "ATTACH 'x' AS y",
            "DETACH y",
        ),
    },
    "postgres": {
        "read": (
            "EXPLAIN SELECT 1",
            "TABLE t",
        ),
        "session": (
            "SET search_path = x",
            "RESET ALL",
            "LISTEN x",
            "LOCK TABLE t",
            "DEALLOCATE p",
            "DECLARE c CURSOR FOR SELECT 1",
            "FETCH c",
            "BEGIN",
            "COMMIT",
        ),
        "write": (
            "CREATE TABLE t (a int)",
            "CREATE TABLE t AS SELECT 1",
            "SELECT 1 INTO t",
            "CREATE INDEX i ON t (a)",
            "CREATE INDEX CONCURRENTLY i ON t (a)",
            "CREATE VIEW v AS SELECT 1",
            "CREATE MATERIALIZED VIEW v AS SELECT 1",
            "CREATE SEQUENCE s",
            "CREATE SCHEMA s",
            "CREATE TYPE m AS ENUM ('a')",
            "ALTER TABLE t ADD COLUMN b int",
            "ALTER TABLE t ADD COLUMN b int DEFAULT 1",
            "ALTER TABLE t RENAME TO u",
            "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
            "INSERT INTO t VALUES (1) RETURNING a",
            "SELECT * FROM t FOR UPDATE",
            "SELECT nextval('s')",
            "EXPLAIN ANALYZE DELETE FROM t WHERE a = 1",
        ),
        "write of every row": (
            "UPDATE t SET a = 1",
            "DELETE FROM t",
        ),
        "destructive": (
            "ALTER TABLE t DROP COLUMN b",
            "ALTER TABLE t ALTER COLUMN b TYPE int USING 0",
            "DROP TABLE t",
            "DROP SCHEMA s CASCADE",
            "TRUNCATE t",
        ),
        "admin": (
            "ALTER TABLE t OWNER TO x",
            "ALTER TABLE t DISABLE ROW LEVEL SECURITY",
            "ALTER SYSTEM SET x = 1",
        ),
    },
    "mysql": {
        "read": (
            "DESCRIBE t",
            "EXPLAIN DELETE FROM t WHERE a = 1",
        ),
        "session": (
            "SET @a = 1",
            "USE d",
            "LOCK TABLES t WRITE",
            "HANDLER t OPEN",
            "XA START 'x'",
        ),
        "write": (
            "CREATE TABLE t (a int)",
            "CREATE TABLE t (a int) ENGINE = InnoDB",
            "CREATE VIEW v AS SELECT 1",
            "CREATE INDEX i ON t (a)",
            "ALTER TABLE t ADD COLUMN b INT",
            "RENAME TABLE t TO u",
            "REPLACE INTO t VALUES (1)",
            "INSERT INTO t SET a = 1",
            "UPDATE t SET a = 1 LIMIT 1",
            "DELETE t FROM t JOIN u ON t.a = u.a",
            "DESC SELECT * FROM (SELECT NEXT VALUE FOR s) AS q",
        ),
        "write of every row": (
            "UPDATE t SET a = 1",
            "DELETE FROM t",
        ),
        "destructive": (
            "ALTER TABLE t DROP COLUMN b",
            "ALTER TABLE t TRUNCATE PARTITION ALL",
            "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
            "ALTER TABLE t REORGANIZE PARTITION",
            "ALTER TABLE t COALESCE PARTITION 1",
            "ALTER TABLE t ENGINE = MyISAM",
            "DROP TABLE t",
            "TRUNCATE t",
        ),
        "admin": (
            "CREATE TABLE t (a int) DATA DIRECTORY = '/x'",
            "CREATE TABLE t (a int) ENGINE = CONNECT FILE_NAME = 'x'",
            "ALTER TABLE t DISCARD TABLESPACE",
            "FLUSH TABLES",
            "KILL 1",
        ),
    },
    "duckdb": {
        "read": (
            "PRAGMA version",
            "DESCRIBE t",
            "FROM t",
            "PIVOT t ON a",
        ),
        "session": (
            "SET threads = 1",
            "RESET threads",
            "USE x",
            "BEGIN",
        ),
        "write": (
            "CREATE TABLE t (a int)",
            "CREATE SEQUENCE s",
            "CREATE SCHEMA s",
            "CREATE VIEW v AS SELECT 1",
            "ALTER TABLE t ADD COLUMN b INT",
            "INSERT INTO t VALUES (1)",
            "INSERT OR REPLACE INTO t VALUES (1)",
            "SELECT nextval('s')",
            "EXPLAIN ANALYZE DELETE FROM t WHERE a = 1",
        ),
        "write of every row": (
            "UPDATE t SET a = 1",
            "DELETE FROM t",
        ),
        "destructive": (
            "ALTER TABLE t DROP COLUMN b",
            "DROP TABLE t",
            "TRUNCATE t",
        ),
        "admin": (
            "CREATE MACRO m() AS 1",
            "CREATE SECRET s (TYPE s3)",
            "EXPORT DATABASE 'x'",
            "IMPORT DATABASE 'x'",
            "ATTACH 'x' AS y",
            "DETACH y",
            "INSTALL httpfs",
            "LOAD httpfs",
            "FORCE CHECKPOINT",
            "SELECT * FROM 'x.csv'",
        ),
    },
}
CASES = [
    (dialect, effect, statement)
    for dialect, effects in STATEMENTS.items()
    for effect, statements in effects.items()
    for statement in statements
]


@pytest.mark.parametrize(("dialect", "effect", "statement"), CASES)
def test_a_statement_has_the_effect_of_its_kind(dialect: str, effect: str, statement: str) -> None:
    judgement = judge(statement, dialect)
    label = judgement.effect.label + (" of every row" if judgement.unqualified else "")
    assert label == effect
