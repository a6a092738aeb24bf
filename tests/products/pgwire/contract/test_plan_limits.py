"""Limits of plans on the wire protocol before PostgreSQL: by values, in a block, a cursor and COPY,
and under a mask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import support.postgres_server as postgres_server
from support.wire_server import WireServer, wire_server

pytestmark = pytest.mark.skipif(
    not postgres_server.available(), reason="PostgreSQL is not installed"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WireServer]:
    database = postgres_server.shared(sorted(postgres_server.available())[-1])
    name = database.new_database()
    for text in (
        "CREATE TABLE big (id int PRIMARY KEY, note text)",
        "INSERT INTO big SELECT n, 'note ' || n FROM generate_series(1, 20000) n",
        "ANALYZE",
    ):
        database.ask(text, name)
    settings = {"url": database.url(name), "access": "write", "max_plan_rows": 2_000}
    masked = {**settings, "name": "masked", "masks": [{"column": "big.note"}]}
    with wire_server(tmp_path, sources=[{**settings, "name": "plans"}, masked]) as running:
        yield running
    database.drop_database(name)


LARGE = (
    "SELECT id FROM big",
    "SELECT max(id + 1) FROM big",
    "EXPLAIN ANALYZE SELECT id FROM big",
    "EXPLAIN (ANALYZE, FORMAT JSON) SELECT id FROM big",
    "UPDATE big SET note = 'x' WHERE id > 10",
    "COPY (SELECT id FROM big) TO STDOUT",
    "COPY big TO STDOUT",
)
SMALL = ("SELECT id FROM big WHERE id = 5", "EXPLAIN SELECT id FROM big", "SELECT 1")


def test_large_plans_are_refused_alone_and_in_a_block(server: WireServer) -> None:
    with psycopg.connect(server.conninfo("plans"), autocommit=True) as connection:
        for text in SMALL:
            connection.execute(text)
            with connection.transaction():
                connection.execute(text)
        for text in LARGE:
            for in_block in (False, True):
                with pytest.raises(psycopg.Error, match="max_plan_rows") as caught:
                    if in_block:
                        with connection.transaction():
                            connection.execute("SELECT 1")
                            _run(connection, text)
                    else:
                        _run(connection, text)
                assert caught.value.sqlstate == "54000", text
        with (
            pytest.raises(psycopg.Error, match="max_plan_rows"),
            connection.transaction(),
            connection.cursor("c") as cursor,
        ):
            cursor.execute("SELECT id FROM big")
        between = "SELECT id FROM big WHERE id < %s"
        assert len(connection.execute(between, [50]).fetchall()) == 49
        with pytest.raises(psycopg.Error, match="max_plan_rows"):
            connection.execute(between, [15_000])


def _run(connection: psycopg.Connection, text: str) -> None:
    if not text.startswith("COPY"):
        connection.execute(text)
        return
    with connection.cursor().copy(text) as copy:
        for _ in copy:
            pass


def test_what_is_planned_is_what_runs_under_a_mask(server: WireServer) -> None:
    with psycopg.connect(server.conninfo("masked"), autocommit=True) as connection:
        row = connection.execute("SELECT id, note FROM big WHERE id = 5").fetchone()
        assert row == (5, None)
        with pytest.raises(psycopg.Error, match="max_plan_rows"):
            connection.execute("SELECT id, note FROM big")
