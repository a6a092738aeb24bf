"""The first step of `record` with a connection: what the query would give is shown, nothing runs,
and what was shown is what is confirmed."""

from __future__ import annotations

import sqlite3

import pytest

from support import mysql_server, postgres_server
from support.jdbc_drivers import driver_path, new_database
from support.jdbc_surface import QUERY, USERS, make_file, served
from support.server_keeper import PASSWORD


async def test_the_description_names_columns_parameters_tables_and_the_effect(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        first = await peer.bare("record", query=QUERY, connectionId=id)
        assert first["status"] == "awaiting_confirmation"
        described = first["description"]
        assert [(each["name"], each["jdbcType"]) for each in described["columns"]] == [
            ("id", 4), ("name", 12), ("email", 12),
        ]  # fmt: skip
        assert described["parameters"] == [{"index": 1, "type": "TEXT", "column": "users.status"}]
        assert described["parameterTypes"].startswith("not reported by SQLite; those shown are")
        assert (described["tables"], described["effect"]) == (["users"], "read")
        assert (described["needsApproval"], described["masked"]) == (False, [])
        assert "description" not in await peer.bare("record", query=QUERY)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ('SELECT 1 FROM users u WHERE u."Name" = ? AND ? < id + 1', ["users.name", None]),
        ("SELECT 1 FROM users WHERE id BETWEEN ? AND ? LIMIT ?", ["users.id", "users.id", None]),
        ("SELECT 1 FROM users a JOIN users b ON a.id = ? WHERE b.id + ? > 1", ["users.id", None]),
        ("SELECT 1 FROM users WHERE lower(name) = ?", [None]),
        ("WITH c AS (SELECT 1 AS status FROM users) SELECT 1 FROM c WHERE status = ?", [None]),
        ("SELECT 1 FROM (SELECT length(name) AS id FROM users) WHERE id = ?", [None]),
    ],
)
async def test_a_type_is_shown_only_of_the_column_that_is_surely_compared(tmp_path, query, columns):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        described = (await peer.bare("record", query=query, connectionId=id))["description"]
        assert [each.get("column") for each in described["parameters"]] == columns
        assert [each["type"] is None for each in described["parameters"]] == [
            each is None for each in columns
        ]


