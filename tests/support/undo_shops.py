"""Databases with changes that are to be taken back, one kind for each engine, and a gate in front.

`script` and `rows` go around the gate, as another program would.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import duckdb
import msgspec

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.duckdb_files import database_of
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.changes import ChangeEntry, ChangeList, ListChanges, UndoChange, Undone
from tidegate.model.requests import Call, Query, Request
from tidegate.model.results import Page
from tidegate.model.statements import Statement

AGENT = Actor("tok_agent", "agent", Scope.READ_WRITE)
OTHER = Actor("tok_other", "other", Scope.READ_WRITE)
READER = Actor("tok_agent", "agent", Scope.READ_ONLY)
PERSON = Actor("cli", "cli", Scope.READ_WRITE, kind="human")

TABLES = """
CREATE TABLE items (id INTEGER PRIMARY KEY, name VARCHAR(200), price INTEGER);
CREATE TABLE notes (a INTEGER NOT NULL, b VARCHAR(20) NOT NULL, note VARCHAR(200),
  PRIMARY KEY (a, b));
CREATE TABLE loose (x INTEGER);
CREATE TABLE many (id INTEGER PRIMARY KEY, value INTEGER);
"""
ROWS = """
INSERT INTO items VALUES (1, 'one', 10), (2, 'two', 20), (3, NULL, NULL);
INSERT INTO notes VALUES (1, 'x', NULL), (1, 'y', 'why'), (2, 'x', 'ex');
INSERT INTO loose VALUES (1), (1);
"""


class Shop:
    """One database."""

    name = ""
    more = ""
    """A script of the engine's own: `everything` has a column of each type, `typed` a trigger."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = self.build()
        self.make_tables()

    def make_tables(self) -> None:
        """Make the tables, with the rows that each test begins with."""
        self.script(TABLES)
        self.fill()

    def fill(self) -> None:
        """Put the rows in that each test begins with."""
        self.script(ROWS)

    def build(self) -> str:
        """Make an empty database; returns its URL."""
        raise NotImplementedError

    def script(self, text: str) -> None:
        raise NotImplementedError

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def contents(self, *tables: str) -> dict[str, list[str]]:
        """All rows, exactly."""
        return {name: sorted(map(repr, self.rows(f"SELECT * FROM {name}"))) for name in tables}

    def close(self) -> None:
        """Let go of what is open."""


class SqliteShop(Shop):
    name = "sqlite"

    def build(self) -> str:
        self._path = str(self.directory / "shop.db")
        return f"sqlite:///{self._path}"

    def script(self, text: str) -> None:
        self.rows(text)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(self._path)
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()


class PostgresShop(Shop):
    """`server` is a kind of `postgres_server`."""

    name = "postgres"
    server = "wheel"

    def build(self) -> str:
        self._server = postgres_server.shared(self.server)
        self._database = self._server.new_database()
        return self._server.url(self._database)

    def script(self, text: str) -> None:
        self._server.ask(text, self._database)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        return self._server.ask(text, self._database)

    def contents(self, *tables: str) -> dict[str, list[str]]:
        """As text: Python has no value for each of PostgreSQL's."""
        found = {name: self.rows(f"SELECT t::text FROM {name} AS t") for name in tables}
        return {name: sorted(map(repr, rows)) for name, rows in found.items()}


class OlderPostgresShop(PostgresShop):
    server = "debian"


class MariadbShop(Shop):
    name = "mysql"

    def build(self) -> str:
        self._server = mysql_server.shared()
        self._database = self._server.new_database()
        return self._server.url(self._database)

    def script(self, text: str) -> None:
        self._server.script(text.strip().rstrip(";"), self._database)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._server.script(text, self._database)]

    def account(self, privileges: str) -> str:
        """The URL of an account with these privileges on each table, and no more."""
        user = f"limited_{self._database}"
        self._server.script(f"CREATE OR REPLACE USER '{user}'@'%'")
        for (table,) in self.rows("SHOW TABLES"):
            self._server.script(f"GRANT {privileges} ON {self._database}.{table} TO '{user}'@'%'")
        return self._server.url(self._database, user)

    def confined(self) -> str:
        """The URL of an account that has all rights on this database and sees no other."""
        user = f"confined_{self._database}"
        self._server.script(f"CREATE OR REPLACE USER '{user}'@'%'")
        self._server.script(f"GRANT ALL ON {self._database}.* TO '{user}'@'%'")
        return self._server.url(self._database, user)

    def close(self) -> None:
        self._server.drop_database(self._database)


