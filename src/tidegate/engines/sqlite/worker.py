"""Decides which thread runs what: a few workers, each with a connection of its own.

Work is handed over by a queue and comes back by `call_soon_threadsafe`: a third of the cost of an
executor. Threads start when they are first needed and end in `close`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread, get_native_id
from typing import Any, TypeVar

from tidegate.engines.sqlite.session import Session
from tidegate.errors import Code, GateError

Result = TypeVar("Result")
Task = tuple[Callable[[Session], Any], "asyncio.Future[Any]"]

NICENESS = 5
"""Lower than the event loop's: long statements on all workers must not make quick ones wait."""

JOIN_S = 2.0
"""How long `close` waits for a thread that sits inside one opcode; it is a daemon, and left."""


class Worker:
    """One thread with its session, which it opens when it first has work."""

    __slots__ = ("_inbox", "_loop", "_open", "ended", "ending", "generation", "thread")

    def __init__(self, open_session: Callable[[], Session], generation: int, name: str) -> None:
        self._open = open_session
        self._inbox: SimpleQueue[Task | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.generation = generation
        self.ending = False
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.thread = Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def submit(self, work: Callable[[Session], Result]) -> asyncio.Future[Result]:
        """Do `work` in the thread, after what was submitted before. Not after `end`."""
        future: asyncio.Future[Result] = self._loop.create_future()
        self._inbox.put((work, future))
        return future

    def end(self) -> None:
        """Close the session and end the thread when all submitted work is done."""
        self.ending = True
        self._inbox.put(None)

    def _run(self) -> None:
        _give_way()
        session: Session | None = None
        while (task := self._inbox.get()) is not None:
            work, future = task
            result: Any = None
            error: BaseException | None = None
            try:
                if session is None:
                    session = self._open()
                result = work(session)
            except BaseException as caught:  # noqa: BLE001 - goes to the one who waits
                error = caught
            self._tell(_settle, future, result, error)
            del task, work, future, result, error
        if session is not None:
            session.close()
        self._tell(_settle, self.ended, None, None)

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _give_way() -> None:
    """Have this thread wait for the event loop's, where the system can order single threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), NICENESS)


class Pool:
    """Up to `size` workers; who finds none free waits in line. Used on the event loop only."""

    def __init__(self, open_session: Callable[[], Session], size: int, name: str) -> None:
        self._open = open_session
        self._size = size
        self._name = name
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()
        self._lost: set[Worker] = set()
        self._waiting: deque[asyncio.Future[Worker]] = deque()
        self._generation = 0
        self._started = 0

    async def take(self, timeout_s: float) -> Worker:
        """A worker for the caller alone. Raises: GateError SOURCE_BUSY after `timeout_s`."""
        if self._idle:
            return self._idle.pop()
        if self._has_room():
            return self._start()
        waiter: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            return await asyncio.wait_for(waiter, timeout_s)
        except TimeoutError:
            raise GateError(
                Code.SOURCE_BUSY, f"All {self._size} workers of this source are busy."
            ) from None
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.give(waiter.result())
            raise

    def give(self, worker: Worker) -> None:
        """Take a worker back."""
        if worker.ending:
            return
        if worker.generation != self._generation:
            self._forget(worker)
            self._serve_next()
            return
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(worker)
                return
        self._idle.append(worker)

    def abandon(self, worker: Worker) -> None:
        """Write off a worker whose thread does not come back; it ends by itself when it does.

        As many as there are workers are replaced; more would take the processor from all others.
        """
        if worker not in self._workers:
            return
        self._forget(worker)
        self._lost.add(worker)
        worker.ended.add_done_callback(lambda _: self._found(worker))
        self._serve_next()

    def renew(self) -> None:
        """Have every worker open its session anew: idle ones at once, busy ones when they end."""
        self._generation += 1
        idle, self._idle = self._idle, []
        for worker in idle:
            self._forget(worker)

    async def close(self) -> None:
        """End all threads, and wait for them."""
        workers = list(self._workers)
        self.renew()
        for waiter in self._waiting:
            waiter.cancel()
        for worker in workers:
            if worker in self._workers:
                self._forget(worker)
        if workers:
            await asyncio.wait([worker.ended for worker in workers], timeout=JOIN_S)
        for worker in workers:
            if worker.ended.done():
                worker.thread.join()

    def _start(self) -> Worker:
        self._started += 1
        worker = Worker(self._open, self._generation, f"{self._name}-{self._started}")
        self._workers.add(worker)
        return worker

    def _has_room(self) -> bool:
        started = len(self._workers)
        return started < self._size and started + len(self._lost) < 2 * self._size

    def _found(self, worker: Worker) -> None:
        self._lost.discard(worker)
        self._serve_next()

    def _serve_next(self) -> None:
        while self._waiting and self._has_room():
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(self._start())

    def _forget(self, worker: Worker) -> None:
        self._workers.discard(worker)
        worker.end()
