"""The engine cases of databases behind JDBC drivers: how each of them says what the suite asks.

H2, HSQLDB and Derby keep a database in files, PostgreSQL, MariaDB and SQLite are those of the other
cases.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from support import jdbc_drivers, mysql_server, postgres_server
from support.server_keeper import PASSWORD

ALL = ("h2", "hsqldb", "derby", "postgresql", "mariadb", "sqlite")
PRODUCTS = ALL if os.environ.get("TIDEGATE_TEST_DRIVERS") == "all" else ("h2", "postgresql")
"""Each test of each driver starts a JVM: `./dev drivers` takes all of them, the usual run two."""

JAVA = os.environ.get("TIDEGATE_TEST_JAVA")
"""The home of the Java that drivers run on; else the one that is found."""

NATIVE = {"postgresql": "postgres", "mariadb": "mysql", "sqlite": "sqlite"}
"""The case of the same database without JDBC."""

SHOP = (
    'CREATE TABLE "items" ("id" INTEGER NOT NULL PRIMARY KEY, "name" VARCHAR(1000))',
    'CREATE TABLE "parts" ("id" INTEGER NOT NULL PRIMARY KEY, "item_id" INTEGER NOT NULL'
    ' REFERENCES "items" ("id"))',
    'CREATE TABLE "void" ("id" INTEGER NOT NULL PRIMARY KEY, "name" VARCHAR(1000))',
    *(f"INSERT INTO \"items\" VALUES ({i}, 'item {i}')" for i in range(1, 11)),
    *(f'INSERT INTO "parts" VALUES ({i + 10 * k}, {i})' for i in range(1, 11) for k in (0, 1)),
)

WRITES = (
    'DELETE FROM "items"',
    'UPDATE "items" SET "name" = \'x\'',
    "INSERT INTO \"void\" VALUES (1, 'x')",
    'INSERT INTO "void" SELECT * FROM "items"',
    'CREATE TABLE "more" ("a" INTEGER)',
    'CREATE VIEW "v" AS SELECT * FROM "items"',
    'DROP TABLE "parts"',
    'ALTER TABLE "void" ADD COLUMN "c" INTEGER',
    'TRUNCATE TABLE "parts"',
)

STANDARD: dict[str, Any] = {
    "table": 'SELECT * FROM "{name}" ORDER BY "id"',
    "count": 'SELECT count(*) FROM "{name}"',
    "nonsense": "SELEC 1",
    "empty": " -- nothing\n",
    "add": 'INSERT INTO "void" VALUES (?, ?)',
    "add_and_return": "",
    "nothing": 'SELECT * FROM "void"',
    "columns": ("id", "name"),
    "writes": WRITES,
}

H2: dict[str, Any] = {
    "one": "SELECT 1",
    "rows": "SELECT x, 'x' FROM system_range(1, {n})",
    "wide_rows": "SELECT x, repeat('x', {width}) FROM system_range(1, {n})",
    "values": "SELECT NULL, 42, 1152921504606846976, CAST(-9223372036854775808 AS BIGINT),"
    " CAST(1.5 AS DOUBLE PRECISION), CAST('Infinity' AS DOUBLE PRECISION),"
    " 'naïve – 海 🌊', '', X'00ff', X''",
    "expected": (
        *(None, 42, 2**60, -(2**63), 1.5, float("inf")),
        *("naïve – 海 🌊", "", b"\x00\xff", b""),
    ),
    "echo": "SELECT CAST(? AS INTEGER), CAST(? AS VARCHAR), CAST(? AS VARCHAR)",
    "runaway": "SELECT count(*) FROM system_range(1, 100000000000) WHERE mod(x, 7) = 3",
    "broken": "SELECT 1 / 0",
    "two": "SELECT 1; SELECT 2",
    "comment_behind": "SELECT 1 ; -- that is all\n",
    "refused_reads": (
        "CALL FILE_WRITE('x', 'written')",
        "SELECT FILE_WRITE('x', 'written')",
        "SELECT FILE_READ('/etc/passwd')",
        "SELECT 1 //* \n , FILE_WRITE('x', 'written') -- */ 2",
        "SELECT 1 // ' \n , FILE_WRITE('x', 'written') -- '",
        "SELECT * FROM CSVREAD('/etc/passwd')",
        "CALL CSVWRITE('written', 'SELECT 1')",
        "SCRIPT TO 'written'",
        "BACKUP TO 'written.zip'",
        "RUNSCRIPT FROM 'x'",
        "SHUTDOWN",
        "SET WRITE_DELAY 1",
        "CREATE ALIAS shout AS 'String shout(String s) { return s; }'",
        "CREATE TRIGGER t BEFORE INSERT ON \"void\" CALL 'java.lang.String'",
        "CREATE AGGREGATE shout FOR 'java.lang.String'",
        'CREATE TABLE "more" ("a" INTEGER) ENGINE "java.lang.String"',
        'CREATE TABLE "more" ENGINE "java.lang.String" AS SELECT 1',
        "CREATE LINKED TABLE \"more\"('org.h2.Driver', 'jdbc:h2:mem:z', 'sa', '', 'T')",
        "SELECT * FROM LINK_SCHEMA('a', '', 'jdbc:h2:mem:z', 'sa', '', 'PUBLIC')",
        'SELECT "id" FROM FINAL TABLE (INSERT INTO "void" VALUES (1, \'x\'))',
    ),
    "text_type": "character varying",
}

_DIGITS = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
_FIVE = "CAST(1 + a.i + 10 * b.i + 100 * c.i + 1000 * d.i + 10000 * e.i AS INTEGER)"
_TABLES = ", ".join(f"{_DIGITS} AS {name}(i)" for name in "edcba")
_MANY = ", ".join(f"{_DIGITS} AS {name}(i)" for name in "abcdefghijkl")

HSQLDB: dict[str, Any] = {
    "one": "VALUES (1)",
    "rows": f"SELECT {_FIVE}, 'x' FROM {_TABLES} LIMIT {{n}}",
    "wide_rows": f"SELECT {_FIVE}, repeat('x', {{width}}) FROM {_TABLES} LIMIT 2000",
    "values": "SELECT CAST(NULL AS INTEGER), 42, 1152921504606846976, -9223372036854775807 - 1,"
    " 1.5E0, 'naïve – 海 🌊', '', X'00ff' FROM (VALUES (0))",
    "expected": (None, 42, 2**60, -(2**63), 1.5, "naïve – 海 🌊", "", b"\x00\xff"),
    "echo": "SELECT CAST(? AS INTEGER), CAST(? AS VARCHAR(100)), CAST(? AS VARCHAR(100))"
    " FROM (VALUES (0))",
    "runaway": f"SELECT count(*) FROM {_MANY} WHERE mod(a.i + l.i, 7) = 3",
    "broken": "SELECT 1 / 0 FROM (VALUES (0))",
    "two": "VALUES (1); VALUES (2)",
    "comment_behind": "VALUES (1) ; -- that is all\n",
    "refused_reads": (
        "SHUTDOWN",
        "CHECKPOINT",
        "BACKUP DATABASE TO 'written/' BLOCKING",
        "SCRIPT 'written'",
        'SET TABLE "items" READONLY TRUE',
        'CALL "java.lang.System.exit"(1)',
        'SELECT "java.lang.Math.abs"(-1) FROM (VALUES (0))',
        "SELECT load_file('/etc/passwd') FROM (VALUES (0))",
        'CREATE TRIGGER t AFTER INSERT ON "void" CALL "java.lang.String"',
        "CREATE FUNCTION f(x INTEGER) RETURNS INTEGER LANGUAGE JAVA DETERMINISTIC NO SQL"
        " EXTERNAL NAME 'CLASSPATH:java.lang.Math.abs'",
    ),
    "text_type": "varchar",
}

# Derby plans a join of twelve tables for longer than any limit; it plans this one at once.
_HUNDRED = f"(VALUES {', '.join(f'({n})' for n in range(100))})"
_LONG = ", ".join(f"{_HUNDRED} AS {name}(i)" for name in "abcdef")

DERBY: dict[str, Any] = {
    "one": "VALUES (1)",
    "rows": f"SELECT {_FIVE}, 'x' FROM {_TABLES} FETCH FIRST {{n}} ROWS ONLY",
    "wide_rows": f"SELECT {_FIVE}, '{{n:x<{{width}}}}' FROM {_TABLES} FETCH FIRST {{n}} ROWS ONLY",
    "values": "SELECT CAST(NULL AS INTEGER), 42, 1152921504606846976, 1.5E0, 'naïve – 海 🌊', '',"
    " X'00ff' FROM (VALUES 0) AS z(i)",
    "expected": (None, 42, 2**60, 1.5, "naïve – 海 🌊", "", b"\x00\xff"),
    "echo": "SELECT CAST(? AS INTEGER), CAST(? AS VARCHAR(100)), CAST(? AS VARCHAR(100))"
    " FROM (VALUES 0) AS z(i)",
    "runaway": f"SELECT count(*) FROM {_LONG} WHERE mod(a.i + f.i, 7) = 3",
    "broken": 'SELECT 1 / ("id" - "id") FROM "items"',
    "two": "VALUES (1); VALUES (2)",
    "comment_behind": "VALUES (1) ; -- that is all\n",
    "refused_reads": (
        "CALL SYSCS_UTIL.SYSCS_BACKUP_DATABASE('written')",
        "CALL SYSCS_UTIL.SYSCS_EXPORT_TABLE(NULL, 'items', 'written', NULL, NULL, NULL)",
        "CALL SYSCS_UTIL.SYSCS_SET_DATABASE_PROPERTY('derby.user.x', 'y')",
        "SET SCHEMA SYS",
        'LOCK TABLE "items" IN EXCLUSIVE MODE',
        "CREATE PROCEDURE p() LANGUAGE JAVA PARAMETER STYLE JAVA"
        " EXTERNAL NAME 'java.lang.System.gc'",
        "CREATE TYPE t EXTERNAL NAME 'java.util.HashMap' LANGUAGE JAVA",
        "CREATE DERBY AGGREGATE a FOR INTEGER EXTERNAL NAME 'java.lang.String'",
    ),
    "text_type": "varchar",
}


def spelling(product: str, cases: Mapping[str, Any]) -> Any:
    """The product's spelling: its own, or that of the same database without JDBC."""
    if product in NATIVE:
        native = cases[NATIVE[product]].spelling
        return replace(native, **_changed(product, native))
    own = {"h2": H2, "hsqldb": HSQLDB, "derby": DERBY}[product]
    return replace(cases["sqlite"].spelling, **{**STANDARD, **own})


