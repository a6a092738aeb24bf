"""A process that is killed around the COMMIT of a change leaves an `unknown` one, which the rows
settle; and a state that cannot be written loses no change and keeps none half."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import duckdb
import pytest

from support.eventually import wait_until
from support.undo_shops import AGENT, KINDS, DuckdbShop, OlderPostgresShop, Shop, gate_of
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import ChangeEntry, DescribeUndo, UndoChange
from tidegate.model.requests import Query
from tidegate.model.statements import Statement

CHILD = """
import asyncio, os, signal, sys
from support.undo_shops import Gate, gate_of
from tidegate.history.undo_log import UndoLog
from tidegate.model.changes import UndoChange
from tidegate.model.transactions import BeginTransaction, CommitTransaction, TransactionModes

where, url, text, undo = sys.argv[1:5]
place = "save" if where == "before COMMIT" else "end"
keep = getattr(UndoLog, place)

def dies(self, *given):
    if place == "save":
        keep(self, *given)
    os.kill(os.getpid(), signal.SIGKILL)

class Shop:
    from pathlib import Path
    directory = Path(sys.argv[5])

async def work():
    Shop.url = url
    async with gate_of(Shop) as gate:
        setattr(UndoLog, place, dies)
        if ";" not in text:
            await (gate.undo(undo) if undo else gate.change(text))
            return
        block = (await gate.ask(BeginTransaction(modes=TransactionModes(reads_only=False)))).id
        for each in text.split(";"):
            await gate.change(each, transaction=block)
        await gate.ask(CommitTransaction(), transaction=block)