async def test_the_first_step_runs_nothing(tmp_path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        first = await peer.bare("record", query=f"{endless} WHERE i < 0", connectionId=id)
        assert [each["name"] for each in first["description"]["columns"]] == ["i"]
        assert not list(jdbc.app.history.search("RECURSIVE"))


async def test_postgres_tells_types_and_estimates_and_runs_no_function(tmp_path):
    server = postgres_server.shared()
    name = server.new_database()
    server.ask(f"{USERS}; CREATE SEQUENCE s", name)
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        url = f"jdbc:postgresql://127.0.0.1:{server.port}/{name}"
        id = await peer.connected(url, user="postgres", password=PASSWORD)
        query = "SELECT id, created_at FROM users WHERE status = ? AND id < ?"
        described = (await peer.bare("record", query=query, connectionId=id))["description"]
        assert [each["jdbcTypeName"] for each in described["columns"]] == ["int4", "timestamp"]
        assert [each["type"] for each in described["parameters"]] == ["text", "integer"]
        assert "parameterTypes" not in described
        assert set(described["plan"]) == {"rows", "cost"}
        refused = await peer.bare("record", query="SELECT nextval('s')", connectionId=id)
        assert "problem" in refused["description"]
        assert server.ask("SELECT is_called FROM s", name) == [(False,)]


async def test_an_id_keeps_no_state_in_the_database(tmp_path):
    server = postgres_server.shared()
    name = server.new_database()
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        url = f"jdbc:postgresql://127.0.0.1:{server.port}/{name}"
        id = await peer.connected(url, user="postgres", password=PASSWORD)
        for text in (
            "SELECT set_config('work_mem', '7MB', false)",
            "SET work_mem = '7MB'",
            "CREATE TEMPORARY TABLE mine (a int)",
            "SELECT 1 INTO TEMPORARY mine",
        ):
            assert "error" in await peer.recorded(id, text), text
        after = await peer.recorded(id, "SELECT current_setting('work_mem') = '7MB'")
        assert after["rows"] == [[False]]
        unhosted = await peer.bare("connect", url="jdbc:nosuch:thing")
        assert "names no host" in unhosted["error"]


@pytest.mark.needs("mysql")
async def test_mariadb_and_a_jdbc_driver_describe_as_well(tmp_path):
    server = mysql_server.shared()
    name = server.new_database()
    server.script(
        f"USE {name}; CREATE TABLE t (a int, b decimal(10,2)); INSERT INTO t VALUES (1, 2)"
    )
    url = new_database("h2", tmp_path / "files", ("CREATE TABLE T (A INT, B DECIMAL(10, 2))",))
    settings = {"driver_path": driver_path("h2")}
    async with served(tmp_path, jdbc=settings) as jdbc:
        peer = jdbc.peer()
        mariadb = await peer.connected(
            f"jdbc:mariadb://127.0.0.1:{server.port}/{name}", user="word", password=PASSWORD
        )
        h2 = await peer.connected(url)
        for id, codes in ((mariadb, [4, 3]), (h2, [4, 3])):
            first = await peer.bare(
                "record", query="SELECT a, b FROM t WHERE a = ?", connectionId=id
            )
            described = first["description"]
            assert [each["jdbcType"] for each in described["columns"]] == codes
            (parameter,) = described["parameters"]
            said = described.get("parameterTypes", "")
            if id == mariadb:
                assert said.startswith("not reported by MySQL and MariaDB; ")
                assert (parameter["type"], parameter["column"]) == ("int(11)", "t.a")
            else:
                assert (parameter, said) == ({"index": 1, "type": "INTEGER"}, "")
        assert (await peer.recorded(h2, "SELECT count(*) FROM t"))["rows"] == [[0]]


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("SELECT id FROM usres", {"name": "usres", "kind": "table", "near": ["users"]}),
        ("SELECT id, u.emial FROM users u", {"name": "emial", "kind": "column", "near": ["email"]}),
        ("SELECT id AS n FROM users WHERE statsu = ? ORDER BY n",
         {"name": "statsu", "kind": "column", "near": ["status"]}),
    ],
)  # fmt: skip
async def test_names_near_to_unknown_ones_are_shown(tmp_path, query, unknown):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        first = await peer.bare("record", query=query, connectionId=id)
        assert first["description"]["unknownNames"] == [unknown]
        assert "error" in first["description"]["problem"]
        given = ["x"] * first["extracted"]["parameterCount"]
        second = await peer.bare(
            "record", query=query, connectionId=id, confirmed=True, parameters=given
        )
        assert "error" in second


async def test_a_query_whose_columns_changed_must_be_confirmed_again(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        query = "SELECT * FROM users ORDER BY id"
        given = {"query": query, "connectionId": id}
        await peer.bare("record", **given)
        with sqlite3.connect(jdbc.files / "shop.db") as connection:
            connection.execute("ALTER TABLE users ADD COLUMN salary integer DEFAULT 7")
        connection.close()
        refused = await peer.bare("record", **given, confirmed=True)
        assert refused["code"] == "policy.confirm"
        assert "changed since" in refused["error"]
        assert not list(jdbc.app.history.search("users"))
        again = await peer.bare("record", **given, confirmed=True)
        assert again["code"] == "policy.confirm"  # what was shown counts no more
        assert (await peer.recorded(id, query))["rows"][0][-1] == 7


async def test_masked_columns_are_named_before_the_query_runs(tmp_path):
    (tmp_path / "files").mkdir()
    url = make_file(tmp_path / "files" / "masked.db").replace("jdbc:sqlite:", "sqlite:///")
    source = {"name": "shop", "url": url, "masks": [{"column": "users.email"}]}
    async with served(tmp_path, sources=[source]) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected("shop")
        query = "SELECT id, email FROM users"
        first = await peer.bare("record", query=query, connectionId=id)
        assert first["description"]["masked"] == ["users.email"]
        done = await peer.bare("record", query=query, connectionId=id, confirmed=True)
        assert "alice" not in str(done)
