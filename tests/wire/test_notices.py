"""What the server says beside its replies: progress, log messages, changes; and cancellation."""

from __future__ import annotations

from typing import Any

import pytest

from support.eventually import PATIENCE_S, wait_until
from wire.conftest import Connect
from wire.raw_http import Response
from wire.wires import HANDSHAKE, META, MODERN, REVISIONS, HttpPeer, Peer, StdioPeer

TRANSPORTS = ("stdio", "http")
both = pytest.mark.parametrize("transport", TRANSPORTS)
every = pytest.mark.parametrize("revision", REVISIONS)
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
SUBSCRIPTION = f"{META}subscriptionId"


def _seen(peer: Peer) -> dict[str, int]:
    return peer.call("witness").result["structuredContent"]


# Progress


@both
@every
@pytest.mark.parametrize("token", ["p", "", 0, 7, 9007199254740993])
def test_progress_goes_to_who_gave_a_token(
    reuse: Connect, transport: str, revision: str, token: Any
) -> None:
    peer = reuse(transport, revision)
    outcome = peer.call("test_tool_with_progress", _meta={"progressToken": token})
    assert [note["method"] for note in outcome.before] == ["notifications/progress"] * 3
    notification = [note["params"] for note in outcome.before]
    assert [(note["progressToken"], note["progress"]) for note in notification] == [
        (token, done) for done in (0, 50, 100)
    ]
    assert all(("message" in note) == (revision > "2024-11-05") for note in notification)


@both
@every
def test_no_one_gets_progress_without_a_token(
    reuse: Connect, transport: str, revision: str
) -> None:
    outcome = reuse(transport, revision).call("test_tool_with_progress")
    assert (outcome.text, outcome.before) == ("Nobody asked for progress", [])


@both
@pytest.mark.parametrize("token", [None, True, 1.5, [], {"a": 1}])
def test_what_is_no_token_is_none(reuse: Connect, transport: str, token: Any) -> None:
    outcome = reuse(transport, "2025-11-25").call(
        "test_tool_with_progress", _meta={"progressToken": token}
    )
    assert (outcome.text, outcome.before) == ("Nobody asked for progress", [])