asyncio.run(work())
"""
TEXT = "UPDATE items SET name = 'new', price = 7 WHERE id < 3"


@pytest.fixture(params=sorted(KINDS))
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    made = KINDS[request.param].make(tmp_path)
    yield made
    made.close()


def die(shop: Shop, where: str, text: str = TEXT, undo: str = "") -> None:
    """A process that runs a change, or an undo, and is killed at that place."""
    words = [sys.executable, "-c", CHILD, where, shop.url, text, undo, str(shop.directory)]
    tests = Path(__file__).parents[2]
    ended = subprocess.run(words, cwd=tests, capture_output=True, text=True, timeout=120)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    if isinstance(shop, DuckdbShop):
        wait_until(lambda: is_free(shop), "the worker of the process to let go of the file")


def is_free(shop: Shop) -> bool:
    """Whether no process has the file of DuckDB open to write."""
    try:
        shop.script("SELECT 1")
    except duckdb.IOException:
        return False
    return True


def age(shop: Shop) -> None:
    """Let a minute pass for the changes that are kept."""
    connection = apsw.Connection(str(shop.directory / "state" / "state.db"))
    connection.execute("UPDATE changes SET made_at = made_at - 61")
    connection.close()


async def test_a_change_that_was_not_committed_is_settled_as_that(shop: Shop) -> None:
    before = shop.contents("items")
    die(shop, "before COMMIT")
    assert shop.contents("items") == before
    async with gate_of(shop) as gate:
        (entry,) = await gate.changes()
        assert entry.state == "prepared"
        error = await gate.error(UndoChange(entry.id))
        assert error.code is Code.SOURCE_BUSY
        age(shop)
        preview = await gate.ask(DescribeUndo(entry.id))
        assert not preview.possible and "never committed" in preview.reason
        assert await gate.changes() == ()
        assert shop.contents("items") == before


async def test_a_change_that_was_committed_is_settled_as_that(shop: Shop) -> None:
    before = shop.contents("items")
    die(shop, "behind COMMIT")
    changed = shop.contents("items")
    assert changed != before
    age(shop)
    async with gate_of(shop) as gate:
        (entry,) = await gate.changes()
        assert entry.state == "prepared"
        assert (await gate.ask(DescribeUndo(entry.id))).possible
        (entry,) = await gate.changes()
        assert entry.state == "done"
        await gate.undo(entry.id)
        assert shop.contents("items") == before


BLOCK = f"{TEXT}; UPDATE items SET price = 8 WHERE id = 1; DELETE FROM notes WHERE a = 1"


async def test_a_block_is_settled_whole(shop: Shop) -> None:
    if shop.name == "duckdb" or isinstance(shop, OlderPostgresShop):
        pytest.skip("it has no transactions over several statements, or those of the other version")
    before = shop.contents("items", "notes")
    die(shop, "before COMMIT", BLOCK.replace("'new'", "'never'"))
    assert shop.contents("items", "notes") == before
    die(shop, "behind COMMIT", BLOCK)
    assert shop.contents("items", "notes") != before
    age(shop)
    async with gate_of(shop) as gate:
        committed, never = await gate.changes()
        assert (committed.state, never.state) == ("prepared", "prepared")
        assert not (await gate.ask(DescribeUndo(never.id))).possible
        assert (await gate.ask(DescribeUndo(committed.id))).possible
        await gate.undo(committed.id)
        assert shop.contents("items", "notes") == before


async def test_an_undo_settles_by_itself(shop: Shop) -> None:
    before = shop.contents("items")
    die(shop, "before COMMIT", "UPDATE items SET name = 'never' WHERE id < 3")
    die(shop, "behind COMMIT")
    age(shop)
    async with gate_of(shop) as gate:
        committed, never = await gate.changes()
        error = await gate.error(UndoChange(never.id))
        assert error.code is Code.UNDO_CONFLICT
        await gate.undo(committed.id)
        assert shop.contents("items") == before


async def test_an_unknown_change_whose_rows_have_changed_since_stays_unknown(shop: Shop) -> None:
    die(shop, "before COMMIT")
    age(shop)
    shop.script("UPDATE items SET name = 'mine' WHERE id = 1")
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        (entry,) = await gate.changes()
        preview = await gate.ask(DescribeUndo(entry.id))
        assert not preview.possible and "not known" in preview.reason
        assert (await gate.error(UndoChange(entry.id))).code is Code.UNDO_CONFLICT
        assert shop.contents("items") == before
        assert (await gate.changes())[0].state == "prepared"


@pytest.mark.parametrize("where", ["before COMMIT", "behind COMMIT"])
async def test_an_undo_that_is_cut_off_is_whole_or_not_there(shop: Shop, where: str) -> None:
    before = shop.contents("items")
    async with gate_of(shop) as gate:
        page = await gate.change(TEXT)
    changed = shop.contents("items")
    die(shop, where, undo=page.change)
    assert shop.contents("items") == (changed if where == "before COMMIT" else before)
    age(shop)
    async with gate_of(shop) as gate:
        undo, _ = await gate.changes()
        assert (undo.undoes, undo.state) == (page.change, "prepared")
        if where == "before COMMIT":
            await gate.undo(page.change)
        else:
            error = await gate.error(UndoChange(page.change))
            assert error.code is Code.UNDO_CONFLICT
            assert (await gate.ask(DescribeUndo(undo.id))).possible
            entries = {entry.id: entry for entry in await gate.changes()}
            assert entries[page.change].undone_by == undo.id
        assert shop.contents("items") == before


class FullStore:
    """A store of changes whose disk is full; the rest is the real one's."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def prepare(self, entry: ChangeEntry, key: bytes, image: bytes, total_bytes: int) -> None:
        raise TidegateError(Code.STATE_FAILED, "The state cannot be written: its disk is full.")


async def test_a_full_disk_of_the_state_keeps_nothing_and_says_so(shop: Shop) -> None:
    before = shop.contents("items")
    async with gate_of(shop, undo="require") as gate:
        gate.app.undo_log._store = FullStore(gate.app.state.changes)
        error = await gate.error(Query(Statement(TEXT)))
        assert error.code is Code.UNDO_UNAVAILABLE and "disk is full" in error.message
        assert shop.contents("items") == before
    async with gate_of(shop) as gate:
        page = await gate.change(TEXT)
        gate.app.undo_log._store = FullStore(gate.app.state.changes)
        done = await gate.undo(page.change)
        assert done.change == "" and "disk is full" in done.remarks[0]
        assert shop.contents("items") == before
        assert (await gate.error(UndoChange(page.change))).code is Code.UNDO_UNAVAILABLE
        page = await gate.change(TEXT, AGENT)
        assert (page.affected, page.change) == (2, "")
