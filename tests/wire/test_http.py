"""Streamable HTTP: which requests reach the protocol, sessions, and what status each answer has."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from support.eventually import PATIENCE_S
from wire.conftest import Connect
from wire.raw_http import Response, http_request
from wire.served import Served
from wire.wires import BOTH, CLIENT, HANDSHAKE, MODERN, HttpPeer

LIMIT = 10 * 1024 * 1024
JSON = {"Content-Type": "application/json", "Accept": BOTH}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@pytest.fixture
def peer(connect: Connect) -> HttpPeer:
    return connect("http", "2025-06-18")


@pytest.fixture
def port(http_server: Served) -> int:
    return http_server.port


def _finish(response: Response) -> tuple[int, dict[str, str], Any]:
    """Status, headers and decoded body."""
    body = response.read()
    response.close()
    return response.status, response.headers, json.loads(body) if body else None


def _send(
    port: int,
    method: str = "POST",
    body: Any = None,
    headers: Mapping[str, str] = JSON,
    **more: Any,
) -> tuple[int, dict[str, str], Any]:
    raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    path = more.pop("path", "/mcp")
    return _finish(http_request(port, method, path, raw, headers, **more))


# Host and Origin


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST"]
)
def test_loopback_names_are_admitted(port: int, host: str) -> None:
    status, _, _ = _send(port, body=INITIALIZE, host=host.format(port=port))
    assert status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com",
        "evil.example.com:{port}",
        "localhost.evil.example.com",
        "127.0.0.1.evil.example.com",
        "127.0.0.2",
        "0.0.0.0",  # noqa: S104
        "169.254.1.1",
        "[::2]:{port}",
        "localhost@evil.example.com",
        "",
    ],
)
def test_other_hosts_are_refused(port: int, host: str) -> None:
    status, _, body = _send(port, body=INITIALIZE, headers=JSON, host=host.format(port=port) or " ")
    assert status in (400, 403)
    assert body is None or "error" in body


@pytest.mark.parametrize(
    "origin", ["http://localhost", "http://localhost:3000", "http://127.0.0.1:1", "https://[::1]"]
)
def test_loopback_origins_are_admitted_and_named(port: int, origin: str) -> None:
    status, headers, _ = _send(port, body=INITIALIZE, headers={**JSON, "Origin": origin})
    assert status == 200
    assert headers["access-control-allow-origin"] == origin
    assert "mcp-session-id" in headers["access-control-expose-headers"].lower()


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example.com",
        "https://localhost.evil.example.com",
        "null",
        "file://",
        "http://",
        "chrome-extension://localhost",
        "http://localhost.",
        "http://evil.example.com@localhost:x",
    ],
)
def test_other_origins_are_refused(port: int, origin: str) -> None:
    status, headers, _ = _send(port, body=INITIALIZE, headers={**JSON, "Origin": origin})
    assert status == 403
    assert "access-control-allow-origin" not in headers


def test_a_preflight_is_answered(port: int) -> None:
    asked = {
        "Origin": "http://localhost:6274",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "mcp-protocol-version,authorization",
    }
    status, headers, _ = _send(port, "OPTIONS", headers=asked)
    assert status == 204
    assert "POST" in headers["access-control-allow-methods"]
    assert "authorization" in headers["access-control-allow-headers"].lower()


# Methods, paths, media types


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE"])
def test_unknown_http_methods_are_refused(port: int, method: str) -> None:
    status, headers, _ = _send(port, method, body=LIST)
    assert status == 405
    assert "POST" in headers["allow"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_the_stateless_era_has_only_post(port: int, method: str) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Accept": BOTH}
    status, answered, _ = _send(port, method, headers=headers)
    assert status == 405
    assert answered["allow"] == "POST"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/nothing",
        "/mcp/nothing",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
        "/register",
        "/mcp/../mcp/x",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_paths_are_plainly_not_found(port: int, path: str, method: str) -> None:
    body = b"{}" if method == "POST" else None
    status, headers, answer = _send(port, method, body, path=path)
    assert status == 404
    assert headers["content-type"] == "application/json"
    assert "jsonrpc" not in answer


def test_health_needs_nothing(port: int) -> None:
    assert _send(port, "GET", headers={}, path="/health")[::2] == (200, {"status": "ok"})


@pytest.mark.parametrize(
    "accept",
    [
        BOTH,
        "*/*",
        "application/json",
        "text/event-stream",
        "application/json;q=0.9, */*;q=0.1",
        None,
    ],
)
def test_accept_is_read_kindly(port: int, accept: str | None) -> None:
    headers = {"Content-Type": "application/json", **({"Accept": accept} if accept else {})}
    response = http_request(port, "POST", "/mcp", json.dumps(INITIALIZE).encode(), headers)
    (message,) = response.messages()
    assert (response.status, message["result"]["protocolVersion"]) == (200, "2025-06-18")
    response.close()


@pytest.mark.parametrize("accept", ["text/html", "image/*", "text/plain, application/xml"])
def test_what_a_client_cannot_accept_is_not_sent(port: int, accept: str) -> None:
    status, _, body = _send(port, body=INITIALIZE, headers={**JSON, "Accept": accept})
    assert status == 406
    assert "error" in body


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data; x=y", ""])
def test_other_content_types_are_refused(port: int, kind: str) -> None:
    status, _, _ = _send(port, body=INITIALIZE, headers={**JSON, "Content-Type": kind})
    assert status == 415


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "zstd", "gzip, gzip", "unheard"])
@pytest.mark.parametrize(
    "body", [json.dumps(INITIALIZE).encode(), gzip.compress(b"{}", mtime=0)], ids=["plain", "gzip"]
)
def test_a_body_with_a_content_encoding_is_refused(port: int, coding: str, body: bytes) -> None:
    headers = {**JSON, "Content-Encoding": coding}
    status, given, answer = _send(port, body=body, headers=headers)
    assert status == 415
    assert given["accept-encoding"] == "identity"
    assert "Content-Encoding" in str(answer)


def test_identity_is_no_encoding(port: int) -> None:
    headers = {**JSON, "Content-Encoding": "Identity"}
    assert _send(port, body=INITIALIZE, headers=headers)[0] == 200


def test_a_content_type_may_have_parameters(port: int) -> None:
    headers = {**JSON, "Content-Type": "Application/JSON; charset=utf-8"}
    assert _send(port, body=INITIALIZE, headers=headers)[0] == 200


# Bodies


def _chunks(size: int) -> Iterator[bytes]:
    yield b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"'
    for _ in range(size // 65_536):
        yield b"x" * 65_536
    yield b'"}}'


def test_a_body_over_the_limit_is_refused_before_it_is_sent(port: int) -> None:
    headers = {**JSON, "Content-Length": str(LIMIT + 1)}
    status, _, body = _finish(http_request(port, "POST", "/mcp", None, headers))
    assert status == 413
    assert body["error"]["code"] == -32005


def test_a_chunked_body_over_the_limit_is_refused(port: int) -> None:
    status, _, _ = _finish(http_request(port, "POST", "/mcp", _chunks(LIMIT + 200_000), JSON))
    assert status == 413


def test_a_chunked_body_within_the_limit_is_served(peer: HttpPeer) -> None:
    headers = peer.headers({})
    status, _, body = _finish(http_request(peer.port, "POST", "/mcp", _chunks(LIMIT // 2), headers))
    assert (status, body["result"]) == (200, {})


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b"\xff\xfe", b'{"a":1}{'])
def test_a_body_that_is_not_json_is_a_parse_error(peer: HttpPeer, body: bytes) -> None:
    status, _, answer = _finish(peer.post(body, peer.headers({})))
    assert status == 400
    assert answer["error"]["code"] == -32700
    assert peer.request("ping").result == {}


# Sessions


def test_a_session_id_is_long_and_visible(port: int) -> None:
    seen = set()
    for _ in range(5):
        _, headers, _ = _send(port, body=INITIALIZE)
        seen.add(headers["mcp-session-id"])
    assert len(seen) == 5
    for id in seen:
        assert len(id) >= 22
        assert all(0x21 <= ord(letter) <= 0x7E for letter in id)


def test_a_refused_initialize_opens_no_session(port: int) -> None:
    status, headers, body = _send(port, body={**INITIALIZE, "params": {}})
    assert "mcp-session-id" not in headers
    assert body["error"]["code"] == -32602
    assert status in (200, 400)


def test_a_request_without_a_session_is_refused(port: int) -> None:
    status, _, body = _send(port, body=LIST)
    assert status == 400
    assert (body["id"], body["error"]["code"]) == (2, -32600)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_an_unknown_session_is_not_found(port: int, method: str) -> None:
    body = LIST if method == "POST" else None
    status, _, answer = _send(port, method, body, {**JSON, "Mcp-Session-Id": "unknown"})
    assert status == 404
    assert answer.get("id") == (2 if method == "POST" else None)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_the_session_of_another_is_not_found(peer: HttpPeer, method: str) -> None:
    body = LIST if method == "POST" else None
    headers = {**JSON, "Mcp-Session-Id": peer.session or "", "Authorization": "Bearer mallory"}
    assert _send(peer.port, method, body, headers)[0] == 404
    assert peer.request("ping").result == {}


def test_a_deleted_session_is_not_found(peer: HttpPeer) -> None:
    headers = peer.headers({})
    assert _send(peer.port, "DELETE", None, headers)[0] in (200, 204)
    assert _send(peer.port, "POST", LIST, headers)[0] == 404
    assert _send(peer.port, "GET", None, headers)[0] == 404
    assert _send(peer.port, "DELETE", None, headers)[0] == 404
    peer.session = None


def test_deleting_a_session_ends_its_calls(connect: Connect) -> None:
    witness: HttpPeer = connect("http", "2025-11-25")
    peer: HttpPeer = connect("http", "2025-11-25")
    before = witness.call("witness").result["structuredContent"]["cancelled"]
    params = {"name": "wait", "arguments": {}, "_meta": {"progressToken": 1}}
    response = peer.post({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    messages = response.messages()
    assert next(messages)["method"] == "notifications/progress"
    peer.close()
    list(messages)
    response.close()
    assert witness.call("witness").result["structuredContent"]["cancelled"] == before + 1


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_the_version_header_must_be_the_negotiated_one(connect: Connect, revision: str) -> None:
    peer: HttpPeer = connect("http", revision)
    headers = peer.headers(LIST)
    for wrong in ("1999-01-01", "nonsense", "", next(r for r in HANDSHAKE if r != revision)):
        status, _, body = _send(
            peer.port, body=LIST, headers={**headers, "MCP-Protocol-Version": wrong}
        )
        assert (status, "error" in body) == (400, True)
    del headers["MCP-Protocol-Version"]
    assert _send(peer.port, body=LIST, headers=headers)[0] == 200


def test_a_session_id_is_ignored_in_the_stateless_era(connect: Connect) -> None:
    peer: HttpPeer = connect("http", MODERN)
    message = {**LIST, "params": peer.add_meta({})}
    headers = {**peer.headers(message), "Mcp-Session-Id": "unknown"}
    status, answered, body = _send(peer.port, body=message, headers=headers)
    assert (status, "mcp-session-id" in answered) == (200, False)
    assert body["result"]["tools"]


def test_notifications_and_responses_are_accepted_without_a_body(peer: HttpPeer) -> None:
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/unheard_of"},
        {"jsonrpc": "2.0", "id": "x", "result": {}},
    ):
        assert _finish(peer.post(message))[::2] == (202, None)


def test_a_bad_token_is_challenged(port: int) -> None:
    headers = {**JSON, "Authorization": "Bearer bad"}
    status, answered, body = _send(port, body=INITIALIZE, headers=headers)
    assert status == 401
    assert answered["www-authenticate"].startswith("Bearer ")
    assert "bad" not in json.dumps(body).split()


# A session's own stream, and streams that go on


def test_a_session_has_one_stream_of_its_own(peer: HttpPeer) -> None:
    first = peer.listen()
    assert first.status == 200
    assert first.streams
    peer.call("test_trigger_tool_change")
    assert next(first.messages())["method"] == "notifications/tools/list_changed"
    second = peer.listen()
    assert list(first.messages()) == []
    peer.call("test_trigger_prompt_change")
    assert next(second.messages())["method"] == "notifications/prompts/list_changed"
    first.close()
    second.close()


def test_what_happened_before_the_stream_was_opened_is_not_lost(peer: HttpPeer) -> None:
    peer.call("test_trigger_tool_change")
    stream = peer.listen()
    assert next(stream.messages())["method"] == "notifications/tools/list_changed"
    stream.close()


def test_a_stream_must_be_accepted(peer: HttpPeer) -> None:
    headers = {**peer.headers({}), "Accept": "application/json"}
    assert _send(peer.port, "GET", None, headers)[0] == 406


def test_a_closed_stream_is_taken_up_again(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-11-25")
    params = {"name": "test_reconnection", "arguments": {}}
    response = peer.post({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    events = list(response.events())
    response.close()
    assert events[0].data == ""
    assert events[0].id
    assert any(event.retry == 100 for event in events)
    again = peer.listen(events[-1].id or events[0].id)
    message = next(again.messages())
    assert (message["id"], "result" in message) == (5, True)
    again.close()


def test_each_event_of_a_stream_has_an_id_of_its_own(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-11-25")
    params = {
        "name": "test_tool_with_progress",
        "arguments": {},
        "_meta": {"progressToken": "p"},
    }
    response = peer.post({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": params})
    events = [event for event in response.events() if event.data]
    response.close()
    assert len(events) == 4
    assert len({event.id for event in events}) == 4


def test_an_unknown_event_id_is_not_found(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-11-25")
    for id in ("unknown.1", "unknown", "", "é", "a.b.c"):
        response = peer.listen(id.encode("latin-1").decode("latin-1"))
        assert response.status == 404
        response.close()


def test_an_event_id_whose_number_is_none_is_not_found(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-11-25")
    params = {"name": "test_reconnection", "arguments": {}}
    response = peer.post({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    stream = (next(response.events()).id or "").partition(".")[0]
    list(response.events())
    response.close()
    for number in ("\N{SUPERSCRIPT TWO}", "-1", "1_0", "9" * 5000):
        refused = peer.listen(f"{stream}.{number}")
        assert refused.status == 404, number
        refused.close()
    kept = peer.listen(f"{stream}.0")
    assert kept.status == 200
    kept.close()


def test_a_client_comes_back_before_the_loss_of_its_connection_is_seen(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-11-25", capabilities={"elicitation": {}})
    lost, events = _begin_form(peer)
    first = next(events)
    assert json.loads(next(events).data)["method"] == "elicitation/create"
    again = peer.listen(first.id)
    assert again.status == 200
    messages = again.messages()
    question = next(messages)
    assert list(events) == []  # the connection that nobody reads has ended
    lost.close()
    twice = peer.listen(first.id)
    assert list(messages) == []  # one connection has the rest
    again.close()
    messages = twice.messages()
    assert next(messages) == question
    result = {"action": "accept", "content": {"name": "Ada"}}
    peer.post({"jsonrpc": "2.0", "id": question["id"], "result": result}).close()
    assert next(messages)["result"]["content"][0]["text"] == "accept: Ada"
    assert list(messages) == []
    twice.close()


def _begin_form(peer: HttpPeer) -> tuple[Any, Any]:
    params = {"name": "confirm_name", "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    response = peer.post(message)
    return response, response.events()


def test_streams_of_another_session_cannot_be_replayed(connect: Connect) -> None:
    owner: HttpPeer = connect("http", "2025-11-25")
    other: HttpPeer = connect("http", "2025-11-25")
    params = {"name": "test_reconnection", "arguments": {}}
    response = owner.post({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    events = list(response.events())
    response.close()
    stolen = other.listen(events[0].id)
    assert stolen.status == 404
    stolen.close()


def test_deleting_a_session_ends_its_stream(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-06-18")
    stream = peer.listen()
    peer.close()
    assert list(stream.messages()) == []
    stream.close()


def test_a_client_that_takes_no_stream_cannot_be_asked(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-06-18")
    params = {"name": "confirm_name", "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = peer.post(message, {**peer.headers(message), "Accept": "application/json"})
    (reply,) = response.messages()
    assert reply["error"]["code"] == -32602
    response.close()


def test_one_connection_serves_many_requests(connect: Connect) -> None:
    peer: HttpPeer = connect("http", "2025-06-18")
    connection = http.client.HTTPConnection("127.0.0.1", peer.port, timeout=PATIENCE_S)
    frames = [
        (200, b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        (202, b'{"jsonrpc":"2.0","method":"notifications/unheard_of"}'),
        (400, b"nonsense"),
        (200, b'{"jsonrpc":"2.0","id":1,"method":"no/such"}'),
    ]
    for status, frame in frames * 25:
        connection.request("POST", "/mcp", frame, peer.headers({}))
        response = connection.getresponse()
        response.read()
        assert response.status == status
    connection.close()
