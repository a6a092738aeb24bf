"""What a text for Spark may do: Java, programs and files are out of reach, and what Spark reads
otherwise than other databases is refused."""

from __future__ import annotations

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

REACHING_OUT = [
    "SELECT reflect('java.lang.System', 'exit', 1)",
    "SELECT `java_method`('java.lang.System', 'exit', 1)",
    "SELECT try_reflect('java.lang.System', 'exit', 1)",
    "SELECT TRANSFORM (a) USING 'cat' FROM t",
    "SELECT * FROM (MAP a, b USING 'cat' AS x FROM t) q",
    "SELECT * FROM (FROM t REDUCE a USING 'cat' AS (x))",
    "WITH q AS (MAP a USING 'cat' FROM t) SELECT * FROM q",
    "FROM t SELECT TRANSFORM (a) USING 'cat'",
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM `PARQUET`.`/data`",
    "SELECT (SELECT 1 FROM spark_catalog.csv.`/data`)",
    "SELECT * FROM IDENTIFIER('csv.' || '`/etc/passwd`')",
    "SELECT input_file_name() FROM t",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1",
    "INSERT INTO t SELECT 1",
    "CREATE TABLE t USING csv LOCATION '/etc' AS SELECT 1",
    "SET spark.sql.runSQLOnFiles=true",
    "ADD JAR '/tmp/x.jar'",
    "EXECUTE IMMEDIATE 'DROP TABLE t'",
]
READ_DIFFERENTLY = [
    "SELECT 1 -- \\\n' , 2",  # the next line is in the comment
    'SELECT R"\\" , 1 -- "',  # a raw string ends here
    "SELECT R'\\' , 1 -- '",
    "SELECT 'a\\' OR 1=1 -- '",
    "SELECT /* a /* b */ 1 */ 2",
    "SELECT ${env:HOME}",
    "SELECT $$a$$",
]
READS = [
    "SELECT count(*), sum(amount) FROM lake.orders o JOIN b ON o.a = b.a GROUP BY 1 LIMIT 5",
    "SELECT filter(a, x -> x > 1), a[0], s.b, m['k'] FROM `my table`",
    "SELECT \"it's\", 'a''b', X'1c', x::int, 7 DIV 2, a <=> b FROM t TABLESAMPLE (5 PERCENT)",
    "SELECT /*+ BROADCAST(t) */ * FROM t LATERAL VIEW explode(b) x AS y",
    "SELECT percentile_approx(x, 0.5) FILTER (WHERE y > 1) FROM t GROUP BY ROLLUP (a, b)",
    "SELECT row_number() OVER (PARTITION BY a ORDER BY b) FROM t WHERE d > DATE '2026-01-01'",
    "SHOW TABLES",
    "DESCRIBE t",
]


@pytest.mark.parametrize("text", REACHING_OUT)
def test_java_programs_files_and_changes_are_out_of_reach(text: str) -> None:
    assert judge(text, "spark").effect not in (Effect.READ, Effect.WRITE, Effect.DESTRUCTIVE)


@pytest.mark.parametrize("text", READ_DIFFERENTLY)
def test_what_spark_reads_otherwise_is_not_read(text: str) -> None:
    assert judge(text, "spark").effect is Effect.UNKNOWN


@pytest.mark.parametrize("text", READS)
def test_reads_are_known(text: str) -> None:
    assert judge(text, "spark").effect is Effect.READ
