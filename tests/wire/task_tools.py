"""The tools of the fixture server whose calls last: what the conformance suite asks of tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tidegate.model.tasks import TaskRecord
from tidegate.protocol import model
from tidegate.protocol.long_calls import EXTENSION
from tidegate.protocol.model import Context
from wire.fixture_tools import Counters, arguments, form, said, tool

_STEP_S = 0.05


class KeptRecords:
    """Records of tasks in memory (`protocol.tasks.TaskRecords`)."""

    def __init__(self) -> None:
        self.records: dict[str, TaskRecord] = {}

    def add(self, record: TaskRecord) -> None:
        self.records[record.id] = record

    def update(self, record: TaskRecord) -> None:
        if record.id in self.records:
            self.records[record.id] = record

    def find(self, id: str) -> TaskRecord | None:
        return self.records.get(id)

    def calls(self, most: int) -> tuple[TaskRecord, ...]:
        return tuple([each for each in self.records.values() if each.call][:most])

    def renew(self, server: str, until: float) -> None:
        """Does nothing: this process is the only one."""

    def forget(self, before: float) -> None:
        """Does nothing: a test is short."""


async def _last(context: Context, seconds: float) -> bool:
    """Work for a while; False if the call was cancelled meanwhile."""
    gone = asyncio.Event()
    context.cancellation.listen(gone.set)
    with suppress(TimeoutError):
        await asyncio.wait_for(gone.wait(), seconds)
    return not gone.is_set()


@tool("Reports that it has ended", {"type": "object", "properties": {"seconds": {}}})
async def reports_late(server: Counters, context: Context, given: Mapping[str, Any]):
    await _last(context, given.get("seconds", _STEP_S))
    context.progress(1.0, 1.0, "late")
    context.log("error", "late")
    return said("reported")


@tool("Answers at once", arguments(name={"type": "string"}))
async def greet(server: Counters, context: Context, given: Mapping[str, Any]):
    return said(f"Hello, {given.get('name')}!")


@tool(
    "Computes for some seconds",
    {
        "type": "object",
        "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}},
    },
)
async def slow_compute(server: Counters, context: Context, given: Mapping[str, Any]):
    seconds = given.get("seconds", 1)
    if seconds:
        await context.begin_wait("")
    server.waiting += 1
    if not await _last(context, seconds):
        server.cancelled += 1
        return said("cancelled", is_error=True)
    server.done += 1
    return said(f"computed {given.get('label', '')}")


_held: dict[str, asyncio.Event] = {}


@tool("Goes on until `let_go` names its label", arguments(label={"type": "string"}))
async def hold(server: Counters, context: Context, given: Mapping[str, Any]):
    server.waiting += 1
    label = str(given.get("label", ""))
    await _held.setdefault(label, asyncio.Event()).wait()
    _held.pop(label, None)
    server.done += 1
    return said(f"held {label}")


@tool("Lets what is held go on", arguments(label={"type": "string"}))
async def let_go(server: Counters, context: Context, given: Mapping[str, Any]):
    held = _held.get(str(given.get("label", "")))
    if held is not None:
        held.set()
    return said("let go")


@tool("Fails, as a task alone")
async def failing_job(server: Counters, context: Context, given: Mapping[str, Any]):
    _require_tasks(context)
    await context.begin_wait("")
    await _last(context, _STEP_S)
    return said("the job failed", is_error=True)


@tool("Ends in an error of the protocol")
async def protocol_error_job(server: Counters, context: Context, given: Mapping[str, Any]):
    await context.begin_wait("")
    await _last(context, _STEP_S)
    raise model.RpcError(model.INTERNAL_ERROR, "the job broke down", {"step": 1})


@tool("Asks as a task whether to delete", arguments(filename={"type": "string"}))
async def confirm_delete(server: Counters, context: Context, given: Mapping[str, Any]):
    await context.begin_wait("")
    answer = await context.ask("confirm", form("Delete it?", confirm={"type": "boolean"}))
    server.done += answer["action"] == "accept"
    return said(f"{answer['action']} {given.get('filename')}")


@tool("Asks two things at once, as a task")
async def multi_input(server: Counters, context: Context, given: Mapping[str, Any]):
    await context.begin_wait("")
    question = form("Who?", name={"type": "string"})
    answers = await context.ask_all({"first": question, "second": question})
    return said(", ".join(str(answer.get("content")) for answer in answers.values()))


@tool("Asks the same twice, as a task")
async def ask_twice(server: Counters, context: Context, given: Mapping[str, Any]):
    await context.begin_wait("")
    question = form("Go on?", ok={"type": "boolean"})
    first = await context.ask("go_on", question)
    second = await context.ask("go_on", question)
    return said(f"{first['action']} {second['action']}")


@tool("Asks for a name before it becomes a task")
async def test_tool_with_task(server: Counters, context: Context, given: Mapping[str, Any]):
    _require_tasks(context)
    answer = await context.ask("user_name", form("Who are you?", name={"type": "string"}))
    await context.begin_wait("")
    await _last(context, _STEP_S)
    return said(f"Hello, {(answer.get('content') or {}).get('name', 'stranger')}!")


@tool("Waits for a person, then changes something")
async def approved_change(server: Counters, context: Context, given: Mapping[str, Any]):
    await context.begin_wait("It waits for ada")
    await _last(context, given.get("seconds", _STEP_S))
    await context.end_wait()
    await context.note_change()
    server.done += 1
    return said("changed")


def _require_tasks(context: Context) -> None:
    if EXTENSION not in (context.client_capabilities.get("extensions") or {}):
        raise model.RpcError(
            model.MISSING_CAPABILITY,
            f"The tool needs the extension {EXTENSION}",
            {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
            status=400,
        )
