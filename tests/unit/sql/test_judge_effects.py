"""What statements would do, and what a judgement tells of them."""

from __future__ import annotations

import pytest

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

READ, SESSION, WRITE = Effect.READ, Effect.SESSION, Effect.WRITE
DESTRUCTIVE, ADMIN, UNKNOWN = Effect.DESTRUCTIVE, Effect.ADMIN, Effect.UNKNOWN


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("SELECT * FROM dropped_items", READ),
        ("SELECT 'drop table'", READ),
        ('SELECT "delete" FROM t', READ),
        ("INSERT INTO t(a) VALUES (1)", WRITE),
        ("UPDATE t SET a = 1 WHERE b = 2", WRITE),
        ("DELETE FROM t WHERE a = 1", WRITE),
        ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", WRITE),
        ("WITH x AS (SELECT 1) DELETE FROM t", WRITE),
        ("SELECT * INTO u FROM t", WRITE),
        ("SELECT * FROM t FOR UPDATE", WRITE),
        ("SELECT * FROM t FOR KEY SHARE", WRITE),
        ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", WRITE),
        ("CREATE TABLE t (a int PRIMARY KEY, b varchar(10) CHECK (b <> ''))", WRITE),
        ("CREATE INDEX i ON t (lower(b))", WRITE),
        ("CREATE VIEW v AS SELECT 1", WRITE),
        ("ALTER TABLE t ADD c text DEFAULT 'x drop y'", WRITE),
        ("ALTER TABLE t\nDROP\tCOLUMN c", DESTRUCTIVE),
        ("DROP TABLE t", DESTRUCTIVE),
        ("TRUNCATE t", DESTRUCTIVE),
        ("DROP ROLE x", ADMIN),
        ("ALTER ROLE x SUPERUSER", ADMIN),
        ("ALTER TABLE t OWNER TO x", ADMIN),
        ("GRANT ALL ON t TO x", ADMIN),
        ("COPY t TO '/tmp/x'", ADMIN),
        ("VACUUM", ADMIN),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", ADMIN),
        ("CREATE EXTENSION dblink", ADMIN),
        ("SET search_path = x", SESSION),
        ("BEGIN", SESSION),
        ("COMMIT", SESSION),
        ("LISTEN x", SESSION),
        ("LOCK TABLE t", SESSION),
        ("DO $$ BEGIN END $$", UNKNOWN),
        ("CALL p()", ADMIN),
        ("CALL pg_catalog.p()", ADMIN),
        ("EXECUTE p", UNKNOWN),
        ("FROBNICATE t", UNKNOWN),
        ("SELECT pg_read_file('/etc/passwd')", UNKNOWN),
        ("SELECT set_config('a', 'b', false)", UNKNOWN),
        ("SELECT * FROM pg_authid", ADMIN),
        ("TABLE t", READ),
        ("VALUES (1), (2)", READ),
        ("SHOW search_path", READ),
    ],
)
def test_a_statement_has_its_effect(text: str, effect: Effect) -> None:
    assert judge(text, "postgres").effect is effect


