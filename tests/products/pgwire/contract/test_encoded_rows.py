"""Rows of a PostgreSQL source that go on to the client as the database encoded them: masks, limits
and types hold as for rows that are decoded."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

import asyncpg
import psycopg
import pytest

from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server

MOST = 25
TABLES = """
CREATE TYPE mood AS ENUM ('calm', 'busy');
CREATE TABLE visit (id int PRIMARY KEY, email text, place inet, mood mood, spot point,
  cost numeric);
INSERT INTO visit SELECT i, 'u' || i || '@example.org', '10.0.0.1', 'calm', '(1,2)', i / 4.0
FROM generate_series(1, 60) AS i;
"""
both_formats = pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])


@pytest.fixture(scope="module")
def shop() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting(TABLES)
    yield shop
    shop.drop()


@pytest.fixture(scope="module")
def limited(shop: PostgresShop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireServer]:
    pg: dict[str, Any] = {"name": "pg", "url": shop.url, "access": "read"}
    veiled = pg | {
        "name": "veiled",
        "masks": [{"column": "visit.email", "show": "partial"}],
        "filters": [{"table": "visit", "where": "id <= 2"}],
    }
    folder = tmp_path_factory.mktemp("limited")
    with wire_server(folder, sources=[pg, veiled], pg={"max_rows": MOST}) as served:
        yield served


@both_formats
def test_masks_and_filters_hold(limited: WireServer, binary: bool):
    with psycopg.connect(limited.conninfo("veiled"), autocommit=True) as gate:
        rows = gate.execute("SELECT id, email FROM visit ORDER BY id", binary=binary).fetchall()
        assert rows == [(1, "***@example.org"), (2, "***@example.org")]


@both_formats
def test_a_result_is_cut_at_its_limit_and_says_so(limited: WireServer, binary: bool):
    with psycopg.connect(limited.conninfo("pg"), autocommit=True) as gate:
        notices: list[str | None] = []
        gate.add_notice_handler(lambda each: notices.append(each.sqlstate))
        whole = f"SELECT id FROM visit ORDER BY id LIMIT {MOST}"
        assert len(gate.execute(whole, binary=binary).fetchall()) == MOST
        assert notices == []
        found = gate.execute("SELECT id, cost FROM visit ORDER BY id", binary=binary)
        assert found.statusmessage == f"SELECT {MOST}"
        assert [row[0] for row in found] == list(range(1, MOST + 1))
        assert notices == ["01004"]
        assert gate.execute("SELECT id FROM visit WHERE id < 0", binary=binary).fetchall() == []


@both_formats
def test_a_type_that_clients_are_shown_as_text_comes_as_text(limited: WireServer, binary: bool):
    with psycopg.connect(limited.conninfo("pg"), autocommit=True) as gate:
        asked = "SELECT id, place, mood, ARRAY[mood], NULL::mood FROM visit WHERE id = 1"
        assert gate.execute(asked, binary=binary).fetchone() == (
            1, IPv4Address("10.0.0.1"), "calm", "{calm}", None,
        )  # fmt: skip


async def test_columns_in_different_formats_are_each_in_their_own(limited: WireServer):
    gate = await asyncpg.connect(
        host="127.0.0.1", port=limited.port, user="writer", password=limited.secrets["writer"],
        database="pg",
    )  # fmt: skip
    try:
        await gate.set_type_codec(
            "numeric", encoder=str, decoder=str, schema="pg_catalog", format="text"
        )
        row = await gate.fetchrow("SELECT id, cost, email FROM visit WHERE id = 3")
        assert tuple(row) == (3, "0.75000000000000000000", "u3@example.org")
    finally:
        await gate.close()


def test_a_column_whose_type_changed_is_not_sent_in_the_format_of_the_old_one(
    limited: WireServer, shop: PostgresShop
):
    shop.ask("CREATE TABLE moving AS SELECT 7 AS it")
    with psycopg.connect(limited.conninfo("pg"), autocommit=True) as gate:
        asked = "SELECT it FROM moving"
        for _ in range(3):
            assert gate.execute(asked, binary=True, prepare=False).fetchone() == (7,)
        shop.ask("ALTER TABLE moving ALTER it TYPE mood USING 'calm'")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="changed"):
            gate.execute(asked, binary=True, prepare=False)
        assert gate.execute(asked, binary=True, prepare=False).fetchone() == ("calm",)


@both_formats
def test_rows_in_a_block_are_the_same_as_outside(limited: WireServer, binary: bool):
    asked = "SELECT id, email, place, cost FROM visit WHERE id < 4 ORDER BY id"
    with (
        psycopg.connect(limited.conninfo("pg")) as block,
        psycopg.connect(limited.conninfo("pg"), autocommit=True) as outside,
    ):
        expected = outside.execute(asked, binary=binary).fetchall()
        assert expected[2][:3] == (3, "u3@example.org", IPv4Address("10.0.0.1"))
        for _ in range(3):
            assert block.execute(asked, binary=binary).fetchall() == expected
            block.rollback()
