"""PostgreSQL for its superuser: autocommit, every extension of the server, no read-only mode."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import psycopg
from psycopg import pq

import support.postgres_server as postgres_server
from read_only_fuzz.harness import HOSTILE, TIMEOUT_S, Digest, files, short
from tidegate.engines.registry import open_engine
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.sql.judge import judge

EXTENSIONS = (
    *("vector", "pg_trgm", "hstore", "citext", "unaccent", "ltree", "cube", "earthdistance"),
    *("fuzzystrmatch", "intarray", "isn", "seg", "tablefunc", "dblink", "postgres_fdw"),
    *("file_fdw", "lo", "amcheck", "pageinspect", "pg_buffercache", "pg_prewarm", "pg_surgery"),
    *("pg_visibility", "pg_walinspect", "pgrowlocks", "pgstattuple", "pg_freespacemap", "intagg"),
    *("tsm_system_rows", "btree_gin", "btree_gist", "bloom", "tcn", "dict_int", "autoinc"),
)
SCHEMA = """
    CREATE TABLE t (id serial PRIMARY KEY, a int, b text, c text, d bytea, e text, f text, x int,
      y int, z int, n int, q text, ts timestamptz, data jsonb, tsv tsvector, embedding vector(2),
      geom point, name text, type text, key text, value text, "order" int, arr int[],
      r int4range, j json, k name, o oid, g numeric, h inet, i interval, date date, u uuid);
    CREATE TABLE u (id int PRIMARY KEY, a int, b text, c int);
    CREATE TABLE v0 (a int, b text, c int);
    CREATE TABLE w (id int, a int, b text);
    CREATE TABLE e (c int); CREATE TABLE a (x int, id int); CREATE TABLE b (x int, id int);
    CREATE TABLE users (id serial PRIMARY KEY, name text, email text, password text);
    CREATE TABLE orders (id int, user_id int, total numeric);
    CREATE TABLE seen (at text);
    CREATE TABLE "odd name" ("a b" int, "select" int);
    CREATE SEQUENCE s;
    CREATE VIEW v AS SELECT id, a, upper(b) AS b FROM t WHERE a > 0;
    CREATE MATERIALIZED VIEW mv AS SELECT a, b FROM t;
    CREATE FUNCTION spy() RETURNS int LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO seen VALUES ('x'); RETURN 1; END $$;
    CREATE FUNCTION spy(t) RETURNS int LANGUAGE sql AS 'SELECT spy()';
    CREATE FUNCTION write_fn(int) RETURNS int LANGUAGE sql AS 'SELECT spy()';
    CREATE VIEW sly AS SELECT id, spy() AS n FROM u;
    CREATE VIEW behind AS SELECT * FROM sly WHERE id < 3;
    CREATE VIEW moving AS SELECT nextval('s') AS n;
    CREATE VIEW outside AS SELECT * FROM dblink('', 'SELECT 1') AS d (a int);
    CREATE TABLE guarded (id int);
    INSERT INTO guarded VALUES (1);
    ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
    ALTER TABLE guarded FORCE ROW LEVEL SECURITY;
    CREATE POLICY p ON guarded USING (spy() = id);
    CREATE FUNCTION checked(int) RETURNS bool LANGUAGE sql AS 'SELECT spy() = $1';
    CREATE DOMAIN odd AS int CHECK (checked(VALUE));
    CREATE FUNCTION alike(int, text) RETURNS bool LANGUAGE sql AS 'SELECT spy() = 1';
    CREATE OPERATOR === (LEFTARG = int, RIGHTARG = text, FUNCTION = alike);
    CREATE OPERATOR + (LEFTARG = text, RIGHTARG = int, FUNCTION = alike_too);
    CREATE FUNCTION upper(int) RETURNS text LANGUAGE sql AS $$ SELECT spy()::text $$;
    CREATE TYPE pair AS (p int, q int);
    CREATE FUNCTION of_pair(pair) RETURNS text LANGUAGE sql AS $$ SELECT spy()::text $$;
    CREATE CAST (pair AS text) WITH FUNCTION of_pair(pair);
    CREATE RULE shadow AS ON UPDATE TO w DO ALSO INSERT INTO seen VALUES ('rule');
    CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
    CREATE FOREIGN TABLE prog (a text) SERVER files OPTIONS (program 'touch {folder}/ran');
    SELECT lo_from_bytea(4711, 'large');
    INSERT INTO t (a, b, c, d, x, y, z, n, q, ts, data, tsv, embedding, geom, name, arr, r, j, u)
      VALUES (1, 'one', 'c', 'd', 1, 2, 3, 4, 'q', '2026-01-02', '{{"a": {{"b": 1}}, "x": 2}}',
        'a b', '[1,2]', '(1,2)', 'n', '{{1,2}}', '[1,3)', '{{"a": 1}}',
        '12345678-1234-1234-1234-123456789abc'),
      (2, 'two', NULL, NULL, 3, 4, 5, 6, 'r', NULL, NULL, NULL, NULL, NULL, 'm', NULL, NULL, NULL,
        NULL);
    INSERT INTO u VALUES (1, 2, '3', 4), (2, 1, '1', 1);
    INSERT INTO users (name) VALUES ('ann'), ('bob');
    SELECT nextval('s');
    ANALYZE;
