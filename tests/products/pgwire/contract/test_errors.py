"""What an error of a PostgreSQL source says reaches the client, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server

TABLES = """
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE DOMAIN small AS int CONSTRAINT is_small CHECK (VALUE < 10);
CREATE TABLE owner (id int PRIMARY KEY, name text NOT NULL, secret text,
  CONSTRAINT named CHECK (name <> 'nobody'));
CREATE TABLE pet (id int PRIMARY KEY, owner int CONSTRAINT owned REFERENCES owner, size small,
  mood mood, span int4range, EXCLUDE USING gist (span WITH &&));
INSERT INTO owner VALUES (1, 'one', 'x1'), (2, 'two', 'x2');
INSERT INTO pet VALUES (1, 1, 3, 'low', '[1,5)');
"""
FAILING = [
    "INSERT INTO owner VALUES (1, 'again')",
    "INSERT INTO owner VALUES (3, NULL)",
    "INSERT INTO owner VALUES (3, 'nobody')",
    "INSERT INTO pet VALUES (2, 99)",
    "INSERT INTO pet VALUES (2, 1, 77)",
    "INSERT INTO pet VALUES (2, 1, 1, 'odd')",
    "INSERT INTO pet VALUES (2, 1, 1, 'low', '[3,9)')",
    "DELETE FROM owner WHERE id = 1",
    "UPDATE pet SET size = 12 WHERE id = 1",
    "SELECT nope FROM owner",
    "SELECT * FROM nothing",
    "SELECT 1/0",
    "SELECT 'x'::int",
    "SELECT lower(1, 2)",
    "SELECT 99::small",
]
FIELDS = (
    "sqlstate", "message_primary", "schema_name", "table_name", "column_name", "datatype_name",
    "constraint_name", "statement_position",
)  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PostgresShop, WireServer]]:
    shop = PostgresShop.lasting(TABLES)
    sources = [
        {"name": "pg", "url": shop.url, "access": "write"},
        {"name": "masked", "url": shop.url, "access": "write",
         "masks": [{"column": "owner.secret", "show": "nothing"}]},
    ]  # fmt: skip
    folder: Path = tmp_path_factory.mktemp("errors")
    with wire_server(folder, sources=sources) as server:
        yield shop, server
    shop.drop()


def fault(info: str, text: str, *, prepared: bool = False) -> psycopg.Error:
    with psycopg.connect(info, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(text, prepare=prepared)
        return caught.value


def said(error: psycopg.Error) -> dict[str, Any]:
    return {name: getattr(error.diag, name) for name in FIELDS}


@pytest.mark.parametrize("text", FAILING)
def test_an_error_has_the_fields_that_postgresql_gives(
    served: tuple[PostgresShop, WireServer], text: str
):
    shop, server = served
    direct = fault(shop.server.conninfo(shop.database), text)
    gate = fault(server.conninfo("pg"), text)
    assert said(gate) == said(direct)
    detail = direct.diag.message_detail
    assert (gate.diag.message_detail or "").startswith(detail or "sql.failed")
    if direct.diag.message_hint:
        assert gate.diag.message_hint == direct.diag.message_hint


@pytest.mark.parametrize(
    "text", [each.replace("owner V", "owner (id, name) V") for each in FAILING[:3]]
)
def test_an_error_about_a_table_with_masks_quotes_no_row(
    served: tuple[PostgresShop, WireServer], text: str
):
    error = fault(served[1].conninfo("masked"), text)
    assert error.sqlstate and error.sqlstate.startswith("23")
    assert "Failing row" not in str(error)
    assert error.diag.message_detail is not None
    assert error.diag.message_detail.startswith("sql.failed")
