"""Which driver `connect` takes, what it says of it, and what to give where there is none."""

from __future__ import annotations

import os
import sqlite3

import pytest

from support import jdbc_drivers, mysql_server, postgres_server
from support.jdbc_surface import QUERY, served
from tidegate.products.jdbc.engine.known_databases import KNOWN_DATABASES

H2 = "com.h2database:h2"


def _path(*products: str) -> str:
    return os.pathsep.join(map(jdbc_drivers.driver_path, products))


async def test_a_file_that_an_engine_of_ours_reads_is_read_by_its_driver_where_one_is_named(
    tmp_path,
):
    library = jdbc_drivers.SQLITE_LIBRARY
    if not os.path.isdir(library):
        pytest.skip("needs SQLite's library for Java (the package libxerial-sqlite-jdbc-jni)")
    async with served(tmp_path, jdbc={"driver_path": _path("sqlite")}) as jdbc:
        peer = jdbc.peer()
        named = await peer.bare("connect", url=jdbc.url, driver="org.sqlite.JDBC")
        assert (named.get("engine"), named.get("driver")) == ("jdbc", "org.sqlite.JDBC"), named
        native = await peer.connected(jdbc.url)
        both = [
            (await peer.recorded(id, QUERY, parameters=["active"]))["rows"]
            for id in (named["id"], native)
        ]
        assert both[0] == both[1] == [[1, "Alice", "alice@example.com"]]
        refused = await peer.bare("record", query="DELETE FROM users", connectionId=named["id"])
        assert refused["code"] == "sql.unknown_statement", refused
    with sqlite3.connect(tmp_path / "files" / "shop.db") as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (2,)
    connection.close()


async def test_a_saved_source_says_which_driver_it_has(tmp_path):
    path = _path("h2")
    sources = [
        {"name": "hr", "url": "jdbc:h2:mem:hr", "options": {"driver_path": path}},
        {"name": "shop", "url": "sqlite://"},
    ]
    async with served(tmp_path, sources=sources) as jdbc:
        peer = jdbc.peer()
        said = [await peer.bare("connect", url=name) for name in ("hr", "shop")]
        assert [(each["engine"], each["driver"], each["driverSource"]) for each in said] == [
            ("jdbc", "org.h2.Driver", "classpath"),
            ("native", "org.sqlite.JDBC", "classpath"),
        ]


@pytest.mark.needs("mysql")
async def test_a_saved_source_names_the_driver_of_its_own_database(tmp_path):
    mysql = mysql_server.shared()
    database = mysql.new_database()
    postgres = postgres_server.shared()
    url = mysql.url(database)
    hsqldb = {"driver_path": _path("hsqldb"), "user": "SA", "driver": "org.hsqldb.jdbcDriver"}
    sources = [
        {"name": "maria", "url": url.replace("mysql:", "mariadb:")},
        {"name": "my", "url": url},
        {"name": "pg", "url": postgres.url("postgres")},
        {"name": "own", "url": "jdbc:hsqldb:mem:own", "options": hsqldb},
    ]
    async with served(tmp_path, sources=sources) as jdbc:
        peer = jdbc.peer()
        said = {each["name"]: await peer.bare("connect", url=each["name"]) for each in sources}
        assert {name: reply.get("driver") for name, reply in said.items()} == {
            "maria": "org.mariadb.jdbc.Driver",
            "my": "com.mysql.cj.jdbc.Driver",
            "pg": "org.postgresql.Driver",
            "own": "org.hsqldb.jdbcDriver",
        }, said


