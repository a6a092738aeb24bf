"""`tasks/get`, `tasks/update`, `tasks/cancel`, and the notices of tasks.

Source: extension `io.modelcontextprotocol/tasks` (SEP-2663), for clients that declare it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import structs

from tidegate.model.tasks import ENDED, TaskRecord
from tidegate.protocol import params as p
from tidegate.protocol import render
from tidegate.protocol.jsonrpc import notification_frame
from tidegate.protocol.long_calls import (
    EXTENSION,
    LongCalls,
    declares_tasks,
    elsewhere_words,
    record_fields,
    task_fields,
)
from tidegate.protocol.model import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    RpcError,
    ToolResult,
)
from tidegate.protocol.request import McpRequest
from tidegate.protocol.served_server import ServedServer
from tidegate.protocol.tasks import Task, is_open

MOST_FOLLOWED = 64
"""Tasks of other processes that one listener follows: each is read in the state."""


async def get_task(served: ServedServer, request: McpRequest, params: p.TaskId) -> bytes:
    """The state of a task, with its questions, or with its outcome once it has ended."""
    calls = _calls(served, request)
    task = await _find(calls, request, params.task_id)
    if isinstance(task, TaskRecord):
        task = await calls.tasks.bring(task) or task
    if isinstance(task, TaskRecord):
        fields = _lost(task, calls)
    else:
        fields = await _detailed(served, calls, request, task)
    return render.modern_result(fields, served.server_meta)


async def update_task(served: ServedServer, request: McpRequest, params: p.UpdateTask) -> bytes:
    """Take answers to what a task asks."""
    task = await _find(_calls(served, request), request, params.task_id)
    if isinstance(task, Task):
        task.take_answers(params.input_responses or {})
    return render.modern_result({}, served.server_meta)


async def cancel_task(served: ServedServer, request: McpRequest, params: p.TaskId) -> bytes:
    """End a task; one that has ended stays as it is."""
    task = await _find(_calls(served, request), request, params.task_id)
    if isinstance(task, Task):
        task.cancel()
    elif is_open(task) and not await _calls(served, request).tasks.ask_cancel(task, request.actor):
        raise RpcError(INTERNAL_ERROR, elsewhere_words(task))
    return render.modern_result({}, served.server_meta)


async def _find(calls: LongCalls, request: McpRequest, id: str) -> Task | TaskRecord:
    """The caller's task, or what the state knows of one that another process has or had. Raises:
    RpcError INVALID_PARAMS if there is none, ServedElsewhere, and as the state."""
    found = calls.tasks.find(id, request.actor)
    if found is None:
        calls.pass_on(request, id)
        found = await calls.tasks.find_record(id, request.actor)
    if found is None:
        raise RpcError(INVALID_PARAMS, "Invalid params: there is no such task of this caller")
    return found


async def follow_tasks(
    served: ServedServer,
    request: McpRequest,
    ids: list[str],
    send: Callable[[bytes], None],
    meta: dict[str, Any],
) -> tuple[list[str], Callable[[], None]]:
    """Notify a listener of the changes of its own tasks. Returns which are followed, and how to
    stop. A notice says how a task stands; its outcome is fetched by `tasks/get`, where the caller's
    rights of that moment count. Raises: ServedElsewhere if another worker has them, and as the
    state."""
    calls = served.long_calls
    stops: list[Callable[[], None]] = []
    followed: list[str] = []
    if calls is None or not declares_tasks(request):
        return followed, lambda: None
    tasks = {id: calls.tasks.find(id, request.actor) for id in ids}

    def stop() -> None:
        for each in stops:
            each()

    if not any(tasks.values()):
        for id in tasks:
            calls.pass_on(request, id, lasts=True)

    def report(record: TaskRecord) -> None:
        fields = _lost(record, calls)
        if record.status in ENDED:  # another process may have its outcome, which is asked for
            fields = record_fields(record, calls.tasks.times.keep_s)
        send(notification_frame("notifications/tasks", {**fields, "_meta": meta}))

    elsewhere = [id for id, task in tasks.items() if task is None][:MOST_FOLLOWED]
    try:
        for id in elsewhere:
            record = await calls.tasks.find_record(id, request.actor)
            if record is not None:
                stops.append(calls.tasks.follow_elsewhere(record, report))
                followed.append(id)
    except BaseException:
        stop()
        raise
    for id, task in tasks.items():
        if task is None:
            continue

        def changed(task: Task = task) -> None:
            fields = task_fields(task, calls.tasks.times.keep_s) | _asked(task)
            send(notification_frame("notifications/tasks", {**fields, "_meta": meta}))

        stops.append(task.listen(changed))
        followed.append(id)
    return followed, stop


async def _detailed(
    served: ServedServer, calls: LongCalls, request: McpRequest, task: Task
) -> dict[str, Any]:
    outcome, fields = task.outcome, task_fields(task, calls.tasks.times.keep_s)
    if task.status == "cancelled" or task.status not in ENDED:
        return fields | _asked(task)
    if outcome is None:
        return _lost(task.record, calls)
    task.given = True
    try:
        result = await served.server.release(request, task, outcome)
    except RpcError as error:
        return {**fields, "status": "failed", "error": _error(error)}
    return {**fields, "result": msgspec.Raw(_shown(result, request))}


def _shown(result: ToolResult, request: McpRequest) -> bytes:
    return render.tool_result(result, structs.replace(request.wire, modern=False), b"")


def _asked(task: Task) -> dict[str, Any]:
    if not task.questions:
        return {}
    asks = {key: question.ask for key, question in task.questions.items()}
    return {"inputRequests": render.input_requests(asks)}


def _lost(record: TaskRecord, calls: LongCalls) -> dict[str, Any]:
    """A task whose outcome this process does not have."""
    words, keep_s = elsewhere_words(record), calls.tasks.times.keep_s
    if is_open(record):
        return record_fields(record, keep_s, words)
    if record.status == "cancelled":
        return record_fields(record, keep_s)
    fields = record_fields(structs.replace(record, status="failed"), keep_s, words)
    return {**fields, "error": {"code": INTERNAL_ERROR, "message": words}}


def _error(error: RpcError) -> dict[str, Any]:
    fields: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        fields["data"] = error.data
    return fields


def _calls(served: ServedServer, request: McpRequest) -> LongCalls:
    """Raises: RpcError METHOD_NOT_FOUND, or MISSING_CAPABILITY of a client without tasks."""
    calls = served.long_calls
    if calls is None:
        raise RpcError(METHOD_NOT_FOUND, "Method not found: this server has no tasks", status=404)
    if not declares_tasks(request):
        raise RpcError(
            MISSING_CAPABILITY,
            f"The client did not declare the extension {EXTENSION}",
            {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
            status=400,
        )
    return calls
