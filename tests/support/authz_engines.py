"""The engines of the authorization matrix: each with a small shop, its own spelling of every
effect, and a digest by which a change is seen.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.duckdb_files import database_of

SHOP = """
CREATE TABLE customers (id INTEGER, email VARCHAR(80), full_name VARCHAR(80));
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total INTEGER);
CREATE TABLE notes (id INTEGER PRIMARY KEY, body VARCHAR(80));
CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 100;
INSERT INTO customers VALUES (1, 'ada@example.org', 'Ada'), (2, 'omar@example.org', 'Omar');
INSERT INTO orders VALUES (1, 1, 120), (2, 1, 80), (3, 2, 987654);
INSERT INTO notes VALUES (1, 'Ada asks for the second order');
"""
SCRAP = "CREATE TABLE scrap_{0} (id INTEGER);"
"""One for each actor, so that each can drop its own."""

STATEMENTS = {
    "read": "SELECT full_name FROM customers",
    "write": "INSERT INTO customers (id, email, full_name) VALUES (9, 'x', 'x')",
    "update": "UPDATE orders SET total = total + 1 WHERE id = 1",
    "unqualified": "UPDATE orders SET total = total + 1",
    "destructive": "DROP TABLE scrap_{actor}",
    "unknown": "FROBNICATE customers",
    "several": "SELECT 1; DELETE FROM orders",
}
"""What is spelled alike everywhere."""


class Shop:
    """One database. `digest` is of all that a statement could change in it."""

    database = "shop"
    schema = "main"

    def __init__(self, directory: Path, actors: tuple[str, ...]) -> None:
        self.directory = directory
        self.url = self.build(SHOP + "".join(SCRAP.format(actor) for actor in actors))

    def build(self, script: str) -> str:
        """Make the database; returns its URL."""
        raise NotImplementedError

    def digest(self) -> str:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what watches."""


class FileShop(Shop):
    """A database in a file, which stands in a directory of its own."""

    def digest(self) -> str:
        found = hashlib.sha256()
        for file in sorted(self.directory.iterdir()):
            found.update(file.name.encode() + b"\0" + file.read_bytes())
        return found.hexdigest()


class SqliteShop(FileShop):
    def build(self, script: str) -> str:
        connection = sqlite3.connect(self.directory / "shop.db")
        connection.executescript(script)
        connection.close()
        return f"sqlite:///{self.directory}/shop.db"

    def digest_of_rows(self) -> str:
        """Of the rows alone: those that were put back are elsewhere in the file."""
        with closing(sqlite3.connect(self.directory / "shop.db")) as connection:
            return "\n".join(connection.iterdump())


class DuckdbShop(FileShop):
    def build(self, script: str) -> str:
        (self.directory / "shop.duckdb").write_bytes(database_of(script))
        return f"duckdb:///{self.directory}/shop.duckdb"


_POSTGRES_DIGEST = """
SELECT (SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM customers AS t),
  (SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM orders AS t),
  (SELECT md5(string_agg(relname || relkind::text, '|' ORDER BY oid)) FROM pg_class
    WHERE oid >= 16384 AND relpersistence <> 't'),
  (SELECT md5(string_agg(rolname, '|' ORDER BY oid)) FROM pg_roles),
  (SELECT md5(string_agg(s::text, '|' ORDER BY s::text)) FROM pg_db_role_setting AS s)
"""


class PostgresShop(Shop):
    schema = "public"

    def build(self, script: str) -> str:
        import psycopg

        self.server = postgres_server.shared()
        self.database = self.server.copy_of(script)
        self._watch = psycopg.connect(self.server.conninfo(self.database), autocommit=True)
        return self.server.url(self.database)

    def digest(self) -> str:
        return repr(self._watch.execute(_POSTGRES_DIGEST).fetchall())

    def close(self) -> None:
        self._watch.close()


