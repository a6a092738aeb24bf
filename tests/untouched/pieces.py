"""The words that statements are made of, by dialect. Data only."""

from __future__ import annotations

from typing import NamedTuple


class Pieces(NamedTuple):
    """`{}` stands for a statement in `wraps`, for an expression in `frames`."""

    columns: tuple[str, ...]
    tables: tuple[str, ...]
    operators: tuple[str, ...]
    frames: tuple[str, ...]
    wraps: tuple[str, ...]
    explains: tuple[str, ...]
    tails: tuple[str, ...]
    writes: tuple[str, ...]
    reads: tuple[str, ...]


LITERALS = ("1", "0", "2.5", "'x'", "''", "NULL", "'2026-01-02'", "'{\"a\": 1}'", "'a''b'", "-1")
FRAMES = (
    *(
        "SELECT {}",
        "SELECT {} AS q",
        "SELECT {} FROM t",
        "SELECT * FROM {}",
        "SELECT * FROM {} AS q",
    ),
    *("SELECT a FROM t WHERE {} IS NULL", "SELECT count(*) FROM t WHERE ({}) IS NOT NULL"),
    *("SELECT a FROM t ORDER BY {}", "SELECT count(*), {} FROM t GROUP BY 2", "VALUES ({})"),
    *("SELECT CASE WHEN a > 0 THEN {} END FROM t", "SELECT max({}) FROM t", "SELECT {}, {} FROM u"),
    *("WITH q AS (SELECT {} AS z FROM t) SELECT * FROM q", "SELECT (SELECT {} FROM t LIMIT 1)"),
    *("SELECT a FROM t GROUP BY a HAVING count({}) > 0", "SELECT a FROM t LIMIT {}"),
    *("SELECT t.a FROM t JOIN u ON {} = 1", "SELECT DISTINCT {} FROM t", "SELECT coalesce({}, {})"),
    *("SELECT a FROM t WHERE a IN (SELECT {} FROM u)", "SELECT sum(a) OVER (ORDER BY {}) FROM t"),
)
WRAPS = (
    *("({})", "({});", "SELECT * FROM ({}) AS q", "SELECT ({})", "WITH q AS ({}) SELECT * FROM q"),
    *("{} UNION ALL {}", "SELECT 1 UNION ALL ({})", "SELECT EXISTS ({})", "{};", ";{}", "{};;"),
    *("SELECT a FROM t WHERE a IN ({})", "WITH q AS (SELECT 1) {}", "{} LIMIT 3", "{} -- x"),
    *("SELECT count(*) FROM ({}) AS q WHERE 1 = 1", "/* x */ {} /* y */", "{}\n-- ; DELETE FROM u"),
    *("WITH RECURSIVE q AS ({}) SELECT * FROM q", "SELECT * FROM t, ({}) AS q", "{} UNION {}"),
    *("SELECT (SELECT count(*) FROM ({}) AS q) FROM u", "SELECT 1 EXCEPT {}", "((({})))"),
)
WRITES = (
    *("DELETE FROM u", "UPDATE u SET a = 9", "INSERT INTO u (id) VALUES (9)", "DROP TABLE u"),
    *("CREATE TABLE z (a INT)", "TRUNCATE TABLE u", "ALTER TABLE u ADD COLUMN q INT", "COMMIT"),
    *("CREATE VIEW zz AS SELECT 1", "INSERT INTO u (id) SELECT 9", "DROP VIEW v", "BEGIN"),
    *("CREATE TEMPORARY TABLE z (a INT)", "CREATE INDEX zi ON u (a)", "GRANT ALL ON u TO PUBLIC"),
    *("DELETE FROM u RETURNING id", "SAVEPOINT q", "ROLLBACK", "DROP INDEX ix", "ANALYZE"),
)