class DuckdbShop(Shop):
    name = "duckdb"

    def build(self) -> str:
        self._path = self.directory / "shop.duckdb"
        self._path.write_bytes(database_of(TABLES + ROWS))
        return f"duckdb:///{self._path}"

    def make_tables(self) -> None:
        """Nothing: the file was made with them."""

    def script(self, text: str) -> None:
        with duckdb.connect(self._path) as connection:
            connection.execute(text)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        return self._read([text])[0]

    def _read(self, texts: Iterable[str]) -> list[list[tuple[Any, ...]]]:
        """From a copy of the file: the gate keeps it open for a while to read."""
        copy = self.directory / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for each in self.directory.glob("shop.duckdb*"):
            shutil.copy(each, copy)
        with duckdb.connect(copy / self._path.name) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return [connection.execute(text).fetchall() for text in texts]

    def contents(self, *tables: str) -> dict[str, list[str]]:
        """As text, which shows what equal values of Python hide."""
        found = self._read(f"SELECT CAST(every AS VARCHAR) FROM {name} AS every" for name in tables)
        return {name: sorted(map(repr, rows)) for name, rows in zip(tables, found, strict=True)}


class Types(NamedTuple):
    """A table `everything` whose rows hold each kind of value, and statements that change it."""

    table: str
    insert: str
    update: str


SQLITE_TYPES = Types(
    "CREATE TABLE everything (id INTEGER PRIMARY KEY AUTOINCREMENT, i INTEGER, r REAL, t TEXT,"
    " b BLOB, x, g TEXT GENERATED ALWAYS AS (t || '!') STORED,"
    " v INTEGER GENERATED ALWAYS AS (i * 2))",
    "INSERT INTO everything (i, r, t, b, x) VALUES"
    " (9223372036854775807, 0.1, 'naïve – 海 🌊', x'00ff', 1),"
    " (-9223372036854775808, 9e999, '', x'', 1.0), (NULL, -9e999, NULL, NULL, '1'),"
    " (0, 1e-300, 'a''b', zeroblob(1000), x'31')",
    "UPDATE everything SET i = 0, r = 0, t = 'other', b = x'01', x = 'any'",
)


POSTGRES_TYPES = Types(
    "CREATE TYPE mood AS ENUM ('sad', 'ok');"
    "CREATE DOMAIN short AS text CHECK (length(value) < 20);"
    "CREATE TABLE everything (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, r float8, f float4,"
    " n numeric, m numeric(30, 10), b bytea, at timestamptz, ts timestamp, d date, tm timetz,"
    " iv interval, j json, jb jsonb, a int[], ta text[], u uuid, bo bool, c char(5), bt bit(3),"
    " vb bit varying, ip inet, rg int4range, mo mood, sh short, big bigint,"
    " made text GENERATED ALWAYS AS (upper(c)) STORED, p point, ts2 tsvector, mon money)",
    "INSERT INTO everything (r, f, n, m, b, at, ts, d, tm, iv, j, jb, a, ta, u, bo, c, bt, vb, ip,"
    " rg, mo, sh, big, p, ts2, mon) VALUES ('NaN', 0.1, 1e-100, 1.5, '\\x00ff',"
    " '2024-02-29 12:34:56.123456+05:30', 'infinity', '4713-01-01 BC', '01:02:03.000001+02',"
    " '1 year -2 mons 3 days 04:05:06.789', '{\"b\":  1, \"a\": [1,2]}', '{\"b\": 1.00}',"
    " '{1,NULL,3}', ARRAY['a,b', 'c\"d', NULL, 'NULL', ''],"
    " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', true, 'ab', B'101', B'1', '10.0.0.1', '[1,5)', 'ok',"
    " 'x''y', 9223372036854775807, '(1.5,2)', 'a:1 b:2', 12.34),"
    " ('-Infinity', '-0', 'NaN', NULL, '', '-infinity', NULL, NULL, NULL, NULL, 'null', '\"x\"',"
    " '{{1,2},{3,4}}', '{}', NULL, false, NULL, NULL, NULL, NULL, 'empty', NULL, '',"
    " -9223372036854775808, NULL, NULL, NULL), (1e-300, 3.4e38, 0, 0, NULL, '0001-01-01', NULL,"
    " NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, '::1/128', NULL, NULL,"
    " NULL, NULL, NULL, NULL, NULL)",
    "UPDATE everything SET r = 0, f = 0, n = 0, m = 0, b = 'x', at = '2000-01-01', ts = NULL,"
    " d = NULL, tm = NULL, iv = NULL, j = '1', jb = '1', a = '{}', ta = NULL, u = NULL, bo = NULL,"
    " c = 'z', bt = NULL, vb = NULL, ip = NULL, rg = NULL, mo = 'sad', sh = 'o', big = 0,"
    " p = NULL, ts2 = NULL, mon = 0",
)