def _changed(product: str, native: Any) -> dict[str, Any]:
    """What JDBC shows in another way than the database's own driver."""
    if product == "postgresql":
        return {"integer_type": "int4"}
    if product == "mariadb":
        expected = tuple(Decimal(v) if v == "12.50" else v for v in native.expected)
        # Its driver does not ask the server when a statement that is unknown is prepared.
        unknown = "SELECT nonsense FROM nothing"
        return {"integer_type": "integer", "expected": expected, "nonsense": unknown}
    return {}


def options(product: str) -> Callable[[], tuple[tuple[str, str], ...]]:
    """The options of a source on the product's driver."""

    def options_of() -> tuple[tuple[str, str], ...]:
        jvm_options = jdbc_drivers.TRUSTING
        if product == "sqlite":
            jvm_options += f" -Dorg.sqlite.lib.path={jdbc_drivers.SQLITE_LIBRARY}"
        given = {"driver_path": jdbc_drivers.driver_path(product), "jvm_options": jvm_options}
        if JAVA:
            given["java"] = JAVA
        if jdbc_drivers.USERS.get(product):
            given["user"] = jdbc_drivers.USERS[product]
        if product in ("postgresql", "mariadb"):
            user = "postgres" if product == "postgresql" else "word"
            given |= {"user": user, "password": PASSWORD}
        return tuple(given.items())

    return options_of


