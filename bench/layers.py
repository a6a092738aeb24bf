"""Measures the cost of each layer of the gate, by leaving layers out.

The real pipeline runs, in this process, with a stand-in that does nothing where a layer is left
out. Each stage has one layer more than the one before, so that the differences add up to the
whole. Beside that: what a call costs more if it is no ordinary one, with a text never seen, a mask
or a change.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any, NamedTuple

import tidegate.gateway.steps as pipeline
from bench import data
from bench.engines import LIMITS, Action, collecting, paged, permit_for, turn_of
from bench.figures import rotate
from bench.grounds import WARM_ID, Ground, grounds
from bench.mcp import STATELESS, HttpSpeaker
from bench.peers import WORK
from bench.process import tree
from bench.workloads import Effort, Row, Rows
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.edges.http.application import HttpApplication
from tidegate.edges.http.endpoint import Endpoint, HttpConventions
from tidegate.edges.http1.server import Server
from tidegate.gateway.context import CallContext
from tidegate.gateway.decision import classify
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.requests import Call, Query
from tidegate.model.results import Page
from tidegate.model.source_settings import Mask
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.transport import TransportContext
from tidegate.store.records import TokenRights

STAGES = (
    "engine",
    "pipeline",
    "judge",
    "database's opinion",
    "policy",
    "audit",
    "history",
    "identity",
    "surface and protocol",
    "HTTP edge",
)
"""In the order in which they are put on. The first is no layer: it is what the rest is for."""

MASK_FRESH = "a mask, a new literal"
CHANGE_BARE = "a change, engine"
CHANGE_UNSYNCED = "a change, without the syncs"

SHARE = 0.2
CHANGE = "UPDATE counter SET n = n + 1 WHERE id = 1"
STATE = WORK / "state-layers"

_READ = Judgement(Effect.READ, "bench", "not judged")
_ALLOW = Verdict("allow", "bench", "not decided")


async def _no_intent(ctx: CallContext) -> None:
    ctx.intent_recorded = True


async def _no_outcome(ctx: CallContext) -> None:
    pass


def _no_history(ctx: CallContext) -> None:
    pass


async def _no_opinion(ctx: CallContext) -> None:
    pass


async def _judged_alone(ctx: CallContext) -> None:
    await classify(ctx)
    ctx.verdict = _ALLOW


async def _not_judged(ctx: CallContext) -> None:
    ctx.judgement = ctx.text_judgement = _READ
    request = ctx.call.request
    ctx.judged_text = request.statement.text if isinstance(request, Query) else None
    ctx.verdict = _ALLOW


_UNRECORDED = {"record_intent": _no_intent, "record_outcome": _no_outcome}
_FORGOTTEN = {"add_to_history": _no_history}
LEFT_OUT: dict[str, dict[str, Any]] = {
    "judge": {"decide": _not_judged},
    "database's opinion": {"inspect": _no_opinion},
    "policy": {"decide": _judged_alone},
    "audit": _UNRECORDED,
    "history": _FORGOTTEN,
}
"""What stands in for the steps of a layer that is left out, by their names."""


def stand_ins(stage: str) -> dict[str, Any]:
    """The steps to be swapped so that the pipeline has the layers up to `stage`."""
    later = STAGES[STAGES.index(stage) + 1 :]
    swaps: dict[str, Any] = {}
    for layer in reversed(later):  # without audit there is no history either
        swaps |= LEFT_OUT.get(layer, {})
    return swaps


@contextmanager
def swapped(swaps: dict[str, Any]) -> Iterator[None]:
    """The pipeline with stand-ins. Raises: LookupError if it has no such step any more."""
    kept = pipeline.STATEMENT_STEPS
    missing = swaps.keys() - {step.name for step in kept}
    if missing:
        raise LookupError(f"no step is called {', '.join(missing)}")
    pipeline.STATEMENT_STEPS = tuple(
        [step._replace(action=swaps.get(step.name, step.action)) for step in kept]
    )
    pipeline.steps_of.cache_clear()
    try:
        yield
    finally:
        pipeline.STATEMENT_STEPS = kept
        pipeline.steps_of.cache_clear()


@contextmanager
def unsynced() -> Iterator[None]:
    """Skip every sync of a file that Python code asks for, such as the audit's. What an engine
    writes is still synced, because that happens in C."""
    kept = os.fsync, os.fdatasync
    os.fsync = os.fdatasync = lambda fd: None
    try:
        yield
    finally:
        os.fsync, os.fdatasync = kept


class Case(NamedTuple):
    """One thing that is measured, what stands in the pipeline meanwhile, and whether its records
    are synced to disk."""

    action: Action
    swaps: dict[str, Any]
    synced: bool = True


def layers(effort: Effort) -> Rows:
    """For SQLite, PostgreSQL and MariaDB a row a round: `STAGE cpu` and `STAGE wall`, and those of
    calls that are no ordinary ones, in seconds a call."""
    import uvloop

    rows: Rows = {}
    with collecting():
        for ground in grounds(names=("SQLite", "PostgreSQL", "MariaDB"), wide=()):
            if isinstance(ground, str):
                rows[ground] = []
            else:
                rows[ground.name] = uvloop.run(_measured(ground, effort))
    return rows


async def _measured(ground: Ground, effort: Effort) -> list[Row]:
    apart = frozenset(tree(os.getpid())[1:])
    shutil.rmtree(STATE, ignore_errors=True)
    masks = (Mask("items.name", "partial"),)
    app = App.open(
        Config(
            sources=(
                SourceSettings("shop", ground.url("shop")),
                SourceSettings("masked", ground.url("shop"), masks=masks),
                SourceSettings("counter", ground.url("counter"), access="write"),
            ),
            surfaces=("core",),
            state=str(STATE),
        )
    )
    rows: list[Row] = []
    try:
        cases = await _cases(app)
        for turn in range(effort.rounds + 1):
            row: Row = {}
            for name in rotate(list(cases), turn):
                action, swaps, synced = cases[name]
                with swapped(swaps), nullcontext() if synced else unsynced():
                    seconds = effort.seconds * SHARE if turn else 0.02
                    cpu, wall = await turn_of(action, seconds, apart, app.history.flush)
                row |= {f"{name} cpu": cpu, f"{name} wall": wall}
            if turn:
                rows.append(row)
    finally:
        await app.close()
    return rows


async def _cases(app: App) -> dict[str, Case]:
    """Every stage, and every call that is no ordinary one, by its name in the report."""
    token, _ = app.tokens.create("bench", TokenRights(Scope.READ_WRITE))
    first = app.authenticator.authenticate(token, "127.0.0.1")
    actor = first if isinstance(first, Actor) else await first
    frame, edge = _over_http(app, token)
    kernel = Kernel(surface := app.surface("core"), surface.settings)
    point = data.point(WARM_ID)
    marker = data.point_marker(WARM_ID).encode()
    engine = await _engine(app, actor, "shop", Effect.READ)
    change = await _engine(app, actor, "counter", Effect.WRITE)

    async def bare() -> None:
        assert marker in (await engine(point)).rows

    async def gate() -> None:
        assert marker in (await handled(actor, point)).rows

    async def identified() -> None:
        known = app.authenticator.authenticate(token, "127.0.0.1")
        assert isinstance(known, Actor)
        assert marker in (await handled(known, point)).rows

    async def spoken() -> None:
        known = app.authenticator.authenticate(token, "127.0.0.1")
        assert isinstance(known, Actor)
        answer = await kernel.serve(frame, TransportContext(known, NoNotices()))
        assert answer is not None and marker in answer.frame

    async def posted() -> None:
        assert marker in await edge()

    async def handled(known: Actor, sql: str, source: str = "shop") -> Page:
        call = Call(known, "core", "query", Query(Statement(sql), limits=LIMITS), source)
        page = (await app.gateway.handle(call)).payload
        assert isinstance(page, Page)
        return page

    def fresh(run: Callable[[str], Any], text: Callable[[int], str]) -> Action:
        async def action() -> None:
            assert (await run(text(next(numbers)))).row_count == 1

        return action

    async def run(sql: str) -> Page:
        return await handled(actor, sql)

    async def masked(sql: str) -> Page:
        page = await handled(actor, sql, "masked")
        assert b" no. " not in page.rows
        return page

    async def veiled() -> None:
        await masked(point)

    async def changed_barely() -> None:
        assert (await change(CHANGE)).affected == 1

    async def changed() -> None:
        assert (await handled(actor, CHANGE, "counter")).affected == 1

    numbers = count(1)
    actions: dict[str, Action] = dict.fromkeys(STAGES, gate)
    actions |= {
        "engine": bare,
        "identity": identified,
        "surface and protocol": spoken,
        "HTTP edge": posted,
    }
    cases = {stage: Case(actions[stage], stand_ins(stage)) for stage in STAGES}

    return cases | {
        "a new literal, engine": Case(fresh(engine, data.point), {}),
        "a new literal, gate": Case(fresh(run, data.point), {}),
        "a new shape, engine": Case(fresh(engine, _shape), {}),
        "a new shape, gate": Case(fresh(run, _shape), {}),
        "a mask": Case(veiled, {}),
        MASK_FRESH: Case(fresh(masked, data.point), {}),
        CHANGE_BARE: Case(changed_barely, {}),
        "a change, without audit": Case(changed, _UNRECORDED | _FORGOTTEN),
        CHANGE_UNSYNCED: Case(changed, {}, synced=False),
        "a change": Case(changed, {}),
    }


def _shape(number: int) -> str:
    """A point query whose text no cache of literals knows."""
    return f"SELECT id, sku, name, price AS p{number} FROM items WHERE id = {WARM_ID}"


async def _engine(app: App, actor: Actor, source: str, effect: Effect) -> Callable[[str], Any]:
    """Runs a text on a source's engine under a permit, past the gate."""
    connection = app.connections.find(source, actor)
    engine = await app.connections.engine(connection)

    def run(sql: str) -> Any:
        query = Query(Statement(sql), limits=LIMITS)
        return paged(engine, permit_for(connection.source, query, effect, actor))

    return run