MARIADB_TYPES = Types(
    "CREATE TABLE everything (id int AUTO_INCREMENT PRIMARY KEY, b bigint unsigned, f float,"
    " d double, n decimal(30, 10), bt bit(5), e enum('a', 'b', '') , s set('x', 'y'), c char(5),"
    " v varchar(50), l varchar(50) CHARACTER SET latin1, ci varchar(20) COLLATE utf8mb4_general_ci,"
    " bl blob, vb varbinary(10), da date, dt datetime(6), ts timestamp(6) NULL, t time(6), y year,"
    " j json, u uuid, ip inet6, twice bigint AS (id * 2) VIRTUAL, up varchar(50) AS (upper(v))"
    " STORED) DEFAULT CHARSET utf8mb4",
    "INSERT INTO everything (b, f, d, n, bt, e, s, c, v, l, ci, bl, vb, da, dt, ts, t, y, j, u, ip)"
    " VALUES (18446744073709551615, 0.1, 0.1, 1.5, b'10101', 'b', 'x,y', 'ab', 'naïve – 海 🌊',"
    " 'é', 'A', x'00ff', x'', '2024-02-29', '2024-02-29 12:34:56.123456',"
    " '2024-02-29 12:34:56.123456', '-100:01:02.000003', 2024, '{\"b\":  1}',"
    " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '::1'), (0, -3.4e38, 1.7976931348623157e308, 0, b'0',"
    " '', '', '', '', '', 'a', '', NULL, '0001-01-01', NULL, NULL, NULL, NULL, 'null', NULL, NULL),"
    " (NULL, 1e-38, 5e-324, -1e19, NULL, NULL, NULL, NULL, 'a''b\\\\c', NULL, NULL, NULL, NULL,"
    " NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "UPDATE everything SET b = 1, f = 2, d = 3, n = 4, bt = b'1', e = 'a', s = 'x', c = 'z',"
    " v = 'z', l = 'z', ci = 'a', bl = 'z', vb = 'z', da = '2000-01-01', dt = '2000-01-01',"
    " ts = '2000-01-01', t = '00:00:01', y = 2000, j = '1', u = NULL, ip = NULL",
)