""".replace("    CREATE OPERATOR + (LEFTARG = text, RIGHTARG = int, FUNCTION = alike_too);\n", "")
SETTINGS = (
    *("wal_level = logical", "max_wal_senders = 4", "max_prepared_transactions = 4"),
    *("track_commit_timestamp = on", "track_functions = 'all'", "max_worker_processes = 4"),
)
NOISE = (
    *("base", "global", "pg_wal", "pg_stat", "pg_xact", "pg_subtrans", "pg_multixact", "pg_notify"),
    *("pg_logical/replorigin", "pg_dynshmem", "pg_commit_ts", "postmaster", "pg_serial"),
)
PARTS = {
    # Whatever writes a row takes a number: not one is taken by a read.
    "next transaction": "SELECT pg_snapshot_xmax(pg_current_snapshot())",
    # A library brings settings of its own when a function of it is first called.
    "settings": "SELECT name, setting, reset_val, source FROM pg_settings"
    " WHERE NOT (name LIKE '%.%' AND source = 'default') ORDER BY 1",
    "roles": "SELECT t::text FROM pg_authid AS t ORDER BY 1",
    "grants": "SELECT t::text FROM pg_default_acl AS t ORDER BY 1",
    "parameters": "SELECT t::text FROM pg_parameter_acl AS t ORDER BY 1",
    "large objects": "SELECT loid, pageno, md5(data) FROM pg_largeobject ORDER BY 1, 2",
    "relations": "SELECT oid, relname, relfilenode, relacl, reloptions FROM pg_class ORDER BY 1",
    "inheritance": "SELECT t::text FROM pg_inherits AS t ORDER BY 1",
    "indexes": "SELECT indexrelid, indisvalid, indisclustered FROM pg_index ORDER BY 1",
    "operators": "SELECT oid, oprname FROM pg_operator ORDER BY 1",
    "casts": "SELECT t::text FROM pg_cast AS t ORDER BY 1",
    "collations": "SELECT oid, collname, collversion FROM pg_collation ORDER BY 1",
    "statistics": "SELECT count(*), md5(string_agg(t::text, ' ' ORDER BY t::text))"
    " FROM pg_statistic AS t",
    "origins": "SELECT t::text FROM pg_replication_origin AS t ORDER BY 1",
    "slots": "SELECT slot_name, restart_lsn, confirmed_flush_lsn, active"
    " FROM pg_replication_slots ORDER BY 1",
    "resets": "SELECT datname, stats_reset FROM pg_stat_database ORDER BY 1",
    "other resets": "SELECT (SELECT stats_reset FROM pg_stat_bgwriter),"
    " (SELECT stats_reset FROM pg_stat_archiver), (SELECT stats_reset FROM pg_stat_wal),"
    " (SELECT max(stats_reset) FROM pg_stat_slru)",
    "started": "SELECT pg_postmaster_start_time(), pg_conf_load_time(), pg_is_in_recovery()",
    "advisory locks": "SELECT classid, objid, mode FROM pg_locks WHERE locktype = 'advisory'",
    "prepared": "SELECT name FROM pg_prepared_statements ORDER BY 1",
    "cursors": "SELECT name FROM pg_cursors ORDER BY 1",
    "channels": "SELECT pg_listening_channels()",
    "links": "SELECT dblink_get_connections()",
    "session": "SELECT current_user, session_user, current_schemas(true), pg_my_temp_schema(),"
    " current_setting('transaction_read_only')",
}

TYPES = """
SELECT p.proname::text, p.prokind::text, n.nspname::text,
  ARRAY(SELECT t.typname::text FROM unnest(p.proargtypes) WITH ORDINALITY AS x (o, k)
    JOIN pg_type AS t ON t.oid = x.o ORDER BY k)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace ORDER BY p.oid
