"""A transaction over several statements is taken back whole and exactly, or not at all and for a
reason that is known before the yes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import tidegate.engines.postgres.changes as postgres_changes
from support.undo_shops import KINDS, Gate, Kind, MariadbShop, Shop, gate_of
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import DescribeUndo, UndoChange
from tidegate.model.replies import EndedTransaction
from tidegate.model.requests import Query
from tidegate.model.statements import Statement
from tidegate.model.transactions import (
    BeginTransaction,
    CommitTransaction,
    Isolation,
    MarkTransaction,
    RollbackTransaction,
    TransactionModes,
)

PARENTS = """
CREATE TABLE parents (id INTEGER PRIMARY KEY, name VARCHAR(20) UNIQUE);
CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL,
  FOREIGN KEY (parent) REFERENCES parents (id));
INSERT INTO parents VALUES (1, 'one'), (2, 'two');
INSERT INTO children VALUES (10, 1), (11, 1), (20, 2);
"""


class Block:
    """A transaction that is open."""

    def __init__(self, gate: Gate, id: str) -> None:
        self.gate = gate
        self.id = id

    async def run(self, *texts: str) -> None:
        for text in texts:
            words = text.split(" ", 1) if text.startswith("SAVEPOINT") else text.rsplit(" ", 1)
            action = words[0].lower()
            if action in ("savepoint", "release", "rollback to"):
                await self.gate.ask(MarkTransaction(action, words[1]), transaction=self.id)
            else:
                await self.gate.change(text, transaction=self.id)

    async def error(self, text: str) -> TidegateError:
        return await self.gate.error(Query(Statement(text)), transaction=self.id)

    async def end(self) -> EndedTransaction:
        ended = await self.gate.ask(CommitTransaction(), transaction=self.id)
        assert isinstance(ended, EndedTransaction)
        return ended


@asynccontextmanager
async def block_of(gate: Gate, isolation: Isolation | None = None) -> AsyncGenerator[Block]:
    modes = TransactionModes(isolation, reads_only=False)
    yield Block(gate, (await gate.ask(BeginTransaction(modes=modes))).id)


@pytest.fixture(params=["sqlite", "postgres", "mysql"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """An engine that has transactions over several statements."""
    return KINDS[request.param]


BLOCKS = (
    # The same row several times, several tables, and a key that goes and comes.
    ("UPDATE items SET price = 1 WHERE id = 1", "UPDATE items SET price = price + 1, name = 'x'",
     "DELETE FROM notes WHERE a = 1", "INSERT INTO notes VALUES (1, 'x', 'again'), (8, 'z', NULL)"),
    ("DELETE FROM items WHERE id = 2", "INSERT INTO items VALUES (2, 'two', 20)",
     "UPDATE items SET price = 5 WHERE id = 3"),
    ("INSERT INTO items VALUES (7, 'seven', 7)", "UPDATE items SET price = 8 WHERE id = 7",
     "DELETE FROM items WHERE id IN (1, 7)"),
    # What a savepoint undid is no change, whatever was touched before and behind it.
    ("UPDATE items SET price = 1 WHERE id = 1", "SAVEPOINT here", "UPDATE items SET price = 2",
     "DELETE FROM notes", "ROLLBACK TO here", "INSERT INTO items (id) VALUES (9)"),
    ("SAVEPOINT a", "UPDATE items SET price = 1", "SAVEPOINT b", "UPDATE items SET name = 'b'",
     "RELEASE b", "ROLLBACK TO a", "SAVEPOINT a", "DELETE FROM notes WHERE a = 2",
     "ROLLBACK TO a", "DELETE FROM notes WHERE a = 1"),
    # Two names that differ in case are two savepoints.
    ("SAVEPOINT a", "UPDATE items SET price = 1 WHERE id = 1", "SAVEPOINT A",
     "UPDATE items SET price = 2 WHERE id = 2", "ROLLBACK TO A",
     "UPDATE items SET price = 3 WHERE id = 3"),
)  # fmt: skip


async def test_a_block_is_taken_back_exactly(shop: Shop) -> None:
    before = shop.contents("items", "notes")
    async with gate_of(shop) as gate:
        for texts in BLOCKS:
            async with block_of(gate) as block:
                kept = await gate.changes()
                await block.run(*texts)
                assert shop.contents("items", "notes") == before, texts
                assert await gate.changes() == kept
                ended = await block.end()
            changed = shop.contents("items", "notes")
            assert ended.committed and ended.change and changed != before, texts
            assert (await gate.ask(DescribeUndo(ended.change))).possible
            done = await gate.undo(ended.change)
            assert shop.contents("items", "notes") == before, texts
            again = await gate.undo(done.change)
            assert shop.contents("items", "notes") == changed, texts
            await gate.undo(again.change)


RELATED = (
    ("INSERT INTO parents VALUES (3, 'three')", "INSERT INTO children VALUES (30, 3)"),
    ("DELETE FROM children WHERE parent = 1", "DELETE FROM parents WHERE id = 1"),
    ("INSERT INTO parents VALUES (3, 'three')", "UPDATE children SET parent = 3",
     "DELETE FROM parents WHERE id < 3"),
    ("DELETE FROM children WHERE parent = 1", "DELETE FROM parents WHERE id = 1",
     "INSERT INTO parents VALUES (3, 'one')", "INSERT INTO children VALUES (30, 3)"),
)  # fmt: skip


async def test_rows_that_refer_to_each_other_go_back_together(shop: Shop) -> None:
    shop.script(PARENTS)
    before = shop.contents("parents", "children")
    async with gate_of(shop) as gate:
        for texts in RELATED:
            async with block_of(gate) as block:
                await block.run(*texts)
                ended = await block.end()
            assert ended.change and shop.contents("parents", "children") != before
            await gate.undo(ended.change)
            assert shop.contents("parents", "children") == before, texts


async def test_a_block_that_is_rolled_back_or_changes_nothing_leaves_nothing(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        async with block_of(gate) as block:
            await block.run("UPDATE items SET price = 1")
            await gate.ask(RollbackTransaction(), transaction=block.id)
        async with block_of(gate) as block:
            await block.run("UPDATE items SET price = 11 WHERE id = 1")
            await block.run("UPDATE items SET price = 10 WHERE id = 1")
            assert (await block.end()) == EndedTransaction(True, 2, "")
        assert await gate.changes() == () and shop.contents("items") == before


async def test_a_statement_that_cannot_be_taken_back_makes_the_whole_block_so(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        async with block_of(gate) as block:
            await block.run("UPDATE items SET price = 1", "DELETE FROM loose", "DELETE FROM notes")
            assert (await block.end()) == EndedTransaction(True, 3, "")
        assert await gate.changes() == ()
        assert shop.rows("SELECT count(*) FROM loose") == [(0,)]


async def test_what_cannot_be_taken_back_and_was_undone_does_not_count(shop: Shop) -> None:
    before = shop.contents("items", "loose", "notes")
    async with gate_of(shop) as gate:
        async with block_of(gate) as block:
            await block.run("UPDATE items SET price = 1", "SAVEPOINT s", "DELETE FROM loose")
            await block.run("DELETE FROM notes", "ROLLBACK TO s", "DELETE FROM notes WHERE a = 1")
            ended = await block.end()
        assert ended.change and shop.contents("items", "loose", "notes") != before
        await gate.undo(ended.change)
        assert shop.contents("items", "loose", "notes") == before


async def test_a_block_is_refused_where_undo_is_required_and_it_cannot_be(shop: Shop) -> None:
    before = shop.contents("items", "loose")
    async with gate_of(shop, undo="require") as gate:
        async with block_of(gate) as block:
            await block.run("UPDATE items SET price = 1")
            error = await block.error("DELETE FROM loose")
            assert error.code is Code.UNDO_UNAVAILABLE and "key" in error.message
            assert not (await block.end()).committed
        assert shop.contents("items", "loose") == before


async def test_a_block_larger_than_the_bound_is_not_kept(shop: Shop) -> None:
    bound = {"undo": {"max_bytes": 1_024}}
    large = [f"UPDATE items SET name = '{letter * 190}' WHERE id = 1" for letter in "ab"]
    more = [f"INSERT INTO many VALUES ({number}, 1)" for number in range(20)]
    before = shop.contents("items", "many")
    async with gate_of(shop, undo="require", config=bound) as gate:
        async with block_of(gate) as block:
            with pytest.raises(TidegateError, match="max_bytes"):
                await block.run(*large, *more)
                await block.end()
        assert shop.contents("items", "many") == before
        assert await gate.changes() == ()


# What a card says


async def test_the_card_of_a_statement_says_what_becomes_of_its_block(shop: Shop) -> None:
    from tidegate.approvals.render import describe

    allowed = "UPDATE items SET price = 5 WHERE id = 1"
    async with gate_of(shop, approval_for="writes") as gate:
        async with block_of(gate) as block:
            assert (await block.error(allowed)).code is Code.APPROVAL_NEEDED
            (question,) = gate.app.approvals.list()
            assert question.subject.reversible is not None and question.subject.reversible.possible
            assert "goes back together" in describe(question)
            gate.app.approvals.resolve(question.id, "allowed", "ada")
            await gate.ask(RollbackTransaction(), transaction=block.id)
        async with block_of(gate) as block:
            await block.run(allowed)
            assert (await block.error("DELETE FROM loose")).code is Code.UNDO_UNAVAILABLE
            assert not (await block.end()).committed
        run = gate.app.approvals.find(question.id).run
        assert run is not None and (run.state, run.change_id) == ("failed", "")
    assert shop.rows("SELECT price FROM items WHERE id = 1") == [(10,)]


async def allowed(shop: Shop, *texts: str) -> list[str]:
    """Have a person say yes to statements, each by itself. Within a block that has begun no person
    is asked: with `unattended` the statements use the answers that there are."""
    asked: list[str] = []
    async with gate_of(shop, approval_for="writes") as gate:
        for text in texts:
            assert (await gate.error(Query(Statement(text)))).code is Code.APPROVAL_NEEDED
            asked.append(gate.app.approvals.list()[0].id)
            gate.app.approvals.resolve(asked[-1], "allowed", "ada")
    return asked


UNATTENDED: dict[str, Any] = {"approval_for": "writes", "unattended": "allow"}


async def test_the_change_of_a_block_is_found_by_its_approvals(shop: Shop) -> None:
    texts = "UPDATE items SET price = 5 WHERE id = 1", "DELETE FROM notes WHERE a = 1"
    asked = await allowed(shop, *texts)
    before = shop.contents("items", "notes")
    async with gate_of(shop, **UNATTENDED) as gate:
        async with block_of(gate) as block:
            await block.run(*texts)
            run = gate.app.approvals.find(asked[0]).run
            assert run is not None and run.state == "running"
            ended = await block.end()
        runs = [gate.app.approvals.find(id).run for id in asked]
        assert [(run.state, run.change_id) for run in runs if run] == [("done", ended.change)] * 2
        assert (await gate.changes(approval=asked[0]))[0].id == ended.change
        await gate.undo(ended.change)
        assert shop.contents("items", "notes") == before


@pytest.mark.parametrize("first", ["UPDATE items SET price = 5 WHERE id = 1", "DELETE FROM loose"])
async def test_a_promise_holds_for_the_block(shop: Shop, first: str) -> None:
    """Whether what cannot be taken back comes behind what was promised, or before."""
    promised, other = "UPDATE items SET price = 5 WHERE id = 1", "DELETE FROM loose"
    second = other if first == promised else promised
    (asked,) = await allowed(shop, promised)
    before = shop.contents("items", "loose")
    async with gate_of(shop, **UNATTENDED) as gate:
        async with block_of(gate) as block:
            await block.run(first)
            error = await block.error(second)
            assert error.code is Code.UNDO_UNAVAILABLE and "key" in error.message
            assert "part of its transaction" in error.message
            assert not (await block.end()).committed
        assert shop.contents("items", "loose") == before and await gate.changes() == ()
        run = gate.app.approvals.find(asked).run
        assert run is None or run.state == "failed"


# Others at the same time


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
async def test_rows_that_another_one_changed_meanwhile_are_not_put_back(
    shop: Shop, isolation: Isolation
) -> None:
    """What is first touched behind a change of another program has that as its state before."""
    if shop.name == "sqlite":
        pytest.skip("it has one writer at a time")
    async with gate_of(shop) as gate:
        async with block_of(gate, isolation) as block:
            await block.run("UPDATE items SET price = 1 WHERE id = 1", "SAVEPOINT s")
            await block.run("UPDATE items SET price = 1 WHERE id = 2", "ROLLBACK TO s")
            if shop.name == "postgres":  # others keep the row locked until the end
                shop.script("UPDATE items SET name = 'theirs' WHERE id = 2")
            shop.script("UPDATE notes SET note = 'theirs' WHERE a = 1")
            shop.script("INSERT INTO notes VALUES (5, 'x', 'theirs')")
            if isolation == "read committed":
                await block.run("UPDATE notes SET note = 'mine'", "UPDATE items SET price = 3")
            ended = await block.end()
        await gate.undo(ended.change)
        assert shop.rows("SELECT id, price FROM items ORDER BY id")[:2] == [(1, 10), (2, 20)]
        noted = shop.rows("SELECT note FROM notes WHERE a IN (1, 5)")
        assert noted == [("theirs",)] * 3


async def test_a_conflict_prevents_the_undo_of_the_whole_block(shop: Shop) -> None:
    async with gate_of(shop) as gate:
        async with block_of(gate) as block:
            await block.run("UPDATE items SET price = 1", "DELETE FROM notes WHERE a = 1")
            ended = await block.end()
        shop.script("UPDATE items SET price = 99 WHERE id = 2")
        before = shop.contents("items", "notes")
        error = await gate.error(UndoChange(ended.change))
        assert error.code is Code.UNDO_CONFLICT and error.details["count"] == 1
        assert shop.contents("items", "notes") == before


async def test_a_statement_that_meets_rows_that_came_meanwhile_cannot_be_taken_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under READ COMMITTED a row can come between the reading that locks and the statement: it is
    about a row then whose state before is not known."""
    if shop.name == "sqlite":
        pytest.skip("it has one writer at a time")
    text = "UPDATE items SET price = 7 WHERE price < 100"
    came: list[str] = []

    def comes(name: str) -> None:
        came.append(name)
        shop.script(f"INSERT INTO items VALUES ({100 + len(came)}, '{name}', 5)")

    def read_by_postgres(rows: Any, places: Any) -> Any:
        comes("new")
        return postgres(rows, places)

    def read_by_mysql(table: Any, rows: Any) -> Any:
        if not came:
            comes("new")
        return mysql(table, rows)

    if isinstance(shop, MariadbShop):
        import tidegate.products.mysql.engine.changes as mysql_changes

        mysql = mysql_changes.values_of
        monkeypatch.setattr(mysql_changes, "values_of", read_by_mysql)
    else:
        postgres = postgres_changes.each_once
        monkeypatch.setattr(postgres_changes, "each_once", read_by_postgres)
    async with gate_of(shop) as gate:
        async with block_of(gate, "read committed") as block:
            await block.run(text)
            assert (await block.end()) == EndedTransaction(True, 1, "")
        assert came and await gate.changes() == ()
        assert len(shop.rows("SELECT * FROM items WHERE price = 7")) == 3
    came.clear()
    shop.script("DELETE FROM items WHERE id > 100; UPDATE items SET price = 6")
    async with gate_of(shop, undo="require") as gate, block_of(gate, "read committed") as block:
        error = await block.error(text)
        assert error.code is Code.UNDO_UNAVAILABLE and "other rows" in error.message
        assert not (await block.end()).committed
    assert shop.rows("SELECT price FROM items ORDER BY id") == [(6,), (6,), (6,), (5,)]
