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


OPEN_ENDED = """
mysql|DELETE FROM t WHERE id = 1 XOR 1
mysql|DELETE FROM t WHERE id = 1 IS NOT NULL
mysql|DELETE FROM t WHERE id = 1 IN (0, 1)
mysql|DELETE FROM t WHERE id = 7 < 2
mysql|DELETE FROM t WHERE ! id = 7
mysql|DELETE FROM t WHERE id IN (1, (SELECT 2))
mysql|DELETE x FROM t AS x JOIN u ON u.id = x.id WHERE u.a = 1
mysql|UPDATE t, u SET t.a = 1 WHERE u.id = 1
mysql|UPDATE t LEFT JOIN u ON t.id = 1 SET t.a = 1 WHERE u.id IS NULL
mysql|DELETE FROM t LIMIT 2
mysql|REPLACE INTO t TABLE u
h2|DELETE FROM t WHERE id >= ALL (SELECT 1 WHERE false)
h2|DELETE FROM t WHERE user = 'SA'
h2|DELETE FROM t WHERE rownum < 9
h2|DELETE FROM t WHERE id NOT BETWEEN 5 AND 2
h2|DELETE FROM t WHERE id = CASE WHEN id > 0 THEN id END
postgres|DELETE FROM t WHERE id >= ALL ('{}'::int[])
postgres|DELETE FROM t WHERE id = 7 NOTNULL
postgres|DELETE FROM t WHERE (id > 3) = ANY ('{t,f}')
postgres|MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE
cloud|DELETE FROM a.b.c WHERE id LIKE '%'
default|INSERT OVERWRITE TABLE t SELECT * FROM u
"""
OF_CONSTANTS = """
mysql|DELETE FROM t WHERE id = @x AND a LIKE '%'
mysql|DELETE x FROM t AS x JOIN u ON u.id = x.id WHERE x.a = 1
mysql|UPDATE t JOIN u ON u.id = t.id AND t.a = 5 SET t.b = 1
mysql|DELETE FROM T WHERE ((id)) IN ((1), (2)) OR `shop`.t.id = 3
mysql|DELETE FROM t WHERE `user` = 'x'
mysql|DELETE FROM t LIMIT 1
mysql|REPLACE INTO t VALUES (1, 2), (2, 3)
h2|DELETE FROM t WHERE "USER" = 'SA'
h2|DELETE FROM t WHERE made < CURRENT_TIMESTAMP - INTERVAL '1' DAY
h2|DELETE FROM t WHERE made < DATEADD('DAY', -1, CURRENT_DATE)
h2|DELETE FROM t WHERE (a, b) = (1, ?)
postgres|DELETE FROM t WHERE id = ANY ($1)
postgres|MERGE INTO t USING u ON t.id = u.id AND t.a = 5 WHEN MATCHED THEN DELETE
cloud|DELETE FROM a.b.c WHERE id = 'x'
"""


@pytest.mark.parametrize(("texts", "open_ended"), [(OPEN_ENDED, True), (OF_CONSTANTS, False)])
@pytest.mark.needs("duckdb", "mysql")
def test_only_a_column_compared_with_a_constant_closes_a_change(texts, open_ended):
    for line in texts.strip().splitlines():
        dialect, text = line.split("|", 1)
        found = judge(text, dialect)
        assert (found.effect.label, found.open_ended) == ("write", open_ended), line
