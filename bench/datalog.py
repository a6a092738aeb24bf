"""The command `./dev bench datalog`: Datalevin behind the gate, beside its bare worker.

20,000 people of 8 facts each and 50,000 keys, in one directory and one Java process. Each round
asks the same in four ways: `worker` sends a frame to the process and reads the answer, `engine`
runs the operation under a permit, `gate` is a call with everything on, `surface` a whole frame of
`tools/call` at the surface `datalog`. Beside that: how long a worker takes from nothing to its
first answer, and what is resident.

    ./dev bench datalog                 five rounds: two minutes when the cache is built
    ./dev bench datalog --cold          also builds the cache from nothing, some minutes of CPU
    ./dev bench datalog --rounds 2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.figures import median, percentile, rotate
from bench.layers import NoNotices
from bench.peers import WORK
from bench.process import cpu_here, resident
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.decisions import Permit
from tidegate.model.requests import Call
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement
from tidegate.products.datalog.engine.engine import DatalevinEngine
from tidegate.products.datalog.engine.library import find_library
from tidegate.products.datalog.engine.startup_cache import StartupCache
from tidegate.products.datalog.engine.url import Place, place_of
from tidegate.products.datalog.engine.workers import HEAP, Worker, workers
from tidegate.products.datalog.requests import (
    DatalogOperation,
    DatalogRequest,
    DatalogTarget,
    TargetKind,
)
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.session import Session
from tidegate.protocol.transport import TransportContext

PEOPLE, KEYS, BATCH = 20_000, 50_000, 2_000
CALLS = 60
"""Of each contestant in a round."""
ACTOR = Actor("bench", "bench", Scope.READ_ONLY)
CONTESTANTS = WORKER, ENGINE, GATE, SURFACE = "worker", "engine", "gate", "surface"
READ = Judgement(Effect.READ, "bench", "not judged")
SCHEMA: dict[str, Any] = {
    ":p/name": {":db/valueType": ":db.type/string", ":db/unique": ":db.unique/identity"},
    ":p/age": {":db/valueType": ":db.type/long"},
    ":p/parent": {":db/valueType": ":db.type/ref"},
    ":p/city": {":db/valueType": ":db.type/string"},
    ":p/likes": {":db/valueType": ":db.type/string", ":db/cardinality": ":db.cardinality/many"},
    ":p/bio": {":db/valueType": ":db.type/string"},
}
RULES = """[[(ancestor ?a ?d) [?d :p/parent ?a]]
            [(ancestor ?a ?d) [?d :p/parent ?p] (ancestor ?a ?p)]]"""
POINT = "[:find ?age . :in $ ?n :where [?e :p/name ?n] [?e :p/age ?age]]"
JOIN = """[:find ?n ?m ?l :in $ ?city :where [?e :p/city ?city] [?e :p/parent ?q]
           [?q :p/parent ?g] [?e :p/name ?n] [?q :p/name ?m] [?g :p/name ?l]]"""
RULE = "[:find [?n ...] :in $ % ?a :where [?x :p/name ?a] (ancestor ?x ?d) [?d :p/name ?n]]"

AIMS = {
    "warmed start to the first answer, wall in s": 5.0,
    "warmed start to the first answer, CPU in s": 3.5,
    "worker resident after its start, MB": 300.0,
    "the gate's own CPU for a call, ms": 0.3,
    "gate beside the bare worker, point query, wall": 1.3,
    "kv_range of 10 in 50,000, wall in ms": 5.0,
}


class Question(NamedTuple):
    """An operation, its arguments in turn `n`, and how many items its answer has."""

    operation: str
    kind: TargetKind
    arguments: Callable[[int], dict[str, Any]]
    items: int | None


QUESTIONS = {
    "point query": Question(
        "query", "database", lambda n: {"query": POINT, "inputs": [f"name {n}"]}, None
    ),
    "3-way join": Question(
        "query", "database", lambda n: {"query": JOIN, "inputs": [f"city {n % 300 + 50}"]}, 50
    ),
    "recursive rule": Question(
        "query",
        "database",
        lambda n: {"query": RULE, "inputs": [RULES, f"name {n % 1000 + 500}"]},
        None,
    ),
    "kv_get": Question(
        "kv_get", "kv", lambda n: {"dbi": "keys", "key": n, "keyType": ":long"}, None
    ),
    "kv_range of 10": Question(
        "kv_range",
        "kv",
        lambda n: {"dbi": "keys", "keyRange": [":all"], "keyType": ":long", "limit": 10},
        10,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench datalog", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="also build the cache from nothing")
    options = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    StartupCache(find_library()).build()
    cold = build() if options.cold else None
    with tempfile.TemporaryDirectory(prefix="bench-datalog-", dir=WORK) as root:
        results = asyncio.run(measure(Path(root), options.rounds))
    results["cold"] = cold
    (WORK / "datalog.json").write_text(json.dumps(results, indent=1) + "\n")
    print(render(results))


def build() -> dict[str, float]:
    """The cache from nothing, as the first use of an installation makes it."""
    root = Path(tempfile.mkdtemp(prefix="bench-cache-", dir=WORK))
    root.chmod(0o700)
    began = time.perf_counter()
    before = os.times()
    try:
        built = StartupCache(find_library(), root).build()
        after = os.times()
        return {
            "wall": time.perf_counter() - began,
            "cpu": after.children_user + after.children_system
            - before.children_user - before.children_system,
            "mb": sum(built.sizes.values()) / 1e6,
        }  # fmt: skip
    finally:
        shutil.rmtree(root)


async def measure(root: Path, rounds: int) -> dict[str, Any]:
    """The figures of each round; the order of the contestants turns."""
    path = root / "facts"
    source = Source("1", "facts", f"datalevin://{path}", "datalevin", "datalog", access="write")
    engine = await DatalevinEngine.open(source)
    await fill(engine, source)
    settings = SourceSettings(name="facts", url=source.url)
    app = App.open(Config(state=str(root / "state"), sources=(settings,)))
    place = place_of(source.url)
    worker = workers().take(find_library(), HEAP, place)
    found: dict[str, Any] = {"people": PEOPLE, "keys": KEYS, "rounds": []}
    try:
        asked = await Asked.open(worker, place, engine, source, app)
        for question in QUESTIONS.values():  # warm
            for contestant in CONTESTANTS:
                await asked.turn(contestant, question, CALLS, -1)
        found["loaded MB"] = resident(worker.pid) / 1e6
        found["gate MB"] = resident(os.getpid()) / 1e6
        for turn in range(rounds):
            row: dict[str, Any] = {"load": os.getloadavg()[0]}
            for name, question in QUESTIONS.items():
                row[name] = {
                    contestant: await asked.turn(contestant, question, CALLS, turn)
                    for contestant in rotate(list(CONTESTANTS), turn)
                }
            row["start"] = await start(root / f"start-{turn}")
            found["rounds"].append(row)
    finally:
        await workers().give_back(worker, place)
        await app.close()
        await engine.close()
    return found


async def fill(engine: DatalevinEngine, source: Source) -> None:
    """Make the database and the keys."""

    async def change(operation: str, kind: TargetKind, **arguments: Any) -> None:
        create = operation.startswith("open_")
        request = DatalogRequest(
            operation=DatalogOperation(operation),
            target=DatalogTarget(kind),
            arguments=arguments,
            create=create,
            limits=Limits(timeout_s=300),
        )
        judged = Judgement(Effect.WRITE, "bench", "not judged")
        permit = Permit(
            "bench", ACTOR, source, request, Effect.WRITE, request.limits, judgement=judged
        )
        await engine.run(permit, NEVER)

    await change("open_database", "database", schema=SCHEMA)
    for begin in range(0, PEOPLE, BATCH):
        await change(
            "transact", "database", txData=[person(n) for n in range(begin, begin + BATCH)]
        )
    for begin in range(0, KEYS, BATCH):
        entries = [[":put", n, f"value {n}"] for n in range(begin, begin + BATCH)]
        await change("kv_transact", "kv", dbi="keys", txs=entries, keyType=":long")


def person(n: int) -> dict[str, Any]:
    """Eight facts; parents are in a tree in which each has three children."""
    facts: dict[str, Any] = {
        ":p/name": f"name {n}",
        ":p/age": n % 90,
        ":p/city": f"city {n % 400}",
        ":p/likes": [f"thing {n % 7}", f"thing {n % 11}", f"thing {n % 13 + 20}"],
        ":p/bio": f"text of person {n}",
    }
    parent = (n - 1) // 3
    if n:
        facts[":p/parent"] = [":p/name", f"name {parent}"]
    return facts


class Asked:
    """Who answers a question, by name."""

    def __init__(
        self, worker: Worker, place: Place, engine: DatalevinEngine, source: Source, app: App
    ) -> None:
        self._worker, self._place, self._engine, self._source = worker, place, engine, source
        self._app = app
        served = app.surface("datalog")
        self._kernel = Kernel(served, served.settings)
        self._session = Session(ACTOR)
        self._ids: dict[TargetKind, str] = {}

    @classmethod
    async def open(cls, *parts: Any) -> Asked:
        self = cls(*parts)
        about = {"name": "bench", "version": "1"}
        opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        await self._send("initialize", opening)
        await self._frame({"jsonrpc": "2.0", "method": "notifications/initialized"})
        kinds: tuple[TargetKind, ...] = ("database", "kv")
        for kind in kinds:
            reply = await self._send("tools/call", _called(f"open_{kind}", {"dir": "facts"}))
            self._ids[kind] = reply["result"]["structuredContent"][kind]
        return self

    async def turn(
        self, contestant: str, question: Question, calls: int, turn: int = 0
    ) -> dict[str, float]:
        """Median wall and mean CPU of this process for a call, in ms."""
        ask: Callable[[Question, dict[str, Any]], Awaitable[Any]] = {
            WORKER: self._bare,
            ENGINE: self._permitted,
            GATE: self._called,
            SURFACE: self._served,
        }[contestant]
        walls: list[float] = []
        without = (self._worker.pid,)
        cpu = cpu_here(without)
        of = CONTESTANTS.index(contestant)
        for n in range(calls):
            # Not what another has asked: Datalevin remembers results.
            given = question.arguments(((turn * calls + n) * 4 + of) * 37 % PEOPLE)
            began = time.perf_counter()
            answer = await ask(question, given)
            walls.append(time.perf_counter() - began)
            found = msgspec.json.decode(answer) if isinstance(answer, bytes) else answer
            assert found is not None
            if question.items is not None:
                assert len(found) == question.items, (question, len(found))
        return {
            "wall": percentile(walls, 0.5) * 1000,
            "cpu": (cpu_here(without) - cpu) / calls * 1000,
        }

    async def _bare(self, question: Question, given: dict[str, Any]) -> bytes:
        request = {
            "operation": question.operation,
            "place": self._place.name,
            "target": {"kind": question.kind, "options": {}, "client": {}},
            "arguments": given,
            "create": False,
            "writes?": False,
            "most": 200,
            "bytes": 8_388_608,
        }
        answer = await self._worker.ask(request, self._place, 60, NEVER, changes=False)
        return bytes(answer.result)

    async def _permitted(self, question: Question, given: dict[str, Any]) -> bytes:
        request = _request(question, given)
        permit = Permit(
            "bench", ACTOR, self._source, request, Effect.READ, request.limits, judgement=READ
        )
        document: Any = await self._engine.run(permit, NEVER)
        return bytes(document.json)

    async def _called(self, question: Question, given: dict[str, Any]) -> bytes:
        call = Call(ACTOR, "datalog", question.operation, _request(question, given), "facts")
        document: Any = (await self._app.gateway.handle(call)).payload
        return bytes(document.json)

    async def _served(self, question: Question, given: dict[str, Any]) -> Any:
        arguments = {question.kind: self._ids[question.kind], **given}
        reply = await self._send("tools/call", _called(question.operation, arguments))
        return reply["result"]["structuredContent"]["result"]

    async def _send(self, method: str, params: dict[str, Any]) -> Any:
        return await self._frame({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    async def _frame(self, message: dict[str, Any]) -> Any:
        transport = TransportContext(ACTOR, NoNotices(), session=self._session)
        answer = await self._kernel.serve(msgspec.json.encode(message), transport)
        return None if answer is None else msgspec.json.decode(answer.frame)


def _called(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": f"datalevin_{tool}", "arguments": arguments}


def _request(question: Question, given: dict[str, Any]) -> DatalogRequest:
    return DatalogRequest(
        operation=DatalogOperation(question.operation),
        target=DatalogTarget(question.kind),
        arguments=given,
        text=str(given.get("query", question.operation)),
    )


async def start(path: Path) -> dict[str, float]:
    """From nothing to the first answer of a worker of its own, on an empty directory."""
    place = place_of(f"datalevin://{path}")
    worker = Worker(StartupCache(find_library()), HEAP)
    began, cpu = time.perf_counter(), cpu_here()
    request = {
        "operation": "open_database",
        "place": place.name,
        "target": {"kind": "database", "options": {}, "client": {}},
        "arguments": {},
        "create": True,
        "writes?": True,
    }
    await worker.ask(request, place, 60, NEVER, changes=True)
    figures = {
        "wall": time.perf_counter() - began,
        "cpu": cpu_here() - cpu,
        "mb": resident(worker.pid) / 1e6,
    }
    await worker.close()
    return figures


def figures(results: dict[str, Any]) -> dict[str, float]:
    """The figures that have an aim, by its name. Differences and ratios are taken in one round."""
    rounds = results["rounds"]
    own = [row["point query"][GATE]["cpu"] - row["point query"][WORKER]["cpu"] for row in rounds]
    ratio = [
        row["point query"][GATE]["wall"] / row["point query"][WORKER]["wall"] for row in rounds
    ]
    values = (
        median(rounds, "start", "wall"),
        median(rounds, "start", "cpu"),
        median(rounds, "start", "mb"),
        percentile(own, 0.5),
        percentile(ratio, 0.5),
        median(rounds, "kv_range of 10", GATE, "wall"),
    )
    return dict(zip(AIMS, values, strict=True))


def render(results: dict[str, Any]) -> str:
    """The aims, and a table of the questions. Medians of the rounds."""
    rounds = results["rounds"]
    lines = [
        f"{results['people']:,} people, {results['keys']:,} keys, {len(rounds)} rounds, load"
        f" {median(rounds, 'load'):.1f}; loaded: worker {results['loaded MB']:.0f} MB, gate"
        f" {results['gate MB']:.0f} MB",
        "",
        "| aim | at most | measured |",
        "|---|---|---|",
    ]
    for name, value in figures(results).items():
        met = "" if value <= AIMS[name] else " (missed)"
        lines.append(f"| {name} | {AIMS[name]:g} | {value:.2f}{met} |")
    cold = results.get("cold")
    if cold:
        lines.append(
            f"| the first build, wall and CPU in s, MB | | {cold['wall']:.0f}, {cold['cpu']:.0f},"
            f" {cold['mb']:.0f} |"
        )
    lines += [
        "",
        f"| question | {' | '.join(CONTESTANTS)} | gate's CPU | surface's CPU | gate / worker |",
        f"|{'---|' * (len(CONTESTANTS) + 4)}",
    ]
    for name in QUESTIONS:
        walls = [f"{median(rounds, name, each, 'wall'):.2f}" for each in CONTESTANTS]
        for contestant in (GATE, SURFACE):
            added = [row[name][contestant]["cpu"] - row[name][WORKER]["cpu"] for row in rounds]
            walls.append(f"{percentile(added, 0.5):.2f}")
        ratios = [row[name][GATE]["wall"] / row[name][WORKER]["wall"] for row in rounds]
        lines.append(f"| {name} | {' | '.join(walls)} | {percentile(ratios, 0.5):.2f} |")
    lines += ["", "Wall in ms, and ms of CPU that this process takes more than with the worker."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
