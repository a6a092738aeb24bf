"""What ALTER TABLE does is judged by its parts, however its table is named and waited for."""

from __future__ import annotations

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

_HEADS = (
    "ALTER TABLE `t`",
    "ALTER TABLE s.t",
    "ALTER TABLE IF EXISTS t",
    "ALTER TABLE IF EXISTS s.`t`",
    "ALTER TABLE t WAIT 5",
    "ALTER TABLE s.t NOWAIT",
    "ALTER ONLINE TABLE t",
    "ALTER ONLINE TABLE IF EXISTS s.t WAIT 0",
)
_KEEPING = (
    "ADD (a INT)",
    "ADD (a VARCHAR(10), b DECIMAL(5, 2) DEFAULT (abs(1)))",
    "ADD COLUMN (a INT)",
    "ADD IF NOT EXISTS (a INT)",
    "ADD COLUMN IF NOT EXISTS a ENUM('x')",
    "ADD b INT, ADD (a INT)",
    "ADD INDEX i (a)",
    "ADD KEY (a(10), b(20) DESC)",
    "ADD INDEX IF NOT EXISTS i (a)",
    "ADD INDEX i USING BTREE (a)",
    "ADD INDEX USING HASH (a)",
    "ADD UNIQUE KEY IF NOT EXISTS u (a(10))",
    "ADD CONSTRAINT u UNIQUE KEY (a)",
    "ADD PRIMARY KEY USING BTREE (a)",
    "ADD FULLTEXT f (a)",
    "ADD FULLTEXT INDEX (a)",
    "ADD SPATIAL (a)",
    "ADD FOREIGN KEY IF NOT EXISTS f (a) REFERENCES x (b)",
    "ADD CONSTRAINT IF NOT EXISTS c CHECK (a > 0)",
    "ADD PERIOD FOR SYSTEM_TIME (a, b)",
    "ADD PARTITION (PARTITION p VALUES LESS THAN (10))",
    "MODIFY IF EXISTS a TEXT",
    "CHANGE IF EXISTS a b TEXT",
    "ALTER COLUMN IF EXISTS a SET DEFAULT (1)",
)
_LOSING = (
    "DROP b, ADD (a INT)",
    "MODIFY a VARCHAR(10)",
    "MODIFY COLUMN IF EXISTS a DECIMAL(5, 2)",
    "CHANGE a b VARCHAR(10)",
    "CHANGE COLUMN IF EXISTS a b INT",
    "CONVERT TO CHARACTER SET latin1",
    "TRUNCATE PARTITION ALL",
    "EXCHANGE PARTITION p WITH TABLE x",
    "REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (1))",
    "PARTITION BY RANGE COLUMNS (a) (PARTITION p VALUES LESS THAN (1))",
    "PARTITION BY LIST COLUMNS (a) (PARTITION p VALUES IN (1))",
    "PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))",
    "PARTITION BY LIST (a) (PARTITION p VALUES IN (1))",
    "PARTITION BY HASH (a) PARTITIONS 4",
    "PARTITION BY KEY (a) PARTITIONS 4",
    "ENGINE=MEMORY",
)
_CALLING = (
    "ADD (a INT DEFAULT (unlisted(1)))",
    "ADD a INT KEY DEFAULT (unlisted(1))",
    "ADD COLUMN a INT CONSTRAINT u UNIQUE KEY DEFAULT (unlisted(1))",
    "ADD COLUMN a INT AS (s.add(1))",
    "ADD COLUMN a INT AS (`add`(1))",
    "ADD COLUMN a INT AS (`column`(1))",
    "ADD INDEX i ((unlisted(a)))",
    "ADD CHECK (unlisted(a))",
)


@pytest.mark.needs("mysql")
@pytest.mark.parametrize("head", ["ALTER TABLE t", *_HEADS])
def test_parts_that_keep_the_rows_are_a_plain_write(head: str) -> None:
    for part in _KEEPING:
        judgement = judge(f"{head} {part}", "mysql")
        assert (judgement.effect, judgement.rule) == (Effect.WRITE, "alter"), part


@pytest.mark.needs("mysql")
@pytest.mark.parametrize("head", ["ALTER TABLE t", *_HEADS])
def test_parts_that_may_lose_rows_are_destructive(head: str) -> None:
    for part in _LOSING:
        assert judge(f"{head} {part}", "mysql").effect is Effect.DESTRUCTIVE, part


@pytest.mark.parametrize("head", ["ALTER TABLE t", *_HEADS])
def test_parts_that_call_what_is_not_listed_are_not_admitted(head: str) -> None:
    for part in _CALLING:
        assert judge(f"{head} {part}", "mysql").effect > Effect.DESTRUCTIVE, part


@pytest.mark.needs("mysql")
@pytest.mark.parametrize("head", ["ALTER IGNORE TABLE t", "ALTER ONLINE IGNORE TABLE s.t WAIT 5"])
def test_every_part_may_lose_rows_with_ignore(head: str) -> None:
    for part in (*_KEEPING, *_LOSING):
        assert judge(f"{head} {part}", "mysql").effect is Effect.DESTRUCTIVE, part


@pytest.mark.parametrize(
    ("dialect", "name"),
    [("postgres", "add"), ("sqlite", "add"), ("postgres", "column"), ("duckdb", "column")],
)
def test_words_that_mysql_reserves_may_name_functions_elsewhere(dialect: str, name: str) -> None:
    text = f"CREATE TABLE t (a int CHECK ({name}(a) > 0))"
    assert judge(text, dialect).rule == f"function.{name}"
