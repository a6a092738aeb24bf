"""Calls that go on after their request was answered, and where their results wait.

Source: extension `io.modelcontextprotocol/tasks` (SEP-2663). What a task is holds for every client;
only those that declare the extension see it as such (`task_methods`), others wait in other ways
(`long_calls`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import structs

from tidegate.errors import TidegateError
from tidegate.model.actors import Actor
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.tasks import ENDED, TaskRecord, TaskStatus
from tidegate.protocol import elicitation_results
from tidegate.protocol.model import INVALID_PARAMS, Ask, RpcError, ToolResult

logger = logging.getLogger("tidegate.tasks")

ALIVE_S = 30.0
"""For how long a process says that it is there; it says so again in a third of that."""
MOST_OPEN = 256
MOST_OPEN_OF_ACTOR = 32
"""Tasks that have not ended: one call more is answered when it has ended, as any call is."""
LOOK_S = 0.2
"""Between two checks of a task of another process that a client follows."""
_AT_ONCE = 16
"""Tasks that are read so often; of more each is read less often."""
STALE_S = 600.0
"""For how long rows that were read wait for the same call to come again."""
MOST_KNOWN = 4_096
MOST_ELSEWHERE = 10_000
"""Calls of other processes by which the same call is known."""
MOST_KEPT = 64
MOST_KEPT_BYTES = 67_108_864
"""Results that wait, as many and as large as results of which rows wait."""


class TaskTimes(msgspec.Struct, frozen=True):
    """Seconds: after which a call becomes a task, after which a client that knows no tasks gets a
    reply, and for how long a result waits."""

    after_s: float
    answer_s: float
    keep_s: float


class TaskRecords(Protocol):
    """Where tasks are kept so that they outlast the process. Methods wait for a disk."""

    def add(self, record: TaskRecord) -> None: ...
    def update(self, record: TaskRecord) -> None: ...
    def find(self, id: str) -> TaskRecord | None: ...
    def calls(self, most: int) -> tuple[TaskRecord, ...]: ...
    def renew(self, server: str, until: float) -> None: ...
    def forget(self, before: float) -> None: ...


class Work(Protocol):
    """What a server knows of a call of its own."""

    @property
    def outcome_unknown(self) -> bool:
        """Whether it failed, and what it did before stands, or that is not known."""
        ...

    @property
    def may_pass_now(self) -> bool:
        """Whether it failed for want of a person's answer, which may be there by now."""
        ...

    def ended(self) -> Work:
        """What is needed of it once the call has ended."""
        ...


class _Question(NamedTuple):
    ask: Ask
    answer: asyncio.Future[Mapping[str, Any]]


