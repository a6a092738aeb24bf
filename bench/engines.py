"""Measures the engines in this process, against the bare driver in the same round.

Three contestants for each engine. The driver: its fetch of a whole result and one msgspec encoding
of the rows as arrays. The engine: the same statement under a permit, poured into a page. The gate:
the same as a call, with everything on. CPU is of this process and the engine's own workers; a
database server's is not in it, but it is in the wall clock.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Container, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from bench import data
from bench.figures import percentile, rotate
from bench.grounds import ROWS, WARM_ID, WIDE, Bare, Ground, grounds
from bench.peers import HERE, WORK
from bench.process import cpu_here, tree
from bench.workloads import Effort, Row, Rows
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.engines.api import Engine
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.decisions import Permit
from tidegate.model.requests import Browse, Call, Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.results.page import PageBuilder
from tidegate.sql.judge import judge

CONTESTANTS = DRIVER, ENGINE, GATE = "driver", "engine", "gate"
ACTOR = Actor("bench", "bench", Scope.READ_ONLY)
LIMITS = Limits(max_rows=200_000, max_bytes=1 << 30, timeout_s=120)
STATE = WORK / "state-engines"

Action = Callable[[], Awaitable[object]]
"""One call of a contestant. Raises AssertionError if the answer is not the right one."""


@contextmanager
def collecting() -> Iterator[None]:
    """Let the collector run as it does in a server (`edges/http/edge.py`)."""
    before, enabled = gc.get_threshold(), gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
        if not enabled:
            gc.disable()


class Workload(NamedTuple):
    """A question and who answers it; the share of a turn's seconds that each gets."""

    name: str
    actions: dict[str, Action]
    share: float = 0.25


def engines(effort: Effort) -> Rows:
    """For each engine and workload a row a round: `driver cpu`, `driver wall` and so on, in
    seconds a call. An engine that cannot be started here has a name and no rows."""
    import uvloop

    rows: Rows = {}
    with collecting():
        for ground in grounds(wide=WIDE):
            if isinstance(ground, str):
                rows[ground] = []
            else:
                rows |= uvloop.run(_measured(ground, effort))
    return rows


async def _measured(ground: Ground, effort: Effort) -> Rows:
    """Every workload on one engine."""
    apart = frozenset(tree(os.getpid())[1:])
    shutil.rmtree(STATE, ignore_errors=True)
    names = ("shop", *(f"wide_{tables}" for tables in WIDE))
    sources = tuple(SourceSettings(name, ground.url(name)) for name in names)
    app = App.open(Config(sources=sources, state=str(STATE)))
    bares = {name: ground.bare(name) for name in names}
    try:
        workloads = [
            await _rows(ground, app, bares["shop"], "point query", data.point(WARM_ID), 1),
            await _rows(ground, app, bares["shop"], "10,000 rows", data.many(10_000), 10_000),
            await _rows(ground, app, bares["shop"], "100,000 rows", data.many(ROWS), ROWS),
            *[await _schema(ground, app, bares[f"wide_{tables}"], tables) for tables in WIDE],
        ]
        return await interleaved(ground.name, workloads, effort, apart)
    finally:
        for bare in bares.values():
            await bare.close()
        await app.close()


async def interleaved(
    name: str, workloads: list[Workload], effort: Effort, apart: Container[int]
) -> Rows:
    """Each contestant has a turn in each round, after one that is not counted."""
    rows: Rows = {}
    for workload in workloads:
        counted: list[Row] = []
        for turn in range(effort.rounds + 1):
            row: Row = {}
            for who in rotate(list(workload.actions), turn):
                seconds = effort.seconds * workload.share if turn else 0
                cpu, wall = await turn_of(workload.actions[who], seconds, apart)
                row |= {f"{who} cpu": cpu, f"{who} wall": wall}
            if turn:
                counted.append(row)
        rows[f"{name}, {workload.name}"] = counted
    return rows


async def turn_of(
    action: Action, seconds: float, apart: Container[int], finish: Callable[[], None] | None = None
) -> tuple[float, float]:
    """CPU seconds a call on average and wall seconds a call in the median; at least two calls.

    `finish` does what the calls have put off; its CPU is theirs.
    """
    walls: list[float] = []
    end = time.perf_counter() + seconds
    cpu = cpu_here(apart)
    while len(walls) < 2 or time.perf_counter() < end:
        started = time.perf_counter()
        await action()
        walls.append(time.perf_counter() - started)
    if finish is not None:
        finish()
    return (cpu_here(apart) - cpu) / len(walls), percentile(walls, 0.5)