DUCKDB_TYPES = Types(
    "CREATE TYPE mood AS ENUM ('sad', 'ok');"
    "CREATE TABLE everything (id INTEGER PRIMARY KEY, i BIGINT, h HUGEINT, u UBIGINT, r DOUBLE,"
    " f FLOAT, n DECIMAL(30, 10), t VARCHAR, b BLOB, bo BOOLEAN, d DATE, tm TIME, ts TIMESTAMP,"
    " ns TIMESTAMP_NS, tz TIMESTAMPTZ, ttz TIMETZ, iv INTERVAL, uu UUID, j JSON, bt BIT, mo mood,"
    " up VARCHAR GENERATED ALWAYS AS (upper(t)))",
    "INSERT INTO everything (id, i, h, u, r, f, n, t, b, bo, d, tm, ts, ns, tz, ttz, iv, uu, j, bt,"
    " mo) VALUES (1, 9223372036854775807, 170141183460469231731687303715884105727,"
    " 18446744073709551615, 'NaN', 0.1, 1.5, 'naïve – 海 🌊', '\\x00\\xFFab', true, '2024-02-29',"
    " '01:02:03.000001', '2024-02-29 12:34:56.123456', '2024-01-01 00:00:00.123456789',"
    " '1800-01-01 00:00:00.5+05:30', '01:02:03+05:30', '1 year -2 months 3 days 04:05:06.789',"
    " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"b\":  1}', '10101', 'ok'),"
    " (2, NULL, -1, 0, '-0', '-inf', -0.0000000001, 'a''b', '', false, '0044-03-15 (BC)', NULL,"
    " 'infinity', NULL, '-infinity', NULL, '0 days', NULL, 'null', NULL, NULL), (3, NULL, NULL,"
    " NULL, 1e-300, 3.4e38, NULL, '', NULL, NULL, 'infinity', NULL, NULL, NULL, NULL, NULL, NULL,"
    " NULL, NULL, NULL, NULL)",
    "UPDATE everything SET i = 0, h = 0, u = 0, r = 0, f = 0, n = 0, t = 'x', b = 'x', bo = NULL,"
    " d = NULL, tm = NULL, ts = NULL, ns = NULL, tz = NULL, ttz = NULL, iv = NULL, uu = NULL,"
    " j = '1', bt = NULL, mo = 'sad'",
)


class Kind(NamedTuple):
    """An engine of the suite. `cascades` and `triggers`: it keeps rows that these change."""

    make: Callable[[Path], Shop]
    types: Types
    cascades: bool
    triggers: bool


KINDS: dict[str, Kind] = {
    "sqlite": Kind(SqliteShop, SQLITE_TYPES, True, True),
    "postgres": Kind(PostgresShop, POSTGRES_TYPES, False, False),
    "mysql": Kind(MariadbShop, MARIADB_TYPES, False, False),
    "duckdb": Kind(DuckdbShop, DUCKDB_TYPES, False, False),
    "postgres-debian": Kind(OlderPostgresShop, POSTGRES_TYPES, False, False),
}


class Gate:
    """The gate in front of one shop."""

    def __init__(self, app: App, shop: Shop) -> None:
        self.app = app
        self.shop = shop

    async def ask(self, request: Request, actor: Actor = AGENT, **fields: Any) -> Any:
        """The payload of the reply. Raises: TidegateError."""
        source = fields.pop("source", "shop")
        call = Call(actor, "core", "query", request, source, **fields)
        return (await self.app.gateway.handle(call)).payload

    async def change(self, text: str, actor: Actor = AGENT, **fields: Any) -> Page:
        """Run a statement."""
        page = await self.ask(Query(Statement(text)), actor, **fields)
        assert isinstance(page, Page)
        return page

    async def undo(self, change: str, actor: Actor = AGENT) -> Undone:
        done = await self.ask(UndoChange(change), actor)
        assert isinstance(done, Undone)
        return done

    async def changes(self, actor: Actor = PERSON, **fields: Any) -> tuple[ChangeEntry, ...]:
        found = await self.ask(ListChanges(**fields), actor)
        assert isinstance(found, ChangeList)
        return found.entries

    async def error(self, request: Request, actor: Actor = AGENT, **fields: Any) -> TidegateError:
        """The error that the request ends with."""
        try:
            payload = await self.ask(request, actor, **fields)
        except TidegateError as error:
            return error
        raise AssertionError(f"it was answered: {payload!r}")


@asynccontextmanager
async def gate_of(
    shop: Shop, *, config: dict[str, Any] | None = None, **settings: Any
) -> AsyncGenerator[Gate]:
    """A gate whose source keeps changes, unless `settings` of the source say otherwise."""
    source = {"name": "shop", "url": shop.url, "access": "write", "undo": "keep"}
    source |= {"unqualified": "allow"} | settings
    whole = {"sources": [source], "state": str(shop.directory / "state"), **(config or {})}
    app = App.open(msgspec.convert(whole, Config))
    try:
        yield Gate(app, shop)
    finally:
        await app.close()
