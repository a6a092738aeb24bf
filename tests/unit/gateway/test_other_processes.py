"""Calls of other processes on the same state are seen here, and ended from here."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from support.eventually import HANG_S
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.gateway.running_calls import OPERATOR
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Statement
from tidegate.store.messages import Message

READER = Actor("tok_1", "reader", Scope.READ_ONLY)
LONG = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90000000)"
    " SELECT max(i) FROM n"
)


def ask(app: App, text: str) -> asyncio.Task[object]:
    call = Call(READER, "core", "query", Query(Statement(text)), source="shop")
    return asyncio.ensure_future(app.gateway.handle(call))


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG_S):
        while not happened():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[tuple[App, App]]:
    """Two processes on one state, as far as the state can tell."""
    with closing(sqlite3.connect(folder / "shop.db")) as made:
        made.execute("CREATE TABLE t (n INTEGER)")
    source = SourceSettings("shop", f"sqlite:///{folder}/shop.db")
    config = Config(state=str(folder / "state"), sources=(source,))
    apps = [App.open(config, "server") for _ in range(2)]
    for app in apps:
        await asyncio.to_thread(app.state.versions.follow)
    reading = [asyncio.create_task(app.mailbox.run()) for app in apps]
    await asyncio.sleep(0)
    try:
        yield apps[0], apps[1]
    finally:
        for task in reading:
            task.cancel()
        for app in apps:
            await app.close()


async def test_a_call_of_another_process_is_seen_and_ended(tmp_path: Path) -> None:
    async with two(tmp_path) as (here, elsewhere):
        asked = ask(elsewhere, LONG)
        await here.other_processes.watch()
        await until(lambda: here.other_processes.calls()[0])
        (seen,), more = here.other_processes.calls()
        assert (seen.actor, seen.statement, more) == (READER, LONG, 0)
        assert seen.source == here.connections.source_of("shop")
        assert here.other_processes.find(seen.id) is not None
        assert here.gateway.running.find(seen.id) is None
        await here.other_processes.cancel(seen.id)
        with pytest.raises(TidegateError) as caught:
            await asked
        assert caught.value.code is Code.CALL_CANCELLED
        assert "operator" in caught.value.message
        await until(lambda: not here.other_processes.calls()[0])


async def test_a_process_that_nobody_watches_sends_nothing(tmp_path: Path) -> None:
    async with two(tmp_path) as (here, elsewhere):
        await ask(elsewhere, "SELECT 1")
        assert await asyncio.to_thread(here.state.messages.read, "reader", 0, 9) == ()


async def test_what_is_sent_holds_no_address_of_a_source(tmp_path: Path) -> None:
    async with two(tmp_path) as (here, elsewhere):
        asked = ask(elsewhere, LONG)
        await here.other_processes.watch()
        await until(lambda: here.other_processes.calls()[0])
        sent: tuple[Message, ...] = await asyncio.to_thread(
            here.state.messages.read, "reader", 0, 9
        )
        assert not any(b"shop.db" in each.body for each in sent)
        elsewhere.gateway.running.end_all(OPERATOR)
        with pytest.raises(TidegateError):
            await asked


async def test_what_another_version_sends_is_ignored(tmp_path: Path) -> None:
    async with two(tmp_path) as (here, elsewhere):
        await elsewhere.mailbox.send("calls.are", b'{"of": "a later version"}')
        await elsewhere.mailbox.send("calls.cancel", b"\xff-1", to=here.mailbox.me)
        await elsewhere.mailbox.send("of a later version", b"")
        asked = ask(here, LONG)
        await elsewhere.other_processes.watch()
        await until(lambda: elsewhere.other_processes.calls()[0])
        assert here.other_processes.calls() == ([], 0)
        here.gateway.running.end_all(OPERATOR)
        with pytest.raises(TidegateError):
            await asked
