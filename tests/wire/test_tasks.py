"""Calls that last: a task for a client that takes tasks, a reply in time for every other one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.eventually import wait_until
from wire.conftest import Connect
from wire.raw_http import Response
from wire.served import Served, everything
from wire.wires import HANDSHAKE, META, MODERN, HttpPeer, Peer, StdioPeer

EXTENSION = "io.modelcontextprotocol/tasks"
TAKES_TASKS = {"extensions": {EXTENSION: {}}, "elicitation": {}}
both = pytest.mark.parametrize("transport", ["stdio", "http"])
SHORT = ("--after", "0.1", "--answer", "0.3")


@pytest.fixture(scope="module")
def hasty() -> Iterator[Served]:
    """A server that answers calls after 0.3 s."""
    server = everything(*SHORT)
    yield server
    server.close()


@pytest.fixture
def peer(connect: Connect, transport: str) -> Any:
    return connect(transport, MODERN, capabilities=TAKES_TASKS)


def begin(peer: Peer, tool: str, **given: Any) -> dict[str, Any]:
    """The task that a call becomes."""
    created = peer.request("tools/call", {"name": tool, "arguments": given}).result
    assert created["resultType"] == "task", created
    return created


def get(peer: Peer, task: str) -> dict[str, Any]:
    return peer.request("tasks/get", {"taskId": task}).result


def ended(peer: Peer, task: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = get(peer, task)
        return None if found["status"] in ("working", "input_required") else found

    return wait_until(look, "the task ends")


def asked(peer: Peer, task: str) -> dict[str, Any]:
    return wait_until(lambda: get(peer, task).get("inputRequests"), "the task asks")


def counters(peer: Peer) -> dict[str, Any]:
    return json.loads(peer.call("witness").text)


@both
def test_a_call_that_lasts_becomes_a_task_and_gives_its_result(peer: Peer, transport: str) -> None:
    created = begin(peer, "slow_compute", seconds=0.2, label="x")
    assert len(created["taskId"]) == 32
    assert created["status"] == "working"
    assert created["ttlMs"] == 3_600_000
    assert "result" not in created
    found = ended(peer, created["taskId"])
    assert found["status"] == "completed"
    assert found["result"]["content"][0]["text"] == "computed x"
    assert get(peer, created["taskId"])["result"] == found["result"], "it is there for an hour"


@both
def test_a_call_that_ends_in_time_is_answered_as_ever(peer: Peer, transport: str) -> None:
    outcome = peer.call("slow_compute", {"seconds": 0})
    assert outcome.result["resultType"] == "complete"
    assert "taskId" not in outcome.result


@pytest.mark.parametrize(
    "capabilities", [{}, {"extensions": {}}, {"extensions": {"other/tasks": {}}}]
)
def test_a_client_without_the_extension_gets_no_task(connect: Connect, capabilities: Any) -> None:
    peer = connect("http", MODERN, capabilities=capabilities)
    assert peer.call("slow_compute", {"seconds": 0.2}).result["resultType"] == "complete"
    error = peer.request("tasks/get", {"taskId": "0" * 32}).error
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_an_earlier_revision_has_no_tasks(connect: Connect, revision: str) -> None:
    peer = connect("http", revision, capabilities=TAKES_TASKS)
    assert peer.call("slow_compute", {"seconds": 0.2}).text == "computed "
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert peer.request(method, {"taskId": "0" * 32}).error["code"] == -32601


@both
def test_a_cancelled_task_ends_its_work(peer: Peer, transport: str) -> None:
    before = counters(peer)["cancelled"]
    task = begin(peer, "slow_compute", seconds=60)["taskId"]
    assert set(peer.request("tasks/cancel", {"taskId": task}).result) == {"resultType", "_meta"}
    found = ended(peer, task)
    assert found["status"] == "cancelled"
    assert not {"result", "error"} & set(found)
    assert counters(peer)["cancelled"] == before + 1


@both
def test_cancelling_what_has_ended_changes_nothing(peer: Peer, transport: str) -> None:
    task = begin(peer, "slow_compute", seconds=0.05)["taskId"]
    assert ended(peer, task)["status"] == "completed"
    peer.request("tasks/cancel", {"taskId": task}).result  # noqa: B018  it is acknowledged
    assert get(peer, task)["status"] == "completed"


@both
def test_an_error_of_the_tool_is_its_result_and_one_of_the_protocol_is_not(
    peer: Peer, transport: str
) -> None:
    found = ended(peer, begin(peer, "failing_job")["taskId"])
    assert (found["status"], found["result"]["isError"]) == ("completed", True)
    found = ended(peer, begin(peer, "protocol_error_job")["taskId"])
    assert found["status"] == "failed"
    assert found["error"]["code"] == -32603
    assert found["error"]["data"] == {"step": 1}


@both
def test_a_task_asks_and_takes_answers_one_by_one(peer: Peer, transport: str) -> None:
    task = begin(peer, "multi_input")["taskId"]
    first, second = asked(peer, task)
    answer = {"action": "accept", "content": {"name": "Ada"}}
    peer.request("tasks/update", {"taskId": task, "inputResponses": {first: answer, "no": 1}})
    found = get(peer, task)
    assert (found["status"], list(found["inputRequests"])) == ("input_required", [second])
    peer.request("tasks/update", {"taskId": task, "inputResponses": {second: answer}})
    assert ended(peer, task)["result"]["content"][0]["text"] == "{'name': 'Ada'}, {'name': 'Ada'}"


@both
def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays(
    peer: Peer, transport: str
) -> None:
    task = begin(peer, "confirm_delete", filename="f")["taskId"]
    (key,) = asked(peer, task)
    for wrong in ({"action": "perhaps"}, {"action": "accept", "content": {"confirm": "yes"}}, 7):
        answers = {"taskId": task, "inputResponses": {key: wrong}}
        assert peer.request("tasks/update", answers).error["code"] == -32602
    assert list(get(peer, task)["inputRequests"]) == [key]
    yes = {"action": "accept", "content": {"confirm": True}}
    peer.request("tasks/update", {"taskId": task, "inputResponses": {key: yes}})
    assert ended(peer, task)["result"]["content"][0]["text"] == "accept f"


def test_no_key_of_a_question_is_used_twice(connect: Connect) -> None:
    peer = connect("http", MODERN, capabilities=TAKES_TASKS)
    task = begin(peer, "ask_twice")["taskId"]
    (first,) = asked(peer, task)
    yes = {"action": "accept", "content": {"ok": True}}
    peer.request("tasks/update", {"taskId": task, "inputResponses": {first: yes}})
    (second,) = asked(peer, task)
    assert second != first
    late = {"taskId": task, "inputResponses": {first: yes}}
    assert "result" in peer.request("tasks/update", late).response
    assert list(get(peer, task)["inputRequests"]) == [second]


def test_cancelling_a_task_that_asks_ends_it(connect: Connect) -> None:
    peer = connect("http", MODERN, capabilities=TAKES_TASKS)
    task = begin(peer, "confirm_delete", filename="f")["taskId"]
    asked(peer, task)
    peer.request("tasks/cancel", {"taskId": task})
    assert ended(peer, task)["status"] == "cancelled"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_task_is_for_its_own_caller_alone(connect: Connect, method: str) -> None:
    peer = connect("http", MODERN, capabilities=TAKES_TASKS)
    peer.token = "ada"
    task = begin(peer, "slow_compute", seconds=60)["taskId"]
    peer.token = "bob"
    assert peer.request(method, {"taskId": task}).error["code"] == -32602
    peer.token = "ada"
    assert get(peer, task)["status"] == "working"
    peer.request("tasks/cancel", {"taskId": task})


def test_the_header_must_name_the_task(connect: Connect) -> None:
    peer = connect("http", MODERN, capabilities=TAKES_TASKS)
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks/get",
        "params": peer.add_meta({"taskId": "0" * 32}),
    }
    headers = {**peer.headers(message), "Mcp-Name": "1" * 32}
    response = peer.post(message, headers)
    (reply,) = response.messages()
    response.close()
    assert reply["error"]["code"] == -32020
    assert "params.taskId" in reply["error"]["message"]


def test_the_server_says_that_it_has_tasks(connect: Connect) -> None:
    found = connect("http", MODERN).request("server/discover").result
    assert found["capabilities"]["extensions"] == {EXTENSION: {}}


def test_a_listener_is_notified_of_its_own_tasks_alone(connect: Connect) -> None:
    peer = connect("http", MODERN, capabilities=TAKES_TASKS)
    peer.token = "ada"
    task = begin(peer, "confirm_delete", filename="f")["taskId"]
    (key,) = asked(peer, task)
    ids = {"taskIds": [task, "0" * 32]}

    def listen(token: str) -> Response:
        listener = HttpPeer(peer.port, MODERN, capabilities=TAKES_TASKS)
        listener.token = token
        params = listener.add_meta({"notifications": ids})
        message = {"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": params}
        return listener.post(message)

    others, mine = listen("bob"), listen("ada")
    own = mine.messages()
    assert not next(iter(others.messages()))["params"]["notifications"].get("taskIds")
    assert next(own)["params"]["notifications"]["taskIds"] == [task]
    no = {"action": "decline"}
    peer.request("tasks/update", {"taskId": task, "inputResponses": {key: no}})
    seen: list[str] = []
    for notice in own:
        assert notice["method"] == "notifications/tasks"
        assert notice["params"]["taskId"] == task
        assert notice["params"]["_meta"][f"{META}subscriptionId"] == 9
        seen.append(notice["params"]["status"])
        if seen[-1] == "completed":
            break
    others.close()
    mine.close()
    assert "working" in seen


def test_an_answered_request_cannot_be_cancelled_by_its_number(connect: Connect) -> None:
    peer: StdioPeer = connect("stdio", MODERN, capabilities=TAKES_TASKS)
    created = peer.request(
        "tools/call", {"name": "slow_compute", "arguments": {"seconds": 0.2}}, id=77
    ).result
    peer.notify("notifications/cancelled", {"requestId": 77})
    assert peer.request("server/discover", id=77).result["resultType"] == "complete"
    assert ended(peer, created["taskId"])["status"] == "completed"


# Clients without tasks


def result_of(peer: Peer, label: str) -> str:
    """What a held call gives in the end, once it is let go."""
    peer.call("let_go", {"label": label})
    while (text := peer.call("hold", {"label": label}).text).startswith("still running"):
        pass
    return text


@pytest.mark.parametrize("revision", [*HANDSHAKE, MODERN])
def test_a_client_without_tasks_gets_a_reply_in_time_and_then_the_result(
    hasty: Served, revision: str
) -> None:
    with HttpPeer(hasty.port, revision, capabilities={}).connect() as peer:
        before = counters(peer)["waiting"]
        for _ in range(3):
            assert peer.call("hold", {"label": revision}).text.startswith("still running")
        assert result_of(peer, revision) == f"held {revision}"
        assert counters(peer)["waiting"] == before + 1, "the call ran once"


@pytest.mark.parametrize("revision", [*HANDSHAKE, MODERN])
def test_what_is_reported_after_the_reply_ends_no_call(hasty: Served, revision: str) -> None:
    with HttpPeer(hasty.port, revision, capabilities={}).connect() as peer:
        meta = {"progressToken": 5, f"{META}logLevel": "debug"}

        def call() -> str:
            return peer.call("reports_late", {"seconds": 0.6, "label": revision}, _meta=meta).text

        assert call().startswith("still running")
        while (text := call()).startswith("still running"):
            pass
        assert text == "reported"


def test_the_same_call_runs_again_once_its_result_was_given(hasty: Served) -> None:
    with HttpPeer(hasty.port, MODERN, capabilities={}).connect() as peer:
        before = counters(peer)["waiting"]
        for _ in range(2):
            assert peer.call("hold", {"label": "again"}).text.startswith("still running")
            assert result_of(peer, "again") == "held again"
        assert counters(peer)["waiting"] == before + 2


@pytest.mark.parametrize(("label", "token"), [("other label", None), ("first of ada", "bob")])
def test_another_call_is_not_the_same(hasty: Served, label: str, token: str | None) -> None:
    with HttpPeer(hasty.port, MODERN, capabilities={}).connect() as peer:
        peer.token = "ada"
        assert peer.call("hold", {"label": "first of ada"}).text.startswith("still running")
        before = counters(peer)["waiting"]
        peer.token = token
        assert peer.call("hold", {"label": label}).text.startswith("still running")
        assert counters(peer)["waiting"] == before + 1, "it began as a call of its own"
        for each in {"first of ada", label}:
            peer.call("let_go", {"label": each})
        peer.token = "ada"
        assert result_of(peer, "first of ada") == "held first of ada"


def test_many_who_send_the_same_call_wait_for_one(hasty: Served) -> None:
    def wait(found: list[str]) -> None:
        with HttpPeer(hasty.port, MODERN, capabilities={}).connect() as peer:
            while (text := peer.call("hold", {"label": "many"}).text).startswith("still running"):
                pass
            found.append(text)

    with HttpPeer(hasty.port, MODERN, capabilities={}).connect() as peer:
        before = counters(peer)["waiting"]
        assert peer.call("hold", {"label": "many"}).text.startswith("still running")
        found: list[str] = []
        threads = [threading.Thread(target=wait, args=(found,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        while threads[0].is_alive():  # those that come after the result was given begin again
            peer.call("let_go", {"label": "many"})
            threads[0].join(0.05)
        while any(thread.is_alive() for thread in threads):
            peer.call("let_go", {"label": "many"})
            for thread in threads:
                thread.join(0.05)
        assert found == ["held many"] * 4
        assert counters(peer)["waiting"] - before <= 4, "those that waited together waited for one"


def test_a_client_that_leaves_after_its_reply_does_not_end_the_call(hasty: Served) -> None:
    with HttpPeer(hasty.port, MODERN, capabilities={}).connect() as peer:
        before = counters(peer)["waiting"]
        params = peer.add_meta({"name": "hold", "arguments": {"label": "left"}})
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        response = peer.post(message)
        (reply,) = response.messages()
        response.close()
        assert "still running" in json.dumps(reply)
        assert result_of(peer, "left") == "held left"
        assert counters(peer)["waiting"] == before + 1


def test_a_connection_serves_others_while_a_call_goes_on(make: Callable[..., StdioPeer]) -> None:
    peer = make(MODERN)
    assert peer.call("hold", {"label": "on"}).text.startswith("still running")
    assert peer.call("greet", {"name": "Bob"}).text == "Hello, Bob!"
    assert result_of(peer, "on") == "held on"


@pytest.fixture
def make() -> Iterator[Callable[..., StdioPeer]]:
    """A hasty server on stdio."""
    import sys

    from wire.served import EVERYTHING

    peers: list[StdioPeer] = []

    def open_peer(revision: str) -> StdioPeer:
        command = [sys.executable, str(EVERYTHING), "--stdio", *SHORT]
        peers.append(StdioPeer(revision, command, capabilities={}))
        return peers[-1].connect()

    yield open_peer
    for peer in peers:
        peer.close()