_POSTGRES = Pieces(
    columns=tuple(["a", "b", "c", "d", "x", "y", "z", "id", "name", "data", "ts", "arr", "r", "embedding", "t.*", "geom", "q", "j", "k", "o", "g", "h", "i"]),
    tables=("t", "u", "w", "v", "users", "mv", "pg_class", "pg_proc", "information_schema.tables",
            "sly", "behind", "moving", "prog", "guarded", "pg_catalog.pg_settings", "generate_series(1, 3)"),
    operators=tuple(["+", "-", "*", "/", "%", "=", "<>", "<", ">", "<=", ">=", "||", "->", "->>", "@>", "<@", "?", "?|", "?&", "&&", "<->", "<=>", "~", "!~", "~*", "#", "<<", ">>", "^", "&", "|", "@@", "LIKE", "ILIKE", "AND", "OR", "IN", "SIMILAR~TO", "OPERATOR(pg_catalog.+)", "===", "#>", "-|-"]),
    frames=(*FRAMES, "SELECT * FROM ROWS FROM ({}) AS q", "SELECT * FROM t, LATERAL {} AS q",
            "SELECT * FROM {} WITH ORDINALITY", "SELECT ({}).*", "SELECT ARRAY(SELECT {} FROM t)",
            "SELECT {} OVER (PARTITION BY a) FROM t", "SELECT ({})::text FROM t",
            "SELECT a FROM t TABLESAMPLE BERNOULLI ({})", "SELECT {} FILTER (WHERE true) FROM t",
            "SELECT CAST({} AS odd)", "SELECT {} WITHIN GROUP (ORDER BY a) FROM t"),
    wraps=(*WRAPS, "WITH q AS MATERIALIZED ({}) TABLE q", "SELECT * FROM LATERAL ({}) AS q",
           "SELECT ARRAY({})", "DECLARE q CURSOR FOR {}", "PREPARE q AS {}", "COPY ({}) TO STDOUT",
           "CREATE TABLE z AS {}", "DO $$ BEGIN PERFORM ({}); END $$", "SELECT $${}$$",
           "CREATE VIEW zz AS {}", "SELECT query_to_xml($${}$$, true, false, '')"),
    explains=("EXPLAIN {}", "EXPLAIN ANALYZE {}", "EXPLAIN (ANALYZE, COSTS off) {}",
              "EXPLAIN (ANALYZE false) {}", "EXPLAIN VERBOSE {}", "EXPLAIN ANALYZE VERBOSE {}",
              "EXPLAIN (FORMAT JSON, ANALYZE on) {}", "EXPLAIN (GENERIC_PLAN) {}",
              "EXPLAIN (SERIALIZE, ANALYZE) {}", "EXPLAIN (ANALYZE, WAL) {}", "EXPLAIN EXPLAIN {}",
              "EXPLAIN (VERBOSE, SETTINGS) {}", "EXPLAIN (\"analyze\") {}"),
    tails=("FOR UPDATE", "FOR SHARE", "FOR NO KEY UPDATE SKIP LOCKED", "INTO z", "FOR KEY SHARE OF t",
           "OFFSET 1", "FETCH FIRST 1 ROW ONLY", "INTO TEMP z", "; SELECT 1", "WINDOW w AS ()"),
    writes=(*WRITES, "SELECT 1 INTO z", "SELECT nextval('s')", "SELECT setval('s', 9)",
            "SELECT spy()", "SELECT * FROM sly", "LISTEN q", "NOTIFY q", "LOCK TABLE u",
            "WITH g AS (DELETE FROM u RETURNING *) SELECT * FROM g", "SELECT pg_advisory_lock(1)",
            "COPY u TO '{folder}/out'", "COPY u TO PROGRAM 'touch {folder}/ran'", "CALL pr()",
            "MERGE INTO u USING t ON false WHEN NOT MATCHED THEN INSERT VALUES (9)", "VACUUM",
            "SELECT lo_create(0)", "SELECT lo_export(4711, '{folder}/lo')", "DO $$ BEGIN END $$",
            "REFRESH MATERIALIZED VIEW mv", "SET work_mem = '1MB'", "ALTER SYSTEM SET work_mem = 99",
            "SELECT set_config('work_mem', '99', false)", "REINDEX TABLE u", "CREATE ROLE mallory",
            "COMMENT ON TABLE u IS 'x'", "SELECT * FROM dblink('', 'DELETE FROM u') AS q (a int)",
            "SELECT pg_create_physical_replication_slot('q')", "SELECT pg_notify('q', 'x')",
            "SELECT pg_logical_emit_message(true, 'q', 'x')", "EXECUTE q", "FETCH 1 FROM q",
            "SELECT ('s'::regclass).nextval", "TABLE prog", "SELECT * FROM guarded"),
    reads=("SELECT b, count(*) FROM t GROUP BY b ORDER BY 2", "TABLE t", "SHOW work_mem",
           "SELECT data->'a', data ? 'x' FROM t", "SELECT * FROM t NATURAL JOIN u",
           "SELECT a, rank() OVER (ORDER BY x) FROM t", "SELECT unnest(arr) FROM t",
           "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) TABLE n",
           "SELECT * FROM pg_locks", "SELECT * FROM pg_stat_activity", "SHOW ALL",
           "SELECT * FROM json_to_recordset('[{{\"a\":1}}]') AS q (a int)", "SELECT * FROM v",
           "SELECT relname FROM pg_class WHERE relkind = 'r'", "SELECT E'a\\'b', $q$ ; $q$"),
)  # fmt: skip