async def _rows(ground: Ground, app: App, bare: Bare, name: str, sql: str, count: int) -> Workload:
    query = Query(Statement(sql), limits=LIMITS)
    engine, permit = await _permitted(app, "shop", query)
    last = data.point_marker(count if count > 1 else WARM_ID).encode()

    def check(encoded: bytes, rows: int) -> None:
        assert rows == count, f"{ground.name} gives {rows} rows instead of {count}"
        assert last in encoded[-300:], f"{ground.name} ends with {encoded[-300:]!r}"

    async def driver() -> None:
        columns, rows = await bare.ask(sql)
        check(msgspec.json.encode({"columns": columns, "rows": rows}), len(rows))

    async def through_engine() -> None:
        page = await paged(engine, permit)
        check(page.rows, page.row_count)

    async def through_gate() -> None:
        page = (await app.gateway.handle(call(query, "shop"))).payload
        assert isinstance(page, Page)
        check(page.rows, page.row_count)

    actions: dict[str, Action] = {DRIVER: driver, ENGINE: through_engine, GATE: through_gate}
    return Workload(name, actions)


async def paged(engine: Engine, permit: Permit) -> Page:
    """What the gate does under a permit (`gateway/execution.py`), and nothing around it."""
    cursor = await engine.run(permit, NEVER)
    try:
        builder = PageBuilder(cursor.columns, permit.limits)
        await cursor.fetch_into(builder)
    finally:
        await cursor.close()
    return builder.page(affected=cursor.affected)


async def _schema(ground: Ground, app: App, bare: Bare, tables: int) -> Workload:
    """The first reading of a schema by the engine, and the gate's, which keeps it."""
    source = f"wide_{tables}"
    browse = Browse("catalog")
    engine, permit = await _permitted(app, source, browse)

    def check(catalog: object) -> None:
        assert isinstance(catalog, Catalog)
        columns = sum(len(table.columns) for table in catalog.tables)
        keys = sum(len(table.foreign_keys) for table in catalog.tables)
        assert columns == tables * 20, f"{ground.name} tells of {columns} columns"
        assert keys == tables, f"{ground.name} tells of {keys} foreign keys"

    async def driver() -> None:
        _, rows = await bare.ask(ground.schema)
        assert len(rows) == tables * 20, f"{ground.name}: {len(rows)} columns"

    async def read() -> None:
        check(await engine.describe(permit, NEVER))

    async def kept() -> None:
        catalog = (await app.gateway.handle(call(browse, source))).payload
        assert isinstance(catalog, Catalog) and len(catalog.tables) == tables

    actions: dict[str, Action] = {DRIVER: driver, ENGINE: read, GATE: kept}
    return Workload(f"schema of {tables:,} tables", actions)


async def _permitted(app: App, source: str, request: Query | Browse) -> tuple[Engine, Permit]:
    connection = app.connections.find(source, ACTOR)
    engine = await app.connections.engine(connection)
    return engine, permit_for(connection.source, request)


def permit_for(
    source: Source, request: Query | Browse, effect: Effect = Effect.READ, actor: Actor = ACTOR
) -> Permit:
    """A permit as the gateway makes it: with the judgement of its statement."""
    if isinstance(request, Browse):
        return Permit("bench", actor, source, request, effect, Limits())
    judgement, text = judge(request.statement.text, source.dialect), request.statement.text
    return Permit(
        *("bench", actor, source, request, effect, request.limits),
        judgement=judgement,
        judged_text=text,
    )


def call(request: Query | Browse, source: str) -> Call:
    """The call of a tool of `core`."""
    return Call(ACTOR, "core", "query", request, source)


# Memory.


def export(effort: Effort) -> Rows:
    """100,000 rows to a file, by each engine in a process of its own (`streaming.py`)."""
    rows: Rows = {}
    for ground in grounds(wide=()):
        if isinstance(ground, str):
            rows[ground] = []
            continue
        command = [sys.executable, "-m", "bench.streaming", ground.url("shop"), str(ROWS)]
        rows[ground.name] = [
            json.loads(subprocess.check_output(command, cwd=HERE.parent, timeout=120))
            for _ in range(min(effort.rounds - 1, 3))
        ]
    return rows
