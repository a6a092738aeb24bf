"""TRIALS B4: nothing that one caller sends holds the event loop for long.

What a turn of the loop costs is counted in CPU time of its thread, so that a busy machine makes no
difference.
"""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import suppress
from pathlib import Path

import pytest

from support.engine_cases import CASES
from support.eventually import HANG_S
from support.judge_cases import load
from support.long_texts import long_texts
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.results import Limits
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

TURN_S = 0.02
"""The most that a turn should take."""
MULTIPLE = 5
"""A turn that takes so many times as long fails the test: caches of the processor are shared."""
LIMITS = Limits(max_rows=10, max_bytes=10_000, timeout_s=0.1)
LENGTHS = {False: (900, 100_000), True: (4_000, 100_000)}
"""By whether a mask is put into the statement. An engine whose dialect is that of another gets the
shortest alone: what judges is the same."""
NOT_INTERRUPTED = (
    "nested queries, 4000", "tables, 4000", "list, 100000", "strings, 100000", "secrets, 100000",
)  # fmt: skip
"""What DuckDB's planner, in a process of its own, goes on with for seconds after its time."""
ENGINES = [name for name in CASES if name not in ("memory", "postgres-debian")]
SHARED_DIALECT = ("files", "jdbc-postgresql")


class WatchedLoop(asyncio.SelectorEventLoop):
    """Counts the CPU time of its turns; what runs meanwhile is `current`."""

    def __init__(self) -> None:
        super().__init__()
        self.current = ""
        self.slow: list[tuple[float, str]] = []

    def _run_once(self) -> None:
        began = time.thread_time()
        super()._run_once()
        took = time.thread_time() - began
        if took > TURN_S:
            self.slow.append((took, self.current))


async def send(app: App, actor: Actor, source: str, text: str, limits: Limits = LIMITS) -> None:
    """Send a statement, whatever becomes of it."""
    request = Query(Statement(text), limits=limits)
    call = Call(actor, "core", "query", request, source=source, scope=Scope.READ_ONLY)
    with suppress(TidegateError):
        await app.gateway.handle(call)


@pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])
@pytest.mark.parametrize("engine", ENGINES)
def test_b4_no_text_holds_the_event_loop(tmp_path: Path, engine: str, masked: bool) -> None:
    case = CASES[engine].prepare(tmp_path)
    made = case.source
    masks = (Mask("items.name", "hash"),) if masked else ()
    source = Source("s1", "shop", made.url, made.engine, made.dialect, access="write", masks=masks)
    corpus = [each.sql for each in load() if each.dialect == made.dialect]
    corpus = corpus[:: 10 if masked else 3]
    texts = [(text[:80], text) for text in corpus]
    lengths = LENGTHS[masked][: 1 if engine in SHARED_DIALECT else None]
    texts += [
        (f"{name}, {length}", text) for length in lengths for name, text in long_texts(length)
    ]
    if made.dialect == "duckdb":
        texts = [(name, text) for name, text in texts if name not in NOT_INTERRUPTED]
    reader = Actor("reader", "reader", Scope.READ_ONLY)
    loop = WatchedLoop()

    async def attack() -> None:
        app = App.open(Config(state=str(tmp_path / "state")))
        app.state.sources.add(source)
        try:
            await send(app, reader, "shop", "SELECT 1")  # opens the source, imports its engine
            loop.slow.clear()
            for loop.current, text in texts:
                await send(app, reader, "shop", text)
        finally:
            loop.current = "closing"
            await app.close()

    gc.collect()
    gc.freeze()  # what the other tests keep
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(attack())
    finally:
        gc.unfreeze()
    worst = sorted(loop.slow, reverse=True)
    held = [(round(took, 3), name) for took, name in worst if took > TURN_S * MULTIPLE]
    assert held == []


def test_b4_long_texts_of_one_actor_do_not_delay_anothers(tmp_path: Path) -> None:
    """One of each actor is judged at a time, so a second actor waits for one of them at most."""
    case = CASES["sqlite"].prepare(tmp_path)
    greedy = Actor("greedy", "greedy", Scope.READ_ONLY)
    modest = Actor("modest", "modest", Scope.READ_ONLY)
    texts = [f"SELECT {number}{' + 1' * 20_000}" for number in range(20)]

    async def play() -> list[str]:
        app = App.open(Config(state=str(tmp_path / "state")))
        app.state.sources.add(case.source)
        ended: list[str] = []

        async def ask(actor: Actor, text: str) -> None:
            await send(app, actor, "shop", text, Limits(timeout_s=HANG_S))
            ended.append(actor.name)

        try:
            await send(app, modest, "shop", "SELECT 1")
            many = [asyncio.ensure_future(ask(greedy, text)) for text in texts]
            await asyncio.sleep(0)
            await ask(modest, texts[0] + " ")
            await asyncio.gather(*many)
        finally:
            await app.close()
        return ended

    ended = asyncio.run(play())
    assert len(ended) == 21
    assert ended.index("modest") <= 2
