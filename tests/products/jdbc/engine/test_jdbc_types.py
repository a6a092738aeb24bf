"""Sources without a JDBC driver report the types that the driver of the database reports."""

import json
import os
import sqlite3

import pytest

from support import jdbc_drivers, mysql_server, postgres_server
from support.permits import permit_for
from support.server_keeper import PASSWORD
from tidegate.engines.registry import engine_of, open_engine
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Column, DriverType
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.products.jdbc.engine.jvm.process import JvmProcess
from tidegate.products.jdbc.engine.jvm.runtime import find_runtime
from tidegate.products.jdbc.engine.messages import Loaded, TableFacts
from tidegate.products.jdbc.result_types import jdbc_type, listed_code
from tidegate.results.json_values import encode_rows

POSTGRES = """
CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TYPE comp AS (x int, y text);
CREATE DOMAIN dom AS int;
CREATE TABLE t (i2 int2, i4 int4, i8 int8, o oid, n numeric, n2 numeric(10,2), f4 float4, f8 float8,
  m money, b bool, bi bit, bi3 bit(3), vb varbit(5), c char(3), ch "char", v varchar(10), tx text,
  nm name, ba bytea, d date, tm time, tmz timetz, ts timestamp, tsz timestamptz, u uuid, j json,
  jb jsonb, x xml, iv interval, ai int4[], at text[], e mood, co comp, dm dom, p point, bx box,
  s serial, bs bigserial, ss smallserial, idt int GENERATED ALWAYS AS IDENTITY, ip inet,
  r int4range, tv tsvector);
INSERT INTO t DEFAULT VALUES"""
POSTGRES_QUERY = """SELECT t.*, count(*) OVER () AS cnt, sum(i4) OVER () AS s4, sum(i8) OVER () s8,
  avg(i4) OVER () AS av, NULL AS nu, 'lit' AS li, true AS bo, 1 AS one, 1.5 AS de FROM t"""
MARIADB = """
CREATE TABLE t (ti tinyint, t1 tinyint(1), tu tinyint unsigned, si smallint, su smallint unsigned,
  mi mediumint, mu mediumint unsigned, i int, iu int unsigned, bi bigint, bu bigint unsigned,
  d decimal(10,2), f float, db double, b1 bit(1), b8 bit(8), c char(3), v varchar(10), tt tinytext,
  tx text, mt mediumtext, lt longtext, js json, bn binary(3), vb varbinary(10), tb tinyblob,
  bl blob, mb mediumblob, lb longblob, da date, y year, tm time, dt datetime, ts timestamp,
  en enum('a','b'), st set('a','b'), ge geometry, pt point);
INSERT INTO t VALUES ()"""
MARIADB_QUERY = """SELECT t.*, count(*) OVER () AS cnt, sum(i) OVER () AS si_, NULL AS nu,
  'lit' AS li, 1 AS one, 1.5 AS de, i + 0 AS ex, now() AS nw, concat(v, c) AS cc FROM t"""
SQLITE = """CREATE TABLE t (a INT, b INTEGER, c MEDIUMINT, d BIGINT, e INT8, f TINYINT, g SMALLINT,
  h INT2, i BOOLEAN, j NUMERIC, k DECIMAL(10,2), l REAL, m DOUBLE, n FLOAT, o CHAR(3),
  p VARCHAR(10), q TEXT, r CLOB, s BLOB, t DATE, u DATETIME, v TIMESTAMP, w, x DOUBLE PRECISION,
  y NVARCHAR(5), z UNSIGNED BIG INT, aa BIT, bb STRING, cc JSON, dd TIME,
  ee varchar(20), ff integer)"""
SQLITE_QUERY = """SELECT t.*, count(*) AS cnt, 1 AS one, 1.5 AS de, 'x' AS tx, NULL AS nu,
  a + 1 AS ex, 5000000000 AS big FROM t"""
LOOKED_UP = {"e", "co", "s", "bs", "ss", "idt"}
"""PostgreSQL's columns of which its driver knows more, because it reads the catalog."""


def _source(url, **options):
    engine, dialect = engine_of(url)
    return Source("id", "types", url, engine, dialect, options=tuple(options.items()))


async def _result(source, query):
    """The columns and the first row of a query."""
    engine = await open_engine(source)
    try:
        cursor = await engine.run(permit_for(source, Query(Statement(query))), Cancellation())
        rows = await cursor.fetch(1)
        columns = cursor.columns
        await cursor.close()
        return columns, json.loads(encode_rows(rows))[0]
    finally:
        await engine.close()


