"""Decides how many worker processes there are, and who has which. They start when first needed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from tidegate.engines.common.errors import closed
from tidegate.engines.worker.process import WorkerProcess
from tidegate.errors import Code, TidegateError


class Pool:
    """Up to `size` workers; who finds none free waits in line. Used on the event loop only."""

    def __init__(self, start: Callable[[], Awaitable[WorkerProcess]], size: int) -> None:
        self._start = start
        self._size = size
        self._count = 0
        self._idle: list[WorkerProcess] = []
        self._workers: set[WorkerProcess] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @property
    def workers(self) -> frozenset[WorkerProcess]:
        """Those that run, busy or not."""
        return frozenset(self._workers)

    async def take(self, timeout_s: float) -> WorkerProcess:
        """A live worker for the caller alone.

        Raises: TidegateError SOURCE_BUSY after `timeout_s`, SOURCE_NOT_CONNECTED when closed, and
        what starting one raises.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not self._closed:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                self._forget(worker)
            if self._count < self._size:
                return await self._start_one()
            await self._wait(deadline)
        raise closed()

    def give(self, worker: WorkerProcess) -> None:
        """Take a worker back, or its death."""
        if worker.alive and not worker.busy and not self._closed:
            self._idle.append(worker)
        else:
            worker.kill()
            self._forget(worker)
        self._wake_one()

    def take_idle(self) -> list[WorkerProcess]:
        """All workers that nobody has, for the caller."""
        idle, self._idle = self._idle, []
        return idle

    async def close(self) -> None:
        """End every worker, and wait for that."""
        self._closed = True
        workers, self._idle = list(self._workers), []
        while self._waiting:
            self._wake_one()
        for worker in workers:
            worker.kill()
        for worker in workers:
            await worker.end()

    async def _start_one(self) -> WorkerProcess:
        self._count += 1
        try:
            worker = await self._start()
        except BaseException:
            self._count -= 1
            self._wake_one()
            raise
        self._workers.add(worker)
        if self._closed:
            await worker.end()
            raise closed()
        return worker

    async def _wait(self, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        try:
            await asyncio.wait_for(waiter, max(0.0, deadline - loop.time()))
        except TimeoutError:
            raise TidegateError(
                Code.SOURCE_BUSY, f"All {self._size} workers of this source are busy."
            ) from None
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake_one()
            raise

    def _wake_one(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _forget(self, worker: WorkerProcess) -> None:
        if worker in self._workers:
            self._workers.discard(worker)
            self._count -= 1
