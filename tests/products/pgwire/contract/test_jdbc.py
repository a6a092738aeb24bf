"""PostgreSQL's JDBC driver on every kind of source: statements in each of its modes, metadata,
cancellation, batches. `clients/JdbcClient.java` is the program that uses it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.eventually import HANG_S
from support.jdbc_drivers import QUICK, jars_of
from support.wire_server import WireServer

PROGRAM = Path(__file__).parent / "clients" / "JdbcClient.java"
ITEMS = "SELECT id, name, price, made FROM item ORDER BY id"
ENDLESS = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000000)"
    " SELECT count(*) FROM n"
)
_ITEMS = [f"item AS i{number}" for number in range(60)]
MANY = f"SELECT count(*) FROM {', '.join(_ITEMS)}"
"""As long, where recursion has a limit."""
TICKETS = "SELECT id, title, open FROM desk.tickets.tickets WHERE team = 'red'"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("javac") is None:
        pytest.skip("needs a Java compiler (the package default-jdk-headless)")
    folder = tmp_path_factory.mktemp("java")
    subprocess.run(["javac", "-d", str(folder), str(PROGRAM)], check=True, timeout=HANG_S)
    return folder


def steps(server: WireServer, program: Path, *words: str) -> dict[str, str]:
    """What the program prints of a source, by step."""
    path = f"{program}:{jars_of('postgresql')}"
    address = f"127.0.0.1:{server.port}"
    command = ["java", QUICK, "-XX:+UseSerialGC", "-cp", path, "JdbcClient", address]
    done = subprocess.run(
        [*command, server.secrets["writer"], *words],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return {step: value for _, step, value in lines}


@pytest.mark.parametrize(
    ("source", "schema"), [("pg", "public"), ("lite", "main"), ("duck", "main"), ("maria", "")]
)
def test_a_database_is_used_by_statements_and_by_metadata(
    server: WireServer, program: Path, source: str, schema: str, request: pytest.FixtureRequest
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    endless = MANY if source == "maria" else ENDLESS
    found = steps(server, program, source, schema, "item", ITEMS, endless)
    rows = "1|boots|79.50|2026-01-02; 2|hat|null|null; 3|it's|3.25|2026-03-04"
    assert found["simple"] == rows
    # SQLite keeps no digits behind the last one that counts, and the binary format shows it.
    assert found["extended"] == rows.replace("79.50", "79.5" if source == "lite" else "79.50")
    assert found["error"].startswith("! 42"), found["error"]
    assert found["parameters"] == "boots; hat"
    assert found["fetch size"] == "1; 2; 3"
    assert found["batch"] == "[1, 1, 1]"
    assert found["deleted"] == "3"
    assert found["cancelled"].startswith("! 57014"), found["cancelled"]
    assert found["product"].startswith("PostgreSQL")
    assert "|item|TABLE|" in found["tables"]
    assert "|sale|TABLE|" in found["tables"]
    whole = "int4" if source == "pg" else "int8"
    assert found["columns"].startswith(f"id|{whole}|")
    assert "price|numeric|10|YES|" in found["columns"]
    if source != "lite":  # SQLite has no comments
        assert "price|numeric|10|YES|In euros" in found["columns"]
        assert "What is sold" in found["tables"]
    assert found["primary keys"] == "id|1"
    assert found["imported keys"] == "item|id|sale|item|1"
    assert found["exported keys"] == "sale|item"
    assert "sale_item|item|true" in found["indexes"]
    assert found["catalogs"] == source
    assert (found["types"], found["keywords"], found["name length"]) == ("true", "true", "63")
    assert found["procedures"] == ""


def test_resources_of_a_provider_are_used_by_statements_and_by_metadata(
    server: WireServer, program: Path
):
    found = steps(server, program, "cloud", "desk.tickets", "tickets", TICKETS, "")
    assert found["simple"].startswith("1|Printer | on fire|")
    assert found["extended"] == found["simple"]
    assert found["kinds"] == "[id text, title text, open bool]"
    assert found["error"].startswith("! 42P01"), found["error"]
    assert found["schemas"].split("; ")[0] == "desk.tickets"
    assert found["tables"] == "desk.tickets|tickets|TABLE|null"
    assert "open|bool|1|YES|null" in found["columns"]
    assert found["primary keys"] == found["imported keys"] == found["indexes"] == ""
