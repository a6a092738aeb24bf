"""Calls of tools that last: their clients get a reply in time, and the work goes on.

A client that declares the tasks extension gets a task. Any other gets what its server says to a
call that still runs, and the same call sent again waits for the one that runs: it is never started
twice. Calls that end in time cost an entry in a dictionary.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from msgspec import structs

from tidegate.errors import TidegateError
from tidegate.model.tasks import TaskRecord, lost_words
from tidegate.protocol import render
from tidegate.protocol.jsonrpc import encode, result_frame
from tidegate.protocol.model import INTERNAL_ERROR, RpcError, Server, ToolResult
from tidegate.protocol.request_state import bind
from tidegate.protocol.tasks import ALIVE_S, Task, Tasks, is_open, worker_of
from tidegate.protocol.transport import Answer, ServedElsewhere

if TYPE_CHECKING:  # which names these calls
    from tidegate.protocol.request import McpRequest

EXTENSION = "io.modelcontextprotocol/tasks"
_TICKS = 8
"""How often the calls under way are checked in the shorter of the two times."""
MOST_SEEN_S = 2.5
"""A call that can be joined is known to every process on the state before its client has its reply:
one that has not read the state for two seconds lets no call in."""

Refuse = Callable[[bytes, RpcError, "McpRequest | None"], Answer]


def declares_tasks(request: McpRequest) -> bool:
    """Whether the client takes a task in place of a result."""
    if not request.wire.modern:
        return False
    extensions = request.client_capabilities.get("extensions")
    return isinstance(extensions, dict) and EXTENSION in extensions


class Resumed(NamedTuple):
    """What became of a call that was answered before it had ended: its `result`, or `lost` says
    why there is none; without both it still runs."""

    result: ToolResult | None = None
    lost: str = ""


class LongCalls:
    """The calls of tools that a kernel has under way, and the tasks that some of them became."""

    def __init__(self, server: Server, server_meta: bytes, tasks: Tasks, refuse: Refuse) -> None:
        self.open: dict[McpRequest, int] = {}
        """Each call under way, and the count of checks when it began."""
        self.checks = 0
        self.checking = False
        self.tasks = tasks
        self.same: dict[bytes, Task] = {}
        """The calls that go on for clients without tasks, by what they are."""
        self._server = server
        self._server_meta = server_meta
        self._refuse = refuse
        times = tasks.times
        self._pause_s = min(times.after_s, times.answer_s) / _TICKS
        self._after = math.ceil(times.after_s / self._pause_s)
        self._seen_s = min(MOST_SEEN_S, times.answer_s / 20)
        self._answer = math.ceil((times.answer_s - self._seen_s) / self._pause_s)
        self._leaving: dict[McpRequest, asyncio.Task[None]] = {}

    def check_later(self) -> None:
        """Check the calls under way from now on, as long as there are some."""
        self.checking = True
        asyncio.get_running_loop().call_later(self._pause_s, self._check)

    def _check(self) -> None:
        self.checks += 1
        for request, began in list(self.open.items()):
            age = self.checks - began
            if age < self._after or request.task is not None or request in self._leaving:
                continue
            if age >= self._answer or declares_tasks(request):
                self._begin_leaving(request)
        if self.open:
            self.check_later()
        else:
            self.checking = False

    # From a call to a task

    def _begin_leaving(self, request: McpRequest) -> asyncio.Task[None] | None:
        if request.early is None or (request.stream is not None and request.stream.started):
            return None  # it is part of a batch, waits for another call, or is being answered
        if not self.tasks.has_room(request.actor.id):
            return None
        leaving = asyncio.get_running_loop().create_task(self._leave(request))
        self._leaving[request] = leaving
        leaving.add_done_callback(lambda _: self._leaving.pop(request, None))
        return leaving

    async def leave(self, request: McpRequest) -> None:
        """Answer a call now, if its client takes tasks."""
        if request in self.open and request.task is None and declares_tasks(request):
            leaving = self._leaving.get(request) or self._begin_leaving(request)
            if leaving is not None:
                await leaving

    async def _leave(self, request: McpRequest) -> None:
        call = request.called
        takes_task = declares_tasks(request)
        key = None if takes_task else self._key(request)
        if call is None or (key is None and not takes_task):
            return  # its client could not come back for it
        task = await self._start_task(request, call.name, key)
        if task is None:
            return
        started = request.stream is not None and request.stream.started
        if request not in self.open or request.cancellation.cancelled or started:
            self.tasks.drop(task)  # it was answered meanwhile, or no one waits any more
            return
        request.task = task
        if request.stream is not None:
            request.stream.keep()
        if key is None:
            answer = self._created(request, task)
        else:
            self._forget_stale()
            self.same[key] = task
            answer = self._still_running(request, task)
        if request.running is not None:
            request.running.pop(request.id, None)
        request.answer_early(answer)

    async def _start_task(self, request: McpRequest, tool: str, key: bytes | None) -> Task | None:
        """A task that is kept as its call is now: while it was written, the call went on. By its
        `key` other processes know it from then on. None if it is not kept."""
        waiting, changes = request.waits_for, request.may_change
        call = "" if key is None else key.hex()
        surface = self._server.info.name
        task = await self.tasks.start(
            request, surface, tool, waiting=waiting, changes=changes, call=call
        )
        if task is not None and key is not None:
            await asyncio.sleep(self._seen_s)
        while task is not None and (waiting, changes) != (request.waits_for, request.may_change):
            waiting, changes = request.waits_for, request.may_change
            try:
                await self.tasks.update(task, waiting=waiting, changes=changes)
            except TidegateError:
                self.tasks.drop(task)
                return None
        return task

    def _created(self, request: McpRequest, task: Task) -> Answer:
        fields = {"resultType": "task", **task_fields(task, self.tasks.times.keep_s)}
        result = encode(fields)[:-1] + b',"_meta":' + self._server_meta + b"}"
        return Answer(result_frame(request.id, result))

    def _still_running(self, request: McpRequest, task: Task) -> Answer:
        call = request.called
        try:
            tool = "" if call is None else call.name
            result = self._server.still_running(request, tool, task.id)
        except RpcError as error:
            return self._refuse(request.id, error, request)
        meta = self._server_meta
        return Answer(result_frame(request.id, render.tool_result(result, request.wire, meta)))

    def settle(self, request: McpRequest, outcome: ToolResult | BaseException) -> None:
        """Take the outcome of a call that became a task."""
        task = cast(Task, request.task)
        if isinstance(outcome, (ToolResult, RpcError)):
            self.tasks.settle(task, outcome)
        else:
            words = "The call was ended by the server" if _is_end(outcome) else "Internal error"
            self.tasks.settle(task, RpcError(INTERNAL_ERROR, words))
        if task.work is not None and task.work.may_pass_now:
            self._forget_same(task)  # sent again it is to find the answer, not that one is needed

    # Back to what goes on

    def find_same(self, request: McpRequest) -> Task | None:
        """The call under way or just ended that is the same as this one, of the same actor."""
        key = self._key(request)
        task = None if key is None else self.same.get(key)
        if key is None or task is None:
            return None
        if self.tasks.is_stale(task.record):
            del self.same[key]
            return None
        return task

    async def join_elsewhere(self, request: McpRequest) -> ToolResult | None:
        """The reply to a call that another process has, or had when it ended; None if there is no
        such call, or this one may run in its place. Raises: RpcError, ServedElsewhere."""
        call, actor = request.called, request.actor
        if call is None or actor.id not in self.tasks.elsewhere:
            return None
        if (key := self._key(request)) is None:
            return None
        record = await self.tasks.find_call(key.hex(), actor)
        if record is None:
            return None
        self.pass_on(request, record.id)
        record = await self.tasks.wait_elsewhere(record, request.cancellation)
        if is_open(record):
            return self._server.still_running(request, call.name, record.id)
        kept = await self.tasks.bring(record)
        if kept is not None:
            return await self._given_out(request, kept)
        self.tasks.forget_call(record)
        if not record.changes or record.status == "cancelled":
            return None
        return self._server.lost(request, call.name, lost_words(record))

    def pass_on(self, request: McpRequest, id: str, *, lasts: bool = False) -> None:
        """Have the worker answer that has the task of this id, if it is another one. Raises:
        ServedElsewhere."""
        worker = worker_of(id)
        if 0 < worker <= request.passes_on and worker != self.tasks.worker:
            raise ServedElsewhere(worker, lasts=lasts)

    def _forget_stale(self) -> None:
        for key, task in list(self.same.items()):
            if self.tasks.is_stale(task.record):
                del self.same[key]

    async def join(self, request: McpRequest, task: Task) -> ToolResult:
        """The result of the call that this one is the same as, once. Raises: RpcError."""
        call = request.called
        if not await self.tasks.wait(task, request.cancellation):
            return self._server.still_running(request, "" if call is None else call.name, task.id)
        return await self._given_out(request, task)

    async def resume(self, request: McpRequest, id: str) -> Resumed:
        """Wait on for the call that was answered before it had ended. Raises: RpcError,
        ServedElsewhere, and as the state."""
        self.open.pop(request, None)  # it is answered in time, and is no call of its own
        task = self.tasks.find(id, request.actor)
        if task is None:
            self.pass_on(request, id)
            record = await self.tasks.find_record(id, request.actor)
            if record is None:
                return Resumed(lost=NO_SUCH_CALL)
            kept = await self.tasks.bring(record)
            if kept is not None:
                return Resumed(await self._given_out(request, kept))
            if not is_open(record):
                self.tasks.forget_call(record)
            return Resumed(lost=elsewhere_words(record))
        if not await self.tasks.wait(task, request.cancellation):
            return Resumed()
        if task.outcome is None:
            self._forget_same(task)
            return Resumed(lost=lost_words(task.record))
        return Resumed(await self._given_out(request, task))

    async def _given_out(self, request: McpRequest, task: Task) -> ToolResult:
        """The outcome of a task for a client that waited, after which the same call is another one,
        unless that client has gone: it comes back. Raises: RpcError."""
        try:
            return await self._released(request, task)
        finally:
            if not request.cancellation.cancelled:
                self._forget_same(task)
                task.given = True

    def _forget_same(self, task: Task) -> None:
        for key, same in list(self.same.items()):
            if same is task:
                del self.same[key]
        self.tasks.forget_call(task.record)
        task.record = structs.replace(task.record, call="")

    async def _released(self, request: McpRequest, task: Task) -> ToolResult:
        """The outcome of a task, if its caller may still have it. Raises: RpcError."""
        outcome = task.outcome
        if outcome is None:
            outcome = RpcError(INTERNAL_ERROR, lost_words(task.record))
        return await self._server.release(request, task, outcome)

    def _key(self, request: McpRequest) -> bytes | None:
        """What makes two calls the same: the caller, the tool of this server, its arguments, and
        what its session has opened. Without a session the arguments have the handle of what was
        opened. None for arguments that are read but nested too deeply to be written."""
        call, session = request.called, request.session
        if call is None:
            return None
        of_session = session.state.id if session is not None and session.state.watched else ""
        try:
            tool = f"{self._server.info.name} {call.name}"
            return bind(request.actor.id, of_session, tool, call.arguments)
        except RecursionError:
            return None


NO_SUCH_CALL = (
    "There is no such call of this caller, or it ended too long ago. Send the call again; if it may"
    " have changed data, check the data first."
)


def elsewhere_words(record: TaskRecord) -> str:
    """What to say of a task that this process does not have."""
    if is_open(record):
        return (
            "The call goes on in another process of this server, which alone has its result, or"
            f" that process has just ended. Ask again in {ALIVE_S:.0f} s; until then do not send"
            " the call again."
        )
    return lost_words(record)


def task_fields(task: Task, keep_s: float) -> dict[str, object]:
    """A task as its client sees it, without what it asks and without its outcome."""
    record = task.record
    return record_fields(record, keep_s, task.message)


def record_fields(record: TaskRecord, keep_s: float, message: str = "") -> dict[str, object]:
    """A task as far as the state knows it."""
    fields: dict[str, object] = {
        "taskId": record.id,
        "status": record.status,
        "createdAt": _iso(record.created_at),
        "lastUpdatedAt": _iso(record.updated_at),
        "ttlMs": int(keep_s * 1000),
        "pollIntervalMs": POLL_MS,
    }
    if message:
        fields["statusMessage"] = message
    return fields


POLL_MS = 2_000


def _iso(at: float) -> str:
    from datetime import UTC, datetime  # a call that ends in time needs none

    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_end(outcome: BaseException) -> bool:
    return isinstance(outcome, asyncio.CancelledError)
