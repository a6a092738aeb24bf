"""Budgets on the wire protocol: a result that reaches one fails with 53400 and is never cut short,
and a statement is told what is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import asyncpg
import psycopg
import pytest
from msgspec import structs

from support.eventually import wait_until
from support.wire_server import WireServer, wire_server
from tidegate.model.budgets import Budget
from tidegate.store.api import MAX_AGE_S
from tidegate.store.sqlite.state import SqliteState

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) SELECT i FROM n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WireServer]:
    with wire_server(tmp_path) as running:
        yield running


class Wallet:
    """The budgets of a server, past it."""

    def __init__(self, server: WireServer) -> None:
        self.state = SqliteState(server.folder / "state" / "state.db")

    def raise_to(self, amount: int) -> None:
        """Give the budget another size; what was used of it stays."""
        (was,) = self.state.budgets.list()
        assert self.state.budgets.change(structs.replace(was, amount=amount), was)
        self._until_seen()

    def set(self, **fields: object) -> None:
        budget = Budget("b", window="day", **fields)  # type: ignore[arg-type]
        for was in self.state.budgets.list():
            assert self.state.budgets.remove(was)
        assert self.state.budgets.add(structs.replace(budget, id=f"b{budget.amount}"))
        self._until_seen()

    def _until_seen(self) -> None:
        changed = monotonic()
        wait_until(lambda: monotonic() - changed > MAX_AGE_S, "every process has seen it")


def test_a_result_that_reaches_its_budget_fails_however_it_is_read(server: WireServer) -> None:
    wallet = Wallet(server)
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        for place, read in enumerate((plain, in_parts, copied)):
            wallet.set(measure="rows", amount=1_000 + place, token="writer")
            with pytest.raises(psycopg.Error, match="The budget of 1,00") as caught:
                read(connection, 3_000)
            assert caught.value.sqlstate == "53400"
            assert "limit.budget" in (caught.value.diag.message_detail or "")
            wallet.set(measure="rows", amount=5_000 + place, token="writer")
            assert read(connection, 3_000) == 3_000
    wallet.state.close()


async def test_a_portal_is_paid_once_however_many_executes_read_it(server: WireServer) -> None:
    wallet = Wallet(server)
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        wallet.set(measure="rows", amount=1_000, token="writer")
        assert await by_portal(server, 600, 100) == (600, "")
        assert plain(connection, 300) + plain(connection, 100) == 400
        with pytest.raises(psycopg.Error, match="used up"):
            plain(connection, 1)

        wallet.set(measure="rows", amount=1_100, token="writer")
        came, state = await by_portal(server, 3_000, 250)
        assert (came, state) == (1_000, "53400"), "the fifth Execute has the end of the budget"
        with pytest.raises(psycopg.Error, match="used up"):
            plain(connection, 1)
        wallet.raise_to(3_100)
        assert plain(connection, 2_000) == 2_000
        with pytest.raises(psycopg.Error, match="used up"):
            plain(connection, 1)

        wallet.set(measure="calls", amount=2, token="writer")
        assert await by_portal(server, 600, 100) == (600, "")
        assert plain(connection, 1) == 1
        with pytest.raises(psycopg.Error, match="used up"):
            plain(connection, 1)
    wallet.state.close()


async def by_portal(server: WireServer, count: int, each: int) -> tuple[int, str]:
    """How many rows come by Executes of so many rows, and the SQLSTATE that ends them."""
    came, state = 0, ""
    connection = await asyncpg.connect(
        host="127.0.0.1", port=server.port, database="shop", user="writer",
        password=server.secrets["writer"],
    )  # fmt: skip
    try:
        async with connection.transaction(readonly=True):
            cursor = await connection.cursor(NUMBERS.format(count))
            while rows := await cursor.fetch(each):
                came += len(rows)
    except asyncpg.PostgresError as error:
        state = error.sqlstate or ""
    finally:
        await connection.close()
    return came, state


def plain(connection: psycopg.Connection, count: int) -> int:
    return len(connection.execute(NUMBERS.format(count)).fetchall())


def in_parts(connection: psycopg.Connection, count: int) -> int:
    with connection.transaction(), connection.cursor("c") as cursor:
        cursor.execute(NUMBERS.format(count))
        return sum(1 for _ in cursor)


def copied(connection: psycopg.Connection, count: int) -> int:
    with connection.cursor().copy(f"COPY ({NUMBERS.format(count)}) TO STDOUT") as copy:
        return sum(1 for _ in copy.rows())


def test_bytes_calls_and_seconds_are_refused_and_what_is_left_is_noticed(
    server: WireServer,
) -> None:
    wallet = Wallet(server)
    noticed: list[str] = []
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.add_notice_handler(lambda each: noticed.append(each.message_primary or ""))
        wallet.set(measure="bytes", amount=4_000, source="shop")
        with pytest.raises(psycopg.Error) as caught:
            plain(connection, 3_000)
        assert caught.value.sqlstate == "53400"
        wallet.set(measure="calls", amount=2, token="writer")
        assert plain(connection, 1) == plain(connection, 1) == 1
        assert noticed[-1].startswith("0 calls left of the budget of 2 calls a day")
        with pytest.raises(psycopg.Error, match="used up") as caught:
            plain(connection, 1)
        assert caught.value.sqlstate == "53400"
        wallet.set(measure="seconds", amount=200_000, token="writer")
        with pytest.raises(psycopg.Error, match=r"0\.2 seconds a day .* took the time") as caught:
            connection.execute(f"SELECT count(*) FROM ({NUMBERS.format(10**10)})")
        assert caught.value.sqlstate == "53400"
    wallet.state.close()