_MYSQL = Pieces(
    columns=tuple(["a", "b", "c", "d", "e", "name", "x", "y", "j", "t.a", "@@version", "@x", "`a`", '"a"', "@@global.port"]),
    tables=("t", "u", "v", "users", "parted", "old", "loose", "sly", "behind", "moving", "s",
            "locking", "information_schema.tables", "mysql.proc", "`odd name`", "house.t", "dual"),
    operators=tuple(["+", "-", "*", "/", "%", "=", "<>", "<", ">", "<=>", "||", "&&", "->", "->>", "&", "|", "^", "<<", ">>", "DIV", "MOD", "XOR", "LIKE", "REGEXP", "RLIKE", "AND", "OR", ":=", "IS", "SOUNDS~LIKE"]),
    frames=(*FRAMES, "DO {}", "SELECT SQL_NO_CACHE {} FROM t", "SELECT @x := {}", "SET @x = {}",
            "SELECT JSON_EXTRACT({}, '$')", "SELECT * FROM t PROCEDURE ANALYSE({})",
            "SELECT {} FROM t GROUP BY a WITH ROLLUP", "SELECT CONVERT({} USING utf8mb4)", "CALL {}",
            "SELECT house.{}", "SELECT sys.{}", "SELECT `{}`"),
    wraps=(*WRAPS, "SELECT 1 /*!50000 UNION {} */", "/*!50000 {} */", "/*! {} */", "{} /*! */",
           "/*M! {} */", "/*M!100000 {} */", "/*!999999 {} */", "/*+ {} */ SELECT 1", "{} # x",
           "PREPARE q FROM '{}'", "EXECUTE IMMEDIATE '{}'", "SET STATEMENT lock_wait_timeout=1 FOR {}",
           "CREATE TABLE z AS {}", "CREATE VIEW zz AS {}", "BEGIN NOT ATOMIC {}; END", "SELECT \"{}\"",
           "SELECT 1 -- \n UNION {}", "SELECT 1 --1 \n {}", "INSERT INTO u {}", "DO ({})", "{} --"),
    explains=("EXPLAIN {}", "EXPLAIN EXTENDED {}", "EXPLAIN FORMAT=JSON {}", "ANALYZE {}",
              "ANALYZE FORMAT=JSON {}", "DESCRIBE {}", "DESC {}", "EXPLAIN PARTITIONS {}",
              "EXPLAIN ANALYZE {}", "ANALYZE FORMAT=TRADITIONAL {}", "EXPLAIN EXPLAIN {}"),
    tails=("FOR UPDATE", "LOCK IN SHARE MODE", "INTO OUTFILE 'out'", "INTO DUMPFILE 'out'",
           "INTO @x", "PROCEDURE ANALYSE()", "FOR UPDATE NOWAIT", "LIMIT 1, 2", "FOR SYSTEM_TIME ALL",
           "LIMIT ROWS EXAMINED 5", "; SELECT 1", "/*! INTO OUTFILE 'out' */", "INTO z",
           "/*!50000 FOR UPDATE */", "LIMIT 1 INTO @x", "OFFSET 1 ROWS"),
    writes=(*WRITES, "SELECT 1 INTO OUTFILE 'out'", "SELECT NEXTVAL(s)", "SELECT NEXT VALUE FOR s",
            "SELECT SETVAL(s, 9)", "SELECT spy()", "SELECT house.f()", "SELECT GET_LOCK('x', 0)",
            "REPLACE INTO u (id) VALUES (1)", "SELECT 1 INTO DUMPFILE 'out'", "CALL p()",
            "SET GLOBAL max_connections = 98", "SET @x = 1", "SELECT @x := 1", "LOCK TABLES u WRITE",
            "FLUSH TABLES", "HANDLER t OPEN", "USE mysql", "CREATE USER mallory", "OPTIMIZE TABLE u",
            "SELECT LAST_INSERT_ID(9)", "SELECT * FROM sly", "RENAME TABLE u TO zu", "XA START 'q'",
            "LOAD DATA INFILE '/etc/hostname' INTO TABLE b", "SELECT any_value(1)", "KILL 999999",
            "SELECT bin_to_uuid(1)", "ANALYZE TABLE u", "CHECK TABLE u", "SELECT s.nextval",
            "ALTER SEQUENCE s RESTART", "SELECT RELEASE_LOCK('x')", "DELETE HISTORY FROM old",
            "SET PASSWORD = ''", "INSTALL SONAME 'q'", "RESET QUERY CACHE", "SHOW BINLOG EVENTS"),
    reads=("SHOW TABLES", "SHOW FULL COLUMNS FROM t", "SHOW CREATE TABLE t", "DESCRIBE t",
           "SHOW GLOBAL VARIABLES LIKE 'a%'", "SHOW STATUS", "SELECT * FROM t NATURAL JOIN u",
           "SELECT GROUP_CONCAT(b SEPARATOR ';') FROM t", "SELECT * FROM old FOR SYSTEM_TIME ALL",
           "SELECT MATCH(b) AGAINST('one' IN BOOLEAN MODE) FROM t", "SHOW INDEX FROM t",
           "SELECT a, RANK() OVER (ORDER BY x) FROM t", "SHOW PROCESSLIST", "SHOW CREATE VIEW v",
           "SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a INT PATH '$')) AS q",
           "SELECT CAST(a AS CHAR), CONVERT(b, SIGNED) FROM t", "SHOW TRIGGERS", "HELP 'select'",
           "SHOW ENGINE INNODB STATUS", "SHOW CREATE FUNCTION f", "SHOW OPEN TABLES",
           "SHOW PROFILES", "SHOW SLAVE STATUS", "SHOW GRANTS", "SHOW EXPLAIN FOR 1",
           "SHOW CREATE SEQUENCE s", "SHOW STORAGE ENGINES", "SHOW FUNCTION STATUS"),
)  # fmt: skip