async def _listed(source):
    engine = await open_engine(source)
    try:
        found = await engine.describe(permit_for(source, Browse("catalog")), Cancellation())
    finally:
        await engine.close()
    (table,) = [table for table in found.tables if table.name == "t"]
    return table.columns


async def _listed_by_driver(product, url, properties, **body):
    options = f"-Dorg.sqlite.lib.path={jdbc_drivers.SQLITE_LIBRARY}"
    process = await JvmProcess.start(find_runtime(), "128m", "UTC", (jdbc_drivers.QUICK, options))
    try:
        jars = jdbc_drivers.driver_path(product).split(os.pathsep)
        await process.set_up({"jars": jars, "url": url}, Loaded)
        channel = process.new_channel()
        await process.ask(channel, "connect", {"url": url, "properties": properties}, dict)
        asked = {"table": "t", "system_schemas": [], **body}
        tables = await process.ask(channel, "catalog", asked, list[TableFacts])
    finally:
        process.close()
        await process.closed()
    (table,) = [table for table in tables if table.name == "t"]
    return {column.name: column.code for column in table.columns}


async def _check(native, driver, query, dialect, different=frozenset()):
    """That both report the same, but for columns that are named."""
    columns, row = await _result(native, query)
    expected, _ = await _result(driver, query)
    found = {
        column.name: jdbc_type(column, dialect, value)
        for column, value in zip(columns, row, strict=True)
    }
    wanted = {column.name: column.driver_type for column in expected}
    assert {name for name in wanted if found[name] != wanted[name]} == different
    assert len(wanted) == len(found)


async def test_postgres_reports_what_pgjdbc_reports():
    path = jdbc_drivers.driver_path("postgresql")
    server = postgres_server.shared()
    database = server.new_database()
    server.ask(POSTGRES, database)
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/{database}"
    login = {"user": "postgres", "password": PASSWORD}
    native = _source(server.url(database))
    driver = _source(url, driver_path=path, **login)
    await _check(native, driver, POSTGRES_QUERY, "postgres", LOOKED_UP)

    known = await _listed_by_driver("postgresql", url, login)
    listed = {each.name: listed_code(each.type, "postgres") for each in await _listed(native)}
    assert {name for name in known if known[name] != listed[name]} == {"e", "co", "dm"}
    assert {each.name: each.driver_type_code for each in await _listed(driver)} == known


async def test_mariadb_reports_what_its_driver_reports():
    path = jdbc_drivers.driver_path("mariadb")
    server = mysql_server.shared()
    database = server.new_database()
    server.script(f"USE {database}; {MARIADB}")
    url = f"jdbc:mariadb://127.0.0.1:{server.port}/{database}"
    login = {"user": "word", "password": PASSWORD}
    native = _source(server.url(database))
    driver = _source(url, driver_path=path, **login)
    await _check(native, driver, MARIADB_QUERY, "mysql", set())

    known = await _listed_by_driver("mariadb", url, login, catalogs=True)
    listed = {each.name: listed_code(each.type, "mysql") for each in await _listed(native)}
    assert listed == known


async def test_sqlite_reports_what_sqlite_jdbc_reports(tmp_path):
    path = jdbc_drivers.driver_path("sqlite")
    file = tmp_path / "types.db"
    with sqlite3.connect(file) as connection:
        connection.execute(SQLITE)
        connection.execute("INSERT INTO t (a, l, q, d) VALUES (1, 0.5, 'x', 5000000000)")
    connection.close()
    options = f"-Dorg.sqlite.lib.path={jdbc_drivers.SQLITE_LIBRARY}"
    native = _source(f"sqlite:///{file}")
    driver = _source(f"jdbc:sqlite:{file}", driver_path=path, jvm_options=options)
    await _check(native, driver, SQLITE_QUERY, "sqlite", set())

    known = await _listed_by_driver("sqlite", f"jdbc:sqlite:{file}", {})
    assert {each.name: listed_code(each.type, "sqlite") for each in await _listed(native)} == known


@pytest.mark.parametrize(
    ("type_name", "code", "java_class"),
    [
        ("BOOLEAN", 16, "java.lang.Boolean"),
        ("UTINYINT", 5, "java.lang.Short"),
        ("HUGEINT", 1111, "java.math.BigInteger"),
        ("DECIMAL(18,3)", 3, "java.math.BigDecimal"),
        ("TIMESTAMP WITH TIME ZONE", 2014, "java.time.OffsetDateTime"),
        ("INTEGER[]", 2003, "org.duckdb.DuckDBArray"),
        ("STRUCT(a INTEGER)", 2002, "java.sql.Struct"),
        ("ENUM('a', 'b')", 1111, "java.lang.String"),
    ],
)
def test_duckdb_reports_what_the_source_of_its_driver_says(type_name, code, java_class):
    column = Column("c", type_name)
    assert jdbc_type(column, "duckdb") == DriverType(code, type_name, java_class)
    assert listed_code(type_name, "duckdb") == code