def _over_http(app: App, token: str) -> tuple[bytes, Callable[[], Any]]:
    """The frame of the point query, and what posts it to the HTTP edge and gives the body.

    Edge and server are the real ones; where the socket would be there is none.
    """
    surface = app.surface("core")
    endpoint = Endpoint("/mcp", Kernel(surface, surface.settings), HttpConventions())
    edge = HttpApplication([endpoint], app.authenticate)
    speaker = HttpSpeaker(7878, "/mcp", STATELESS, {"Authorization": f"Bearer {token}"})
    arguments = {"sql": data.point(WARM_ID), "source": "shop"}
    request = speaker.request("tools/call", {"name": "query", "arguments": arguments}, 1)
    wire = _Wire()
    connection = Server(edge).connection()
    connection.connection_made(wire)

    async def post() -> bytes:
        wire.written = asyncio.get_running_loop().create_future()
        connection.data_received(request)
        written = await wire.written
        assert written.startswith(b"HTTP/1.1 200 "), written
        return written.partition(b"\r\n\r\n")[2]

    return request.partition(b"\r\n\r\n")[2], post


class _Wire(asyncio.Transport):
    """The transport of a client that reads at once; `written` gets the answer."""

    written: asyncio.Future[Any]

    def write(self, data: Any) -> None:
        self.written.set_result(data)


class NoNotices:
    """Discards the notifications of a server."""

    open = True

    def send(self, message: bytes) -> None:
        pass

    def stop(self) -> None:
        pass