@pytest.mark.parametrize(
    ("dialect", "text", "effect"),
    [
        ("postgres", "EXPLAIN DELETE FROM t", READ),
        ("postgres", "EXPLAIN (FORMAT json, VERBOSE) INSERT INTO t VALUES (1)", READ),
        ("postgres", "EXPLAIN ANALYZE DELETE FROM t", WRITE),
        ("postgres", "EXPLAIN (VERBOSE, ANALYZE) DELETE FROM t", WRITE),
        ("postgres", "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1", WRITE),
        ("postgres", "EXPLAIN SELECT pg_read_file('x')", UNKNOWN),
        ("sqlite", "EXPLAIN QUERY PLAN DELETE FROM t", READ),
        ("sqlite", "EXPLAIN PRAGMA journal_mode = WAL", ADMIN),
        ("mysql", "EXPLAIN FORMAT=JSON DELETE FROM t", READ),
        ("mysql", "ANALYZE FORMAT=JSON DELETE FROM t", WRITE),
        ("mysql", "DESCRIBE t", READ),
        ("duckdb", "EXPLAIN (ANALYZE off) DELETE FROM t", WRITE),
        ("duckdb", "SUMMARIZE t", READ),
    ],
)
def test_explain_takes_the_effect_of_what_it_runs(dialect: str, text: str, effect: Effect) -> None:
    assert judge(text, dialect).effect is effect


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("PRAGMA table_info(t)", READ),
        ("PRAGMA main.table_info('t')", READ),
        ("PRAGMA user_version", READ),
        ("PRAGMA user_version = 5", ADMIN),
        ("PRAGMA user_version(5)", ADMIN),
        ("PRAGMA [user_version] = 5", ADMIN),
        ("PRAGMA optimize", ADMIN),
        ("PRAGMA writable_schema = 1", ADMIN),
        ("ATTACH 'x.db' AS x", ADMIN),
        ("VACUUM INTO 'x.db'", ADMIN),
        ("CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')", ADMIN),
        ("SELECT * FROM pragma_table_info('t')", READ),
        ("SELECT * FROM pragma_optimize", ADMIN),
    ],
)
def test_sqlite_reads_only_by_listed_pragmas(text: str, effect: Effect) -> None:
    assert judge(text, "sqlite").effect is effect


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM 'x.csv'",
        'SELECT * FROM "x.parquet"',
        "SELECT * FROM data.csv",
        "FROM '/etc/passwd'",
        "SELECT * FROM t, '/etc/passwd'",
        "PIVOT '/tmp/x' ON a",
        "DESCRIBE 'x.csv'",
    ],
)
def test_duckdb_reads_no_file_that_stands_for_a_table(text: str) -> None:
    judgement = judge(text, "duckdb")
    assert (judgement.effect, judgement.rule) == (ADMIN, "table.file")


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "SELECT ('/etc/passwd'::text).pg_read_file"),
        ("postgres", "SELECT f.pg_read_file FROM unnest(ARRAY['/etc/passwd']) f"),
        ("postgres", "SELECT \"pg_read_file\"('x')"),
        ("postgres", "SELECT pg_read_file/* x */\n('x')"),
        ("postgres", "SELECT DISTINCT ON (1) pg_read_file('x')"),
        ("postgres", "SELECT public.lower('x')"),
        ("postgres", "SELECT \"LOWER\"('x')"),
        ("postgres", "SELECT stuff('a', 1, 1, 'b')"),
        ("postgres", "WITH write_fn(a) AS (SELECT 1) SELECT write_fn() FROM write_fn"),
        ("sqlite", "SELECT [load_extension]('x')"),
        ("sqlite", "SELECT 'load_extension'('x')"),
        ("mysql", "SELECT `load_file`('x')"),
        ("mysql", "SELECT shop.sleep(1)"),
        ("mysql", "SELECT last_insert_id(5)"),
        ("duckdb", "SELECT 'x'.read_text()"),
        ("duckdb", "SELECT * FROM query_table('x.csv')"),
        ("oracle", "SELECT s.nextval FROM dual"),
    ],
)
def test_a_call_is_seen_however_it_is_written(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is UNKNOWN


def test_names_with_columns_are_no_calls() -> None:
    for text in (
        "WITH totals(a, b) AS (SELECT 1, 2) SELECT * FROM totals",
        "SELECT * FROM (VALUES (1)) AS v(x)",
        "SELECT * FROM generate_series(1, 3) AS g(i)",
        "EXPLAIN INSERT INTO t (a, b) VALUES (1, 2)",
    ):
        assert judge(text, "postgres").effect is READ, text


def test_a_judgement_names_tables_and_functions() -> None:
    text = 'WITH c AS (SELECT * FROM "Order Lines") SELECT count(*) FROM c, shop.b WHERE max(1)'
    judgement = judge(text, "sqlite")
    assert set(judgement.tables) == {"Order Lines", "shop.b"}
    assert set(judgement.functions) == {"count", "max"}


@pytest.mark.parametrize(
    ("text", "unqualified"),
    [
        ("DELETE FROM t", True),
        ("UPDATE t SET a = 1", True),
        ("DELETE FROM t WHERE a = 1", False),
        ("UPDATE t SET a = 1 WHERE b = 1", False),
        ("INSERT INTO t(a) VALUES (1)", False),
        ("WITH x AS (SELECT 1) DELETE FROM t", True),
    ],
)
def test_a_change_of_every_row_is_marked(text: str, unqualified: bool) -> None:
    assert judge(text, "sqlite").unqualified is unqualified


def test_a_refusal_says_why_and_what_to_do() -> None:
    judgement = judge("SELECT load_extension('x')", "sqlite")
    assert judgement.code == Code.SQL_FUNCTION.value
    assert "load_extension" in judgement.reason
    assert judgement.hint


def test_an_unknown_dialect_gets_the_conservative_tables() -> None:
    assert judge("SELECT a FROM t WHERE b = 'x'", "no such dialect").effect is READ
    assert judge("SELECT 1\nSHUTDOWN", "no such dialect").effect is UNKNOWN
    assert judge("SELECT xmltype('x') FROM t", "no such dialect").effect is UNKNOWN


def test_a_repeated_text_is_judged_once() -> None:
    text = "SELECT 'judged once' FROM t"
    assert judge(text, "sqlite") is judge(text, "sqlite")


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT * FROM a, s.b, c.s.b x", {"a", "s.b", "c.s.b"}),
        ("WITH X AS (SELECT * FROM a) SELECT * FROM x", {"a"}),
        ('WITH x AS (SELECT 1) SELECT * FROM "X"', {"X"}),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", {"a"}),
        ("WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) SELECT * FROM a", set()),
        ("WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM b", {"a"}),
        ("SELECT * FROM a WHERE x IN (WITH a AS (SELECT 1 x) SELECT x FROM a)", {"a"}),
        ("WITH a AS (SELECT 1) DELETE FROM a", {"a"}),
        ("WITH a AS (SELECT 1) INSERT INTO a (x) SELECT * FROM a", {"a"}),
        ("SELECT * FROM t JOIN absent ON NULL", {"t", "absent"}),
        ("SELECT * FROM t JOIN error ON error", {"t", "error"}),
        ("SELECT * FROM omit quotes, without wrapper", {"omit", "without"}),
        ("SELECT * FROM t, generate_series(1, 2), jsonb_to_recordset('[]') AS x(a int)", {"t"}),
    ],
)
def test_the_tables_are_those_of_the_database(text: str, tables: set[str]) -> None:
    assert set(judge(text, "postgres").tables) == tables


