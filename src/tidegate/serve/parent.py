"""The parent of workers: it holds the sockets at which callers arrive, and keeps so many processes
serving there. It opens no state and no source.

A worker that ends is started again, at once if it had served for a while, otherwise after a time
that doubles up to `LONGEST_S`. One that cannot start ends the gate, with its exit status, as long
as none serves. Workers are replaced one by one: the new one serves before the old one is asked to
end. Signals are those of a server (`serve.lifecycle`), and SIGUSR2, which replaces every worker by
one of the release that is installed now.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tidegate.edges.accepting import MOST_PROCESSES, PAGE_BYTES, clear_counts
from tidegate.serve.lifecycle import LAST_WORK_S
from tidegate.serve.worker import SECRET_BYTES, WorkerPlace
from tidegate.serve.worker_process import WorkerProcess
from tidegate.system.descriptors import open_shared_memory
from tidegate.system.processes import Notice

logger = logging.getLogger("tidegate.serve")

STEADY_S = 10.0
"""A worker that has served for so long is started again at once."""
SHORTEST_S, LONGEST_S = 0.25, 30.0
"""Between the starts of a worker that keeps ending."""
MOST_FAILED = 5
"""Starts in a row that fail, while no worker serves, before the gate ends."""
UNKNOWN_STATUS = 70


class WorkerPlan(msgspec.Struct, frozen=True):
    """How many workers there are, the words of the command that starts each, and how long a stop
    may take: `drain_delay_s` and `stop_grace_s` of the settings."""

    count: int
    words: tuple[str, ...]
    drain_s: float
    grace_s: float


class Workers:
    """The workers of one gate. Used on the event loop."""

    def __init__(self, plan: WorkerPlan, sockets: dict[str, int]) -> None:
        """`sockets` are the descriptors at which workers listen, by name."""
        self.plan = plan
        self.restarts = 0
        """How many workers were started because one had ended."""
        self.on_end: list[Callable[[WorkerProcess], None]] = []
        """Called with each worker that has ended."""
        self.failed = asyncio.Event()
        """No worker serves, and none can be started."""
        self.status = 0
        self._sockets = sockets
        self._counts = open_shared_memory(PAGE_BYTES)
        self._memory = mmap.mmap(self._counts, PAGE_BYTES)
        self._folder = TemporaryDirectory(prefix="tidegate-")
        """Of this account alone; it holds the sockets at which workers pass requests on."""
        self._private: dict[int, socket.socket] = {}
        self._secret = os.urandom(SECRET_BYTES)
        self._serial = 0
        self._serving: dict[int, WorkerProcess] = {}
        self._alive: set[WorkerProcess] = set()
        self._watching: set[asyncio.Task[None]] = set()
        self._locks: dict[int, asyncio.Lock] = {}
        self._replacing = asyncio.Lock()
        self._stops = asyncio.Event()

    @property
    def serving(self) -> list[WorkerProcess]:
        """Those that take callers, by number."""
        return [each for _, each in sorted(self._serving.items()) if each.serves]

    @property
    def running(self) -> list[WorkerProcess]:
        """Those that have not ended, also while they stop."""
        return list(self._alive)

    async def start(self) -> bool:
        """Start all of them; False if one cannot start, whose exit status is `status` then. The
        first alone: a new state is made by one process."""
        first = await self._start(1)
        if first is None:
            return False
        numbers = range(2, self.plan.count + 1)
        others = await asyncio.gather(*(self._start(number) for number in numbers))
        return all(each is not None for each in others)

    async def replace(self, plan: WorkerPlan) -> bool:
        """Put new workers in the places of all, one by one, under this plan; False if one of them
        cannot start, and then those that were not replaced yet go on."""
        async with self._replacing:
            self.plan = plan
            for number in range(1, plan.count + 1):
                if self._stops.is_set():
                    return False
                async with self._lock(number):
                    old = self._serving.get(number)
                    new = await self._start(number)
                if new is None:
                    logger.error("worker %d cannot be replaced: those before go on", number)
                    return False
                if old is not None:
                    await self._retire(old)
            for number in [each for each in self._serving if each > plan.count]:
                await self._retire(self._serving.pop(number))
            return True

    def notify(self, notice: Notice) -> None:
        """Send every worker a signal."""
        for worker in list(self._alive):
            worker.notify(notice)

    async def ask(self, topic: str) -> dict[int, bytes]:
        """What each serving worker answers, by its serial number; without those that do not."""
        workers = self.serving
        answers = await asyncio.gather(*(each.ask(topic) for each in workers))
        return {
            each.serial: answer
            for each, answer in zip(workers, answers, strict=True)
            if answer is not None
        }

    async def stop(self, notice: Notice, hurry: asyncio.Event) -> None:
        """Ask all to end and wait until they have; those that take longer than they may are
        killed. Once `hurry` is set they are asked again."""
        self._stops.set()
        for worker in self._alive:
            worker.retired = True
        self.notify(notice)
        longest_s = self.plan.grace_s + LAST_WORK_S
        longest_s += self.plan.drain_s if notice == "end" else 0.0
        hurried = asyncio.ensure_future(hurry.wait())
        loop = asyncio.get_running_loop()
        until = loop.time() + longest_s
        while self._watching and (left := until - loop.time()) > 0:
            waiting = {hurried, *self._watching} if not hurried.done() else set(self._watching)
            was_hurried = hurried.done()
            await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if hurried.done() and not was_hurried:
                self.notify("end")
                until = min(until, loop.time() + LAST_WORK_S)
        hurried.cancel()
        for worker in list(self._alive):
            logger.error("worker %d does not end and is killed", worker.number)
            worker.kill()
        if self._watching:
            await asyncio.wait(set(self._watching))
        for each in self._private.values():
            each.close()
        self._folder.cleanup()

    async def _start(self, number: int) -> WorkerProcess | None:
        """Start a worker and wait until it serves; None if it does not come to that."""
        self._serial += 1
        place = WorkerPlace(
            number,
            self.plan.count,
            os.getpid(),
            -1,
            self._sockets,
            self._counts,
            self._free_slot(),
            self._private_of(number).fileno(),
            self._folder.name,
        )
        worker = await WorkerProcess.start(
            self.plan.words, place, self._serial, self._secret, self._pass_on
        )
        self._alive.add(worker)
        watching = asyncio.get_running_loop().create_task(self._watch(worker))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)
        serves = await worker.settled()
        if self._stops.is_set():
            return None
        if not serves:
            self.status = UNKNOWN_STATUS
            if worker.status is not None and worker.status > 0:
                self.status = worker.status
            return None
        self._serving[number] = worker
        return worker

    def _private_of(self, number: int) -> socket.socket:
        """The socket at which the worker of this number takes requests from others."""
        if number not in self._private:
            made = self._private[number] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.bind(str(Path(self._folder.name) / str(number)))
            made.listen()
        return self._private[number]

    def _free_slot(self) -> int:
        """The number of the next worker where connections are counted: no other one has it."""
        taken = {each.slot for each in self._alive}
        return next(slot for slot in range(MOST_PROCESSES) if slot not in taken)

    async def _watch(self, worker: WorkerProcess) -> None:
        """Wait for the end of a worker, and start another one if it had a place."""
        status = await worker.wait_ended()
        self._alive.discard(worker)
        clear_counts(self._memory, worker.slot)
        for ended in self.on_end:
            ended(worker)
        if not self._is_missed(worker):
            return
        logger.error("worker %d ended: %s", worker.number, _how(status))
        lived_s = asyncio.get_running_loop().time() - worker.began_at
        failures = 0 if lived_s >= STEADY_S else 1
        while self._is_missed(worker):
            if failures:
                await self._rest(min(LONGEST_S, SHORTEST_S * 2 ** (failures - 1)))
            async with self._lock(worker.number):
                if not self._is_missed(worker):
                    return  # it was replaced meanwhile
                self.restarts += 1
                if await self._start(worker.number) is not None:
                    return
            failures += 1
            logger.error("worker %d cannot be started: status %d", worker.number, self.status)
            if failures > MOST_FAILED and not self.serving:
                self.failed.set()
                return

    def _is_missed(self, worker: WorkerProcess) -> bool:
        """Whether another one is to be started for a worker that has ended."""
        has_place = self._serving.get(worker.number) is worker
        return has_place and not worker.retired and not self._stops.is_set()

    async def _rest(self, seconds: float) -> None:
        """Wait, less if the gate stops."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stops.wait(), seconds)

    def _lock(self, number: int) -> asyncio.Lock:
        """Held while a worker of this number is started: there is one."""
        return self._locks.setdefault(number, asyncio.Lock())

    async def _retire(self, worker: WorkerProcess) -> None:
        """Ask a worker whose place another one has to end, and wait until it has."""
        worker.retired = True
        worker.notify("interrupt")  # without the delay for balancers: its sockets stay open
        loop = asyncio.get_running_loop()
        until = loop.time() + self.plan.grace_s + LAST_WORK_S
        while worker in self._alive and loop.time() < until:
            await asyncio.wait(
                set(self._watching), timeout=0.5, return_when=asyncio.FIRST_COMPLETED
            )
        if worker in self._alive:
            worker.kill()

    def _pass_on(self, sender: WorkerProcess, topic: str, body: bytes) -> None:
        """Have all others receive what a worker tells."""
        for worker in self._alive:
            if worker is not sender:
                worker.pass_on(topic, body)


def _how(status: int) -> str:
    return f"by signal {-status}" if status < 0 else f"with status {status}"
