"""The page of wire clients says what the tests do: clients, versions, kinds of sources."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from products.pgwire.contract.start_up_statements import STATEMENTS

pytestmark = pytest.mark.needs("pgwire")
ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "products" / "pgwire" / "contract"
PAGE = (ROOT / "docs" / "reference" / "wire-clients.md").read_text()
SOURCES = {
    "PostgreSQL": {"pg"}, "SQLite": {"shop", "lite"}, "DuckDB": {"duck"}, "MariaDB": {"maria"},
    "cloud": {"cloud"},
}  # fmt: skip
DRIVEN_BY = {"node-postgres": "test_node_postgres", "pgbench": "test_pgbench", "psqlODBC": "odbc"}
"""Where a file tests several clients: what the names of a client's tests hold."""


def rows() -> list[list[str]]:
    table = PAGE.split("\n\n")[2]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


HEAD, _, *CLIENTS = rows()


def words_of(client: str, files: list[str]) -> set[str]:
    """The texts in the tests of a client. A server is asked for `shop` where nothing is named."""
    part = next((part for name, part in DRIVEN_BY.items() if name in client), "")
    found: set[str] = set()
    for file in files:
        tree = ast.parse((TESTS / file).read_text())
        for node in tree.body:
            name = getattr(node, "name", "")
            if part and (not name.startswith("test_") or part not in name):
                continue
            found |= {str(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant)}
            if any(
                isinstance(each, ast.Call) and ast.unparse(each) == "server.conninfo()"
                for each in ast.walk(node)
            ):
                found.add("shop")
            if isinstance(node, ast.FunctionDef) and "postgres" in {
                each.arg for each in node.args.args
            }:
                found.add("pg")
    return found


@pytest.mark.parametrize("row", CLIENTS, ids=[row[0].split()[0].strip(",") for row in CLIENTS])
def test_a_client_is_tested_on_the_sources_that_its_row_names(row: list[str]):
    client, cells, files = row[0], row[1:-1], re.findall(r"`(test_\w+\.py)`", row[-1])
    assert files
    words = words_of(client, files)
    for title, cell in zip(HEAD[1:-1], cells, strict=True):
        assert (cell == "yes") == bool(words & SOURCES[title]), (client, title)


@pytest.mark.parametrize("package", ["psycopg[binary]", "asyncpg", "SQLAlchemy", "pyodbc"])
def test_the_versions_of_python_packages_are_those_that_the_tests_install(package: str):
    pins = (ROOT / "requirements" / "dev.txt").read_text()
    (version,) = re.findall(rf"^{re.escape(package)}==(\S+)$", pins, re.MULTILINE)
    assert f"{package.partition('[')[0]} {version}" in PAGE


def test_the_version_of_node_postgres_is_the_one_that_the_tests_install():
    packages = json.loads((ROOT / "tests" / "external" / "package.json").read_text())
    assert f"(pg {packages['dependencies']['pg']})" in PAGE


def test_the_tools_whose_statements_are_replayed_are_named():
    last = CLIENTS[-1][0].partition(":")[0]
    assert {name.strip() for name in last.split(",")} == set(STATEMENTS)
