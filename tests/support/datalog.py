"""Real Datalevin for tests: one event loop and one warmed worker for a whole process of pytest."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tidegate.errors import TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Browse, EngineRequest, Explain, Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement
from tidegate.products.datalog.engine.engine import DatalevinEngine
from tidegate.products.datalog.engine.library import find_library, installed_version
from tidegate.products.datalog.engine.startup_cache import StartupCache
from tidegate.products.datalog.engine.workers import workers
from tidegate.products.datalog.requests import (
    DatalogOperation,
    DatalogRequest,
    DatalogTarget,
    TargetKind,
)

ResultT = TypeVar("ResultT")

ACTOR = Actor("contract", "the contract suite", Scope.FULL_ACCESS)

CACHE_HOME = Path(sys.prefix) / "cache"
"""Where the build is kept between runs of the tests; it belongs to this environment's Java."""

SCHEMA = {
    ":name": {":db/valueType": ":db.type/string", ":db/unique": ":db.unique/identity"},
    ":age": {":db/valueType": ":db.type/long"},
    ":parent": {":db/valueType": ":db.type/ref"},
    ":likes": {":db/valueType": ":db.type/string", ":db/cardinality": ":db.cardinality/many"},
    ":bio": {":db/valueType": ":db.type/string", ":db/fulltext": True},
}

PEOPLE = [
    {":db/id": -1, ":name": "Ada", ":age": 80, ":likes": ["tea", "maps"], ":bio": "draws maps"},
    {":db/id": -2, ":name": "Ben", ":age": 52, ":parent": -1, ":likes": ["tea"]},
    {":db/id": -3, ":name": "Cy", ":age": 30, ":parent": -2, ":bio": "sails a red boat"},
    {":db/id": -4, ":name": "Di", ":age": 9, ":parent": -3},
]


class Opened:
    """An open source, asked as the gate asks it: every request under a permit."""

    def __init__(self, datalog: Datalog, engine: DatalevinEngine, source: Source) -> None:
        self.engine = engine
        self.source = source
        self._datalog = datalog

    last_items: int | None = None
    last_corrected = False
    last_json = b""

    def ask(
        self,
        operation: str,
        kind: TargetKind = "database",
        *,
        options: dict[str, Any] | None = None,
        create: bool = False,
        effect: Effect | None = None,
        limits: Limits | None = None,
        items: int = 200,
        **arguments: Any,
    ) -> Any:
        """The result; with a count, where there is one, in `last_items`, and as it was written in
        `last_json`."""
        request = DatalogRequest(
            operation=DatalogOperation(operation),
            target=DatalogTarget(kind, options or {}),
            arguments=arguments,
            create=create,
            max_items=items,
            limits=limits or Limits(),
        )
        if effect is None:
            effect = Effect.WRITE if request.writes else Effect.READ
        document: Any = self._datalog.run(self.engine.run(self.permit(request, effect), NEVER))
        self.last_items = document.items
        self.last_corrected = document.corrected
        self.last_json = bytes(document.json)
        return json.loads(document.json)

    def refused(self, operation: str, *args: Any, **kwargs: Any) -> TidegateError:
        """The error of an operation that fails."""
        with pytest.raises(TidegateError) as caught:
            self.ask(operation, *args, **kwargs)
        return caught.value

    def query(self, text: str, *inputs: Any, **more: Any) -> Any:
        return self.ask("query", query=text, inputs=list(inputs), **more)

    def table(self, request: EngineRequest) -> tuple[list[str], list[Any]]:
        """The names and the rows that a query or an explanation answers with."""
        cursor: Any = self._datalog.run(self.engine.run(self.permit(request), NEVER))
        rows = self._datalog.run(cursor.fetch(1_000))
        return [column.name for column in cursor.columns], rows

    def catalog(self) -> Any:
        """How the source describes itself."""
        permit = self.permit(Browse(aspect="catalog"))
        return self._datalog.run(self.engine.describe(permit, NEVER))

    def permit(self, request: EngineRequest, effect: Effect = Effect.READ) -> Permit:
        text = request.statement.text if isinstance(request, (Query, Explain)) else None
        judgement = Judgement(effect, "test", "the test says so")
        return Permit(
            *("call", ACTOR, self.source, request, effect, request.limits),
            judgement=judgement,
            judged_text=text,
        )

    def close(self) -> None:
        self._datalog.run(self.engine.close())


class Datalog:
    """The event loop on which the sources of a test process live, and what they open."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._opened: list[Opened] = []

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return self._runner.run(work)

    def open(self, path: Path | str, access: str = "read", **options: str) -> Opened:
        """Open a directory, or a URL."""
        url = path if isinstance(path, str) else f"datalevin://{path}"
        source = Source(
            *(str(url), "facts", url, "datalevin", "datalog"),
            access=access,  # type: ignore[arg-type]
            options=tuple(options.items()),
        )
        opened = Opened(self, self.run(DatalevinEngine.open(source)), source)
        self._opened.append(opened)
        return opened

    def make(self, path: Path) -> Opened:
        """A database of four people, open for writing."""
        people = self.open(path, "write")
        people.ask("open_database", create=True, schema=SCHEMA)
        people.ask("transact", txData=PEOPLE)
        return people

    def keep(self) -> None:
        """Leave open what is open, whatever tests end."""
        self._opened.clear()

    def kill(self) -> None:
        """Kill the processes of Datalevin."""

        async def running() -> list[int]:
            return [worker.pid for worker in workers()._workers if worker.pid]

        for pid in self.run(running()):
            os.kill(pid, signal.SIGKILL)

    def close_sources(self) -> None:
        opened, self._opened = self._opened, []
        for each in opened:
            each.close()

    def close(self) -> None:
        self.close_sources()
        self._runner.close()


def prepare() -> None:
    """See that the build is there. Skips by name without the extra."""
    if installed_version() is None:
        pytest.skip("the extra `datalog` is not installed")
    StartupCache(find_library()).build()


def prepared() -> Datalog:
    """The loop, when the build is there."""
    prepare()
    return Datalog()


__all__ = ["NEVER", "Cancellation", "Datalog", "Opened", "prepared"]