class MariadbShop(Shop):
    def build(self, script: str) -> str:
        self.server = mysql_server.shared()
        self.database = self.schema = self.server.new_database()
        self.server.script(script.strip().rstrip(";"), self.database)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._watch = self._do(self._connect())
        return self.server.url(self.database)

    def digest(self) -> str:
        return repr(self._do(self._look()))

    def close(self) -> None:
        self._do(self._watch.ensure_closed())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.server.drop_database(self.database)

    async def _connect(self) -> Any:
        from asyncmy import connect

        return await connect(
            unix_socket=str(self.server.socket), user="root", db=self.database, autocommit=True
        )

    async def _look(self) -> list[Any]:
        cursor = self._watch.cursor()
        found: list[Any] = []
        for query in (
            "CHECKSUM TABLE customers, orders EXTENDED",
            "SHOW FULL TABLES",
            "SELECT User, Host, Priv FROM mysql.global_priv",
        ):
            await cursor.execute(query)
            found.append(await cursor.fetchall())
        return found

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


class Spelling(NamedTuple):
    """An engine of the matrix, and how it says what is not said alike everywhere."""

    make: Callable[[Path, tuple[str, ...]], Shop]
    session: str
    admin: str
    administer: str
    """Administers the database in a way that a person may approve."""
    planned: frozenset[str]
    """Effects of which it shows a plan."""
    without_plan: frozenset[str] = frozenset()
    plans_hidden: bool = False  # it shows the plan of a read where columns or rows are hidden
    """Effects of which the database, and not the gate, says that it has no plan."""
    identities: bool = False
    has_server: bool = False

    def statement(self, effect: str, actor: str) -> str:
        own = {"session": self.session, "admin": self.admin, "administer": self.administer}
        return (own.get(effect) or STATEMENTS[effect]).format(actor=actor)


_CHANGES = frozenset({"write", "update", "unqualified"})
ENGINES = {
    "sqlite": Spelling(
        SqliteShop,
        session="PRAGMA writable_schema = 1",
        admin="ATTACH DATABASE 'stolen.db' AS stolen",
        administer="CREATE TRIGGER made AFTER INSERT ON items BEGIN SELECT 1; END",
        planned=_CHANGES | {"destructive"},
        plans_hidden=True,
    ),
    "duckdb": Spelling(
        DuckdbShop,
        session="SET threads = 1",
        admin="ATTACH 'stolen.duckdb' AS stolen",
        administer="CREATE MACRO made() AS 1",
        planned=frozenset(),
        without_plan=_CHANGES | {"destructive"},
    ),
    "postgres": Spelling(
        PostgresShop,
        session="SET search_path = pg_catalog",
        admin="CREATE ROLE mallory SUPERUSER",
        administer="CREATE FUNCTION made() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        planned=_CHANGES,
        without_plan=frozenset({"destructive"}),
        identities=True,
        has_server=True,
    ),
    "mariadb": Spelling(
        MariadbShop,
        session="SET @@session.sql_mode = ''",
        admin="GRANT FILE ON *.* TO mallory",
        administer="CREATE USER mallory",
        planned=_CHANGES,
        without_plan=frozenset({"destructive", "unknown"}),
        identities=True,
        has_server=True,
    ),
}

OPEN: dict[str, Any] = {"access": "write"}
HIDDEN = {
    "masks": ({"column": "customers.email"},),
    "filters": ({"table": "orders", "where": "total < 500"},),
}


SETTINGS: dict[str, dict[str, Any]] = {
    "readOnly": {"access": "read"},
    "readWrite": OPEN,
    "administered": {"access": "admin"},
    "blocked": {"access": "none"},
    "never": OPEN | {"agents": "deny"},
    "asks": OPEN | {"agents": "ask"},
    "writes": OPEN | {"approval_for": "writes"},
    "everything": OPEN | {"approval_for": "everything"},
    "locked": OPEN | {"changes": "deny"},
    "denies": OPEN | {"unqualified": "deny"},
    "trusts": OPEN | {"unqualified": "allow"},
    "guarded": OPEN | {"destructive_scope": "fullAccess"},
    "unattended": OPEN | {"approval_for": "writes", "unattended": "allow"},
    "inbox": OPEN | {"approval_for": "writes", "unattended": "allow", "approval": "inbox"},
    "masked": OPEN | HIDDEN,
    "unmapped": OPEN | {"run_as": {"roles": {"somebody": "somebody"}}},
}
"""What an operator can say of a source, by the names of the rows in `authz_grids`."""
