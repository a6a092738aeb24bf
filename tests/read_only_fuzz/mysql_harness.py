"""MariaDB for root with FILE: autocommit, several statements at once, `secure_file_priv` empty."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import support.mysql_server as mysql_server
from read_only_fuzz.harness import HOSTILE, TIMEOUT_S, Digest, files, short
from tidegate.engines.registry import open_engine
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge

SCHEMA = """
    CREATE TABLE t (a INT PRIMARY KEY, b TEXT, c DOUBLE, d DATETIME, e TEXT, name TEXT, x INT,
      y INT, `key` INT, `desc` INT, j TEXT, KEY i (x), FULLTEXT KEY ft (b));
    CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT, c INT);
    CREATE TABLE a (x INT);
    CREATE TABLE b (x INT);
    CREATE TABLE users (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT, email TEXT, password TEXT);
    CREATE TABLE orders (id INT, user_id INT, total DECIMAL(10, 2));
    CREATE TABLE parted (a INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (5));
    CREATE TABLE old (a INT) WITH SYSTEM VERSIONING;
    CREATE TABLE loose (a INT) ENGINE = MyISAM;
    CREATE TABLE seen (a INT) ENGINE = Aria;
    CREATE TABLE `odd name` (`a b` INT, `select` INT);
    CREATE SEQUENCE s NOCACHE;
    CREATE VIEW v AS SELECT a, b FROM t;
    CREATE TRIGGER tr AFTER DELETE ON u FOR EACH ROW UPDATE users SET name = 'gone';
    CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1;
    CREATE FUNCTION spy() RETURNS INT BEGIN INSERT INTO seen VALUES (1); RETURN 1; END;
    CREATE FUNCTION any_value(p INT) RETURNS INT BEGIN SET GLOBAL max_connections = 97; RETURN 1;
      END;
    CREATE FUNCTION bin_to_uuid(p INT) RETURNS INT BEGIN INSERT INTO loose VALUES (1); RETURN 1;
      END;
    CREATE PROCEDURE p() DELETE FROM u;
    CREATE VIEW sly AS SELECT spy() AS a;
    CREATE VIEW behind AS SELECT a FROM sly;
    CREATE VIEW moving AS SELECT NEXTVAL(s) AS a;
    CREATE VIEW locking AS SELECT GET_LOCK('x', 0) AS a;
    INSERT INTO t (a, b, c, d, name, x, y, j) VALUES (1, 'one', 1.5, '2026-01-02', 'n', 1, 2,
      '{"x": 1}'), (2, 'two', 2, NULL, 'm', 3, 4, '[1, 2]');
    INSERT INTO u VALUES (1, 2, 3, 4), (2, 1, 1, 1);
    INSERT INTO users (name) VALUES ('ann'), ('bob');
    INSERT INTO loose VALUES (1);
    INSERT INTO old VALUES (1);
    SELECT NEXTVAL(s)
