"""Calls that become tasks: what is kept of them, and whose results make room for others."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from support.eventually import PATIENCE_S, until
from support.repeated_calls import NoSender
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.tasks import TaskRecord, lost_words
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import Context, RevisionPolicy, Settings, ToolResult
from tidegate.protocol.tasks import MOST_KEPT, Task, Tasks, TaskTimes
from tidegate.protocol.transport import Answer, TransportContext
from wire.everything import Everything
from wire.fixture_tools import said
from wire.task_tools import KeptRecords
from wire.wires import META, MODERN

ACTOR = Actor("ada", "ada", Scope.READ_ONLY)
TAKES_TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class SlowRecords(KeptRecords):
    """Writes a new task only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.allowed = threading.Event(), threading.Event()

    def add(self, record: TaskRecord) -> None:
        self.asked.set()
        assert self.allowed.wait(PATIENCE_S)
        super().add(record)


class Server(Everything):
    """Goes on with its call while the task of it is written."""

    def __init__(self, records: SlowRecords) -> None:
        super().__init__()
        self.records = records
        self.end = asyncio.Event()

    async def call_tool(self, context: Context, name: str, arguments: dict[str, Any]) -> ToolResult:
        request: Any = context
        if name == "approved":
            request.waits_for = "a person"
        await until(self.records.asked.is_set, "the task is written")
        if name == "approved":
            await request.end_wait()
        await request.note_change()
        self.records.allowed.set()
        await self.end.wait()
        return said("done")


@pytest.mark.parametrize("tool", ["change", "approved"])
@pytest.mark.parametrize("capabilities", [TAKES_TASKS, {}])
def test_a_change_that_is_sent_while_its_task_is_written_is_kept_before_the_reply(
    tool: str, capabilities: dict[str, Any]
) -> None:
    async def main() -> None:
        records = SlowRecords()
        server = Server(records)
        tasks = Tasks(records, TaskTimes(0.05, 0.05, 60))
        kernel = Kernel(server, Settings(RevisionPolicy((MODERN,))), tasks=tasks)
        early: list[Answer] = []
        transport = TransportContext(ACTOR, NoSender(), early=early.append)
        call = asyncio.ensure_future(kernel.serve(_frame(tool, capabilities), transport))
        await until(lambda: early, "the call is answered")
        (record,) = records.records.values()
        assert "not known whether it changed data" in lost_words(record)
        server.end.set()
        assert await call is None

    asyncio.run(main())


def _frame(tool: str, capabilities: dict[str, Any]) -> bytes:
    meta = {
        f"{META}protocolVersion": MODERN,
        f"{META}clientCapabilities": capabilities,
        f"{META}clientInfo": {"name": "test", "version": "1"},
    }
    params = {"name": tool, "arguments": {}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


class Owner(NamedTuple):
    """A request whose call becomes a task."""

    actor: Actor = ACTOR
    cancellation: Cancellation = Cancellation()
    work: None = None


async def started(tasks: Tasks) -> Task:
    task = await tasks.start(Owner(), "core", "query", waiting="", changes=False)
    assert task is not None
    return task


def test_the_result_of_the_longest_call_is_not_the_first_to_make_room() -> None:
    async def main() -> None:
        tasks = Tasks(KeptRecords(), TaskTimes(1, 1, 3_600))
        longest = await started(tasks)
        for _ in range(MOST_KEPT):
            tasks.settle(await started(tasks), said("short"))
        tasks.settle(longest, said("long"))
        await tasks.settled()
        assert longest.outcome is not None

    asyncio.run(main())


def test_a_result_that_a_client_has_had_makes_room_first() -> None:
    async def main() -> None:
        tasks = Tasks(KeptRecords(), TaskTimes(1, 1, 3_600))
        kept = [await started(tasks) for _ in range(2)]
        for task in kept:
            tasks.settle(task, said("first"))
        kept[1].given = True
        for _ in range(MOST_KEPT - 1):
            tasks.settle(await started(tasks), said("later"))
        await tasks.settled()
        assert [task.outcome is not None for task in kept] == [True, False]

    asyncio.run(main())


def test_a_task_of_another_process_is_ended_by_a_message_to_the_others() -> None:
    """Two processes share the records of their tasks."""

    async def main() -> None:
        records = KeptRecords()
        here, elsewhere = (Tasks(records, TaskTimes(1, 1, 3_600)) for _ in range(2))

        async def send(message: bytes) -> None:
            here.cancel_by(message)
            elsewhere.cancel_by(message)

        here.cancel_elsewhere = send
        cancellation = Cancellation()
        task = await elsewhere.start(
            Owner(cancellation=cancellation), "core", "query", waiting="", changes=False
        )
        assert task is not None
        kernel = Kernel(Everything(), Settings(RevisionPolicy((MODERN,))), tasks=here)
        message = json.loads(_frame("change", TAKES_TASKS))
        message |= {"method": "tasks/cancel"}
        message["params"] = {"taskId": task.id, "_meta": message["params"]["_meta"]}
        answer = await kernel.serve(
            json.dumps(message).encode(), TransportContext(ACTOR, NoSender())
        )
        assert answer is not None
        assert "error" not in json.loads(answer.frame), answer.frame
        assert cancellation.cancelled

    asyncio.run(main())


def test_a_task_is_not_ended_by_a_caller_to_whom_the_state_alone_gives_it() -> None:
    """Who can write the records of tasks writes another caller's id there."""

    async def main() -> None:
        records, stranger = KeptRecords(), Actor("s", "s", Scope.READ_WRITE)
        here, elsewhere = (Tasks(records, TaskTimes(1, 1, 3_600)) for _ in range(2))

        async def send(message: bytes) -> None:
            elsewhere.cancel_by(message)

        here.cancel_elsewhere = send
        cancellation = Cancellation()
        task = await elsewhere.start(
            Owner(cancellation=cancellation), "core", "query", waiting="", changes=False
        )
        assert task is not None
        record = records.records[task.id] = structs.replace(task.record, actor=stranger.id)
        assert await here.find_record(task.id, stranger) is not None
        assert await here.ask_cancel(record, stranger)
        elsewhere.cancel_by(b"of another release")
        assert not cancellation.cancelled
        assert await here.ask_cancel(record, ACTOR)
        assert cancellation.cancelled

    asyncio.run(main())
