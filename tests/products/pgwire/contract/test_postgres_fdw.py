"""A PostgreSQL of the caller's own reads and joins every kind of source by postgres_fdw."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from support import mysql_server
from support.cloud_surface import Desk
from support.postgres_server import shared
from support.wire_server import WireServer

SCHEMAS = {"pg": "public", "lite": "main", "duck": "main", "cloud": '"desk.tickets"'}


@pytest.fixture(scope="module")
def local(server: WireServer) -> Iterator[psycopg.Connection]:
    """A database with each source as a schema of foreign tables, and a table of its own."""
    postgres = shared()
    database = "with_foreign_tables"
    postgres.ask(f"CREATE DATABASE {database}")
    connection = psycopg.connect(postgres.conninfo(database), autocommit=True)
    connection.execute("CREATE EXTENSION postgres_fdw")
    schemas = dict(SCHEMAS)
    if mysql_server.available():
        with psycopg.connect(server.conninfo("maria")) as gate:
            (schema,) = gate.execute("SELECT current_schema()").fetchone() or ("",)
        schemas["maria"] = f'"{schema}"'
    for source, schema in schemas.items():
        connection.execute(
            f"CREATE SERVER {source} FOREIGN DATA WRAPPER postgres_fdw OPTIONS"
            f" (host '127.0.0.1', port '{server.port}', dbname '{source}', fetch_size '2')"
        )
        connection.execute(
            f"CREATE USER MAPPING FOR postgres SERVER {source}"
            f" OPTIONS (user 'writer', password '{server.secrets['writer']}')"
        )
        connection.execute(f"CREATE SCHEMA {source}")
        connection.execute(f"IMPORT FOREIGN SCHEMA {schema} FROM SERVER {source} INTO {source}")
    connection.execute("CREATE TABLE wanted (id bigint, made date)")
    connection.execute("INSERT INTO wanted VALUES (2, '2026-01-02')")
    yield connection
    connection.close()
    postgres.drop_database(database)


def remote_sql(local: psycopg.Connection, text: str) -> str:
    """What postgres_fdw sends for a query."""
    plan = local.execute("EXPLAIN (VERBOSE, COSTS OFF) " + text).fetchall()
    return "\n".join(line for (line,) in plan if "Remote SQL" in line)


@pytest.mark.parametrize("source", ["pg", "lite", "duck", "maria"])
def test_foreign_tables_are_read_joined_and_filtered_at_the_source(
    local: psycopg.Connection, source: str, request: pytest.FixtureRequest
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    rows = local.execute(f"SELECT id, name, price::text, made::text FROM {source}.item").fetchall()
    assert sorted(rows) == [
        (1, "boots", "79.50", "2026-01-02"), (2, "hat", None, None),
        (3, "it's", "3.25", "2026-03-04"),
    ]  # fmt: skip
    own = f"SELECT i.name FROM wanted w JOIN {source}.item i ON i.id = w.id OR i.made = w.made"
    assert sorted(local.execute(own).fetchall()) == [("boots",), ("hat",)]
    join = (
        f"SELECT i.name, s.amount FROM {source}.item i JOIN {source}.sale s ON s.item = i.id"
        " WHERE i.name <> 'nothing' AND s.amount > 1"
    )
    assert local.execute(join).fetchall() == [("boots", 2)]
    assert "((name <> 'nothing'))" in remote_sql(local, join)
    local.execute("SET plan_cache_mode = force_generic_plan")
    local.execute(
        f"PREPARE named (bigint, text, date) AS SELECT id FROM {source}.item"
        " WHERE id = $1 OR name = $2 OR made = $3 ORDER BY id"
    )
    try:
        assert "$1" in remote_sql(local, "EXECUTE named (2, 'it''s', '2026-01-02')")
        found = local.execute("EXECUTE named (2, 'it''s', '2026-01-02')").fetchall()
        assert found == [(1,), (2,), (3,)]
    finally:
        local.execute("DEALLOCATE named")


def test_resources_of_a_provider_are_joined_with_a_table_of_the_callers(
    local: psycopg.Connection, desk: Desk
):
    join = (
        "SELECT w.id, t.title, t.open FROM wanted w JOIN cloud.tickets t ON t.id = w.id::text"
        " WHERE t.team = 'red'"
    )
    desk.requests.clear()
    assert local.execute(join).fetchall() == [(2, "Line one\nline two", False)]
    assert next(path for _, path in desk.requests).startswith("/v1/teams/red/tickets")
    with pytest.raises(psycopg.Error) as refused:
        local.execute("SELECT title FROM cloud.tickets")
    assert "list(team)" in (refused.value.diag.message_hint or "")


@pytest.mark.parametrize("source", ["pg", "lite", "maria"])
def test_a_write_commits_and_rolls_back_with_the_callers_transaction(
    local: psycopg.Connection, source: str, request: pytest.FixtureRequest
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    count = f"SELECT count(*) FROM {source}.sale WHERE id = 900"
    local.execute(f"INSERT INTO {source}.sale (id, item, amount) VALUES (900, 1, 9)")
    with local.transaction(force_rollback=True):
        local.execute(f"DELETE FROM {source}.sale WHERE id = 900")
        assert local.execute(count).fetchone() == (0,)
    assert local.execute(count).fetchone() == (1,)
    local.execute(f"DELETE FROM {source}.sale WHERE id = 900")
    assert local.execute(count).fetchone() == (0,)


def test_a_write_that_the_gate_refuses_changes_nothing(
    local: psycopg.Connection, server: WireServer
):
    with pytest.raises(psycopg.errors.FeatureNotSupported):  # no transaction is held there
        local.execute("UPDATE duck.item SET name = 'changed' WHERE id = 1")
    found = local.execute("SELECT name FROM duck.item WHERE id = 1").fetchall()
    assert found == [("boots",)]
    login = "ALTER USER MAPPING FOR postgres SERVER lite OPTIONS (SET user '{}', SET password '{}')"
    local.execute(login.format("reader", server.secrets["reader"]))
    try:
        with pytest.raises(psycopg.Error):
            local.execute("DELETE FROM lite.sale")
    finally:
        local.execute(login.format("writer", server.secrets["writer"]))
    assert local.execute("SELECT count(*) FROM lite.sale").fetchone() == (2,)


def test_cancelling_the_callers_query_ends_the_one_at_the_source(
    local: psycopg.Connection, server: WireServer
):
    with closing(sqlite3.connect(server.folder / "lite.db")) as file:
        file.execute(
            "CREATE VIEW endless AS WITH RECURSIVE n (i) AS"
            " (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"
        )
    local.execute("CREATE FOREIGN TABLE endless (i bigint) SERVER lite"
                  " OPTIONS (schema_name 'main', table_name 'endless')")  # fmt: skip
    timer = threading.Timer(0.5, local.cancel)
    timer.start()
    try:
        with pytest.raises(psycopg.errors.QueryCanceled):
            local.execute("SELECT * FROM endless")
    finally:
        timer.join()
        with closing(sqlite3.connect(server.folder / "lite.db")) as file:
            file.execute("DROP VIEW endless")
    assert local.execute("SELECT count(*) FROM lite.item").fetchone() == (3,)