"""
TIDY = f"SET SESSION max_statement_time = {TIMEOUT_S}, lock_wait_timeout = 1"
MOVING = frozenset(
    {"timestamp", "pseudo_thread_id", "rand_seed1", "rand_seed2", "warning_count", "error_count"}
    | {"last_gtid", "gtid_seq_no", "in_transaction"}
)
NOISE = (
    *("data/ib_", "data/ibtmp", "data/undo", "data/aria_log", "log", "pid", "socket", "data/ib"),
    *("data/ddl_recovery", "#sql", "data/#sql", "data/multi-master", "data/tc.log"),
)
COUNTED = frozenset(
    {"Com_select", "Com_set_option", "Com_checksum", "Com_analyze", "Com_help", "Com_stmt_close"}
    | {"Com_empty_query", "Com_delete", "Com_delete_multi", "Com_insert", "Com_insert_select"}
    | {"Com_replace", "Com_replace_select", "Com_update", "Com_update_multi"}
)
"""What the server may have counted beside SHOW after any number of reads: the digest's own, and
changes of rows, which it counts also when it only explains them; the checksums tell these."""
SYSTEM = (
    *("columns_priv", "db", "event", "func", "global_priv", "plugin", "proc", "procs_priv"),
    *("proxies_priv", "roles_mapping", "servers", "tables_priv", "time_zone", "help_topic"),
    *("column_stats", "index_stats", "table_stats"),
)
ARGUMENTS = (
    *("1", "'a'", "a", "b", "'2026-01-02'", "'{\"a\": 1}'", "NULL", "'$.a'", "0", "-1", "'x'"),
    *HOSTILE,
)


class MysqlHarness:
    """A server of its own, and the loop that its client lives in."""

    dialect = "mysql"
    hiding = ("sly", "behind", "moving", "locking", "any_value", "bin_to_uuid", "spy")

    def __init__(self) -> None:
        self._server = mysql_server.Server()
        self.folder = self._server.directory / "data"
        self._server.script("CREATE DATABASE harness")
        self._server.connected(_build, "harness")
        self._loop = asyncio.new_event_loop()
        self._connection: Any = self._loop.run_until_complete(self._connect())
        source = Source("s1", "harness", self._server.url("harness"), "mysql", "mysql")
        self._engine = self._loop.run_until_complete(open_engine(source))
        self.digest()

    async def _connect(self) -> Any:
        from asyncmy import connect

        connection = await connect(
            unix_socket=str(self._server.socket), user="root", database="harness", autocommit=True
        )
        cursor = connection.cursor()
        await cursor.execute(TIDY)
        return connection

    def calls(self) -> list[str]:
        """The catalog lists names alone: each with none to three arguments. Of the calls that
        the server cannot even prepare, one of a function stays."""
        listed = self._server.script("SELECT function FROM information_schema.sql_functions")
        names = {str(row[0]).lower() for row in listed} | find("mysql").functions
        found: dict[str, str] = {}
        for at, name in enumerate(sorted(names)):
            for count in (0, 1, 1, 1, 2, 2, 2, 3, 3, 4):
                at += 7
                given = [ARGUMENTS[(at + 3 * more) % len(ARGUMENTS)] for more in range(count)]
                found[f"{name}({', '.join(given)})"] = name
        taken = self._server.connected(lambda connection: _prepared(connection, found), "harness")
        refused = {name: call for call, name in found.items() if call not in taken}
        return [*taken, *refused.values()]

    def objects(self, text: str) -> bool:
        judgement = self._loop.run_until_complete(
            self._engine.inspect(Statement(text), judge(text, "mysql"))
        )
        return judgement is not None and judgement.effect is not Effect.READ

    def run(self, text: str) -> bool:
        return self._loop.run_until_complete(self._run(text))

    async def _run(self, text: str) -> bool:
        cursor = self._connection.cursor()
        try:
            await cursor.execute(text)
            await cursor.fetchall()
            while await cursor.nextset():
                await cursor.fetchall()
        except Exception:  # noqa: BLE001 - whatever the driver makes of it, the digest tells
            if not self._connection.connected:
                self._connection = await self._connect()
            return False
        return True

    def digest(self) -> Digest:
        try:
            return self._loop.run_until_complete(self._digest())
        except Exception as error:  # noqa: BLE001 - what keeps us from looking is a change as well
            self._loop.run_until_complete(self._connection.ensure_closed())
            self._connection = self._loop.run_until_complete(self._connect())
            return {"failed": repr(error)}

    async def _digest(self) -> Digest:
        ask = self._ask
        seen: Digest = {"files": short(files(self._server.directory, NOISE, contents=False))}
        com = await ask("SHOW SESSION STATUS LIKE 'Com\\_%'")
        reported = {name for name, count in com if count != "0" and not name.startswith("Com_show")}
        seen["commands"] = repr(sorted(reported - COUNTED))
        variables = await ask("SHOW SESSION VARIABLES")
        seen["session"] = short([row for row in variables if row[0] not in MOVING])
        seen["transaction"] = repr([row for row in variables if row[0] == "in_transaction"])
        for part, query in PARTS.items():
            seen[part] = short(await ask(query))
        tables = await ask(
            "SELECT table_name, table_type FROM information_schema.tables"
            " WHERE table_schema = 'harness' ORDER BY 1"
        )
        for name, kind in tables:
            seen[f"schema {name}"] = short(await ask(f"SHOW CREATE TABLE harness.`{name}`"))
            if kind == "SEQUENCE":
                seen[f"table {name}"] = short(await ask(f"SELECT * FROM harness.`{name}`"))
        base = [f"harness.`{name}`" for name, kind in tables if kind not in ("VIEW", "SEQUENCE")]
        base += [f"mysql.{name}" for name in SYSTEM]
        for name, total in await ask(f"CHECKSUM TABLE {', '.join(base)} EXTENDED"):
            seen[f"table {name}"] = str(total)
        return seen

    async def _ask(self, query: str) -> list[tuple[Any, ...]]:
        """On the connection under test: the session is looked at, too."""
        cursor = self._connection.cursor()
        await cursor.execute(query)
        return [tuple(row) for row in await cursor.fetchall()]

    def close(self) -> None:
        self._loop.run_until_complete(self._engine.close())
        self._loop.run_until_complete(self._connection.ensure_closed())
        self._loop.close()
        self._server.close()


async def _prepared(connection: Any, calls: Iterable[str]) -> list[str]:
    """The calls that can be prepared, which runs none of them."""
    cursor = connection.cursor()
    taken: list[str] = []
    for call in calls:
        text = f"SELECT {call} FROM t".replace("'", "''")
        with contextlib.suppress(Exception):
            await cursor.execute(f"PREPARE q FROM '{text}'")
            taken.append(call)
    return taken


PARTS = {
    "settings": "SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid%'",
    "databases": "SHOW DATABASES",
    "accounts": "SELECT User, Host, Priv FROM mysql.global_priv ORDER BY 1, 2",
    "routines": "SELECT db, name, type, body_utf8 FROM mysql.proc ORDER BY 1, 2, 3",
    "plugins": "SELECT plugin_name, plugin_status FROM information_schema.plugins ORDER BY 1",
    "events": "SELECT db, name, body FROM mysql.event ORDER BY 1, 2",
    "triggers": "SHOW TRIGGERS FROM harness",
    "variables": "SELECT * FROM information_schema.user_variables ORDER BY 1",
    "place": "SELECT DATABASE(), CURRENT_ROLE(), IS_USED_LOCK('x'), IS_USED_LOCK('a')",
    "logs": "SELECT (SELECT COUNT(*) FROM mysql.general_log),"
    " (SELECT COUNT(*) FROM mysql.slow_log)",
}


async def _build(connection: Any) -> None:
    """A statement at a time: bodies hold semicolons."""
    cursor = connection.cursor()
    statement = ""
    for line in SCHEMA.splitlines():
        statement += line + "\n"
        whole = statement.rstrip().endswith(";")
        inside = " BEGIN " in statement and "END;" not in statement
        if whole and not inside:
            await cursor.execute(statement.rstrip().rstrip(";"))
            statement = ""
    await cursor.execute(statement)
    await cursor.fetchall()
