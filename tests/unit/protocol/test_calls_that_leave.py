"""A call that becomes a task while it goes on: what is kept of it is what it does by then."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from support.eventually import PATIENCE_S, until
from support.repeated_calls import NoSender
from tidegate.model.actors import Actor, Scope
from tidegate.model.tasks import TaskRecord, lost_words
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import Context, RevisionPolicy, Settings, ToolResult
from tidegate.protocol.tasks import Tasks, TaskTimes
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