_SQLITE = Pieces(
    columns=tuple(["a", "b", "c", "d", "e", "x", "y", "z", "name", "rowid", "t.a", "[a]", "`a`", '"a"', "tags", ":n", "?1", "$v::w", "@b"]),
    tables=("t", "u", "v", "w", "vw", "users", "ft", "rt", "sqlite_schema", "main.t", "pragma_table_info('t')",
            "json_each('[1,2]')", "pragma_user_version", "dbstat", "generate_series(1, 3)", "temp.t"),
    operators=tuple(["+", "-", "*", "/", "%", "=", "==", "<>", "<", ">", "||", "->", "->>", "&", "|", "<<", ">>", "LIKE", "GLOB", "REGEXP", "MATCH", "IS", "IN", "AND", "OR", "IS~NOT", "COLLATE"]),
    frames=(*FRAMES, "SELECT * FROM t INDEXED BY ix WHERE a = {}", "SELECT * FROM ft WHERE ft MATCH {}",
            "PRAGMA {}", "SELECT ft.content, {} FROM ft", "SELECT {} FROM ft WHERE ft MATCH 'words'",
            "SELECT {} OVER () FROM t", "SELECT {} FILTER (WHERE a) FROM t", "ATTACH {} AS q",
            "SELECT * FROM pragma_{}"),
    wraps=(*WRAPS, "CREATE TABLE z AS {}", "CREATE VIEW zz AS {}", "VALUES (({}))",
           "CREATE TRIGGER zt AFTER DELETE ON u BEGIN {}; END", "SELECT '{}'", "INSERT INTO u {}"),
    explains=("EXPLAIN {}", "EXPLAIN QUERY PLAN {}", "explain/**/query/**/plan {}",
              "EXPLAIN EXPLAIN {}", "EXPLAIN QUERY {}", "EXPLAIN QUERY PLAN EXPLAIN {}"),
    tails=("RETURNING a", "LIMIT 1 OFFSET 1", "; SELECT 1", "FOR UPDATE", "INTO z", "; VACUUM",
           "WINDOW w AS ()", "COLLATE nocase", "NOT INDEXED", "; COMMIT"),
    writes=(*WRITES, "PRAGMA user_version = 7", "PRAGMA journal_mode = WAL", "PRAGMA query_only = 1",
            "VACUUM", "VACUUM INTO 'copy.db'", "ATTACH 'other.db' AS other", "REINDEX", "DETACH main",
            "PRAGMA user_version(7)", "REPLACE INTO u VALUES (1, 1, 1, 1)", "PRAGMA optimize",
            "INSERT INTO ft(ft) VALUES ('optimize')", "PRAGMA wal_checkpoint", "CREATE TEMP VIEW z AS SELECT 1",
            "SELECT load_extension('x')", "PRAGMA cache_size = 5", "PRAGMA foreign_keys(1)",
            "UPDATE OR IGNORE u SET a = 1", "WITH q AS (SELECT 1) DELETE FROM u", "PRAGMA main.user_version=7",
            "INSERT INTO vw VALUES (1, 2)", "CREATE VIRTUAL TABLE z USING fts5(a)", "RELEASE q",
            "PRAGMA schema_version = 9", "PRAGMA writable_schema = 1", "PRAGMA temp_store = 2"),
    reads=("PRAGMA table_info(t)", "PRAGMA foreign_keys", "PRAGMA main.table_info('t')", "VALUES (1, 2)",
           "SELECT name FROM sqlite_schema", "SELECT * FROM pragma_table_info('t')", "PRAGMA page_count",
           "SELECT a, rank() OVER (ORDER BY x) FROM t", "SELECT * FROM ft WHERE ft MATCH 'words'",
           "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 5) SELECT * FROM n",
           "SELECT snippet(ft, 0, '[', ']', '', 5) FROM ft WHERE ft MATCH 'some'", "SELECT * FROM rt",
           "SELECT t.a FROM t LEFT JOIN u USING (a)", "PRAGMA integrity_check", "PRAGMA pragma_list",
           "SELECT json_group_array(a) FROM t", "SELECT * FROM dbstat", "SELECT highlight(ft,0,'','') FROM ft"),
)  # fmt: skip