class Task:
    """One call that goes on. `outcome` is there once it has ended, unless there was no room to keep
    it. `record` is what is kept of it in the state."""

    def __init__(
        self, record: TaskRecord, actor: Actor, cancellation: Cancellation, work: Work | None
    ) -> None:
        self.record = record
        self.actor = actor
        self.work = work
        self.message = ""
        self.outcome: ToolResult | RpcError | None = None
        self.clock: Callable[[], float] = time.time
        self.given = False
        """Whether a client has had the outcome: then it makes room first."""
        self.questions: dict[str, _Question] = {}
        self._cancellation = cancellation
        self._cancelled_by_client = False
        self._used_keys: set[str] = set()
        self._listeners: list[Callable[[], None]] = []
        self.ended = asyncio.Event()

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def status(self) -> TaskStatus:
        return self.record.status

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` at every change. Returns how to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def set_status(self, status: TaskStatus, message: str = "") -> None:
        self.message = message
        self.record = structs.replace(self.record, status=status, updated_at=self.clock())
        for listener in list(self._listeners):
            listener()

    def cancel(self) -> None:
        """End the call; what it has done by then shows when it ends."""
        if self.status not in ENDED:
            self._cancelled_by_client = True
            self._cancellation.cancel("the client cancelled the task")

    def settle(self, outcome: ToolResult | RpcError) -> None:
        """Take the outcome of the call, which has ended now."""
        failed = isinstance(outcome, RpcError) or outcome.is_error
        open_ended = self.work is not None and self.work.outcome_unknown
        self.outcome = outcome.copied() if isinstance(outcome, RpcError) else outcome
        # It waits for an hour: what the request held, such as its body, does not.
        self.work = None if self.work is None else self.work.ended()
        self._cancellation = NEVER
        self.ended.set()
        if self._cancelled_by_client and failed and not open_ended:
            self.set_status("cancelled")
        else:
            self.set_status("failed" if isinstance(outcome, RpcError) else "completed")

    async def ask(self, asks: Mapping[str, Ask]) -> dict[str, Mapping[str, Any]]:
        """Ask the client by way of the task, and wait. Raises: RpcError if the call ends first."""
        loop = asyncio.get_running_loop()
        mine = {key: _Question(ask, loop.create_future()) for key, ask in asks.items()}
        shown = {self._new_key(key): question for key, question in mine.items()}

        def give_up() -> None:
            for question in mine.values():
                if not question.answer.done():
                    gone = "The client did not answer: the call was cancelled"
                    question.answer.set_exception(RpcError(INVALID_PARAMS, gone))

        self.questions.update(shown)
        self.set_status("input_required")
        self._cancellation.listen(give_up)
        try:
            return {key: await question.answer for key, question in mine.items()}
        finally:
            self._cancellation.forget(give_up)
            give_up()
            for question in mine.values():
                if not question.answer.cancelled():
                    question.answer.exception()  # it was seen: nothing is logged of it
            for key in shown:
                self.questions.pop(key, None)
            if not self.questions and self.status == "input_required":
                self.set_status("working")

    def take_answers(self, given: Mapping[str, Any]) -> None:
        """Take a client's answers; those to no open question are ignored.

        Raises: RpcError INVALID_PARAMS if one does not fit its question: then none is taken.
        """
        fitting = {key: answer for key, answer in given.items() if key in self.questions}
        for key, answer in fitting.items():
            elicitation_results.check(key, self.questions[key].ask, answer)
        for key, answer in fitting.items():
            question = self.questions.pop(key)
            if not question.answer.done():
                question.answer.set_result(answer)
        if fitting:
            self.set_status("input_required" if self.questions else "working")

    def _new_key(self, key: str) -> str:
        """The key under which a question is asked: none is used twice."""
        new, number = key, 1
        while new in self._used_keys:
            number += 1
            new = f"{key}-{number}"
        self._used_keys.add(new)
        return new


CANCEL_TASK = "task.cancel"
"""The kind of the messages between processes that end a task."""


class Outcomes(Protocol):
    """Outcomes of tasks that other processes can give out. Methods wait for a disk."""

    def keep(self, task: Task, lifetime_s: float) -> None:
        """Keep the outcome of a task that has ended, if it can be."""
        ...

    def find(self, record: TaskRecord) -> Task | None:
        """The task of a record of another process, with its outcome; None if that is not there."""
        ...


AskState = Callable[..., Awaitable[Any]]


class Tasks:
    """The tasks of one process, whatever server they belong to. `ask_state` makes a call of
    `records` off the event loop."""

    def __init__(
        self,
        records: TaskRecords,
        times: TaskTimes,
        ask_state: AskState = asyncio.to_thread,
        clock: Callable[[], float] = time.time,
        worker: int = 0,
    ) -> None:
        """`worker` is the number of this process among those of its gate, if there are several."""
        self.times = times
        self.clock = clock
        self.worker = worker
        self._ask_state = ask_state
        self.cancel_elsewhere: Callable[[bytes], Awaitable[None]] | None = None
        """Has the process that runs a task end it, by a message for its `cancel_by`; None if there
        is no other."""
        self.outcomes: Outcomes | None = None
        """Those that other processes can give out; None if there is no other."""
        self.elsewhere: dict[str, dict[str, str]] = {}
        """The ids of the calls that other processes have or had, by actor and `TaskRecord.call`."""
        self._records = records
        self._server = os.urandom(8).hex()
        self._tasks: dict[str, Task] = {}
        self._open: Counter[str] = Counter()
        """How many tasks of each actor have not ended."""
        self._renewal: asyncio.TimerHandle | None = None
        self._writes: set[asyncio.Task[None]] = set()
        self._following: set[asyncio.Future[None]] = set()
        self._writing = asyncio.Lock()

    async def start(
        self,
        request: TaskOwner,
        surface: str,
        tool: str,
        *,
        waiting: str,
        changes: bool,
        call: str = "",
    ) -> Task | None:
        """A task, kept in the state, for a call under way; None if there is no room for one more,
        or if it cannot be kept. `waiting` says for which person's answer it waits."""
        if not self.has_room(request.actor.id):
            return None
        now = self.clock()
        record = TaskRecord(
            id=_new_id(self.worker),
            actor=request.actor.id,
            surface=surface,
            tool=tool,
            server=self._server,
            created_at=now,
            updated_at=now,
            alive_until=now + ALIVE_S,
            waiting=bool(waiting),
            changes=changes,
            call=call,
        )
        task = Task(record, request.actor, request.cancellation, request.work)
        task.clock, task.message = self.clock, waiting
        self._tasks[task.id] = task
        self._open[record.actor] += 1
        try:
            await self._ask_state(self._add, record)
        except Exception as error:  # noqa: BLE001  whatever the state says, the call goes on as it is
            logger.warning("a call does not become a task: %s", error)
            self._remove(task)
            return None
        self._renew_in_time()
        return task

    def _add(self, record: TaskRecord) -> None:
        self._records.forget(record.created_at - 3 * self.times.keep_s)
        self._records.add(record)

    async def update(self, task: Task, *, waiting: str = "", changes: bool = False) -> None:
        """Keep what a task does from now on, before it does. Raises: as the state."""
        task.record = structs.replace(
            task.record,
            waiting=bool(waiting),
            changes=changes or task.record.changes,
            alive_until=self.clock() + ALIVE_S,
        )
        if task.status == "working":
            task.set_status("working", waiting)
        await self._ask_state(self._records.update, task.record)

    def drop(self, task: Task) -> None:
        """Forget a task whose call was answered as any call is."""
        self._remove(task)
        record = structs.replace(task.record, status="cancelled", call="")
        self._write(record)

    def forget_call(self, record: TaskRecord) -> None:
        """Let the same call, sent from now on, be another one, in every process."""
        if record.call:
            self._write(structs.replace(record, call=""))

    def settle(self, task: Task, outcome: ToolResult | RpcError) -> None:
        """End a task, and keep its outcome for those who ask."""
        task.settle(outcome)
        self._close(task)
        if self.outcomes is not None:  # before the record says that the task has ended
            keep = partial(self.outcomes.keep, task, self.times.keep_s)
            self._in_background(keep, "the outcome of a task is not kept for others: %s")
        self._write(task.record)
        self._make_room()

    def find(self, id: str, actor: Actor) -> Task | None:
        """The task of this process with that id, for its own actor."""
        task = self._tasks.get(id)
        if task is None or task.record.actor != actor.id or self._is_old(task):
            return None
        return task

    def cancel_by(self, message: bytes) -> None:
        """End a task of this process whose caller has asked another one. That one knows the caller
        of a task from the state alone, where it may have been changed."""
        with suppress(msgspec.DecodeError):  # of another release
            id, actor = msgspec.msgpack.decode(message, type=tuple[str, str])
            task = self._tasks.get(id)
            if task is not None and task.record.actor == actor:
                task.cancel()

    async def ask_cancel(self, record: TaskRecord, actor: Actor) -> bool:
        """Have the process that runs a task of the actor end it; False if there is no other.
        Raises: as the state."""
        if self.cancel_elsewhere is None:
            return False
        await self.cancel_elsewhere(msgspec.msgpack.encode((record.id, actor.id)))
        return True

    def is_stale(self, record: TaskRecord) -> bool:
        """Whether the same call sent now means another one: the rows that were read are old. A
        change is not made again for as long as its outcome is kept."""
        kept_s = self.times.keep_s if record.changes else min(self.times.keep_s, STALE_S)
        return record.status in ENDED and record.updated_at < self.clock() - kept_s

    def load_elsewhere(self) -> None:
        """Read which calls other processes have, on any thread. Raises: as the state."""
        found: dict[str, dict[str, str]] = {}
        for record in self._records.calls(MOST_ELSEWHERE):
            if record.server != self._server:
                found.setdefault(record.actor, {}).setdefault(record.call, record.id)
        self.elsewhere = found

    async def find_call(self, call: str, actor: Actor) -> TaskRecord | None:
        """The same call of this actor that another process has or had, if what became of it counts
        for one that is sent now. Raises: as the state."""
        id = self.elsewhere.get(actor.id, {}).get(call)
        record = None if id is None else await self.find_record(id, actor)
        if record is None or record.call != call or self.is_stale(record):
            return None
        is_old = record.updated_at < self.clock() - self.times.keep_s
        return None if is_old and not is_open(record) else record

    async def wait_elsewhere(self, record: TaskRecord, cancellation: Cancellation) -> TaskRecord:
        """What is kept of a task of another process once it has ended, or when a reply is due.
        Raises: as the state."""
        loop = asyncio.get_running_loop()
        until, pause_s = loop.time() + self.times.answer_s, min(1.0, self.times.answer_s / 8)
        while is_open(record) and not cancellation.cancelled and loop.time() < until:
            await asyncio.sleep(pause_s)
            found = await self._ask_state(self._records.find, record.id)
            if found is None:
                break
            record = self._by_this_clock(found)
        return record

    async def bring(self, record: TaskRecord) -> Task | None:
        """A task of another process that has ended, with its outcome; None if that process alone
        has it. Raises: as the state."""
        if self.outcomes is None or is_open(record):
            return None
        found = await self._ask_state(self.outcomes.find, record)
        if isinstance(found, Task):
            found.ended.set()
            return found
        return None

    def follow_elsewhere(
        self, record: TaskRecord, changed: Callable[[TaskRecord], None]
    ) -> Callable[[], None]:
        """Call `changed` when a task of another process is seen to be another one in the state,
        until it has ended. Returns how to stop."""

        async def look() -> None:
            known = record
            while is_open(known):
                await asyncio.sleep(LOOK_S * max(1.0, len(self._following) / _AT_ONCE))
                with suppress(TidegateError):  # a state that cannot be read is read again
                    found = await self._ask_state(self._records.find, record.id)
                    if found is None:
                        return
                    seen = self._by_this_clock(found)
                    if _told_of(seen) != _told_of(known):
                        changed(seen)
                    known = seen

        following = asyncio.ensure_future(look())
        self._following.add(following)
        following.add_done_callback(self._following.discard)

        def stop() -> None:
            following.cancel()

        return stop

    async def find_record(self, id: str, actor: Actor) -> TaskRecord | None:
        """What the state knows of a task that another process has or had. Raises: as the state."""
        record = await self._ask_state(self._records.find, id)
        if record is None or record.actor != actor.id:
            return None
        return self._by_this_clock(record)

    def _by_this_clock(self, record: TaskRecord) -> TaskRecord:
        ahead_s = self.clock() - time.time()  # of this machine's clock, which `is_open` reads
        return structs.replace(record, alive_until=record.alive_until - ahead_s)

    async def wait(self, task: Task, cancellation: Cancellation) -> bool:
        """Wait until a task has ended, or as long as a reply may take; whether it has."""
        gone = asyncio.Event()
        cancellation.listen(gone.set)
        waits = [asyncio.ensure_future(each.wait()) for each in (task.ended, gone)]
        try:
            await asyncio.wait(
                waits, timeout=self.times.answer_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            cancellation.forget(gone.set)
            for each in waits:
                each.cancel()
        return task.ended.is_set()

    async def settled(self) -> None:
        """Wait until what is known of every task is kept."""
        while self._writes:
            await asyncio.wait(set(self._writes))

    def has_room(self, actor: str) -> bool:
        """Whether one call more of this actor may become a task."""
        return self._open[actor] < MOST_OPEN_OF_ACTOR and self._open.total() < MOST_OPEN

    def _remove(self, task: Task) -> None:
        del self._tasks[task.id]
        self._close(task)

    def _close(self, task: Task) -> None:
        actor = task.record.actor
        self._open[actor] -= 1
        if not self._open[actor]:
            del self._open[actor]

    def _is_old(self, task: Task) -> bool:
        """Whether its result has waited for as long as results do."""
        return task.status in ENDED and task.record.updated_at < self.clock() - self.times.keep_s

    def _make_room(self) -> None:
        """Drop the results beyond what may be kept: first those that a client has had, and of these
        and of the others first those that ended first."""
        self._forget_old()
        kept = [task for task in self._tasks.values() if task.outcome is not None]
        kept.sort(key=lambda task: (not task.given, task.record.updated_at))
        size = sum(_size(task) for task in kept)
        count = len(kept)
        for task in kept:
            if count <= MOST_KEPT and size <= MOST_KEPT_BYTES:
                break
            size, count = size - _size(task), count - 1
            task.outcome = None

    def _forget_old(self) -> None:
        for id, task in list(self._tasks.items()):
            too_many = len(self._tasks) > MOST_KNOWN and task.status in ENDED
            if (too_many and task.outcome is None) or self._is_old(task):
                del self._tasks[id]

    def _write(self, record: TaskRecord) -> None:
        """Keep what became of a task; if that fails, the state says less than is true, never
        more."""
        update = partial(self._records.update, record)
        self._in_background(update, "what became of a task is not kept: %s")

    def _in_background(self, write: Callable[[], None], complaint: str) -> None:
        """Write to the state without waiting; `settled` waits."""

        async def work() -> None:
            try:
                async with self._writing:  # what is written last is what counts
                    await self._ask_state(write)
            except Exception as error:  # noqa: BLE001  there is no caller to tell
                logger.warning(complaint, error)

        writing = asyncio.get_running_loop().create_task(work())
        self._writes.add(writing)
        writing.add_done_callback(self._writes.discard)

    def _renew_in_time(self) -> None:
        if self._renewal is None:
            loop = asyncio.get_running_loop()
            self._renewal = loop.call_later(ALIVE_S / 3, self._renew)

    def _renew(self) -> None:
        self._renewal = None
        if all(task.status in ENDED for task in self._tasks.values()):
            return

        def renew() -> None:
            self._records.renew(self._server, self.clock() + ALIVE_S)

        self._in_background(renew, "the state does not take that tasks go on: %s")
        self._renew_in_time()


class TaskOwner(Protocol):
    """The request whose call becomes a task."""

    @property
    def actor(self) -> Actor: ...
    @property
    def cancellation(self) -> Cancellation: ...
    @property
    def work(self) -> Work | None: ...


def _new_id(worker: int) -> str:
    """128 random bits and, of several workers, the number of the one that has the task."""
    id = os.urandom(16).hex()
    return f"{id}-{worker}" if worker else id


def worker_of(id: str) -> int:
    """The number of the worker that has the task of that id; 0 if it names none."""
    number = id.partition("-")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 4 else 0


def _size(task: Task) -> int:
    outcome = task.outcome
    if not isinstance(outcome, ToolResult):
        return 0
    shown = sum(len(str(block.get("text", ""))) for block in outcome.content or ())
    return shown + len(outcome.body or b"")


def _told_of(record: TaskRecord) -> tuple[TaskStatus, bool, bool]:
    return record.status, record.waiting, is_open(record)


def is_open(record: TaskRecord) -> bool:
    """Whether a task of another process may still go on."""
    return record.status not in ENDED and time.time() < record.alive_until
