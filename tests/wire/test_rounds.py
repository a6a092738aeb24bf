"""Questions to the client: server requests before 2026-07-28, rounds with a sealed state since."""

from __future__ import annotations

from typing import Any

import pytest

from wire.conftest import Connect
from wire.wires import HANDSHAKE, MODERN, HttpPeer, Peer, accept

TRANSPORTS = ("stdio", "http")
both = pytest.mark.parametrize("transport", TRANSPORTS)
YES = {"confirm": {"action": "accept", "content": {"ok": True}}}


def _done(peer: Peer) -> int:
    return peer.call("witness").result["structuredContent"]["done"]


def _first(peer: Peer, **given: Any) -> dict[str, Any]:
    """The first round of a call that asks for a confirmation."""
    params = {"name": "confirm_once", "arguments": given}
    result = peer.request("tools/call", params).result
    assert result["resultType"] == "input_required"
    return result


def _retry(peer: Peer, state: str | None, answers: Any = YES, **given: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": "confirm_once", "arguments": given}
    if state is not None:
        params["requestState"] = state
    if answers is not None:
        params["inputResponses"] = answers
    return peer.request("tools/call", params).response


@both
@pytest.mark.parametrize("revision", HANDSHAKE)
def test_the_handshake_era_asks_while_the_call_runs(
    connect: Connect, transport: str, revision: str
) -> None:
    peer = connect(transport, revision)
    outcome = peer.call("test_input_required_result_multiple_inputs")
    asked = sorted(message["method"] for message in outcome.before)
    assert asked == ["elicitation/create", "roots/list", "sampling/createMessage"]
    assert outcome.text == "Answers: client_roots, greeting, user_name"


@both
def test_the_stateless_era_asks_in_the_result(connect: Connect, transport: str) -> None:
    peer = connect(transport, MODERN)
    first = peer.request(
        "tools/call", {"name": "test_input_required_result_multiple_inputs", "arguments": {}}
    )
    assert not first.before
    assert set(first.result["inputRequests"]) == {"client_roots", "greeting", "user_name"}
    assert "content" not in first.result
    outcome = peer.call("test_input_required_result_multiple_inputs")
    assert outcome.text == "Answers: client_roots, greeting, user_name"


@both
def test_rounds_follow_each_other(connect: Connect, transport: str) -> None:
    peer = connect(transport, MODERN)
    outcome = peer.call("test_input_required_result_multi_round")
    assert outcome.text == "{'name': 'Alice'} and {'color': 'Alice'}"


@both
@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_may_say_no(connect: Connect, transport: str, revision: str, action: str) -> None:
    peer = connect(transport, revision, answer=lambda _: {"action": action})
    before = _done(peer)
    assert peer.call("confirm_once").text.startswith(action)
    assert _done(peer) == before


@both
@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_a_client_that_cannot_be_asked_is_answered_with_what_it_lacks(
    connect: Connect, transport: str, revision: str
) -> None:
    peer = connect(transport, revision, capabilities={"roots": {}})
    error = peer.call("confirm_once").error
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"elicitation": {}}


@both
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_client_for_addresses_alone_is_asked_no_form(
    connect: Connect, transport: str, revision: str
) -> None:
    peer = connect(transport, revision, capabilities={"elicitation": {"url": {}}})
    error = peer.call("confirm_once").error
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}
    peer = connect(transport, revision, capabilities={"elicitation": {"form": {}, "url": {}}})
    assert peer.call("confirm_once").text.startswith("accept")


@both
def test_a_state_works_once(connect: Connect, transport: str) -> None:
    peer = connect(transport, MODERN)
    before = _done(peer)
    state = _first(peer)["requestState"]
    assert "result" in _retry(peer, state)
    assert _done(peer) == before + 1
    for _ in range(3):
        assert _retry(peer, state)["error"]["code"] == -32602
    assert _done(peer) == before + 1


@both
def test_a_state_belongs_to_its_arguments(connect: Connect, transport: str) -> None:
    peer = connect(transport, MODERN)
    before = _done(peer)
    state = _first(peer, sql="DELETE FROM a")["requestState"]
    assert _retry(peer, state, sql="DELETE FROM b")["error"]["code"] == -32602
    assert _done(peer) == before
    assert "result" in _retry(peer, state, sql="DELETE FROM a")


@both
def test_a_state_belongs_to_its_method_and_name(connect: Connect, transport: str) -> None:
    peer = connect(transport, MODERN)
    state = _first(peer)["requestState"]
    other = {"name": "test_input_required_result_request_state", "arguments": {}}
    retry = {**other, "requestState": state, "inputResponses": YES}
    assert peer.request("tools/call", retry).error["code"] == -32602
    prompt = {"name": "test_input_required_result_prompt", "requestState": state}
    assert peer.request("prompts/get", prompt).error["code"] == -32602


def test_a_state_belongs_to_its_caller(connect: Connect) -> None:
    alice: HttpPeer = connect("http", MODERN)
    mallory: HttpPeer = connect("http", MODERN)
    alice.token, mallory.token = "alice", "mallory"
    before = _done(alice)
    state = _first(alice)["requestState"]
    assert _retry(mallory, state)["error"]["code"] == -32602
    assert _done(alice) == before
    assert "result" in _retry(alice, state)


