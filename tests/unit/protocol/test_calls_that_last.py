"""Calls that outlast their reply: what is kept of them, and what the same call finds."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import structs

from tidegate.model.actors import Actor, Scope, has_same_rights
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.tasks import TaskRecord, lost_words
from tidegate.protocol import model
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.long_calls import EXTENSION
from tidegate.protocol.model import Context, RpcError, ToolResult
from tidegate.protocol.request import McpRequest
from tidegate.protocol.revisions import ALL
from tidegate.protocol.tasks import Task, Tasks, TaskTimes
from tidegate.protocol.transport import Answer, TransportContext
from wire.everything import Everything
from wire.task_tools import KeptRecords

META = "io.modelcontextprotocol/"
ADA = Actor("ada", "ada", Scope.READ_WRITE)
Work = Callable[[Context, dict[str, Any]], Awaitable[ToolResult]]
RECORD = TaskRecord("a" * 32, "ada", "core", "query", "one", 100.0, 100.0, 130.0)


class Worker(Everything):
    """A server whose tools are one function."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    async def call_tool(self, context: Context, name: str, arguments: dict[str, Any]) -> ToolResult:
        return await self._work(context, arguments)


class SlowRecords(KeptRecords):
    """Records that are kept only when the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.may_add = threading.Event()

    def add(self, record: TaskRecord) -> None:
        self.may_add.wait()
        super().add(record)


class Listener:
    """A client's stream."""

    open = True

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    def stop(self) -> None:
        """Nothing waits for it."""


class Client:
    """Sends calls to a kernel, and takes the reply that comes first."""

    def __init__(
        self,
        work: Work,
        records: KeptRecords | None = None,
        times: TaskTimes | None = None,
        *,
        tasks: bool,
    ) -> None:
        self.records = records or KeptRecords()
        soon = 1_000.0 if tasks else 0.01
        times = times or TaskTimes(soon, soon, 3_600.0)
        settings = model.Settings(model.RevisionPolicy(ALL))
        self.tasks = Tasks(self.records, times)
        self.kernel = Kernel(Worker(work), settings, tasks=self.tasks)
        self.extensions: dict[str, Any] = {EXTENSION: {}} if tasks else {}
        self.running: set[asyncio.Task[Answer | None]] = set()
        self.leaves = False
        self.actor, self.passes_on = ADA, 0

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        early: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        params["_meta"] = {
            f"{META}protocolVersion": "2026-07-28",
            f"{META}clientInfo": {"name": "test", "version": "1"},
            f"{META}clientCapabilities": {"extensions": self.extensions, "elicitation": {}},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        transport = TransportContext(
            self.actor, Listener(), early=early.set_result, passes_on=self.passes_on
        )
        if self.leaves:
            transport.cancellation.cancel("the client disconnected")
        call = asyncio.ensure_future(self.kernel.serve(json.dumps(message).encode(), transport))
        self.running.add(call)
        call.add_done_callback(self.running.discard)
        await asyncio.wait({call, early}, return_when=asyncio.FIRST_COMPLETED)
        answer = early.result() if early.done() else call.result()
        assert answer is not None
        return json.loads(answer.frame)

    async def call(self, **arguments: Any) -> dict[str, Any]:
        return (await self.send("tools/call", name="work", arguments=arguments))["result"]

    async def ended(self) -> None:
        while self.running:
            await asyncio.wait(set(self.running))
        await self.tasks.settled()


def done(text: str = "done") -> ToolResult:
    return ToolResult([model.text(text)])


def text_of(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


# What is kept in the state is true when its client learns of the task


async def record_of(meanwhile: Callable[[Context], Awaitable[None]], waits_for: str) -> TaskRecord:
    """What is kept of a call that waits, and does something while its task is being kept."""
    records, may_end = SlowRecords(), asyncio.Event()

    async def work(context: Context, given: dict[str, Any]) -> ToolResult:
        waiting = asyncio.ensure_future(context.begin_wait(waits_for))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await meanwhile(context)
        records.may_add.set()
        await waiting
        await may_end.wait()
        return done()

    client = Client(work, records, tasks=True)
    created = await client.call()
    record = records.records[created["taskId"]]
    may_end.set()
    await client.ended()
    return record


async def test_a_change_that_began_while_the_task_was_being_kept_is_kept_too() -> None:
    record = await record_of(lambda context: context.note_change(), "")
    assert record.changes
    assert "not known whether it changed" in lost_words(record)


async def test_a_wait_that_ended_while_the_task_was_being_kept_is_over() -> None:
    record = await record_of(lambda context: context.end_wait(), "It waits for ada")
    assert not record.waiting


def test_a_call_that_changed_data_and_then_waited_is_not_said_to_have_run_nothing() -> None:
    record = structs.replace(RECORD, waiting=True, changes=True)
    assert "not known whether it changed" in lost_words(record)
    assert "nothing ran" in lost_words(structs.replace(record, changes=False))


# Which call is the same


async def test_a_call_with_a_handle_of_what_it_opened_is_the_same_call() -> None:
    began, may_end = 0, asyncio.Event()

    async def work(context: Context, given: dict[str, Any]) -> ToolResult:
        if "handle" not in given:
            return done(context.new_state().id)
        state = context.find_state(given["handle"])
        assert state is not None
        state.watched = True
        nonlocal began
        began += 1
        await may_end.wait()
        return done()

    client = Client(work, tasks=False)
    handle = text_of(await client.call())
    assert text_of(await client.call(handle=handle)).startswith("still running")
    may_end.set()
    assert text_of(await client.call(handle=handle)) == "done"
    await client.ended()
    assert began == 1


async def test_a_call_that_waits_for_another_one_is_no_work_of_its_own() -> None:
    may_end = asyncio.Event()

    async def work(context: Context, given: dict[str, Any]) -> ToolResult:
        if "id" in given:
            resumed = await context.resume(given["id"])
            return resumed.result or done("goes on")
        await may_end.wait()
        return done()

    client = Client(work, times=TaskTimes(0.005, 0.05, 3_600.0), tasks=False)
    id = text_of(await client.call()).removeprefix("still running: ")
    client.extensions = {EXTENSION: {}}
    assert text_of(await client.call(id=id)) == "goes on"
    assert list(client.records.records) == [id]
    may_end.set()
    assert text_of(await client.call(id=id)) == "done"
    await client.ended()


async def test_a_result_that_its_client_left_before_it_got_it_waits_for_it() -> None:
    began, may_end = 0, asyncio.Event()

    async def work(context: Context, given: dict[str, Any]) -> ToolResult:
        nonlocal began
        began += 1
        await may_end.wait()
        return done()

    client = Client(work, times=TaskTimes(0.01, 0.05, 3_600.0), tasks=False)
    assert text_of(await client.call()).startswith("still running")
    client.leaves = True
    may_end.set()
    await client.ended()
    await client.call()
    client.leaves = False
    assert text_of(await client.call()) == "done"
    assert began == 1
    assert text_of(await client.call()) == "done"
    assert began == 2, "its result was given out: this is another call"


# What is asked


async def test_a_client_that_has_its_reply_and_knows_no_tasks_is_asked_nothing() -> None:
    early = asyncio.Event()

    async def work(context: Context, given: dict[str, Any]) -> ToolResult:
        await early.wait()
        try:
            await context.ask("go_on", model.Ask("elicitation/create", {"message": "?"}))
        except RpcError as error:
            return done(error.message)
        return done()

    client = Client(work, tasks=False)
    assert text_of(await client.call()).startswith("still running")
    early.set()
    assert text_of(await client.call()) == "The client has its reply: it is asked no more"
    await client.ended()


# What is held


@pytest.mark.parametrize("fails", [False, True])
async def test_a_task_that_has_ended_holds_on_to_nothing_of_its_request(fails: bool) -> None:
    async def work(context: Context, given: dict[str, Any]) -> ToolResult:
        await context.begin_wait("")
        context.work = StillAtWork(context)
        if fails:
            raise RpcError(model.INTERNAL_ERROR, "it broke")
        return structs.replace(done(), shrink=lambda size: context and None)

    client = Client(work, tasks=True)
    created = await client.call()
    await client.ended()
    found = await client.send("tasks/get", taskId=created["taskId"])
    assert found["result"]["status"] == ("failed" if fails else "completed")
    await client.ended()
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, McpRequest)]


