"""`max_rows_changed` on the wire protocol: a change of more rows is rolled back, in a block the sum
counts, and the change of a source that keeps rows can be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.wire_server import WireServer, wire_server

ITEMS = "SELECT * FROM item ORDER BY id"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WireServer]:
    limited = {
        "name": "limited",
        "url": f"sqlite:///{tmp_path}/shop.db",
        "access": "write",
        "unqualified": "allow",
        "max_rows_changed": 2,
        "undo": "keep",
    }
    with wire_server(tmp_path, sources=[limited]) as running:
        yield running


def test_a_change_of_more_rows_is_rolled_back(server: WireServer) -> None:
    before = server.rows(ITEMS)
    with psycopg.connect(server.conninfo("limited"), autocommit=True) as connection:
        for text in ("UPDATE item SET price = 1", "DELETE FROM item RETURNING id"):
            with pytest.raises(psycopg.Error, match="at most 2") as caught:
                connection.execute(text)
            assert caught.value.sqlstate == "54000"
            assert server.rows(ITEMS) == before
        assert connection.execute("UPDATE item SET price = 1 WHERE id < 3").rowcount == 2


def test_a_block_is_held_to_the_limit_as_a_whole(server: WireServer) -> None:
    before = server.rows(ITEMS)
    with psycopg.connect(server.conninfo("limited")) as connection:
        connection.execute("UPDATE item SET price = 1 WHERE id = 1")
        connection.execute("UPDATE item SET price = 1 WHERE id = 2")
        with pytest.raises(psycopg.Error, match="transaction change 3 rows together"):
            connection.execute("UPDATE item SET price = 1 WHERE id = 3")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.commit()
    assert server.rows(ITEMS) == before