@both
@pytest.mark.parametrize("change", ["cut", "grown", "flipped", "blank", "other", "foreign"])
def test_a_changed_state_is_refused(reuse: Connect, transport: str, change: str) -> None:
    peer = reuse(transport, MODERN)
    before = _done(peer)
    state: str = _first(peer)["requestState"]
    middle = len(state) // 2
    flipped = "A" if state[middle] != "A" else "B"
    changed = {
        "cut": state[:-8],
        "grown": state + "-TAMPERED",
        "flipped": state[:middle] + flipped + state[middle + 1 :],
        "blank": "",
        "other": "eyJub25jZSI6IjEifQ==",
        "foreign": "é🌊",
    }[change]
    assert _retry(peer, changed)["error"]["code"] == -32602
    assert _done(peer) == before


@both
@pytest.mark.parametrize("answers", [YES, {}, None])
def test_answers_that_no_one_asked_for_are_asked_again(
    reuse: Connect, transport: str, answers: Any
) -> None:
    peer = reuse(transport, MODERN)
    before = _done(peer)
    assert _retry(peer, None, answers)["result"]["resultType"] == "input_required"
    assert _done(peer) == before


@both
def test_a_missing_answer_is_asked_for_again(connect: Connect, transport: str) -> None:
    peer = connect(transport, MODERN)
    state = _first(peer)["requestState"]
    again = _retry(peer, state, {"unknown": {"action": "accept"}})["result"]
    assert again["resultType"] == "input_required"
    assert set(again["inputRequests"]) == {"confirm"}
    assert again["requestState"] != state
    assert "result" in _retry(peer, again["requestState"])


@both
@pytest.mark.parametrize(
    "answer",
    [
        5,
        None,
        "yes",
        [],
        {},
        {"action": "maybe"},
        {"action": True},
        {"action": "accept", "content": 5},
        {"action": "accept", "content": {"ok": "perhaps"}},
        {"action": "accept", "content": {}},
    ],
)
def test_an_answer_of_the_wrong_shape_runs_nothing(
    reuse: Connect, transport: str, answer: Any
) -> None:
    peer = reuse(transport, MODERN)
    before = _done(peer)
    state = _first(peer)["requestState"]
    response = _retry(peer, state, {"confirm": answer})
    refused = "error" in response and response["error"]["code"] == -32602
    assert refused or response["result"]["resultType"] == "input_required"
    assert _done(peer) == before


@both
@pytest.mark.parametrize("answers", [5, "x", []])
def test_answers_that_are_no_object_are_invalid(
    reuse: Connect, transport: str, answers: Any
) -> None:
    peer = reuse(transport, MODERN)
    assert _retry(peer, None, answers)["error"]["code"] == -32602


def test_prompts_ask_too(connect: Connect) -> None:
    peer = connect("http", MODERN)
    outcome = peer.converse("prompts/get", {"name": "test_input_required_result_prompt"})
    assert "Alice" in outcome.result["messages"][0]["content"]["text"]


@both
@pytest.mark.parametrize("wrong", [{"action": "maybe"}, {}, {"action": "accept", "content": 1}])
def test_a_wrong_answer_to_a_server_request_fails_the_call(
    connect: Connect, transport: str, wrong: dict[str, Any]
) -> None:
    peer = connect(transport, "2025-11-25", answer=lambda _: wrong)
    before = _done(peer)
    assert peer.call("confirm_once").error["code"] == -32602
    assert _done(peer) == before


@both
def test_an_error_in_answer_to_a_server_request_fails_the_call(
    connect: Connect, transport: str
) -> None:
    peer = connect(transport, "2025-11-25")
    peer._reply_to = lambda request: {
        "jsonrpc": "2.0",
        "id": request["id"],
        "error": {"code": -1, "message": "I would rather not"},
    }
    before = _done(peer)
    response = peer.call("confirm_once").response
    assert "error" in response or response["result"]["isError"]
    assert _done(peer) == before


@both
def test_every_kind_of_field_is_asked_for(connect: Connect, transport: str) -> None:
    peer = connect(transport, "2025-11-25")
    for name in ("test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"):
        assert "action=accept" in peer.call(name).text


def test_only_what_the_client_can_answer_is_asked(connect: Connect) -> None:
    peer = connect("http", MODERN, capabilities={"sampling": {}}, answer=accept)
    first = peer.request(
        "tools/call", {"name": "test_input_required_result_capabilities", "arguments": {}}
    ).result
    assert [ask["method"] for ask in first["inputRequests"].values()] == ["sampling/createMessage"]


@both
def test_an_answer_may_be_volunteered_where_the_question_allows_it(
    connect: Connect, transport: str
) -> None:
    peer = connect(transport, MODERN)
    call = {"name": "test_input_required_result_elicitation", "arguments": {}}
    answer = {"action": "accept", "content": {"name": "Bob"}}
    retry = {**call, "inputResponses": {"user_name": answer, "unknown": answer}}
    assert peer.request("tools/call", retry).text == "Hello, Bob!"
    for wrong in (12345, {"action": "accept", "content": {"name": 5}}):
        response = peer.request("tools/call", {**call, "inputResponses": {"user_name": wrong}})
        assert response.error["code"] == -32602