@pytest.mark.needs("duckdb")
def test_the_table_that_a_function_reads_by_name_is_reported() -> None:
    assert judge("FROM query_table('t')", "duckdb").tables == ("t",)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "SELECT interval '1 2:03:04' day to second(2), a::numeric(5,-2) FROM t"),
        ("postgres", "SELECT macaddr '08:00:2b:01:02:03', a AT TIME ZONE 'UTC', b AT LOCAL FROM t"),
        ("postgres", "SELECT * FROM a JOIN b USING (id) AS j ORDER BY x USING >"),
        ("mysql", "SELECT GROUP_CONCAT(a SEPARATOR ',' LIMIT 3), {d '2026-01-01'} FROM t"),
        ("sqlite", "SELECT CAST(a AS UNSIGNED BIG INT) FROM generate_series(1)"),
        ("duckdb", "UNPIVOT t ON a, b INTO NAME x VALUE y"),
    ],
)
def test_what_the_parser_does_not_know_is_said_otherwise(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is READ


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "SELECT interval '1' second(lo_import('x'))"),
        ("postgres", "SELECT a::numeric(5, lo_import('x')) FROM t"),
        ("postgres", "SELECT * FROM a JOIN b USING (lo_import('x')) AS j"),
        ("postgres", "SELECT a AT LOCAL FROM t FOR UPDATE"),
        ("postgres", "SELECT * FROM describe t"),
        ("postgres", "SELECT 'x' SIMILAR TO second(5)"),
        ("postgres", "SELECT 2 * exclude(5)"),
        ("duckdb", "SELECT a * rename(5) FROM t"),
        ("postgres", "SELECT xmlparse(document lo_get(1))"),
        ("duckdb", "FROM (SUMMARIZE TABLE 'x.csv')"),
        ("duckdb", "SELECT 1 INTO NAME x"),
        ("mysql", "SELECT GROUP_CONCAT(a SEPARATOR ',' LIMIT 3) INTO OUTFILE 'x' FROM t"),
    ],
)
def test_what_is_said_otherwise_hides_nothing(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is not READ


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "duckdb"])
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (id, a) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET a = excluded.a",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO NOTHING",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) WHERE a > 1 DO NOTHING RETURNING id",
        "WITH w AS (SELECT 1 AS id) INSERT INTO t SELECT id FROM w WHERE true"
        " ON CONFLICT (id) DO NOTHING",
    ],
)
def test_an_insert_that_says_what_to_do_on_conflict_is_a_write(dialect: str, sql: str) -> None:
    assert judge(sql, dialect).effect is Effect.WRITE


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "duckdb"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t JOIN u ON conflict(t.id)",
        "SELECT * FROM t JOIN u ON conflict (t.id) WHERE u.id > 1",
        "INSERT INTO t SELECT u.id FROM u JOIN v ON conflict(v.id) WHERE u.id > 1",
        "INSERT INTO t SELECT u.id FROM u JOIN v ON conflict(v.id) WHERE u.id > 1"
        " ON CONFLICT (id) DO NOTHING",
        "SELECT conflict(1)",
    ],
)
def test_a_call_of_a_function_named_conflict_is_refused(dialect: str, sql: str) -> None:
    assert judge(sql, dialect).effect is Effect.UNKNOWN


