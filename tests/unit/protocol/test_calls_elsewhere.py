"""The same call sent to another process on the state, or after a restart: never a second run of a
change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import structs

from support.eventually import until
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.tasks import TaskRecord
from tidegate.protocol.long_calls import EXTENSION
from tidegate.protocol.model import Context, ToolResult
from tidegate.protocol.task_methods import MOST_FOLLOWED
from tidegate.protocol.tasks import TaskTimes, worker_of
from tidegate.protocol.transport import ServedElsewhere, TransportContext
from unit.protocol.test_calls_that_last import Client, Listener, done, text_of
from unit.protocol.test_calls_that_leave import SlowRecords
from wire.task_tools import KeptRecords

SHORT = TaskTimes(0.01, 0.02, 3_600.0)


class Process(Client):
    """One of the processes on a state, of which each knows at once what others keep."""

    def __init__(self, records: KeptRecords, number: int = 0, passes_on: int = 0) -> None:
        super().__init__(self._work, records, SHORT, tasks=False)
        self.tasks.worker = number
        self.passes_on = passes_on
        self.began = 0
        self.may_end = asyncio.Event()

    async def _work(self, context: Context, given: dict[str, Any]) -> ToolResult:
        if "resume" in given:
            resumed = await context.resume(given["resume"])
            return resumed.result or done(resumed.lost)
        self.began += 1
        if given.get("waits"):
            await context.begin_wait("It waits for ada")
        elif given.get("changes"):
            await context.note_change()
        await self.may_end.wait()
        return done()

    async def call(self, **arguments: Any) -> dict[str, Any]:
        self.tasks.load_elsewhere()
        return await super().call(**arguments)

    async def end(self) -> None:
        self.may_end.set()
        await self.ended()


async def begun(records: KeptRecords, number: int = 0, **arguments: Any) -> Process:
    """A process in which a call goes on, after its early reply."""
    process = Process(records, number)
    assert text_of(await process.call(**arguments)).startswith("still running")
    return process


async def die(process: Process, records: KeptRecords) -> None:
    """Kill a process: nothing becomes of its calls, and it says no more that it is there."""
    kept = dict(records.records)
    await process.end()
    records.records = {id: structs.replace(each, alive_until=0.0) for id, each in kept.items()}


@pytest.mark.parametrize("changes", [False, True])
async def test_the_same_call_at_another_process_waits_for_the_one_that_runs(changes: bool) -> None:
    records = KeptRecords()
    one, two = await begun(records, changes=changes), Process(records)
    (id,) = records.records
    assert text_of(await two.call(changes=changes)) == f"still running: {id}"
    assert (one.began, two.began) == (1, 0)
    await one.end()


@pytest.mark.parametrize(
    "other", [{"changes": True, "n": 2}, {"actor": Actor("bob", "bob", Scope.READ_WRITE)}]
)
async def test_another_call_or_caller_joins_nothing(other: dict[str, Any]) -> None:
    records = KeptRecords()
    one, two = await begun(records, changes=True), Process(records)
    two.may_end.set()
    two.actor = other.pop("actor", two.actor)
    assert text_of(await two.call(**{"changes": True, **other})) == "done"
    await one.end()


async def test_a_change_of_a_process_that_died_is_not_made_again_before_its_caller_knows() -> None:
    records = KeptRecords()
    await die(await begun(records, changes=True), records)
    two = Process(records)
    two.may_end.set()
    said = await two.call(changes=True)
    assert "not known whether it changed data" in text_of(said)
    assert said["isError"]
    assert two.began == 0
    await two.ended()
    assert text_of(await two.call(changes=True)) == "done", "its caller has checked the data"


@pytest.mark.parametrize("arguments", [{}, {"waits": True}])
async def test_what_changed_nothing_in_a_process_that_died_runs_again(
    arguments: dict[str, Any],
) -> None:
    records = KeptRecords()
    await die(await begun(records, **arguments), records)
    two = Process(records)
    two.may_end.set()
    assert text_of(await two.call(**arguments)) == "done"
    await two.ended()


async def test_a_change_that_has_ended_at_another_process_is_not_made_again() -> None:
    records = KeptRecords()
    one, two = await begun(records, changes=True), Process(records)
    await one.end()
    assert "that change stands" in text_of(await two.call(changes=True))
    assert two.began == 0
    await two.ended()
    assert text_of(await one.call(changes=True)) == "done", "its own process has the outcome"
    assert one.began == 1


async def test_a_call_whose_result_was_given_out_is_another_one_everywhere() -> None:
    records = KeptRecords()
    one, two = await begun(records, changes=True), Process(records)
    await one.end()
    assert text_of(await one.call(changes=True)) == "done"
    await one.ended()
    two.may_end.set()
    assert text_of(await two.call(changes=True)) == "done"
    assert (one.began, two.began) == (1, 1)


async def test_a_handle_that_says_what_is_lost_frees_the_same_call() -> None:
    records = KeptRecords()
    await die(await begun(records, changes=True), records)
    two = Process(records)
    (id,) = records.records
    assert "not known whether it changed data" in text_of(await two.call(resume=id))
    await two.ended()
    two.may_end.set()
    assert text_of(await two.call(changes=True)) == "done"


async def test_a_call_that_ended_before_its_early_reply_is_joined_by_none() -> None:
    records = SlowRecords()
    one = Process(records)
    call = asyncio.ensure_future(one.call(changes=True))
    await until(records.asked.is_set, "it is being kept")
    one.may_end.set()
    assert text_of(await call) == "done"
    records.allowed.set()
    await until(lambda: [each.call for each in records.records.values()] == [""], "it is dropped")


# Workers of one gate


async def test_an_id_names_its_worker_and_the_random_bits_stay() -> None:
    records = KeptRecords()
    one = await begun(records, number=3)
    (id,) = records.records
    random, _, number = id.partition("-")
    assert (len(random), number, worker_of(id)) == (32, "3", 3)
    await one.end()


@pytest.mark.parametrize("id", ["a" * 32, "a-", "a-x", "a-²", "a--1", "a-9999", "a-0"])
def test_an_id_that_names_no_worker_is_of_none(id: str) -> None:
    assert worker_of(id) == 0


Send = Callable[[Process, TaskRecord], Awaitable[dict[str, Any]]]
OF_TASKS: dict[str, Send] = {
    "the same call": lambda two, task: two.call(changes=True),
    "more": lambda two, task: two.call(resume=task.id),
    **{
        method: lambda two, task, method=method: two.send(method, taskId=task.id)
        for method in ("tasks/get", "tasks/update", "tasks/cancel")
    },
    "subscriptions/listen": lambda two, task: two.send(
        "subscriptions/listen", notifications={"taskIds": [task.id]}
    ),
}


@pytest.mark.parametrize("form", OF_TASKS)
async def test_what_is_about_a_call_of_another_worker_is_passed_on_once(form: str) -> None:
    records = KeptRecords()
    one, two = await begun(records, number=1, changes=True), Process(records, 2, passes_on=2)
    if "/" in form:
        two.extensions = {EXTENSION: {}}
    (task,) = records.records.values()
    with pytest.raises(ServedElsewhere) as raised:
        await OF_TASKS[form](two, task)
    assert raised.value.worker == 1
    assert two.began == 0
    two.passes_on = 0
    if form not in ("tasks/cancel", "subscriptions/listen"):  # one is sent on, the other lasts
        await OF_TASKS[form](two, task)
    assert two.began == 0
    await one.end()


@pytest.mark.parametrize("number", [0, 2, 3, 999])
async def test_an_id_that_a_client_made_up_is_not_passed_on_to_no_worker(number: int) -> None:
    two = Process(KeptRecords(), 2, passes_on=2)
    two.extensions = {EXTENSION: {}}
    reply = await two.send("tasks/get", taskId=f"{'0' * 32}-{number}")
    assert reply["error"]["code"] == -32602


async def listen(process: Process, ids: list[str]) -> Followed:
    """A listener at a process, once it was told which tasks it follows."""
    params = {
        "notifications": {"taskIds": ids},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}},
        },
    }
    frame = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    followed = Followed(process, json.dumps(frame).encode())
    await until(lambda: followed.heard or followed.serving.done(), "it is answered")
    return followed


class Followed:
    """What a listener was sent."""

    def __init__(self, process: Process, frame: bytes) -> None:
        self._sender = Listener()
        transport = TransportContext(process.actor, self._sender)
        self._cancellation = transport.cancellation
        self.serving = asyncio.ensure_future(process.kernel.serve(frame, transport))

    @property
    def heard(self) -> list[dict[str, Any]]:
        return [json.loads(each)["params"] for each in self._sender.sent]

    async def end(self) -> None:
        self._cancellation.cancel("the client has gone")
        await self.serving


async def test_a_listener_is_not_told_that_a_call_failed_which_another_process_has_made() -> None:
    records = KeptRecords()
    one, two = await begun(records, changes=True), Process(records)
    (id,) = records.records
    followed = await listen(two, [id])
    await one.end()
    await until(lambda: len(followed.heard) > 1, "it is told")
    assert [each["status"] for each in followed.heard[1:]] == ["completed"]
    assert "error" not in followed.heard[1]
    await followed.end()


async def test_a_listener_has_so_many_tasks_read_in_the_state_and_no_more() -> None:
    records = CountedRecords()
    two = Process(records)
    followed = await listen(two, [f"{n:032x}" for n in range(1_000)])
    assert records.finds == MOST_FOLLOWED
    await followed.end()


async def test_nothing_is_followed_for_a_listener_that_was_refused() -> None:
    records = CountedRecords()
    one, two = await begun(records), Process(records)
    (id,) = records.records
    records.most = 1
    followed = await listen(two, [id, "0" * 32])
    answer = await followed.serving
    assert answer is not None and b'"error"' in answer.frame
    await asyncio.sleep(0)
    assert not two.tasks._following
    records.most = 1_000_000
    await one.end()


class CountedRecords(KeptRecords):
    """Counts what is looked up, and fails after so many."""

    def __init__(self) -> None:
        super().__init__()
        self.finds = 0
        self.most = 1_000_000

    def find(self, id: str) -> TaskRecord | None:
        self.finds += 1
        if self.finds > self.most:
            raise TidegateError(Code.STATE_FAILED, "The state cannot be read")
        return super().find(id)
