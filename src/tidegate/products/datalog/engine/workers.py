"""Gives each open source a worker, starts workers, and ends those that do not answer in time.

A source has a worker of its own, so that a query that runs away slows no other source; beyond
`MOST_WORKERS` the least used one is shared. It ends with its last source. When one ends before
that, what was read is asked again of a new one; what was written is not.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from tidegate.engines.common.errors import stopped
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.products.datalog.engine.errors import (
    Fault,
    translate,
    unknown_outcome,
    warming,
    worker_lost,
)
from tidegate.products.datalog.engine.library import Library
from tidegate.products.datalog.engine.process import Answer, DatalevinProcess, Lost
from tidegate.products.datalog.engine.startup_cache import Built, StartupCache
from tidegate.products.datalog.engine.url import Place
from tidegate.products.datalog.engine.worker_directory import remove_directory

MOST_WORKERS = 4
"""JVMs at a time; an idle one has about 250 MB."""

WARMING_S = 20.0
"""How long a call waits for the first build of the cache before it says how long that takes."""

FINISH_S = 2.0
"""How long the changes of others may go on in a worker that must end."""

HEAP = "512m"


class Worker:
    """A JVM that is started when it is needed, and again after it has ended."""

    def __init__(self, cache: StartupCache, heap: str) -> None:
        self.cache = cache
        self.heap = heap
        self.places: list[Place] = []
        self._process: DatalevinProcess | None = None
        self._starting = asyncio.Lock()
        self._changes: set[asyncio.Future[Answer]] = set()

    @property
    def pid(self) -> int:
        """The id of its process; 0 if it has none."""
        return self._process.pid if self._process is not None and self._process.alive else 0

    async def start(self) -> DatalevinProcess:
        """The process, started if there is none.

        Raises: TidegateError SOURCE_WARMING, SOURCE_UNREACHABLE, ENGINE_MISSING, STATE_FAILED.
        """
        async with self._starting:
            if self._process is not None and self._process.check():
                return self._process
            for again in (True, False):
                built = await _built(self.cache)
                directory = await DatalevinProcess.new_directory()
                command = self.cache.command(built, self.heap, directory)
                try:
                    self._process = await DatalevinProcess.start(command, directory)
                except Lost:
                    remove_directory(directory)
                    if again:  # a damaged cache: build it once more
                        self.cache.discard()
                        continue
                    raise _not_started() from None
                return self._process
            raise _not_started()

    async def ask(
        self,
        request: dict[str, Any],
        place: Place,
        timeout_s: float,
        cancellation: Cancellation,
        *,
        changes: bool,
    ) -> Answer:
        """Ask, and end the process if the answer does not come in time.

        Raises: TidegateError as `engines.api.Engine.run`; SQL_OUTCOME if a change was under way.
        """
        for again in (True, False):
            process = await self.start()
            future = process.send(request)
            if changes:
                self._changes.add(future)
                future.add_done_callback(self._changes.discard)
            try:
                answer = await self._awaited(process, future, timeout_s, cancellation, changes)
            except Lost as error:
                if error.full:
                    raise _too_large() from None
                if changes:
                    raise unknown_outcome() from None
                if again:
                    continue
                raise worker_lost() from None
            if answer.fault is not None:
                raise translate(
                    discreet(answer.fault, place), place.shown, is_remote=place.is_remote
                )
            return answer
        raise worker_lost()

    async def _awaited(
        self,
        process: DatalevinProcess,
        future: asyncio.Future[Answer],
        timeout_s: float,
        cancellation: Cancellation,
        changes: bool,
    ) -> Answer:
        loop = asyncio.get_running_loop()
        gone: asyncio.Future[None] = loop.create_future()

        def leave() -> None:
            if not gone.done():
                gone.set_result(None)

        cancellation.listen(leave)
        try:
            await asyncio.wait(
                (future, gone), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if future.done():
                return future.result()
            await self._end(process, future)
            if future.done() and future.exception() is None:  # it came while others finished
                return future.result()
        except asyncio.CancelledError:
            future.add_done_callback(_consume)
            if not future.done():
                process.close()
            raise
        finally:
            cancellation.forget(leave)
        future.add_done_callback(_consume)
        if changes:
            raise unknown_outcome()
        if gone.done():
            raise stopped(cancellation.reason or "cancelled")
        raise TidegateError(
            Code.LIMIT_TIME, f"The operation was stopped after {timeout_s:g} s, its limit."
        )

    async def _end(self, process: DatalevinProcess, late: asyncio.Future[Answer]) -> None:
        """End a process of which one answer is late, when the changes of others are done."""
        others = [each for each in self._changes if each is not late]
        if self._process is process:
            self._process = None  # what comes next goes to a new one, when this one has ended
        if others:
            await asyncio.wait(others, timeout=FINISH_S)
        process.close()
        await process.closed()

    async def close_place(self, place: Place) -> None:
        """Close a source in the process, if it has one."""
        process = self._process
        if process is None or not process.alive:
            return
        future = process.send({"operation": "close", "place": place.name})
        future.add_done_callback(_consume)
        with suppress(Lost):
            await asyncio.wait((future,), timeout=FINISH_S)

    async def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.close()
            await process.closed()


class Workers:
    """The workers of one event loop."""

    def __init__(self) -> None:
        self._workers: list[Worker] = []

    def take(self, library: Library, heap: str, place: Place) -> Worker:
        """A worker for a source; the one that has its directory already, if there is one."""
        cache = StartupCache(library)
        fitting = [
            each
            for each in self._workers
            if each.heap == heap and each.cache.directory == cache.directory
        ]
        for worker in fitting:
            if any(known.name == place.name for known in worker.places):
                return self._given(worker, place)
        if len(self._workers) >= MOST_WORKERS and fitting:
            return self._given(min(fitting, key=lambda each: len(each.places)), place)
        worker = Worker(cache, heap)
        self._workers.append(worker)
        return self._given(worker, place)

    async def move(self, worker: Worker, before: Place, place: Place) -> None:
        """A source has another login than before."""
        worker.places.append(place)
        worker.places.remove(before)
        if all(known.name != before.name for known in worker.places):
            await worker.close_place(before)

    async def give_back(self, worker: Worker, place: Place) -> None:
        """A source was closed."""
        worker.places.remove(place)
        if all(known.name != place.name for known in worker.places):
            await worker.close_place(place)
        if not worker.places:
            self._workers.remove(worker)
            await worker.close()

    @staticmethod
    def _given(worker: Worker, place: Place) -> Worker:
        worker.places.append(place)
        return worker


_workers: WeakKeyDictionary[asyncio.AbstractEventLoop, Workers] = WeakKeyDictionary()


def workers() -> Workers:
    """The workers of the running event loop: sources are opened one by one, and share them."""
    loop = asyncio.get_running_loop()
    known = _workers.get(loop)
    if known is None:
        known = _workers[loop] = Workers()
    return known


async def _built(cache: StartupCache) -> Built:
    """The build from which a worker starts, which is made if there is none.

    Raises: TidegateError SOURCE_WARMING if that takes longer than a call may wait.
    """
    built = await asyncio.to_thread(cache.find)
    if built is not None:
        return built
    if not await asyncio.to_thread(cache.building):
        await asyncio.to_thread(cache.build_elsewhere)
    until = asyncio.get_running_loop().time() + WARMING_S
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.5)
        built = await asyncio.to_thread(cache.find)
        if built is not None:
            return built
    raise warming(cache.left_s())


def discreet(fault: Fault, place: Place) -> Fault:
    """The fault without the password of a remote source."""
    message = fault.message
    for secret in place.secrets:
        message = message.replace(secret, "***")
    return Fault(fault.code, message, fault.absent, fault.field)


def _consume(future: asyncio.Future[Answer]) -> None:
    if not future.cancelled():
        future.exception()


def _not_started() -> TidegateError:
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        "Datalevin's process ends as soon as it is started.",
        hint="Run `tidegate datalog warm-up --clear`, then `tidegate datalog warm-up`.",
    )


def _too_large() -> TidegateError:
    return TidegateError(
        Code.LIMIT_BYTES,
        "The operation needed more memory than Datalevin's process may have.",
        hint="Ask for less, or have the operator raise the source's option `heap`.",
    )
