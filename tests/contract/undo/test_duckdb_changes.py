"""DuckDB puts no rows back, and says so before the yes; a limit of rows holds there as well."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.undo_shops import Shop, gate_of
from tidegate.errors import Code
from tidegate.model.requests import Query
from tidegate.model.statements import Statement


class DuckdbShop(Shop):
    name = "duckdb"

    def build(self) -> str:
        self._path = str(self.directory / "shop.duckdb")
        return f"duckdb:///{self._path}"

    def script(self, text: str) -> None:
        self.rows(text)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(self._path) as connection:
            return connection.execute(text).fetchall()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = DuckdbShop(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE items SET price = 1",
        "DELETE FROM items",
        "DELETE FROM items RETURNING id",
        "INSERT INTO items (id) SELECT id + 10 FROM items",
        "INSERT INTO items (id) VALUES (11), (12), (13) RETURNING id",
    ],
)
async def test_a_change_of_more_rows_is_rolled_back(shop: Shop, text: str) -> None:
    before = shop.contents("items")
    async with gate_of(shop, undo="off", max_rows_changed=2) as gate:
        error = await gate.error(Query(Statement(text)))
        assert error.code is Code.LIMIT_CHANGES
        assert (error.details["limit"], error.details["rows"]) == (2, 3)
    assert shop.contents("items") == before
    async with gate_of(shop, undo="off", max_rows_changed=3) as gate:
        page = await gate.change(text)
        assert page.affected == 3
    assert shop.contents("items") != before


async def test_no_person_is_asked_about_what_a_dry_run_shows_to_be_too_much(shop: Shop) -> None:
    async with gate_of(shop, undo="off", approval_for="writes", max_rows_changed=2) as gate:
        error = await gate.error(Query(Statement("UPDATE items SET price = 1")))
        assert error.code is Code.LIMIT_CHANGES
        assert gate.app.approvals.list() == ()


async def test_a_change_cannot_be_taken_back_and_that_is_known_before(shop: Shop) -> None:
    text = "UPDATE items SET price = 1 WHERE id = 1"
    before = shop.contents("items")
    async with gate_of(shop, undo="require") as gate:
        error = await gate.error(Query(Statement(text)))
        assert error.code is Code.UNDO_UNAVAILABLE and "puts no rows back" in error.message
    assert shop.contents("items") == before
    async with gate_of(shop, approval_for="writes") as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.APPROVAL_NEEDED
        reversible = gate.app.approvals.list()[0].subject.reversible
        assert reversible is not None and not reversible.possible
    async with gate_of(shop) as gate:
        page = await gate.change(text)
        assert (page.affected, page.change) == (1, "")
