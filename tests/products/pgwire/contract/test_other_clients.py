"""node-postgres, PostgreSQL's ODBC driver, and pgbench on the wire protocol."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from external.install import InstallError, node, node_modules
from support import mysql_server
from support.eventually import HANG_S
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer

SCRIPT = Path(__file__).parent / "clients" / "node_client.mjs"
ITEM = "SELECT id, name FROM item WHERE id = $1"
TICKET = "SELECT id, title FROM desk.tickets.tickets WHERE team = 'red' AND id = $1"


def test_node_postgres_runs_simple_extended_and_named_statements(server: WireServer):
    try:
        modules = node_modules()
    except InstallError as error:
        pytest.skip(f"needs node-postgres of tests/external/package.json: {str(error)[:200]}")
    words = [str(server.port), server.secrets["writer"]]
    asked = {"pg": ITEM, "lite": ITEM, "duck": ITEM, "cloud": TICKET}
    ids = {"pg": 1, "lite": "1", "duck": "1"}  # int8 is a text there
    if mysql_server.available():
        asked["maria"], ids["maria"] = ITEM, "1"
    for source, text in asked.items():
        words += source, text
    done = subprocess.run(
        [str(node()), str(SCRIPT), str(modules), *words],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for source, id in ids.items():
        rows = [{"id": id, "name": "boots"}]
        assert found[source]["simple"] == found[source]["extended"] == rows
        assert found[source]["named"][1][0][1] == "hat"
        assert found[source]["refused"].startswith("42")
    assert found["pg"]["types"] == [23, 1043]
    assert found["lite"]["types"] == found["duck"]["types"] == [20, 25]
    assert found["cloud"]["extended"] == [{"id": "1", "title": "Printer | on fire"}]


@pytest.fixture(scope="module")
def odbc() -> Callable[[WireServer, str, str], Any]:
    """Connects to a source with options of the driver."""
    driver = next(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"), None)
    if driver is None:
        pytest.skip("needs the ODBC driver (the packages odbc-postgresql and unixodbc)")
    try:
        import pyodbc
    except ImportError as error:
        pytest.skip(f"needs unixODBC (the package unixodbc): {error}")

    def connect(server: WireServer, source: str, options: str) -> Any:
        words = f"Driver={driver};Server=127.0.0.1;Port={server.port};Database={source};Uid=writer"
        return pyodbc.connect(f"{words};Pwd={server.secrets['writer']}{options}", autocommit=True)

    return connect


@pytest.mark.parametrize("source", ["pg", "lite", "duck", "maria"])
def test_odbc_reads_changes_and_describes_a_database(
    server: WireServer, odbc: Any, source: str, request: pytest.FixtureRequest
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    for options in ("", ";UseServerSidePrepare=0", ";UseDeclareFetch=1;Fetch=2"):
        gate = odbc(server, source, options)
        cursor = gate.cursor()
        found = cursor.execute("SELECT name, made FROM item WHERE id = ?", 1).fetchall()
        assert [(row.name, str(row.made)) for row in found] == [("boots", "2026-01-02")]
        gate.close()
    gate = odbc(server, source, "")
    cursor = gate.cursor()
    assert {"item", "sale"} <= {row.table_name for row in cursor.tables()}
    columns = {row.column_name: row.type_name for row in cursor.columns(table="item")}
    assert columns["id"] == ("int4" if source == "pg" else "int8")
    assert [row.column_name for row in cursor.primaryKeys("item")] == ["id"]
    keys = [
        (row.pktable_name, row.fkcolumn_name) for row in cursor.foreignKeys(foreignTable="sale")
    ]
    assert keys == [("item", "item")]
    rows = [(501, 1, 1), (502, 1, 2)]
    cursor.executemany("INSERT INTO sale (id, item, amount) VALUES (?, ?, ?)", rows)
    assert cursor.execute("DELETE FROM sale WHERE id > 500").rowcount == 2
    gate.close()


def test_odbc_reads_and_lists_resources_of_a_provider(server: WireServer, odbc: Any):
    gate = odbc(server, "cloud", "")
    cursor = gate.cursor()
    found = cursor.execute(TICKET.replace("$1", "?"), "1").fetchall()
    assert [tuple(row) for row in found] == [("1", "Printer | on fire")]
    tables = [(row[1], row.table_name) for row in cursor.tables(schema="desk.tickets")]
    assert tables == [("desk.tickets", "tickets")]
    gate.close()


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench_reads_a_governed_source(server: WireServer, postgres: PostgresShop, mode: str):
    program = shutil.which("pgbench")
    if program is None:
        pytest.skip("needs pgbench (the package postgresql)")
    if postgres.ask("SELECT to_regclass('pgbench_accounts')") == [(None,)]:
        where = ["-h", str(postgres.server.directory), "-p", str(postgres.server.port)]
        made = [program, "-i", "-q", "-U", "postgres", *where, postgres.database]
        subprocess.run(made, check=True, capture_output=True, timeout=HANG_S)
    done = subprocess.run(
        [program, "-S", "-n", "-M", mode, "-c", "4", "-t", "50", "-h", "127.0.0.1",
         "-p", str(server.port), "-U", "writer", "pg"],
        capture_output=True, text=True, timeout=HANG_S, check=False,
        env={**os.environ, "PGPASSWORD": server.secrets["writer"]},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "actually processed: 200/200" in done.stdout
    assert "failed transactions: 0 " in done.stdout


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("lite", "SELECT name FROM item WHERE id = :id"),
        ("duck", "SELECT name FROM item WHERE id = :id"),
        ("maria", "SELECT name FROM item WHERE id = :id"),
        ("cloud", "SELECT title FROM desk.tickets.tickets WHERE team = 'red' AND id = :id"),
    ],
)
def test_pgbench_reads_sources_of_other_kinds(
    server: WireServer,
    source: str,
    text: str,
    mode: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
):
    program = shutil.which("pgbench")
    if program is None:
        pytest.skip("needs pgbench (the package postgresql)")
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    script = tmp_path / "read.sql"
    script.write_text(f"\\set id random(1, 2)\n{text};\n")
    done = subprocess.run(
        [program, "-n", "-M", mode, "-f", str(script), "-c", "4", "-t", "25", "-h", "127.0.0.1",
         "-p", str(server.port), "-U", "writer", source],
        capture_output=True, text=True, timeout=HANG_S, check=False,
        env={**os.environ, "PGPASSWORD": server.secrets["writer"]},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "actually processed: 100/100" in done.stdout
    assert "failed transactions: 0 " in done.stdout
