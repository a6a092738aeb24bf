"""The engines that the contract suite is run on: each with a small shop, and its own spelling.

The shop of every engine: `items` (id 1 to 10, name `item 1` to `item 10`), `parts` (id, item_id
referring to items), `void` (as items, without rows). To add an engine, add a case to `CASES`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apsw

import support.jdbc_cases as jdbc_cases
import support.memory_engine as memory
import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.duckdb_files import database_of
from support.permits import permit_for
from tidegate.engines.registry import engine_of, language_of, open_engine
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.decisions import Permit
from tidegate.model.requests import Browse, Explain, Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement

ACTOR = Actor("contract", "the contract suite", Scope.FULL_ACCESS)


@dataclass(frozen=True)
class Spelling:
    """How one engine says what the suite asks. `{n}` and `{width}` are filled in."""

    one: str
    rows: str
    wide_rows: str
    values: str
    expected: tuple[Any, ...]
    echo: str
    table: str
    count: str
    runaway: str
    broken: str
    nonsense: str
    two: str
    empty: str
    add: str
    add_and_return: str
    nothing: str
    comment_behind: str
    columns: tuple[str, ...] = ()
    refused_reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    text_type: str = "text"
    integer_type: str = "integer"


@dataclass
class Case:
    """One engine with its shop; `digest` tells whether its data or schema changed."""

    name: str
    make: Callable[[Path], str]
    spelling: Spelling
    digest_of: Callable[[Any, str], str | Awaitable[str]]
    url: str = ""
    options: Callable[[], tuple[tuple[str, str], ...]] = tuple
    """The options of the source, beside its URL."""
    access: str = "read"
    source: Source = field(init=False)

    def prepare(self, directory: Path) -> Case:
        """A case of its own for one test."""
        options = self.options()
        case = replace(self, url=self.make(directory))
        engine, dialect = engine_of(case.url)
        case.source = Source(
            *("s1", "shop", case.url, engine, dialect), access=self.access, options=options
        )
        return case

    @asynccontextmanager
    async def opened(self):
        engine = await open_engine(self.source)
        try:
            yield engine
        finally:
            await engine.close()

    async def digest(self, engine) -> str:
        found = self.digest_of(engine, self.url)
        return found if isinstance(found, str) else await found

    def permit(self, request, effect=Effect.READ, limits=None) -> Permit:
        return permit_for(self.source, request, effect, limits=limits, actor=ACTOR)

    async def inspect(self, engine, text) -> Judgement | None:
        query = Query(Statement(text))
        judgement = language_of(self.source).classify(query, self.source)
        return await engine.inspect(query.statement, judgement)

    async def start(
        self,
        engine,
        text,
        params=None,
        *,
        effect=Effect.READ,
        limits=None,
        cancellation=NEVER,
        database=None,
    ):
        limits = limits or Limits(max_rows=100_000)
        request = Query(Statement(text, params), limits=limits, database=database)
        return await engine.run(self.permit(request, effect), cancellation)

    async def ask(self, engine, text, params=None, **options) -> list[tuple]:
        cursor = await self.start(engine, text, params, **options)
        try:
            rows = []
            while batch := await cursor.fetch(1000):
                rows += [tuple(row) for row in batch]
            return rows
        finally:
            await cursor.close()

    async def explain(self, engine, text, params=None) -> list[tuple]:
        cursor = await engine.run(self.permit(Explain(Statement(text, params))), NEVER)
        rows = [tuple(row) for row in await cursor.fetch(1000)]
        await cursor.close()
        return rows

    async def browse(self, engine, aspect, *, limits=None, cancellation=NEVER, **narrowed):
        permit = self.permit(Browse(aspect, **narrowed), limits=limits)
        return await engine.describe(permit, cancellation)


SQLITE_SHOP = """
CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, item_id INTEGER NOT NULL REFERENCES items);
CREATE TABLE void (id INTEGER PRIMARY KEY, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10)
INSERT INTO items SELECT i, 'item ' || i FROM n;
INSERT INTO parts SELECT id + 10 * k, id FROM items, (SELECT 0 AS k UNION SELECT 1);
"""

_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n{limit}) "


def make_sqlite(directory: Path) -> str:
    path = directory / "shop.db"
    connection = apsw.Connection(str(path))
    connection.execute(SQLITE_SHOP)
    connection.close()
    return f"sqlite:///{path}"


def digest_sqlite(_: Any, url: str) -> str:
    """Of the file and of whatever stands beside it."""
    path = Path(url.removeprefix("sqlite:///"))
    digest = hashlib.sha256()
    for file in sorted(path.parent.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


SQLITE = Spelling(
    one="SELECT 1",
    rows=_NUMBERS.format(limit=" LIMIT {n}") + "SELECT i, 'x' FROM n",
    wide_rows=_NUMBERS.format(limit=" LIMIT {n}") + "SELECT i, printf('%.*c', {width}, 'x') FROM n",
    values="SELECT NULL, 42, 1152921504606846976, -9223372036854775808, 1.5, 9e999,"
    " 'naïve – 海 🌊', '', x'00ff', x''",
    expected=(
        *(None, 42, 2**60, -(2**63), 1.5, float("inf")),
        *("naïve – 海 🌊", "", b"\x00\xff", b""),
    ),
    echo="SELECT ?, ?, ?",
    table="SELECT * FROM {name} ORDER BY id",
    count="SELECT count(*) FROM {name}",
    runaway=_NUMBERS.format(limit="") + "SELECT count(*) FROM n",
    broken="SELECT abs(-9223372036854775808)",
    nonsense="SELEC 1",
    two="SELECT 1; SELECT 2",
    empty=" -- nothing\n",
    add="INSERT INTO void VALUES (?, ?)",
    add_and_return="INSERT INTO void VALUES (?, ?) RETURNING id, name",
    nothing="SELECT * FROM void",
    comment_behind="SELECT 1 ; -- that is all\n",
    columns=("id", "name"),
    refused_reads=(
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
        "SAVEPOINT here",
        "PRAGMA user_version = 7",
        "PRAGMA query_only = 0",
        "PRAGMA journal_mode = WAL",
        "CREATE TEMP TABLE t (a)",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
    ),
    writes=(
        "DELETE FROM items",
        "UPDATE items SET name = 'x'",
        "INSERT INTO void VALUES (1, 'x')",
        "INSERT INTO void SELECT * FROM items RETURNING id",
        "WITH x AS (SELECT 1) DELETE FROM items",
        "REPLACE INTO items VALUES (1, 'x')",
        "CREATE TABLE more (a)",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE items",
        "ALTER TABLE items ADD COLUMN c",
        "REINDEX",
        "ANALYZE",
        "VACUUM",
    ),
)

DUCKDB_SHOP = """
CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, item_id INTEGER NOT NULL REFERENCES items (id));
CREATE TABLE void (id INTEGER PRIMARY KEY, name TEXT);
CREATE SEQUENCE numbers;
INSERT INTO items SELECT i, 'item ' || i FROM range(1, 11) AS n (i);
INSERT INTO parts SELECT id + 10 * k, id FROM items, range(2) AS r (k);
"""


def make_duckdb(directory: Path) -> str:
    path = directory / "shop.duckdb"
    path.write_bytes(database_of(DUCKDB_SHOP))
    return f"duckdb:///{path}"


def digest_duckdb(_: Any, url: str) -> str:
    """Of the file and of whatever stands beside it."""
    return digest_sqlite(_, url.replace("duckdb:", "sqlite:"))


DUCKDB = Spelling(
    one="SELECT 1",
    rows="SELECT i, 'x' FROM range(1, {n} + 1) AS n (i)",
    wide_rows="SELECT i, repeat('x', {width}) FROM range(1, {n} + 1) AS n (i)",
    values="SELECT NULL, 42, 1152921504606846976, (-9223372036854775808)::BIGINT, 1.5::DOUBLE,"
    " 'inf'::DOUBLE, 'naïve – 海 🌊', '', '\\x00\\xff'::BLOB, ''::BLOB",
    expected=(
        *(None, 42, 2**60, -(2**63), 1.5, float("inf")),
        *("naïve – 海 🌊", "", b"\x00\xff", b""),
    ),
    echo="SELECT $1, $2, $3",
    table="SELECT * FROM {name} ORDER BY id",
    count="SELECT count(*) FROM {name}",
    runaway="SELECT count(*) FROM range(100000000000000) AS n (i) WHERE i % 7 = 3",
    broken="SELECT abs((-9223372036854775808)::BIGINT)",
    nonsense="SELEC 1",
    two="SELECT 1; SELECT 2",
    empty=" -- nothing\n",
    add="INSERT INTO void VALUES ($1, $2)",
    add_and_return="INSERT INTO void VALUES ($1, $2) RETURNING id, name",
    nothing="SELECT * FROM void",
    comment_behind="SELECT 1 ; -- that is all\n",
    columns=("id", "name"),
    text_type="varchar",
    refused_reads=(
        "ATTACH 'other.duckdb' AS other",
        "DETACH shop",
        "COPY items TO 'items.csv'",
        "EXPORT DATABASE 'copy'",
        "IMPORT DATABASE 'copy'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "BEGIN",
        "COMMIT",
        "CHECKPOINT",
        "CALL pragma_version()",
        "PRAGMA memory_limit = '1TB'",
        "PRAGMA enable_profiling",
        "SET threads = 1",
        "RESET threads",
        "SET VARIABLE x = 1",
        "USE memory",
        "PREPARE p AS SELECT 1",
    ),
    writes=(
        "DELETE FROM items",
        "TRUNCATE items",
        "UPDATE items SET name = 'x'",
        "INSERT INTO void VALUES (1, 'x')",
        "INSERT INTO void SELECT * FROM items RETURNING id",
        "WITH x AS (SELECT 1) DELETE FROM items",
        "INSERT OR REPLACE INTO items VALUES (1, 'x')",
        "MERGE INTO void USING items ON void.id = items.id WHEN NOT MATCHED THEN INSERT",
        "CREATE TABLE more (a INTEGER)",
        "CREATE TABLE copy AS SELECT * FROM items",
        "CREATE TEMP TABLE t (a INTEGER)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE MACRO m(x) AS x + 1",
        "CREATE INDEX i ON void (name)",
        "CREATE SCHEMA other",
        "DROP TABLE parts",
        "ALTER TABLE void ADD COLUMN c INTEGER",
        "COMMENT ON TABLE items IS 'x'",
        "VACUUM",
        "ANALYZE",
    ),
)


FILES = replace(DUCKDB, integer_type="bigint")


def make_files(directory: Path) -> str:
    """The shop as a folder: CSV and Parquet."""
    import duckdb

    folder = directory / "shop files"
    folder.mkdir()
    with duckdb.connect() as connection:
        connection.execute(DUCKDB_SHOP)
        connection.execute(f"COPY items TO '{folder}/items.csv'")
        connection.execute(f"COPY parts TO '{folder}/parts.parquet'")
        connection.execute(f"COPY void TO '{folder}/void.parquet'")
    return f"files://{folder}"


def digest_files(_: Any, url: str) -> str:
    """Of the folder, and of everything that stands beside it."""
    return digest_sqlite(_, f"sqlite:///{url.removeprefix('files://')}/any")


MEMORY = Spelling(
    one="ROWS 1",
    rows="ROWS {n}",
    wide_rows="ROWS {n} {width}",
    values="VALUES",
    expected=tuple(value for _, value in memory.VALUES),
    echo="ECHO",
    table="TABLE {name}",
    count="COUNT {name}",
    runaway="SLEEP 600",
    broken="FAIL on purpose",
    nonsense="SELEC 1",
    two="ROWS 1; ROWS 2",
    empty="  ",
    add="APPEND void",
    add_and_return="APPEND void",
    nothing="TABLE void",
    comment_behind="ROWS 1 ; ",
    columns=("id", "name"),
    writes=("APPEND void", "CLEAR items"),
)


def digest_memory(engine: Any, _: str) -> str:
    return repr(engine.tables)


POSTGRES_SHOP = """
CREATE TABLE items (id integer PRIMARY KEY, name text);
CREATE TABLE parts (id integer PRIMARY KEY, item_id integer NOT NULL REFERENCES items);
CREATE TABLE void (id integer PRIMARY KEY, name text);
INSERT INTO items SELECT i, 'item ' || i FROM generate_series(1, 10) AS i;
INSERT INTO parts SELECT id + 10 * k, id FROM items, generate_series(0, 1) AS k;
"""


def make_postgres(kind: str) -> Callable[[Path], str]:
    def make(_: Path) -> str:
        server = postgres_server.shared(kind)
        return server.url(server.copy_of(POSTGRES_SHOP))

    return make


def digest_postgres(kind: str) -> Callable[[Any, str], str]:
    def digest(engine: Any, _: str) -> str:
        return postgres_server.shared(kind).digest(engine.status.database)

    return digest


POSTGRES = Spelling(
    one="SELECT 1",
    rows="SELECT i, 'x' FROM generate_series(1, {n}) AS i",
    wide_rows="SELECT i, repeat('x', {width}) FROM generate_series(1, {n}) AS i",
    values="SELECT NULL, 42, 1152921504606846976, -9223372036854775808, 1.5::float8,"
    " 'infinity'::float8, 'naïve – 海 🌊', '', '\\x00ff'::bytea, ''::bytea, true",
    expected=(
        *(None, 42, 2**60, -(2**63), 1.5, float("inf")),
        *("naïve – 海 🌊", "", b"\x00\xff", b"", True),
    ),
    echo="SELECT $1::integer, $2::text, $3::text",
    table="SELECT * FROM {name} ORDER BY id",
    count="SELECT count(*) FROM {name}",
    runaway="SELECT count(*) FROM generate_series(1, 100000000000) AS i",
    broken="SELECT 1 / (id - id) FROM items",
    nonsense="SELEC 1",
    two="SELECT 1; SELECT 2",
    empty=" -- nothing\n",
    add="INSERT INTO void VALUES ($1, $2)",
    add_and_return="INSERT INTO void VALUES ($1, $2) RETURNING id, name",
    nothing="SELECT * FROM void",
    comment_behind="SELECT 1 ; -- that is all\n",
    columns=("id", "name"),
    refused_reads=(
        "CREATE DATABASE other",
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT lo_import('postgresql.conf')",
        "SELECT pg_advisory_lock(1)",
        "SELECT set_config('search_path', 'x', false)",
        "SELECT query_to_xml('DELETE FROM items', true, false, '')",
        "DO $$ BEGIN DELETE FROM items; END $$",
    ),
    writes=(
        "DELETE FROM items",
        "UPDATE items SET name = 'x'",
        "INSERT INTO void VALUES (1, 'x')",
        "INSERT INTO void SELECT * FROM items RETURNING id",
        "WITH gone AS (DELETE FROM parts RETURNING *) SELECT * FROM gone",
        "MERGE INTO void USING items ON false WHEN NOT MATCHED THEN INSERT VALUES (1, 'x')",
        "CREATE TABLE more (a int)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE copy AS SELECT * FROM items",
        "SELECT * INTO copy FROM items",
        "EXPLAIN ANALYZE DELETE FROM parts",
        "EXPLAIN (ANALYZE) CREATE TABLE copy AS SELECT 1",
        "DROP TABLE items",
        "TRUNCATE items, parts",
        "ALTER TABLE items ADD COLUMN c int",
        "COMMENT ON TABLE items IS 'x'",
        "GRANT SELECT ON items TO PUBLIC",
        "COPY items TO '/tmp/tidegate-copy'",
        "COPY items TO PROGRAM 'cat'",
        "REINDEX TABLE items",
        "ANALYZE",
        "VACUUM",
    ),
)

MYSQL_SHOP = """
CREATE TABLE items (id INT PRIMARY KEY, name TEXT);
CREATE TABLE parts (id INT PRIMARY KEY, item_id INT NOT NULL, FOREIGN KEY (item_id)
  REFERENCES items (id));
