"""A change of every row is known for one whatever its form, and no other is."""

import pytest

from tidegate.sql.judge import judge

EVERY_ROW = [
    ("postgres", "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE"),
    ("postgres", "MERGE INTO t USING t AS u ON t.id = u.id WHEN MATCHED THEN DELETE"),
    ("postgres", "MERGE INTO t USING (SELECT * FROM t) u ON t.id = u.id WHEN MATCHED THEN DELETE"),
    ("postgres", "MERGE INTO t USING u ON t.id = u.id WHEN NOT MATCHED BY SOURCE THEN DELETE"),
    ("duckdb", "MERGE INTO t USING u ON 1 = 1 WHEN MATCHED THEN UPDATE SET a = 1"),
    ("duckdb", "MERGE INTO t USING t AS u USING (id) WHEN MATCHED THEN DELETE"),
    ("mysql", "UPDATE t LEFT JOIN u ON t.id = u.id SET t.a = 1"),
    ("mysql", "UPDATE t JOIN t AS v ON t.id = v.id SET t.a = 1"),
    ("mysql", "DELETE t FROM t CROSS JOIN u"),
    ("mysql", "UPDATE t SET a = 1 LIMIT 100000000"),
    ("mysql", "INSERT INTO t SELECT * FROM t ON DUPLICATE KEY UPDATE a = 1"),
    ("sqlite", "INSERT OR REPLACE INTO t SELECT id, 1 FROM t"),
    ("sqlite", "INSERT INTO t SELECT id, 1 FROM t WHERE true ON CONFLICT (id) DO UPDATE SET a = 1"),
    ("postgres", "DELETE FROM t USING t AS u WHERE t.id = u.id"),
    ("postgres", "UPDATE t SET a = 1 FROM t AS u WHERE (t.id = u.id)"),
    ("postgres", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u)"),
    ("postgres", "DELETE FROM t WHERE id IN (SELECT u.id FROM t AS u)"),
    ("postgres", "DELETE FROM t WHERE id IS NOT NULL"),
    ("postgres", "DELETE FROM t WHERE id > 0"),
    ("h2", "DELETE FROM t WHERE length(name) >= 0"),
    ("hsqldb", "DELETE FROM t WHERE true"),
    ("sqlite", "DELETE FROM t WHERE rowid > 0"),
]
SOME_ROWS = [
    ("postgres", "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE"),
    ("postgres", "MERGE INTO t USING u ON true WHEN MATCHED AND t.id = 1 THEN DELETE"),
    ("postgres", "MERGE INTO t USING u ON t.id = u.id WHEN NOT MATCHED THEN INSERT VALUES (u.id)"),
    ("duckdb", "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET a = 1"),
    ("duckdb", "MERGE INTO t USING u USING (id) WHEN MATCHED THEN DELETE"),
    ("h2", "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET a = 1"),
    ("mysql", "UPDATE t JOIN u ON t.id = u.id SET t.a = 1"),
    ("mysql", "DELETE t FROM t JOIN u ON t.id = u.id"),
    ("mysql", "UPDATE t SET a = 1 ORDER BY id LIMIT 5"),
    ("mysql", "DELETE FROM t LIMIT 3"),
    ("postgres", "UPDATE t SET a = 1 FROM u WHERE t.id = u.id"),
    ("postgres", "INSERT INTO t VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET a = 1"),
    ("postgres", "DELETE FROM t WHERE id > 7"),
    ("postgres", "DELETE FROM t WHERE email IS NOT NULL"),
]


@pytest.mark.parametrize(("dialect", "text"), EVERY_ROW)
def test_a_change_of_every_row_is_known_whatever_its_form(dialect, text):
    assert judge(text, dialect).unqualified


@pytest.mark.parametrize(("dialect", "text"), SOME_ROWS)
def test_a_change_of_some_rows_is_not_taken_for_one_of_all(dialect, text):
    judgement = judge(text, dialect)
    assert judgement.effect.label == "write"
    assert not judgement.unqualified