def test_progress_is_dropped_for_a_client_that_takes_no_stream(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-06-18")
    params = {"name": "test_tool_with_progress", "_meta": {"progressToken": 1}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = peer.post(message, {**peer.headers(message), "Accept": "application/json"})
    assert not response.streams
    (reply,) = response.messages()
    assert reply["result"]
    response.close()


# Log messages


@both
@pytest.mark.parametrize(
    ("revision", "level"),
    [("2024-11-05", "warning"), ("2025-03-26", "info"), ("2025-06-18", "alert")]
    + [("2025-11-25", level) for level in LEVELS],
)
def test_a_session_receives_its_level_and_above(
    connect: Connect, transport: str, revision: str, level: str
) -> None:
    peer = connect(transport, revision)
    assert peer.request("logging/setLevel", {"level": level}).result == {}
    received = [note["params"]["level"] for note in peer.call("test_logging_tool").before]
    assert received == list(LEVELS[LEVELS.index(level) :])


@both
def test_the_stateless_era_receives_what_each_request_asks_for(
    connect: Connect, transport: str
) -> None:
    peer = connect(transport, MODERN)
    assert peer.call("test_logging_tool").before == []
    outcome = peer.call("test_logging_tool", _meta={f"{META}logLevel": "alert"})
    assert [note["params"]["level"] for note in outcome.before] == ["alert", "emergency"]
    assert peer.call("test_logging_tool").before == []


@both
@pytest.mark.parametrize("level", ["loud", "", 3, None])
def test_an_unknown_level_is_refused(reuse: Connect, transport: str, level: Any) -> None:
    peer = reuse(transport, "2025-11-25")
    assert peer.request("logging/setLevel", {"level": level}).error["code"] == -32602


@both
def test_sessions_have_levels_of_their_own(connect: Connect, transport: str) -> None:
    quiet, loud = connect(transport, "2025-06-18"), connect(transport, "2025-06-18")
    quiet.request("logging/setLevel", {"level": "emergency"})
    loud.request("logging/setLevel", {"level": "debug"})
    assert len(quiet.call("test_logging_tool").before) == 1
    assert len(loud.call("test_logging_tool").before) == 8


# Cancellation


def _start_waiting(peer: Peer, id: Any) -> Any:
    """A call of `wait` that is known to run; the open response over HTTP."""
    params = peer.add_meta({"name": "wait", "arguments": {}, "_meta": {"progressToken": "w"}})
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    if isinstance(peer, StdioPeer):
        peer.send(message)
        assert peer.receive()["method"] == "notifications/progress"
        return None
    assert isinstance(peer, HttpPeer)
    response = peer.post(message)
    assert next(response.messages())["method"] == "notifications/progress"
    return response


@every
@pytest.mark.parametrize("id", [77, "a"])
def test_a_cancelled_call_ends_and_is_not_answered_on_stdio(
    connect: Connect, revision: str, id: Any
) -> None:
    peer: StdioPeer = connect("stdio", revision)
    _start_waiting(peer, id)
    peer.notify("notifications/cancelled", {"requestId": id, "reason": "no longer needed"})
    outcome = peer.request("tools/list")
    wait_until(lambda: _count(peer) == 1, "the call's end")
    assert all(message.get("id") != id for message in outcome.before)
    assert all(received.message.get("id") != id for received in peer.all_messages)


def _count(peer: Peer) -> int:
    outcome = peer.call("witness")
    text = outcome.result["content"][0]["text"]
    return int(text.split('"cancelled": ')[1].split(",")[0])


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_cancelled_call_ends_on_http(connect: Connect, revision: str) -> None:
    peer: HttpPeer = connect("http", revision)
    before = _count(peer)
    response = _start_waiting(peer, 8)
    peer.notify("notifications/cancelled", {"requestId": 8})
    wait_until(lambda: _count(peer) == before + 1, "the call's end")
    assert [m for m in response.messages() if m.get("id") == 8 and "result" in m] == []
    response.close()


@pytest.mark.parametrize("revision", [each for each in REVISIONS if each != "2025-11-25"])
def test_a_client_that_leaves_ends_its_call(connect: Connect, revision: str) -> None:
    peer: HttpPeer = connect("http", revision)
    before = _count(peer)
    _start_waiting(peer, 9).close()
    wait_until(lambda: _count(peer) == before + 1, "the call's end")


@every
def test_a_client_that_leaves_a_silent_call_ends_it(connect: Connect, revision: str) -> None:
    peer: HttpPeer = connect("http", revision)
    before = _count(peer)
    params = peer.add_meta({"name": "wait", "arguments": {}})
    message = {"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": params}
    peer_left = _leave(peer, message)
    wait_until(lambda: _count(peer) == before + 1, "the call's end")
    assert peer_left


def _leave(peer: HttpPeer, message: dict[str, Any]) -> bool:
    """Send a request and hang up as soon as it runs, without reading anything."""
    import http.client
    import json

    connection = http.client.HTTPConnection("127.0.0.1", peer.port, timeout=PATIENCE_S)
    running = _waiting(peer)
    connection.request("POST", "/mcp", json.dumps(message), peer.headers(message))
    wait_until(lambda: _waiting(peer) == running + 1, "the call's beginning")
    connection.close()
    return True


def _waiting(peer: Peer) -> int:
    text = peer.call("witness").result["content"][0]["text"]
    return int(text.split('"waiting": ')[1].split(",")[0])


def test_a_call_cannot_be_cancelled_from_another_session(connect: Connect) -> None:
    owner: HttpPeer = connect("http", "2025-11-25")
    other: HttpPeer = connect("http", "2025-11-25")
    before = _count(other)
    response = _start_waiting(owner, 11)
    other.notify("notifications/cancelled", {"requestId": 11})
    assert other.request("ping").result == {}
    assert _count(other) == before
    owner.notify("notifications/cancelled", {"requestId": 11})
    wait_until(lambda: _count(other) == before + 1, "the call's end")
    response.close()


# Changes


@both
@pytest.mark.parametrize("revision", HANDSHAKE)
def test_subscribers_of_a_resource_are_notified(
    connect: Connect, transport: str, revision: str
) -> None:
    peer = connect(transport, revision)
    uri = {"uri": "test://watched-resource"}
    stream = peer.listen() if isinstance(peer, HttpPeer) else None
    peer.call("trigger_resource_change")
    assert peer.request("resources/subscribe", uri).result == {}
    notification = _notification(peer, stream, "trigger_resource_change")
    assert notification == {
        "jsonrpc": "2.0",
        "method": "notifications/resources/updated",
        "params": uri,
    }
    assert peer.request("resources/unsubscribe", uri).result == {}
    peer.call("trigger_resource_change")
    notification = _notification(peer, stream, "test_trigger_tool_change")
    assert notification["method"] == "notifications/tools/list_changed"
    if stream is not None:
        stream.close()


def _notification(peer: Peer, stream: Response | None, trigger: str) -> dict[str, Any]:
    outcome = peer.call(trigger)
    return next(stream.messages()) if stream is not None else outcome.before[-1]


def _listen(peer: HttpPeer, id: Any, **wanted: Any) -> Response:
    params = peer.add_meta({"notifications": wanted})
    message = {"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params}
    return peer.post(message)


def test_a_listener_is_acknowledged_and_gets_what_it_asked_for(connect: Connect) -> None:
    peer: HttpPeer = connect("http", MODERN)
    stream = _listen(peer, "sub", toolsListChanged=True, resourceSubscriptions=["test://a"])
    messages = stream.messages()
    first = next(messages)
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["_meta"] == {SUBSCRIPTION: "sub"}
    assert first["params"]["notifications"]["toolsListChanged"] is True
    peer.call("test_trigger_prompt_change")
    peer.call("trigger_resource_change")
    peer.call("test_trigger_tool_change")
    notification = next(messages)
    assert notification["method"] == "notifications/tools/list_changed"
    assert notification["params"]["_meta"] == {SUBSCRIPTION: "sub"}
    stream.close()


def test_a_listener_receives_the_resources_it_named(connect: Connect) -> None:
    peer: HttpPeer = connect("http", MODERN)
    stream = _listen(peer, 5, resourceSubscriptions=["test://watched-resource"])
    messages = stream.messages()
    next(messages)
    peer.call("trigger_resource_change")
    notification = next(messages)
    assert notification["method"] == "notifications/resources/updated"
    assert notification["params"]["uri"] == "test://watched-resource"
    assert notification["params"]["_meta"] == {SUBSCRIPTION: 5}
    stream.close()


def test_a_listener_on_stdio_ends_when_cancelled(connect: Connect) -> None:
    peer: StdioPeer = connect("stdio", MODERN)
    params = peer.add_meta({"notifications": {"promptsListChanged": True}})
    peer.send({"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params})
    assert peer.receive()["method"] == "notifications/subscriptions/acknowledged"
    outcome = peer.call("test_trigger_prompt_change")
    assert [m["method"] for m in outcome.before] == ["notifications/prompts/list_changed"]
    peer.notify("notifications/cancelled", {"requestId": "s"})
    outcome = peer.call("test_trigger_prompt_change")
    assert [m for m in outcome.before if "method" in m] == []


@both
@pytest.mark.parametrize("wanted", [None, 5, [], {"toolsListChanged": "yes"}])
def test_a_listener_must_say_what_it_wants(connect: Connect, transport: str, wanted: Any) -> None:
    peer = connect(transport, MODERN)
    params = {} if wanted is None else {"notifications": wanted}
    assert peer.request("subscriptions/listen", params).error["code"] == -32602