def make(product: str, cases: Mapping[str, Any]) -> Callable[[Path], str]:
    """What makes the shop of a product, and gives its URL."""

    def make_shop(directory: Path) -> str:
        if product not in NATIVE:
            return jdbc_drivers.new_database(product, directory, SHOP)
        jdbc_drivers.driver_path(product)
        native = cases[NATIVE[product]].make(directory)
        if product == "sqlite":
            return native.replace("sqlite:///", "jdbc:sqlite:")
        name = native.partition("?")[0].rpartition("/")[2]
        return f"jdbc:{product}://127.0.0.1:{_server(product).port}/{name}"

    return make_shop


def digest(product: str, cases: Mapping[str, Any]) -> Callable[[Any, str], Any]:
    """What tells whether the shop of a product has changed."""

    def digest_of(engine: Any, url: str) -> Any:
        if product in NATIVE:
            return cases[NATIVE[product]].digest_of(
                engine, url.replace("jdbc:sqlite:", "sqlite:///")
            )
        properties = {"user": jdbc_drivers.USERS.get(product, ""), "password": ""}
        return jdbc_drivers.digest(engine.process, url, properties)

    return digest_of


def _server(product: str) -> Any:
    return postgres_server.shared("wheel") if product == "postgresql" else mysql_server.shared()