@pytest.mark.needs("mysql")
async def test_the_types_are_those_of_the_driver_that_connect_names(tmp_path):
    """MySQL's as its driver's source and manual have them: the driver itself is not here."""
    server = mysql_server.shared()
    database = server.new_database()
    server.script(
        "CREATE TABLE t (i int, u int unsigned, b tinyint(1), x bit(8), s text, c blob, d datetime,"
        " j json, p point, e enum('a'), n decimal(5,2) unsigned, y year, v varchar(9))",
        database,
    )
    url = server.url(database)
    sources = [
        {"name": "my", "url": url},
        {"name": "maria", "url": url.replace("mysql:", "mariadb:")},
    ]
    async with served(tmp_path, sources=sources) as jdbc:
        peer = jdbc.peer()
        found = {}
        for name in ("my", "maria"):
            id = await peer.connected(name)
            listed = await peer.bare("discover", connectionId=id, table="t")
            columns = (await peer.recorded(id, "SELECT * FROM t"))["columns"]
            found[name] = {
                each["name"]: (each["jdbcType"], each["jdbcTypeName"], each["javaClassName"])
                for each in columns
            }
            codes = {each["name"]: each["type"] for each in listed["columns"]}
            if name == "my":
                assert codes == {key: value[0] for key, value in found[name].items()}
    text, whole = "java.lang.String", "java.lang.Integer"
    assert found["my"] == {
        "i": (4, "INT", whole),
        "u": (4, "INT UNSIGNED", "java.lang.Long"),
        "b": (-7, "BIT", "java.lang.Boolean"),
        "x": (-7, "BIT", "[B"),
        "s": (-1, "TEXT", text),
        "c": (-4, "BLOB", "[B"),
        "d": (93, "DATETIME", "java.time.LocalDateTime"),
        "j": (-1, found["my"]["j"][1], text),
        "p": (-2, "GEOMETRY", "[B"),
        "e": (1, "CHAR", text),
        "n": (3, found["my"]["n"][1], "java.math.BigDecimal"),
        "y": (91, "YEAR", "java.sql.Date"),
        "v": (12, "VARCHAR", text),
    }
    assert found["maria"]["i"] == (4, "INTEGER", whole)
    assert found["maria"]["d"] == (93, "DATETIME", "java.sql.Timestamp")


@pytest.mark.parametrize(
    ("driver", "library"),
    [
        ("org.sqlite.JDBC", "org.xerial:sqlite-jdbc:3.46.1.3"),
        (None, "org.xerial:sqlite-jdbc:3.46.1.3"),
        ("org.sqlite.JDBC", None),
    ],
)
async def test_where_the_named_driver_cannot_be_had_our_own_engine_serves_its_url_and_says_so(
    tmp_path, driver, library
):
    given = {"driver": driver, "dependency": library}
    async with served(tmp_path, drivers={"repository": "http://127.0.0.1:1"}) as jdbc:
        peer = jdbc.peer()
        connected = await peer.bare("connect", url=jdbc.url, **given)
        assert connected.get("status") == "connected", connected
        shown = (connected["engine"], connected["driver"], connected["dependency"])
        assert shown == ("native", "org.sqlite.JDBC", None)
        assert "Tidegate's own engine" in connected["note"]
        assert "`tidegate driver fetch org.xerial:sqlite-jdbc:3.46.1.3`" in connected["note"]
        rows = await peer.recorded(connected["id"], QUERY, parameters=["active"])
        assert rows["rows"] == [[1, "Alice", "alice@example.com"]]


@pytest.mark.parametrize(
    "given",
    [
        {"driver": "com.example.Driver"},
        {"dependency": "com.example:other:1.0"},
        {"driver": "com.example.Driver", "dependency": "org.xerial:sqlite-jdbc:3.46.1.3"},
    ],
)
async def test_another_driver_than_that_of_the_url_is_not_replaced(tmp_path, given):
    async with served(tmp_path, drivers={"repository": "http://127.0.0.1:1"}) as jdbc:
        refused = await jdbc.peer().bare("connect", url=jdbc.url, **given)
        assert refused["status"] == "driver_missing", refused


async def test_our_own_engine_is_no_way_around_the_list_of_places(tmp_path):
    with sqlite3.connect(tmp_path / "hidden.db") as connection:
        connection.execute("CREATE TABLE users (id integer)")
    connection.close()
    library = "org.xerial:sqlite-jdbc:3.46.1.3"
    async with served(tmp_path, drivers={"repository": "http://127.0.0.1:1"}) as jdbc:
        url = f"jdbc:sqlite:{tmp_path}/hidden.db"
        refused = await jdbc.peer().bare("connect", url=url, dependency=library)
        assert "status" not in refused or refused["status"] != "connected", refused
        assert refused["code"] == "policy.denied", refused


