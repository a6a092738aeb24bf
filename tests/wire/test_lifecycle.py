"""The handshake, strictly: who may say what before it, during it and after it."""

from __future__ import annotations

from typing import Any

import pytest

from wire.conftest import Connect
from wire.wires import CLIENT, HANDSHAKE, MODERN

TRANSPORTS = ("stdio", "http")
OPENING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}

both = pytest.mark.parametrize("transport", TRANSPORTS)
every_handshake = pytest.mark.parametrize("revision", HANDSHAKE)


@both
@every_handshake
def test_initialize_answers_the_revision_asked_for(
    connect: Connect, transport: str, revision: str
) -> None:
    greeting = connect(transport, revision).greeting
    assert greeting["protocolVersion"] == revision
    assert greeting["serverInfo"]["name"] == "everything"
    assert greeting["instructions"] == "A server for tests."
    assert set(greeting["capabilities"]) >= {"tools", "resources", "prompts", "logging"}


@both
@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2025-04-01", "2025-03-26"),
        ("2030-01-01", "2025-11-25"),
        ("2024-10-07", "2025-11-25"),
        ("gibberish", "2025-11-25"),
        ("", "2025-11-25"),
        (MODERN, "2025-11-25"),
    ],
)
def test_an_unknown_revision_gets_the_newest_that_is_not_newer(
    connect: Connect, transport: str, asked: str, answered: str
) -> None:
    peer = connect(transport, "2025-11-25", handshake=False)
    result = peer.request("initialize", {**OPENING, "protocolVersion": asked}).result
    assert result["protocolVersion"] == answered


@both
def test_the_first_request_must_be_initialize(connect: Connect, transport: str) -> None:
    peer = connect(transport, "2025-06-18", handshake=False)
    for method in ("tools/list", "tools/call", "unknown/method"):
        assert peer.request(method, {"name": "add"}).error["code"] == -32600
    assert peer.connect().request("tools/list").result["tools"]


@both
@every_handshake
def test_requests_wait_for_the_initialized_notification(
    connect: Connect, transport: str, revision: str
) -> None:
    peer = connect(transport, revision, handshake=False)
    peer.request("initialize", {**OPENING, "protocolVersion": revision})
    assert peer.request("tools/list").error["code"] == -32600
    assert peer.call("add", {"a": 1, "b": 2}).error["code"] == -32600
    assert peer.request("ping").result == {}
    peer.notify("notifications/initialized")
    assert peer.request("tools/list").result["tools"]


@both
def test_a_session_is_initialized_once(connect: Connect, transport: str) -> None:
    peer = connect(transport, "2025-06-18")
    assert peer.request("initialize", OPENING).error["code"] == -32600
    assert peer.request("tools/list").result["tools"]


@both
@pytest.mark.parametrize("missing", sorted(OPENING))
def test_initialize_without_a_member_is_refused(
    connect: Connect, transport: str, missing: str
) -> None:
    peer = connect(transport, "2025-06-18", handshake=False)
    params = {name: value for name, value in OPENING.items() if name != missing}
    assert peer.request("initialize", params).error["code"] == -32602
    assert peer.request("tools/list").error["code"] == -32600
    assert peer.connect().request("tools/list").result["tools"]


@both
@pytest.mark.parametrize(
    "wrong",
    [
        {"protocolVersion": 20250618},
        {"protocolVersion": None},
        {"capabilities": []},
        {"capabilities": None},
        {"clientInfo": "me"},
        {"clientInfo": {"name": "me"}},
        {"clientInfo": {"name": 1, "version": "1"}},
    ],
)
def test_initialize_with_a_wrong_member_is_refused(
    connect: Connect, transport: str, wrong: dict[str, Any]
) -> None:
    peer = connect(transport, "2025-06-18", handshake=False)
    assert peer.request("initialize", {**OPENING, **wrong}).error["code"] == -32602


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_members_that_no_one_knows_are_ignored(connect: Connect, transport: str) -> None:
    peer = connect(transport, "2025-06-18", handshake=False)
    client = {**CLIENT, "icons": [{"src": "x"}], "websiteUrl": "https://example.org", "x": 1}
    capabilities = {"experimental": {"a": {"b": 1}}, "extensions": {"io.example/x": {}}}
    opening = {**OPENING, "clientInfo": client, "capabilities": capabilities, "unknown": [1]}
    assert peer.request("initialize", opening).result["protocolVersion"] == "2025-06-18"


def test_initialize_without_an_id_opens_nothing(connect: Connect) -> None:
    peer = connect("stdio", "2025-06-18", handshake=False)
    peer.notify("initialize", OPENING)
    peer.notify("notifications/initialized")
    assert peer.request("tools/list").error["code"] == -32600


def test_a_request_without_an_id_is_not_executed(connect: Connect) -> None:
    peer = connect("stdio", "2025-06-18")
    peer.notify("tools/call", {"name": "confirm_once", "arguments": {}})
    peer.notify("tools/list")
    assert peer.request("ping").result == {}
    assert not [received for received in peer.all_messages if received.message.get("id") is None]


@both
def test_initialized_before_initialize_changes_nothing(connect: Connect, transport: str) -> None:
    peer = connect(transport, "2025-06-18", handshake=False)
    if transport == "stdio":
        peer.notify("notifications/initialized")
    peer.request("initialize", OPENING)
    assert peer.request("tools/list").error["code"] == -32600


@both
@every_handshake
def test_unknown_methods_and_those_of_the_other_era_are_not_found(
    connect: Connect, transport: str, revision: str
) -> None:
    peer = connect(transport, revision)
    for method in ("server/discover", "subscriptions/listen", "tools/remove", "", "rpc.x"):
        assert peer.request(method, {}).error["code"] == -32601


@both
def test_unknown_notifications_and_stray_responses_are_ignored(
    connect: Connect, transport: str
) -> None:
    peer = connect(transport, "2025-11-25")
    peer.notify("notifications/unheard_of", {"a": 1})
    peer.notify("notifications/cancelled", {"requestId": 4711})
    peer.notify("notifications/cancelled", {"requestId": {"a": 1}})
    peer.notify("notifications/cancelled")
    peer.notify("notifications/roots/list_changed")
    stray: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": "tidegate-1", "result": {}},
        {"jsonrpc": "2.0", "id": 99, "error": {"code": -1, "message": "no"}},
        {"jsonrpc": "2.0", "id": 99, "result": []},
    ]
    for message in stray:
        if transport == "stdio":
            peer.send(message)
        else:
            response = peer.post(message)
            assert response.status == 202
            response.close()
    assert peer.request("ping").result == {}


@both
def test_ping_is_answered_with_nothing(connect: Connect, transport: str) -> None:
    assert connect(transport, "2025-06-18").request("ping").response["result"] == {}


@both
@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list"]
)
def test_the_stateless_era_has_no_methods_of_the_handshake(
    connect: Connect, transport: str, method: str
) -> None:
    peer = connect(transport, MODERN)
    assert peer.request(method, OPENING).error["code"] == -32601
