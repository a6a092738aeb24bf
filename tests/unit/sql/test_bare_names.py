"""Names that may be calls without brackets are found by scope: what the statement itself defines,
or a table in sight has as a column, is none of them.
"""

from __future__ import annotations

import pytest

from tidegate.sql.bare_names import bare_names

COLUMNS = {
    ("", "T"): {"A", "B", "ID", "odd"},
    ("", "S"): {"C", "D", "ID"},
    ("SCH", "T"): {"A"},
    ("", "DUAL"): {"DUMMY"},
}

READ = """
SELECT a, t.b, "odd", sysdate, user, rownum, level, t.rowid, current_date FROM t
SELECT x.a FROM t x JOIN s y ON x.id = y.id AND c = 1 WHERE y.d IN (SELECT b FROM t)
SELECT 1 AS f FROM dual ORDER BY f
WITH q AS (SELECT a AS f FROM t) SELECT f, q.f FROM q
WITH q (f) AS (SELECT 1 FROM dual UNION ALL SELECT f + 1 FROM q WHERE f < 5) SELECT f FROM q
WITH q ("f") AS (SELECT 1 FROM dual) SELECT "f", q."f" FROM q
SELECT z.f, z.a FROM (SELECT b AS f, t.* FROM t) z WHERE f > 1
SELECT (SELECT max(c) FROM s WHERE s.id = t.id AND d = a) FROM t
SELECT l.f FROM t CROSS JOIN LATERAL (SELECT t.a AS f FROM dual) l
SELECT count(*) FROM t JOIN s USING (id) LEFT JOIN (t u JOIN s v ON u.id = v.id) ON u.a = c
SELECT a FROM t UNION SELECT c FROM s ORDER BY a
SELECT sch.t.a FROM sch.t
SELECT x.a.attribute FROM t x
SELECT a FROM t START WITH b = 1 CONNECT BY PRIOR id = b ORDER SIBLINGS BY a
SELECT sum(a) OVER (PARTITION BY b ORDER BY id) FROM t GROUP BY id HAVING max(a) > 1
SELECT DATE '2020-01-01' + INTERVAL '1' DAY, EXTRACT(YEAR FROM a), CAST(b AS INTEGER) FROM t
SELECT one FROM t PIVOT (sum(a) FOR b IN (1 AS one))
SELECT k, v, id FROM t UNPIVOT (v FOR k IN (a, b))
SELECT k, v, w, id FROM t UNPIVOT ((v, w) FOR k IN ((a, b) AS 'both'))
SELECT x, k, v FROM (SELECT a AS x, b, id FROM t) UNPIVOT (v FOR k IN (b, id))
INSERT INTO t (a, b) SELECT c, d FROM s
INSERT INTO t VALUES (1, :x, DEFAULT)
UPDATE t SET a = b, b = (SELECT max(c) FROM s WHERE s.id = t.id) WHERE id = 1
DELETE FROM t x WHERE x.a = b
MERGE INTO t USING s ON (t.id = s.id) WHEN MATCHED THEN UPDATE SET a = c WHEN NOT MATCHED THEN \
INSERT (a) VALUES (d)
CREATE TABLE n AS SELECT a FROM t
CREATE TABLE n (f integer DEFAULT 1, CHECK (f > 0))
"""