"""
OPERATORS = """
SELECT o.oprname::text, l.typname::text, r.typname::text FROM pg_operator AS o
LEFT JOIN pg_type AS l ON l.oid = o.oprleft JOIN pg_type AS r ON r.oid = o.oprright ORDER BY o.oid
"""
CASTS = """
SELECT s.typname::text, t.typname::text FROM pg_cast AS c
JOIN pg_type AS s ON s.oid = c.castsource JOIN pg_type AS t ON t.oid = c.casttarget ORDER BY c.oid
"""
VALUES = {
    **dict.fromkeys(
        ("text", "varchar", "bpchar", "cstring", "unknown", "any", "citext"),
        ("'a'", "b", "'t'", "'s'", "'public'", "'work_mem'", "'{folder}/made'", *HOSTILE),
    ),
    **dict.fromkeys(("int4", "int8", "int2", "numeric"), ("1", "0", "4711", "a", "-1")),
    **dict.fromkeys(("float4", "float8"), ("1.5", "0.5")),
    **dict.fromkeys(("oid", "regclass"), ("'t'::regclass", "'s'::regclass", "4711", "'u'")),
    **dict.fromkeys(("name",), ("'t'::name", "'s'", "'public'", "'postgres'")),
    **dict.fromkeys(("bool",), ("true", "false")),
    **dict.fromkeys(("bytea",), ("'\\x00ff'::bytea", "d")),
    **dict.fromkeys(("jsonb", "json"), ("data", "'{\"a\": 1}'", "'[1, 2]'")),
    **dict.fromkeys(("timestamptz", "timestamp", "date"), ("now()", "ts", "DATE '2026-01-02'")),
    **dict.fromkeys(("interval",), ("interval '1 day'",)),
    **dict.fromkeys(("anyarray", "anycompatiblearray", "_int4"), ("ARRAY[1, 2]", "arr")),
    **dict.fromkeys(("_text", "_varchar"), ("ARRAY['a', 'b']", "ARRAY['DELETE FROM u']")),
    **dict.fromkeys(("anyelement", "anynonarray", "anycompatible"), ("1", "b", "t")),
    **dict.fromkeys(("tsvector",), ("tsv", "'a b'::tsvector")),
    **dict.fromkeys(("tsquery",), ("'a & b'::tsquery",)),
    **dict.fromkeys(("regconfig", "regdictionary"), ("'simple'",)),
    **dict.fromkeys(("point",), ("geom", "point(1, 2)")),
    **dict.fromkeys(("vector",), ("embedding", "'[1,2]'::vector")),
    **dict.fromkeys(("anyrange", "int4range", "anycompatiblerange"), ("r", "int4range(1, 3)")),
    **dict.fromkeys(("record",), ("t", "ROW(1, 2)")),
    **dict.fromkeys(("inet", "cidr"), ("'127.0.0.1'::inet",)),
    **dict.fromkeys(("xml",), ("'<a/>'::xml",)),
    **dict.fromkeys(("pg_lsn",), ("'0/0'::pg_lsn", "pg_current_wal_lsn()")),
}
UNCALLED = frozenset({"internal", "trigger", "event_trigger", "language_handler"})


HIDING = (
    *("spy", "write_fn", "sly", "behind", "moving", "outside", "guarded", "checked", "odd"),
    *("alike", "upper", "pair", "prog", "===", "isn_weak"),
)
ACTING = """
SELECT DISTINCT p.proname::text FROM pg_proc AS p JOIN pg_depend AS d ON d.objid = p.oid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND p.provolatile = 'v'
"""


class PostgresHarness:
    """A server of its own. It is thrown away with all that was done to it."""

    dialect = "postgres"

    def __init__(self) -> None:
        self._server = postgres_server.Server(next(iter(postgres_server.available().values())))
        self.folder = self._server.directory / "reach"
        self.folder.mkdir()
        if os.getuid() == 0:
            os.chown(self.folder, postgres_server.NOBODY, postgres_server.NOBODY)
        for setting in SETTINGS:
            self._server.ask(f"ALTER SYSTEM SET {setting}")
        self._server.restart()
        self._server.ask("CREATE DATABASE harness")
        there = {name for (name,) in self._server.ask("SELECT name FROM pg_available_extensions")}
        for name in EXTENSIONS:
            if name in there:
                self._server.ask(f"CREATE EXTENSION {name} CASCADE", "harness")
        self._server.ask(SCHEMA.format(folder=self.folder), "harness")
        self._server.ask("CHECKPOINT", "harness")
        acting = sorted(name for (name,) in self._server.ask(ACTING, "harness"))
        self.hiding = (*HIDING, *acting)
        self._connection = self._connect()
        self._loop = asyncio.new_event_loop()
        source = Source("s1", "harness", self._server.url("harness"), "postgres", "postgres")
        self._engine = self._loop.run_until_complete(open_engine(source))

    def _connect(self) -> psycopg.Connection:
        info = self._server.conninfo("harness")
        connection = psycopg.connect(info, autocommit=True, prepare_threshold=None)
        limit = round(TIMEOUT_S * 1000)
        connection.execute(f"SET statement_timeout = {limit}; SET lock_timeout = {limit}".encode())
        connection.execute("SET client_min_messages = error")
        return connection

    def calls(self) -> list[str]:
        """By the types of the arguments: functions, also as attributes, operators, casts."""
        functions, operators, casts = self._server.ask_all([TYPES, OPERATORS, CASTS], "harness")
        found: list[str] = []
        for name, kind, schema, types in functions:
            if UNCALLED & set(types):
                continue
            plain = name if name.isidentifier() and name.islower() else f'"{name}"'
            for turn in range(3 if types else 1):
                given = [self._value(type_, turn + at) for at, type_ in enumerate(types)]
                call = f"{plain}({', '.join(given)})"
                if kind == "w":
                    call += " OVER ()"
                found += [call, f"{schema}.{call}"][: 2 if turn == 0 else 1]
                if len(types) == 1:
                    found.append(f"({given[0]}).{plain}")
        for sign, left, right in operators:
            second = self._value(right, 1)
            found.append(f"{self._value(left, 0)} {sign} {second}" if left else f"{sign} {second}")
        found += [f"({self._value(source, 0)})::{target}" for source, target in casts]
        return list(dict.fromkeys(found))

    def _value(self, type_: str, turn: int) -> str:
        choices = VALUES.get(type_)
        if choices is None:
            return f"NULL::{type_}" if type_.isidentifier() and type_[:3] != "any" else "NULL"
        return choices[turn % len(choices)].replace("{folder}", str(self.folder))

    def objects(self, text: str) -> bool:
        judgement = self._loop.run_until_complete(
            self._engine.inspect(Statement(text), judge(text, "postgres"))
        )
        return judgement is not None and judgement.effect is not Effect.READ

    def run(self, text: str) -> bool:
        line = self._connection.pgconn
        try:
            encoded = text.encode()
            result = line.exec_(encoded)
            if result.error_field(pq.DiagnosticField.SQLSTATE) == b"42P02":
                result = line.exec_params(encoded, [None] * 9)
        except (UnicodeEncodeError, ValueError, psycopg.Error):
            result = None
        if (
            line.status != pq.ConnStatus.OK
            or line.transaction_status == pq.TransactionStatus.ACTIVE
        ):
            # A COPY waits for data, or the server ended the connection.
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = self._connect()
            return False
        return result is not None and result.status in (
            pq.ExecStatus.TUPLES_OK,
            pq.ExecStatus.COMMAND_OK,
        )

    def digest(self) -> Digest:
        status = self._connection.info.transaction_status
        seen: Digest = {"transaction": repr(status)}
        if status != pq.TransactionStatus.IDLE:
            self._connection.rollback()
        for part, query in PARTS.items():
            seen[part] = short(self._connection.execute(query.encode()).fetchall())
        seen["data and catalog"] = short(self._server.digest("harness"))
        seen["files"] = short(files(self._server.directory / "data", NOISE))
        seen["reach"] = short(files(self.folder))
        databases = "SELECT datname FROM pg_database ORDER BY 1"
        seen["databases"] = short(self._connection.execute(databases).fetchall())
        return seen

    def close(self) -> None:
        self._loop.run_until_complete(self._engine.close())
        self._loop.close()
        self._connection.close()
        self._server.close()
        assert not Path(self._server.directory).exists()
