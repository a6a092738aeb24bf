"""Columns and values of parameters are the same on each database, whatever its driver."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager

import pytest

from support import jdbc_drivers, mysql_server, postgres_server
from support.jdbc_surface import make_file, served
from support.server_keeper import PASSWORD

TABLE = (
    "CREATE TABLE kinds (n integer, x decimal(10, 2), d date, i time, m timestamp, s varchar(9))"
)
ROW = (
    "INSERT INTO kinds VALUES (1, 2.5, DATE '2026-01-31', TIME '12:30:00',"
    " TIMESTAMP '2026-01-31 12:30:00', 'it''s')"
)
DERBY = (
    "INSERT INTO kinds VALUES (1, 2.5, DATE('2026-01-31'), TIME('12:30:00'),"
    " TIMESTAMP('2026-01-31 12:30:00'), 'it''s')"
)
TYPED = [
    ("n = ?", "INTEGER", 1),
    ("n = ?", "TINYINT", 1),
    ("x < ?", "DOUBLE", 2.75),
    ("x < ?", "FLOAT", 2.75),
    ("x = ?", "DECIMAL", "2.50"),
    ("x = ?", "NUMERIC", "2.5"),
    ("d = ?", "DATE", "2026-01-31"),
    ("i = ?", "TIME", "12:30:00"),
    ("m = ?", "TIMESTAMP", "2026-01-31T12:30:00"),
    ("m < ?", "DATE", "2026-02-01"),
    ("s = ?", "VARCHAR", "it's"),
    ("s = ?", "LONGVARCHAR", "it's"),
]
DRIVERS = ("h2", "hsqldb", "derby", "postgresql", "mariadb", "sqlite")
NATIVE = ("postgresql native", "mariadb native", "sqlite native")


def _database(product, files):
    """(URL, account) of a database of its own that has the table."""
    name = product.partition(" ")[0]
    if name in jdbc_drivers.USERS:
        row = DERBY if name == "derby" else ROW
        return jdbc_drivers.new_database(name, files, (TABLE, row)), {
            "user": jdbc_drivers.USERS[name]
        }
    if name == "sqlite":
        plain = ROW.replace("DATE '", "'").replace("TIMESTAMP '", "'").replace("TIME '", "'")
        return make_file(files / "kinds.db", f"{TABLE}; {plain}"), {}
    if name == "mariadb":
        my = mysql_server.shared()
        database = my.new_database()
        my.script(f"USE {database}; {TABLE}; {ROW}")
        url = f"jdbc:mariadb://127.0.0.1:{my.port}/{database}"
        return url, {"user": "word", "password": PASSWORD}
    pg = postgres_server.shared()
    database = pg.new_database()
    pg.ask(f"{TABLE}; {ROW}", database)
    url = f"jdbc:postgresql://127.0.0.1:{pg.port}/{database}"
    return url, {"user": "postgres", "password": PASSWORD}


CLASSES = {
    "postgresql": "org.postgresql.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "sqlite": "org.sqlite.JDBC",
}


on_each_database = pytest.mark.parametrize("product", [*DRIVERS, *NATIVE])


@asynccontextmanager
async def connected(product, tmp_path):
    """A client and the id of its connection."""
    driver = {}
    path = ""
    if " " not in product:
        path = jdbc_drivers.driver_path(product)
        if product in CLASSES:
            driver = {"driver": CLASSES[product]}
        if product == "sqlite" and not os.path.isdir(jdbc_drivers.SQLITE_LIBRARY):
            pytest.skip("needs SQLite's library for Java (the package libxerial-sqlite-jdbc-jni)")
    async with served(tmp_path, jdbc={"driver_path": path}) as jdbc:
        url, account = _database(product, jdbc.files)
        peer = jdbc.peer()
        yield peer, await peer.connected(url, **account, **driver)


@on_each_database
async def test_the_declared_sizes_of_columns_are_shown(product, tmp_path):
    async with connected(product, tmp_path) as (peer, id):
        found = await peer.bare("discover", connectionId=id, table="kinds")
        sizes = {each["name"].lower(): (each["size"], each["scale"]) for each in found["columns"]}
        assert (sizes["n"], sizes["x"], sizes["s"]) == ((None, None), (10, 2), (9, None))


@on_each_database
async def test_typed_values_find_their_row(product, tmp_path):
    async with connected(product, tmp_path) as (peer, id):
        found = {}
        for condition, type_, value in TYPED:
            parameter = {"type": type_, "value": value}
            query = f"SELECT n FROM kinds WHERE {condition}"
            done = await peer.recorded(id, query, parameters=[parameter])
            found[condition, type_] = done.get("rows", done)
        assert found == {(condition, type_): [[1]] for condition, type_, _ in TYPED}


@on_each_database
async def test_jdbc_literals_find_their_row(product, tmp_path):
    async with connected(product, tmp_path) as (peer, id):
        for condition in (
            "d = {d '2026-01-31'}",
            "i = {t '12:30:00'}",
            "m = {ts '2026-01-31 12:30:00'}",
        ):
            done = await peer.recorded(id, f"SELECT n FROM kinds WHERE {condition}")
            assert done.get("rows") == [[1]], (condition, done)


@on_each_database
async def test_a_fraction_is_not_cut_to_fit_an_integer(product, tmp_path):
    """1 < 1.5 holds everywhere; a database that would compare with 1 says that it cannot."""
    async with connected(product, tmp_path) as (peer, id):
        for value in (1.5, {"type": "DECIMAL", "value": "1.5"}):
            done = await peer.recorded(id, "SELECT n FROM kinds WHERE n < ?", parameters=[value])
            if product in ("hsqldb", "derby"):
                assert done["code"] == "argument.invalid" and "fraction" in done["error"], done
            elif product == "postgresql native":
                assert done["code"] == "sql.failed", done  # its type is the column's
            else:
                assert done.get("rows") == [[1]], done


@on_each_database
async def test_a_number_of_a_billion_digits_is_refused_before_anything_writes_it_out(
    product, tmp_path
):
    async with connected(product, tmp_path) as (peer, id):
        endless = {"type": "DECIMAL", "value": "1E+999999999"}
        refused = await peer.recorded(id, "SELECT n FROM kinds WHERE s = ?", parameters=[endless])
        assert refused["code"] == "argument.invalid", refused
        assert "digits" in refused["error"]
        assert (await peer.recorded(id, "SELECT n FROM kinds"))["rows"] == [[1]]