def test_a_type_of_an_unknown_database_has_the_code_of_its_kind():
    assert jdbc_type(Column("c", "number", "decimal"), "oracle") == DriverType(
        3, "number", "java.math.BigDecimal"
    )


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
async def test_times_and_texts_are_those_of_the_database_in_every_time_zone(tmp_path, zone):
    folder = tmp_path / "données 日本"
    folder.mkdir()
    script = ("CREATE TABLE t (a VARCHAR(20))", "INSERT INTO t VALUES ('naïve 日本 🌊')")
    url = jdbc_drivers.new_database("h2", folder, script)
    options = {
        "driver_path": jdbc_drivers.driver_path("h2"),
        "jvm_options": jdbc_drivers.QUICK,
        "time_zone": zone,
    }
    source = Source("s1", "h2", url, *engine_of(url), options=tuple(options.items()))
    _, row = await _result(
        source,
        "SELECT a, TIMESTAMP '2026-03-08 02:30:00', DATE '2026-03-08', TIME '02:30:00',"
        " TIMESTAMP WITH TIME ZONE '2026-01-01 00:00:00+05:30',"
        " TIME '23:59:59.999999999', TIMESTAMP '2026-03-08 02:30:00.0000001',"
        " DATE '12026-01-02', DATE '-0043-03-15',"
        " ARRAY[TIMESTAMP '2026-03-08 02:30:00', TIMESTAMP '2026-03-08 02:30:00.5'],"
        " ARRAY[TIME '12:00:00'], ARRAY[JSON '{\"a\":1}'] FROM t",
    )
    assert row == [
        "naïve 日本 🌊",
        "2026-03-08T02:30:00",
        "2026-03-08",
        "02:30:00",
        "2026-01-01T00:00:00+05:30",
        "23:59:59.999999999",
        "2026-03-08T02:30:00.000000100",
        "12026-01-02",
        "0044-03-15 BC",
        ["2026-03-08T02:30:00", "2026-03-08T02:30:00.500000"],
        ["12:00:00"],
        ['{"a":1}'],
    ]


async def test_moments_by_the_driver_of_postgresql_are_those_of_our_own_engine(monkeypatch):
    monkeypatch.setenv("TYPES_PASSWORD", PASSWORD)
    server = postgres_server.shared()
    options = {
        "driver_path": jdbc_drivers.driver_path("postgresql"),
        "jvm_options": jdbc_drivers.QUICK,
        "user": "postgres",
        "password": "${ENV:TYPES_PASSWORD}",
        "time_zone": "America/New_York",
    }
    text = (
        "SELECT 'infinity'::timestamptz, '-infinity'::timestamp, '-infinity'::date,"
        " '24:00:00'::time, '24:00:00+00'::timetz, '0044-03-15 01:02:03+00 BC'::timestamptz,"
        " '0044-03-15 BC'::date, '294276-12-31'::timestamp,"
        " ARRAY['2026-03-08 02:30:00'::timestamp, 'infinity', NULL],"
        " ARRAY['2026-03-08 02:30:00.5+02'::timestamptz, '-infinity'],"
        " ARRAY['12:00:00+05:30'::timetz], ARRAY['0044-03-15 BC'::date, 'infinity']"
    )
    driver = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"
    _, own = await _result(_source(server.url("postgres")), text)
    _, given = await _result(_source(driver, **options), text)
    assert given == own


async def test_dates_that_there_are_not_are_those_of_mariadb_by_its_driver(monkeypatch):
    monkeypatch.setenv("TYPES_PASSWORD", PASSWORD)
    server = mysql_server.shared()
    database = server.new_database()
    server.script(
        "SET sql_mode = ''; CREATE TABLE t (d date, e date, m datetime(6), n date, y year, z year);"
        " INSERT INTO t VALUES ('2020-00-00', '0000-00-00', '0000-00-00', NULL, 2155, 0)",
        database,
    )
    options = {
        "driver_path": jdbc_drivers.driver_path("mariadb"),
        "jvm_options": jdbc_drivers.QUICK,
        "user": "word",
        "password": "${ENV:TYPES_PASSWORD}",
    }
    driver = f"jdbc:mariadb://127.0.0.1:{server.port}/{database}"
    _, own = await _result(_source(server.url(database)), "SELECT * FROM t")
    _, given = await _result(_source(driver, **options), "SELECT * FROM t")
    assert given == own