class StillAtWork:
    """What a server knows of a call that goes on (`protocol.tasks.Work`)."""

    outcome_unknown = False
    may_pass_now = False

    def __init__(self, context: Context) -> None:
        self.context = context

    def ended(self) -> Over:
        return Over()


class Over:
    """The same of one that has ended."""

    outcome_unknown = False
    may_pass_now = False

    def ended(self) -> Over:
        return self


async def test_an_error_that_is_fetched_often_gathers_no_frames() -> None:
    async def work(context: Context, given: dict[str, Any]) -> ToolResult:
        await context.begin_wait("")
        raise RpcError(model.INTERNAL_ERROR, "it broke")

    client = Client(work, tasks=True)
    created = await client.call()
    await client.ended()
    for _ in range(3):
        await client.send("tasks/get", taskId=created["taskId"])
    task = client.tasks.find(created["taskId"], ADA)
    assert task is not None
    assert isinstance(task.outcome, RpcError)
    assert task.outcome.__traceback__ is None


# Who may have it, and what it ended as


def test_a_token_that_was_renewed_has_the_same_rights() -> None:
    assert has_same_rights(structs.replace(ADA, expires_at=5.0), ADA)
    assert not has_same_rights(structs.replace(ADA, scope=Scope.READ_ONLY), ADA)


@pytest.mark.parametrize(("unknown", "status"), [(True, "completed"), (False, "cancelled")])
async def test_a_cancelled_call_whose_first_change_stands_is_not_just_cancelled(
    unknown: bool, status: str
) -> None:
    work = Over()
    work.outcome_unknown = unknown
    task = Task(RECORD, ADA, Cancellation(), work)
    task.cancel()
    task.settle(ToolResult([model.text("the second one was cancelled")], is_error=True))
    assert task.status == status
    assert not NEVER.cancelled
