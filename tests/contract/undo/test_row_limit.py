"""`max_rows_changed` holds in the transaction of the change: what is more is rolled back."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import structs

from support.undo_shops import AGENT, Gate, Shop, gate_of
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import UndoChange
from tidegate.model.requests import Query
from tidegate.model.statements import Statement
from tidegate.model.transactions import (
    BeginTransaction,
    CommitTransaction,
    MarkTransaction,
    RollbackTransaction,
    TransactionModes,
)

WRITES = BeginTransaction(modes=TransactionModes(reads_only=False))
THREE = (
    "UPDATE items SET price = 1",
    "DELETE FROM items",
    "INSERT INTO items (id) VALUES (11), (12), (13)",
    "INSERT INTO items (id) SELECT id + 10 FROM items",
)


@pytest.mark.parametrize("text", THREE)
async def test_a_change_of_more_rows_is_rolled_back(shop: Shop, text: str) -> None:
    before = shop.contents("items")
    for undo in ("off", "keep"):
        async with gate_of(shop, undo=undo, max_rows_changed=2) as gate:
            error = await gate.error(Query(Statement(text)))
            assert error.code is Code.LIMIT_CHANGES
            assert error.details["limit"] == 2 and error.details["rows"] == 3
            assert shop.contents("items") == before
            assert await gate.changes() == ()
    async with gate_of(shop, undo="off", max_rows_changed=3) as gate:
        assert (await gate.change(text)).affected == 3


async def test_the_narrower_of_the_limits_of_source_and_token_holds(shop: Shop) -> None:
    before = shop.contents("items")
    text = "UPDATE items SET price = 1"
    for of_source, of_token in ((None, 2), (2, None), (2, 9), (9, 2)):
        actor = structs.replace(AGENT, max_rows_changed=of_token)
        async with gate_of(shop, max_rows_changed=of_source) as gate:
            error = await gate.error(Query(Statement(text)), actor)
            assert error.code is Code.LIMIT_CHANGES
            assert shop.contents("items") == before


async def test_a_person_is_not_asked_about_what_a_dry_run_shows_to_be_too_much(shop: Shop) -> None:
    async with gate_of(shop, approval_for="writes", max_rows_changed=2) as gate:
        error = await gate.error(Query(Statement("UPDATE items SET price = 1")))
        assert error.code is Code.LIMIT_CHANGES
        assert gate.app.approvals.list() == ()
        error = await gate.error(Query(Statement("UPDATE items SET price = 1 WHERE id < 3")))
        assert error.code is Code.APPROVAL_NEEDED
        (question,) = gate.app.approvals.list()
        assert question.subject.max_rows_changed == 2


async def test_an_approval_does_not_raise_the_limit(shop: Shop) -> None:
    text = "UPDATE items SET price = 1 WHERE id < 3"
    async with gate_of(shop, approval_for="writes", max_rows_changed=2) as gate:
        assert (await gate.error(Query(Statement(text)))).code is Code.APPROVAL_NEEDED
        (question,) = gate.app.approvals.list()
        gate.app.approvals.resolve(question.id, "allowed", "ada")
        shop.script("INSERT INTO items VALUES (0, 'zero', 0)")
        before = shop.contents("items")
        assert (await gate.error(Query(Statement(text)))).code is Code.LIMIT_CHANGES
        assert shop.contents("items") == before


async def test_what_cannot_be_counted_needs_a_person(shop: Shop) -> None:
    async with gate_of(shop, max_rows_changed=2) as gate:
        error = await gate.error(Query(Statement("CREATE TABLE made (id INTEGER PRIMARY KEY)")))
        assert error.code is Code.APPROVAL_NEEDED
        with pytest.raises(Exception, match="made"):
            shop.rows("SELECT * FROM made")


async def test_an_undo_is_held_to_the_limit_as_well(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        page = await gate.change("UPDATE items SET price = 1")
    before = shop.contents("items")
    async with gate_of(shop, max_rows_changed=2) as gate:
        assert (await gate.error(UndoChange(page.change))).code is Code.LIMIT_CHANGES
        assert shop.contents("items") == before


# In a transaction over several statements


@asynccontextmanager
async def block_of(shop: Shop, **settings: Any) -> AsyncGenerator[tuple[Gate, str]]:
    """A gate, and the id of a transaction that was begun."""
    async with gate_of(shop, **settings) as gate:
        begun = await gate.ask(WRITES)
        if not begun.id:
            pytest.skip("this engine has no transactions over several statements")
        yield gate, begun.id


async def test_a_block_is_held_to_the_limit_as_a_whole(shop: Shop) -> None:
    before = shop.contents("items")
    async with block_of(shop, undo="off", max_rows_changed=2) as (gate, block):
        for place in (1, 2):
            page = await gate.change(
                f"UPDATE items SET price = 1 WHERE id = {place}", transaction=block
            )
            assert page.affected == 1
        third = Query(Statement("UPDATE items SET price = 1 WHERE id = 3"))
        error = await gate.error(third, transaction=block)
        assert error.code is Code.LIMIT_CHANGES and "transaction" in error.message
        ended = await gate.ask(CommitTransaction(), transaction=block)
        assert not ended.committed
        assert shop.contents("items") == before


async def test_one_statement_of_a_block_is_held_to_it(shop: Shop) -> None:
    before = shop.contents("items")
    async with block_of(shop, undo="off", max_rows_changed=2) as (gate, block):
        error = await gate.error(Query(Statement("DELETE FROM items")), transaction=block)
        assert error.code is Code.LIMIT_CHANGES
        ended = await gate.ask(CommitTransaction(), transaction=block)
        assert not ended.committed
        assert shop.contents("items") == before


async def test_what_was_undone_in_a_block_does_not_count(shop: Shop) -> None:
    async with block_of(shop, undo="off", max_rows_changed=2) as (gate, block):
        await gate.ask(MarkTransaction("savepoint", "here"), transaction=block)
        await gate.change("DELETE FROM items WHERE id < 3", transaction=block)
        await gate.ask(MarkTransaction("rollback to", "here"), transaction=block)
        await gate.change("UPDATE items SET price = 7 WHERE id < 3", transaction=block)
        assert (await gate.ask(CommitTransaction(), transaction=block)).committed
        assert shop.rows("SELECT price FROM items WHERE id < 3") == [(7,), (7,)]


async def test_an_undo_does_not_run_in_a_block(shop: Shop) -> None:
    async with block_of(shop) as (gate, block):
        page = await gate.change("UPDATE items SET price = 7 WHERE id = 1")
        before = shop.contents("items")
        with pytest.raises(TidegateError) as caught:
            await gate.ask(UndoChange(page.change), transaction=block)
        assert caught.value.code is Code.UNSUPPORTED
        await gate.ask(RollbackTransaction(), transaction=block)
        assert shop.contents("items") == before
