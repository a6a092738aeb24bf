"""A gate that does not see its state tells nobody what has run: a right may be gone meanwhile."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidegate.audit.log import AuditLog
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway, GatewayOptions
from tidegate.gateway.running_calls import BLIND
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.replies import Reply
from tidegate.model.requests import Call, Query
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.store.sqlite.state import SqliteState
from tidegate.store.versions import StateMoved

WRITER = Actor("writer", "writer", Scope.READ_WRITE)
LONG = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90000000)"
    " SELECT max(i) FROM n"
)


class Sight:
    """What is known of the state."""

    def __init__(self) -> None:
        self.is_stale, self.age_s = False, 0.0
        self.reason = TidegateError(
            Code.STATE_FAILED, "It was not seen.", hint="Retry in a moment.", retry_after_s=1.0
        )

    def lose(self, age_s: float) -> None:
        self.is_stale, self.age_s = True, age_s

    def stale_error(self) -> TidegateError:
        return self.reason

    def regain(self) -> None:
        self.is_stale, self.age_s = False, 0.0


class Desk:
    """A gate over one file."""

    def __init__(self, directory: Path) -> None:
        self.file, self.log = directory / "shop.db", directory / "audit"
        with closing(sqlite3.connect(self.file)) as made, made:
            made.execute("CREATE TABLE t (n INTEGER)")
        self.state = SqliteState(directory / "state.db")
        self.history, self.audit = History(self.state.history), AuditLog(self.log)
        shop = Source("1", "shop", f"sqlite:///{self.file}", "sqlite", "sqlite", access="write")
        self.connections = SourceConnections(self.state.sources, open_engine, [shop])
        self.sight = Sight()
        options = GatewayOptions(sight=self.sight, grace_s=10.0)
        self.gateway = Gateway(self.connections, self.audit, self.history, options=options)

    async def ask(self, text: str, cancellation: Cancellation | None = None) -> Reply:
        fields: dict[str, Any] = {} if cancellation is None else {"cancellation": cancellation}
        request = Query(Statement(text))
        scope = Scope.READ_WRITE
        call = Call(WRITER, "test", "tool", request, scope=scope, source="shop", **fields)
        return await self.gateway.handle(call)

    def phases(self) -> list[str]:
        lines = [
            each for file in self.log.glob("*.jsonl") for each in file.read_text().splitlines()
        ]
        return [json.loads(line)["phase"] for line in lines]


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if happened():
            return
        await asyncio.sleep(0)
    raise AssertionError


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.history.close()
    desk.audit.close()
    desk.state.close()


async def test_an_answer_waits_until_the_state_is_seen_again(desk: Desk) -> None:
    desk.sight.lose(3.0)
    asked = asyncio.ensure_future(desk.ask("SELECT 7"))
    await until(lambda: not desk.gateway.running and "outcome" in desk.phases())
    assert not asked.done()
    desk.sight.regain()
    assert (await asked).payload.row_count == 1
    await desk.connections.close()


async def test_an_answer_is_withheld_after_the_grace_and_the_change_is_on_record(
    desk: Desk,
) -> None:
    desk.sight.lose(10.5)
    with pytest.raises(TidegateError) as caught:
        await desk.ask("INSERT INTO t VALUES (1)")
    error = caught.value
    assert "has run" in error.message and error.call_id
    # A program that sends again what is said to have failed must not do so here.
    assert error.code is Code.SQL_OUTCOME and error.retry_after_s is None
    with pytest.raises(TidegateError) as caught:
        await desk.ask("SELECT 1")
    assert caught.value.code is Code.STATE_FAILED and caught.value.retry_after_s
    with closing(sqlite3.connect(desk.file)) as read:
        assert read.execute("SELECT count(*) FROM t").fetchone() == (1,)
    assert desk.phases().count("outcome") == 2
    await desk.connections.close()


async def test_an_answer_that_is_withheld_since_the_state_has_moved_is_not_to_be_asked_for_again(
    desk: Desk,
) -> None:
    desk.sight.reason = StateMoved("/var/lib/tidegate")
    desk.sight.lose(10.5)
    with pytest.raises(TidegateError) as caught:
        await desk.ask("SELECT 1")
    error = caught.value
    assert "answer is withheld" in error.message and "has moved to tidegate" in error.message
    assert error.retry_after_s is None and "starts it again" in error.hint
    await desk.connections.close()


async def test_what_runs_longer_than_the_grace_is_ended_and_says_why(desk: Desk) -> None:
    cancellation = Cancellation()
    asked = asyncio.ensure_future(desk.ask(LONG, cancellation))
    await until(lambda: any(ctx.sent for ctx in desk.gateway.running.values()))
    desk.gateway.end_calls()
    with pytest.raises(TidegateError) as caught:
        await asked
    assert "the state cannot be read" in caught.value.message
    assert caught.value.code is Code.CALL_CANCELLED
    assert cancellation.reason == BLIND
    await desk.connections.close()