@pytest.mark.parametrize(
    "dependency", [f"{H2}:9.9.9", "com.example:other:1.0"], ids=["unreachable", "not allowed"]
)
async def test_a_driver_that_is_there_is_used_where_the_named_library_cannot_be_had(
    tmp_path, dependency
):
    drivers = {"repository": "http://127.0.0.1:1"}
    own = {"driver_path": _path("h2")}
    async with served(tmp_path, jdbc=own, drivers=drivers) as jdbc:
        peer = jdbc.peer()
        given = {"url": "jdbc:h2:mem:x", "driver": "org.h2.Driver", "dependency": dependency}
        connected = await peer.bare("connect", **given)
        assert connected.get("status") == "connected", connected
        assert (connected["dependency"], connected["driverSource"]) == (None, "classpath")
        assert "already" in connected["note"]
        assert (await peer.recorded(connected["id"], "SELECT 1 AS one"))["rows"] == [[1]]
        # What no jar here reads fails with the reason why the library could not be had.
        other = await peer.bare("connect", url="jdbc:hsqldb:mem:x", dependency=dependency)
        assert other["status"] == "driver_missing"
        assert "127.0.0.1:1" in other["error"] or dependency in other["error"]


@pytest.mark.parametrize("url", ["jdbc:oracle:thin:@//localhost:1/x", "jdbc:foo://localhost/x"])
@pytest.mark.parametrize("jars", [False, True])
async def test_a_missing_driver_says_what_to_give(tmp_path, url, jars):
    """The document's cure: name the library as `dependency`."""
    own = {"driver_path": _path("h2")} if jars else {}
    async with served(tmp_path, jdbc=own) as jdbc:
        refused = await jdbc.peer().bare("connect", url=url)
    assert refused["error"].startswith("Driver not found")
    assert refused["status"] == "driver_missing"
    assert "`dependency`" in refused["hint"]
    assert "source's" not in refused["hint"]
    if "oracle" in url:
        assert KNOWN_DATABASES["jdbc:oracle:"].coordinate in refused["hint"]


async def test_an_empty_text_is_a_parameter_that_was_left_out(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        given = dict.fromkeys(("user", "password", "driver", "dependency", "repository"), "")
        connected = await peer.bare("connect", url=jdbc.url, **given)
        assert connected.get("engine") == "native", connected


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://localhost:99999/db",
        "jdbc:mysql://localhost:x/db",
        "jdbc:sqlserver://localhost:99999;databaseName=x",
        "jdbc:foo://localhost:x/db",
    ],
)
async def test_a_host_or_port_that_cannot_be_read_is_an_invalid_url(tmp_path, url):
    async with served(tmp_path) as jdbc:
        refused = await jdbc.peer().bare("connect", url=url, user="someone")
    assert refused["error"].startswith("Invalid URL: "), refused
    assert refused["status"] == "invalid_parameters"


async def test_a_missing_user_is_named_as_the_parameter_that_it_is(tmp_path):
    async with served(tmp_path) as jdbc:
        refused = await jdbc.peer().bare("connect", url="jdbc:postgresql://localhost:1/db")
    assert refused["status"] == "invalid_parameters"
    assert "`user`" in refused["error"] and "`user`" in refused["hint"]


async def test_a_login_that_derby_or_postgres_refuses_is_an_authentication_that_failed(tmp_path):
    from support import postgres_server

    server = postgres_server.shared()
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"
    own = {"driver_path": _path("postgresql")}
    async with served(tmp_path, jdbc=own) as jdbc:
        given = {"url": url, "user": "postgres", "driver": "org.postgresql.Driver"}
        refused = await jdbc.peer().bare("connect", **given)
    assert refused["error"].startswith("Failed to connect: Authentication failed: "), refused


async def test_hsqldb_does_not_call_an_unknown_name_a_missing_right(tmp_path):
    """It has one error for both; what is in its catalog is there, and only the right is lacking."""
    script = (
        "CREATE TABLE seen (id integer)",
        "CREATE TABLE written (id integer)",
        "CREATE USER reader PASSWORD 'x'",
        "GRANT SELECT ON seen TO reader",
        "GRANT INSERT ON written TO reader",
    )
    files = tmp_path / "files"
    files.mkdir()
    url = jdbc_drivers.new_database("hsqldb", files, script)
    async with served(tmp_path, jdbc={"driver_path": _path("hsqldb")}) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(url, user="READER", password="x")
        assert (await peer.recorded(id, "SELECT id FROM seen"))["rows"] == []
        query = {"query": "SELECT id FROM nowhere", "connectionId": id}
        await peer.bare("record", **query)
        unknown = await peer.bare("record", **query, confirmed=True)
        assert unknown["code"] == "sql.failed"
        assert not unknown["error"].startswith("Permission denied")
        denied = await peer.bare("discover", connectionId=id, table="WRITTEN")
        assert denied["code"] == "sql.failed", denied
        assert denied["error"].startswith("Permission denied: "), denied