CREATE TABLE void (id INT PRIMARY KEY, name TEXT);
INSERT INTO items SELECT seq, CONCAT('item ', seq) FROM seq_1_to_10;
INSERT INTO parts SELECT id + 10 * seq, id FROM items, seq_0_to_1
"""


def make_mysql(_: Path) -> str:
    server = mysql_server.shared()
    name = server.new_database()
    server.script(MYSQL_SHOP, name)
    return server.url(name)


def digest_mysql(_: Any, url: str) -> str:
    """Of the database's data and schema, of accounts, settings and files."""
    server = mysql_server.shared()
    name = url.partition("?")[0].rpartition("/")[2]
    found: list[Any] = [sorted(server.files())]
    tables = [row[0] for row in server.script("SHOW TABLES", name)]
    for table in tables:
        found.append(server.script(f"SHOW CREATE TABLE `{table}`", name))
        found.append(sorted(server.script(f"SELECT * FROM `{table}`", name)))
    found.append(server.script("SELECT User, Host, Priv FROM mysql.global_priv"))
    found.append(server.script("SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid%'"))
    return hashlib.sha256(repr(found).encode()).hexdigest()


MYSQL = Spelling(
    one="SELECT 1",
    rows="SELECT seq, 'x' FROM seq_1_to_{n}",
    wide_rows="SELECT seq, REPEAT('x', {width}) FROM seq_1_to_{n}",
    values="SELECT NULL, 42, 1152921504606846976, -9223372036854775808, 1.5e0,"
    " 18446744073709551615, 12.50, 'naïve – 海 🌊', '', x'00ff', x''",
    expected=(
        *(None, 42, 2**60, -(2**63), 1.5, 2**64 - 1, "12.50"),
        *("naïve – 海 🌊", "", b"\x00\xff", b""),
    ),
    echo="SELECT ?, ?, ?",
    table="SELECT * FROM {name} ORDER BY id",
    count="SELECT count(*) FROM {name}",
    runaway="SELECT SUM(a.seq ^ b.seq) FROM seq_1_to_10000000 AS a, seq_1_to_10000000 AS b",
    broken="SELECT (SELECT id FROM items)",
    nonsense="SELEC 1",
    two="SELECT 1; SELECT 2",
    empty=" -- nothing\n",
    add="INSERT INTO void VALUES (?, ?)",
    add_and_return="INSERT INTO void VALUES (?, ?) RETURNING id, name",
    nothing="SELECT * FROM void",
    comment_behind="SELECT 1 ; -- that is all\n",
    columns=("id", "name"),
    integer_type="int",
    refused_reads=(
        "BEGIN",
        "START TRANSACTION READ WRITE",
        "COMMIT",
        "SAVEPOINT here",
        "XA START 'x'",
        "LOCK TABLES items WRITE",
        "HANDLER items OPEN",
        "USE mysql",
        "PREPARE s FROM 'DROP TABLE parts'",
        "EXECUTE s",
    ),
    writes=(
        "DELETE FROM items",
        "TRUNCATE parts",
        "UPDATE items SET name = 'x'",
        "INSERT INTO void VALUES (1, 'x')",
        "INSERT INTO void SELECT * FROM items RETURNING id",
        "REPLACE INTO void VALUES (1, 'x') RETURNING id",
        "LOAD DATA INFILE '/etc/passwd' INTO TABLE void",
        "CREATE TABLE more (a INT)",
        "CREATE TABLE copy AS SELECT * FROM items",
        "CREATE TEMPORARY TABLE t (a INT)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1",
        "CREATE DATABASE other_database",
        "CREATE USER mallory",
        "GRANT ALL ON *.* TO root@localhost",
        "DROP TABLE parts",
        "DROP DATABASE mysql",
        "RENAME TABLE void TO gone",
        "ALTER TABLE void ADD COLUMN c INT",
        "OPTIMIZE TABLE items",
        "ANALYZE TABLE items",
        "SELECT * FROM items INTO OUTFILE 'stolen'",
        "SELECT 1 /*!50000 INTO OUTFILE 'stolen' */",
        "SELECT 1 /*M!100000 INTO DUMPFILE 'stolen' */",
        "/*!50000 DROP TABLE parts */",
        "SET GLOBAL max_connections = 99",
        "FLUSH TABLES",
        "DO GET_LOCK('x', 0)",
    ),
)

CASES = {
    "duckdb": Case("duckdb", make_duckdb, DUCKDB, digest_duckdb),
    "files": Case("files", make_files, FILES, digest_files),
    "sqlite": Case("sqlite", make_sqlite, SQLITE, digest_sqlite),
    "memory": Case("memory", lambda _: "memory://", MEMORY, digest_memory),
}
# All of them everywhere: the tests of a server that is not installed are skipped, each by name.
for _kind in postgres_server.KINDS:
    _name = "postgres" if _kind == "wheel" else f"postgres-{_kind}"
    CASES[_name] = Case(_name, make_postgres(_kind), POSTGRES, digest_postgres(_kind))
CASES["mysql"] = Case("mysql", make_mysql, MYSQL, digest_mysql)

JDBC_CASES = {
    product: Case(
        f"jdbc-{product}",
        jdbc_cases.make(product, CASES),
        jdbc_cases.spelling(product, CASES),
        jdbc_cases.digest(product, CASES),
        options=jdbc_cases.options(product),
        access="write",
    )
    for product in jdbc_cases.ALL
}
"""Every driver's case; those that each run takes are among `CASES`."""
CASES |= {f"jdbc-{product}": JDBC_CASES[product] for product in jdbc_cases.PRODUCTS}
