"""A rule that comes while a result is open reaches what is left of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from products.pgwire.support.wire_sources import TABLES
from support.eventually import wait_until
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server

MANY = (
    "CREATE TABLE many (i int, word text);"
    " INSERT INTO many SELECT n, 'secret' || n FROM generate_series(1, 60000) AS g (n);"
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[WireServer]:
    shop = PostgresShop.new(TABLES + MANY)
    source = {"name": "pg", "url": shop.url, "access": "write"}
    with wire_server(tmp_path, sources=[source]) as server:
        yield server


def mask(served: WireServer, **rules: Any) -> None:
    """Let the settings hide something of `pg`, as an operator does."""
    path = served.folder / "settings.json"
    settings = json.loads(path.read_text())
    next(each for each in settings["sources"] if each["name"] == "pg").update(rules)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(settings))
    fresh.replace(path)


RULES = [
    {"masks": [{"column": "many.word", "show": "nothing"}]},
    {"filters": [{"table": "many", "where": "i < 3"}]},
    {"access": "none"},
]


@pytest.mark.parametrize("rules", RULES, ids=["mask", "filter", "access"])
@pytest.mark.parametrize("hold", [False, True], ids=["in a block", "with hold"])
def test_a_cursor_shows_nothing_more_under_rules_that_have_changed(
    served: WireServer, rules: dict[str, Any], hold: bool
):
    with psycopg.connect(served.conninfo("pg", "reader"), autocommit=True) as gate:
        gate.execute("BEGIN")
        kept = "WITH HOLD " if hold else ""
        gate.execute(f"DECLARE c CURSOR {kept}FOR SELECT i, word FROM many WHERE i <= 2000")
        assert len(gate.execute("FETCH 2 FROM c").fetchall()) == 2
        if hold:
            gate.execute("COMMIT")
        mask(served, **rules)
        with pytest.raises(psycopg.Error) as caught:
            gate.execute("FETCH 2 FROM c").fetchall()
        assert caught.value.sqlstate in ("42501", "57P01", "08006", "08003", "57014", "3D000"), (
            caught.value.sqlstate,
            str(caught.value),
        )
        assert "secret" not in str(caught.value)


def test_a_portal_that_is_read_in_parts_shows_nothing_more(served: WireServer):
    connected = psycopg.connect(served.conninfo("pg", "reader"))
    with connected as gate, gate.cursor(name="parts") as cursor:
        cursor.execute("SELECT i, word FROM many")
        assert cursor.fetchmany(5)
        mask(served, masks=[{"column": "many.word", "show": "nothing"}])
        with pytest.raises(psycopg.Error):
            cursor.fetchmany(5)


def test_a_statement_whose_rows_wait_for_their_reader_ends(served: WireServer):
    with psycopg.connect(served.conninfo("pg", "reader"), autocommit=True) as gate:
        gate.pgconn.send_query(b"SELECT i, repeat(word, 100) FROM many")
        gate.pgconn.set_single_row_mode()
        first = gate.pgconn.get_result()
        assert first is not None and first.ntuples == 1
        mask(served, masks=[{"column": "many.word", "show": "nothing"}])
        with psycopg.connect(served.conninfo("pg", "writer"), autocommit=True) as other:
            wait_until(
                lambda: other.execute("SELECT max(word) FROM many").fetchone() == (None,),
                "the new rule",
            )
        states = set[str]()
        while (result := gate.pgconn.get_result()) is not None:
            states.add((result.error_field(67) or b"").decode())  # its SQLSTATE
        assert states - {""}, "all rows came"