_DUCKDB = Pieces(
    columns=tuple(["a", "b", "c", "d", "e", "f", "x", "y", "l", "s", "m", "ts", "j", "n", "name", "t.*", "#1", "s.a", "l[1]", "COLUMNS('a')", "$1"]),
    tables=("t", "u", "users", "orders", "v", "sly", "behind", "other.t", "range(3)", "duckdb_tables()",
            "information_schema.tables", "(SHOW TABLES)", "'other.csv'", "tm()", "query_table('t')",
            "house.main.t", "pragma_table_info('t')"),
    operators=tuple(["+", "-", "*", "/", "//", "%", "**", "^", "=", "==", "<>", "<", ">", "||", "->", "->>", "&", "|", "<<", ">>", "&&", "@>", "<@", "~", "!~", "LIKE", "ILIKE", "GLOB", "AND", "OR", "IN", "SIMILAR~TO", "^@", "<->", "::", "~~~"]),
    frames=(*FRAMES, "FROM {}", "FROM t SELECT {}", "SELECT * REPLACE ({} AS a) FROM t", "CALL {}",
            "SELECT [q FOR q IN l IF {} = 1] FROM t", "SELECT list_transform([1], lambda q: {})",
            "PIVOT t ON {} USING sum(a)", "SELECT * FROM t QUALIFY {} = 1", "PRAGMA {}", "DESCRIBE {}",
            "SUMMARIZE SELECT {}", "SELECT {'k': {}}", "SELECT {} OVER () FROM t", "SELECT {} ORDER BY ALL",
            "SELECT a FROM t USING SAMPLE {}", "SELECT struct_pack(k := {})", "SELECT TRY({})",
            "SELECT apply([1], q -> {})", "SELECT {}.upper() FROM t", "SELECT MAP {{'a': {}}}"),
    wraps=(*WRAPS, "FROM ({})", "FROM ({}) AS q SELECT *", "DESCRIBE {}", "SUMMARIZE {}", "SHOW {}",
           "CREATE TABLE z AS {}", "COPY ({}) TO 'out.csv'", "PREPARE q AS {}", "EXECUTE IMMEDIATE '{}'",
           "SELECT * FROM query('{}')", "CREATE MACRO z() AS TABLE {}", "SELECT * FROM (DESCRIBE {})",
           "SELECT * FROM (SUMMARIZE {})", "WITH q AS MATERIALIZED ({}) FROM q", "SELECT $${}$$",
           "WITH RECURSIVE q USING KEY (a) AS ({}) FROM q", "SELECT ARRAY({})", "SHOW TABLES; {}"),
    explains=("EXPLAIN {}", "EXPLAIN ANALYZE {}", "EXPLAIN (FORMAT json) {}", "EXPLAIN (ANALYZE) {}",
              "EXPLAIN (ANALYZE false, FORMAT json) {}", "EXPLAIN (analyze, format text) {}",
              "EXPLAIN EXPLAIN {}", "EXPLAIN (FORMAT html) {}", "EXPLAIN (FORMAT graphviz) {}"),
    tails=("INTO z", "FOR UPDATE", "USING SAMPLE 1", "LIMIT 50%", "; SELECT 1", "ORDER BY ALL",
           "QUALIFY true", "; CHECKPOINT", "RETURNING *", "AT (VERSION => 1)"),
    writes=(*WRITES, "SELECT nextval('s')", "SELECT spy()", "SELECT * FROM sly", "FROM tm()", "VACUUM",
            "COPY u TO 'out.csv'", "EXPORT DATABASE 'out'", "ATTACH 'z.db' AS z", "SET threads = 2",
            "SET VARIABLE q = 1", "PRAGMA threads=2", "CHECKPOINT", "INSTALL httpfs", "LOAD json",
            "CREATE MACRO z(q) AS q", "CALL checkpoint()", "SELECT * FROM checkpoint()", "USE other",
            "SELECT * FROM query('DELETE FROM u')", "PRAGMA enable_profiling", "RESET threads",
            "CALL enable_logging()", "SELECT editdist3('a', 'b')", "CREATE SECRET q (TYPE s3)",
            "INSERT OR REPLACE INTO u VALUES (1, 1, 1, 1)", "COMMENT ON TABLE u IS 'x'", "SELECT setseed(0.5)",
            "MERGE INTO u USING t ON false WHEN NOT MATCHED THEN INSERT (id) VALUES (9)", "DETACH house",
            "SELECT getvariable('q')", "SELECT write_log('q')", "IMPORT DATABASE 'out'", "CREATE TYPE q AS INT",
            "WITH g AS (DELETE FROM u RETURNING *) SELECT * FROM g", "CREATE SCHEMA q", "DROP SEQUENCE s"),
    reads=("FROM t", "SUMMARIZE t", "DESCRIBE t", "SHOW TABLES", "PRAGMA table_info('t')", "PIVOT t ON a USING sum(x)",
           "SELECT a, row_number() OVER (ORDER BY x) FROM t QUALIFY 1 = 1", "SELECT * EXCLUDE (a) FROM t",
           "SELECT list_transform(l, q -> q + 1) FROM t", "SELECT unnest(l) FROM t", "UNPIVOT t ON a, x",
           "SELECT * FROM t ASOF JOIN u ON t.a >= u.b", "SELECT j->>'x' FROM t", "PRAGMA database_list",
           "SELECT * FROM duckdb_settings()", "SELECT s.a, m['a'] FROM t", "SHOW ALL TABLES", "DESCRIBE SELECT 1",
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n"),
)  # fmt: skip

PIECES = {"postgres": _POSTGRES, "mysql": _MYSQL, "sqlite": _SQLITE, "duckdb": _DUCKDB}
