"""A change of every row is marked, so that a person is asked, in the dialects behind JDBC too."""

from __future__ import annotations

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

EVERY_ROW = """
DELETE FROM t
UPDATE t SET a = 1
DELETE FROM t x
UPDATE t SET (a, b) = (1, 2)
DELETE FROM t WHERE TRUE
DELETE FROM t WHERE NOT FALSE
UPDATE t SET a = 1 WHERE a = a
DELETE FROM t WHERE a IS NULL OR a IS NOT NULL
DELETE FROM t WHERE 1 BETWEEN 0 AND 2
DELETE FROM t WHERE EXISTS (SELECT 1 FROM t)
DELETE FROM t WHERE a IN (SELECT a FROM t)
DELETE FROM t LIMIT NULL
MERGE INTO t USING s ON 1 = 1 WHEN MATCHED THEN DELETE
MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO t USING (VALUES 1) s ON TRUE WHEN MATCHED THEN UPDATE SET a = 1
"""
SOME_ROWS = """
DELETE FROM t WHERE a = ?
UPDATE t SET a = 1 WHERE id = 5
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = 1
"""


@pytest.mark.parametrize("dialect", ["h2", "hsqldb", "derby", "oracle", "tsql", "default"])
def test_a_change_of_every_row_is_told_from_one_of_some(dialect: str) -> None:
    for texts, every in ((EVERY_ROW, True), (SOME_ROWS, False)):
        for text in texts.strip().splitlines():
            found = judge(text, dialect)
            assert (found.effect, found.unqualified) == (Effect.WRITE, every), text