@pytest.mark.parametrize(
    ("dialect", "text", "effect"),
    [
        ("postgres", "COMMENT ON TABLE t IS 'x'", WRITE),
        ("postgres", "REINDEX TABLE t", WRITE),
        ("postgres", "CLUSTER t", WRITE),
        ("postgres", "REFRESH MATERIALIZED VIEW v", WRITE),
        ("postgres", "ANALYZE t", WRITE),
        ("postgres", "SHOW search_path", READ),
        ("postgres", "LISTEN x", SESSION),
        ("sqlite", "ALTER TABLE t ADD COLUMN b", WRITE),
        ("sqlite", "ANALYZE t", WRITE),
        ("sqlite", "REINDEX t", WRITE),
        ("sqlite", "ATTACH 'x' AS y", ADMIN),
        ("sqlite", "SAVEPOINT x", SESSION),
        ("sqlite", "PRAGMA table_info(t)", READ),
        ("sqlite", "PRAGMA", ADMIN),
        ("sqlite", "EXPLAIN SELECT 1", READ),
        ("sqlite", "SELECT name FROM main.sqlite_schema", READ),
        ("duckdb", "EXPLAIN SELECT 1", READ),
        ("duckdb", "DESCRIBE t", READ),
        ("duckdb", "COMMENT ON TABLE t IS 'x'", WRITE),
        ("duckdb", "SUMMARIZE t", READ),
        ("duckdb", "CHECKPOINT", ADMIN),
        ("default", "SELECT id, CURRENT TIMESTAMP FROM t", READ),
    ],
)
def test_each_beginning_of_a_dialect_has_its_effect(
    dialect: str, text: str, effect: Effect
) -> None:
    assert judge(text, dialect).effect is effect


@pytest.mark.parametrize(
    ("value", "effect"),
    [
        ("'integrity-check'", WRITE),
        ("'rebuild'", WRITE),
        ("'delete-all'", DESTRUCTIVE),
        ("?", DESTRUCTIVE),
        ("1", DESTRUCTIVE),
    ],
)
def test_a_command_to_an_index_for_words_is_destructive_unless_it_keeps_all(
    value: str, effect: Effect
) -> None:
    assert judge(f"INSERT INTO f (f) VALUES ({value})", "sqlite").effect is effect
    assert judge(f"INSERT INTO f (g) VALUES ({value})", "sqlite").effect is WRITE


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql", "duckdb"])
@pytest.mark.parametrize(("depth", "effect"), [(5, READ), (16, UNKNOWN)])
def test_queries_that_double_each_other_are_read_up_to_a_bound(
    dialect: str, depth: int, effect: Effect
) -> None:
    text = "SELECT a AS b, a AS c FROM t"
    for number in range(depth):
        text = f"SELECT b + c AS b, b - c AS c FROM ({text}) AS s{number}"
    assert judge(text, dialect).effect is effect


@pytest.mark.parametrize("name", ["a/b", "a\\b", "s3:x", "x*", "x?", "x[1]", "t.csv", "t.duckdb"])
def test_a_table_of_duckdb_whose_name_may_be_a_file_is_not_read(name: str) -> None:
    assert judge(f'SELECT * FROM "{name}"', "duckdb").effect is not READ
    assert judge('SELECT * FROM "t"', "duckdb").effect is READ