CALLS = """
SELECT f FROM dual
SELECT pkg.f FROM t
SELECT sch.f FROM t
SELECT sch.pkg.f FROM t
SELECT a.b.c.d.f FROM s
SELECT "a" FROM t
SELECT "F" FROM t
SELECT "t".a FROM t
SELECT 1 + f FROM t
SELECT a FROM t WHERE f = 1
SELECT a FROM t ORDER BY f
SELECT a FROM t ORDER BY f + a
SELECT a FROM t GROUP BY f
SELECT a AS f FROM t GROUP BY f
SELECT max(a) FROM t HAVING f > 1
SELECT 1 AS f, f AS g FROM t
SELECT f AS f FROM t ORDER BY f
SELECT a FROM t JOIN s ON f = 1
SELECT 1 FROM t, s JOIN dual ON a = 1
SELECT 1 FROM t JOIN dual ON c = 1 JOIN s ON 1 = 1
SELECT 1 FROM t, (SELECT a FROM dual) x
SELECT (SELECT 1 FROM (SELECT a FROM dual)) FROM t
WITH q AS (SELECT f FROM dual) SELECT 1 FROM q
WITH q AS (SELECT a AS g FROM t) SELECT f FROM q
WITH q AS (SELECT f AS a FROM dual) SELECT a FROM q
SELECT z.f FROM (SELECT f FROM dual) z
SELECT q.f FROM t q
SELECT s.a FROM t, s
SELECT t.a FROM t q
SELECT CASE WHEN f = 1 THEN 1 END FROM t
SELECT coalesce(a, f) FROM t
SELECT a FROM t UNION SELECT f FROM dual
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM s WHERE f = 1)
SELECT a FROM t WHERE (a, b) IN (SELECT c, f FROM s)
SELECT a FROM t FETCH FIRST f ROWS ONLY
SELECT a FROM t OFFSET f ROWS
SELECT a FROM t START WITH f = 1 CONNECT BY PRIOR a = b
SELECT sum(a) OVER (PARTITION BY f) FROM t
SELECT sum(a) OVER (ORDER BY f) FROM t
SELECT INTERVAL f DAY FROM t
SELECT a FROM t PIVOT (sum(a) FOR b IN (1 AS one))
SELECT one FROM t PIVOT (sum(a) FOR b IN (f AS one))
SELECT a FROM t UNPIVOT (v FOR k IN (a, b))
SELECT f FROM t UNPIVOT (v FOR k IN (a, b)) f
SELECT x FROM (SELECT a AS x, b FROM t) UNPIVOT (v FOR k IN (x, b))
SELECT current_time FROM t
SELECT current_user FROM t
SELECT localtime FROM t
SELECT sysdat FROM t
SELECT "SYSDATE" FROM t
INSERT INTO t VALUES (f)
INSERT INTO t VALUES (a)
INSERT INTO t (a) SELECT f FROM s
INSERT INTO t (a) SELECT a FROM s
UPDATE t SET a = f
UPDATE t SET a = 1 WHERE f = 1
UPDATE t SET (a, b) = (SELECT f, 1 FROM dual)
DELETE FROM t WHERE f = 1
MERGE INTO t USING s ON (f = 1) WHEN MATCHED THEN UPDATE SET a = 1
MERGE INTO t USING s ON (t.id = s.id) WHEN MATCHED THEN UPDATE SET a = f
MERGE INTO t USING s ON (t.id = s.id) WHEN NOT MATCHED THEN INSERT (a) VALUES (f)
CREATE TABLE n AS SELECT f FROM dual
CREATE VIEW n AS (SELECT f FROM dual)
VALUES (f)
"""


def unexplained(text: str, dialect: str = "oracle") -> list[str]:
    """The names that are no column of the tables in sight."""
    return [
        each.shown
        for each in bare_names(text, dialect)
        if not any(each.name in COLUMNS[table] for table in each.tables)
    ]


@pytest.mark.parametrize("text", READ.strip().splitlines())
def test_what_the_statement_or_a_table_in_sight_defines_is_no_call(text: str) -> None:
    assert unexplained(text) == []


@pytest.mark.parametrize("text", CALLS.strip().splitlines())
def test_what_nothing_in_sight_defines_may_be_a_call(text: str) -> None:
    assert unexplained(text) != []


def test_words_that_oracle_lacks_stand_for_no_call_elsewhere() -> None:
    text = "SELECT current_time, current_user, localtime FROM t"
    assert unexplained(text, "default") == []
