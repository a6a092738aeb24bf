"""The request headers of 2026-07-28: they repeat the body, or the request is refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from wire.conftest import Connect
from wire.raw_http import http_request
from wire.wires import META, MODERN, HttpPeer

MISMATCH = -32020


@pytest.fixture
def peer(connect: Connect) -> HttpPeer:
    return connect("http", MODERN)


def _request(peer: HttpPeer, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "h", "method": method, "params": peer.add_meta(params)}


def _post(peer: HttpPeer, message: Any, headers: Mapping[str, str | None]) -> tuple[int, Any]:
    """Post with the right headers, some of them replaced or (None) left out."""
    merged = {name.lower(): value for name, value in peer.headers(message).items()}
    merged.update({name.lower(): value for name, value in headers.items()})
    sent = {name: value for name, value in merged.items() if value is not None}
    response = http_request(peer.port, "POST", "/mcp", json.dumps(message).encode(), sent)
    body = next(response.messages(), None)
    response.close()
    return response.status, body


def _sentinel(value: str) -> str:
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


CALL = ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
READ = ("resources/read", {"uri": "test://static-text"})
PROMPT = ("prompts/get", {"name": "test_simple_prompt"})
named = pytest.mark.parametrize(("method", "params"), [CALL, READ, PROMPT])


@named
@pytest.mark.parametrize(
    "wrong",
    [
        {"Mcp-Method": None},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": "TOOLS/CALL"},
        {"Mcp-Method": ""},
        {"Mcp-Name": None},
        {"Mcp-Name": "other"},
        {"Mcp-Name": "ADD"},
        {"Mcp-Name": ""},
        {"Mcp-Name": _sentinel("other")},
        {"Mcp-Name": "=?base64?!!!?="},
        {"Mcp-Name": "=?base64?YWRk"},
    ],
)
def test_a_header_that_differs_from_the_body_is_refused(
    peer: HttpPeer, method: str, params: dict[str, Any], wrong: dict[str, str | None]
) -> None:
    status, body = _post(peer, _request(peer, method, params), wrong)
    assert (status, body["error"]["code"], body["id"]) == (400, MISMATCH, "h")


@named
def test_names_may_be_in_base64(peer: HttpPeer, method: str, params: dict[str, Any]) -> None:
    value = params.get("name") or params["uri"]
    message = _request(peer, method, params)
    status, body = _post(peer, message, {"Mcp-Name": _sentinel(value)})
    assert (status, "result" in body) == (200, True)


@named
def test_spaces_around_a_value_do_not_count(
    peer: HttpPeer, method: str, params: dict[str, Any]
) -> None:
    message = _request(peer, method, params)
    padded = {name: f" \t {value} \t" for name, value in peer.headers(message).items()}
    status, body = _post(peer, message, padded)
    assert (status, "result" in body) == (200, True)


def test_a_name_that_needs_base64_is_compared_decoded(peer: HttpPeer) -> None:
    uri = "test://template/é🌊/data"
    message = _request(peer, "resources/read", {"uri": uri})
    status, body = _post(peer, message, {"Mcp-Name": _sentinel(uri)})
    assert status == 200
    assert json.loads(body["result"]["contents"][0]["text"])["id"] == "é🌊"


@pytest.mark.parametrize("version", [None, "2025-11-25", "2026-01-01", ""])
def test_the_version_header_must_equal_the_one_in_meta(peer: HttpPeer, version: str | None) -> None:
    message = _request(peer, *CALL)
    status, body = _post(peer, message, {"MCP-Protocol-Version": version})
    assert (status, body["error"]["code"]) == (400, MISMATCH)


def test_an_unknown_version_is_answered_with_what_is_supported(peer: HttpPeer) -> None:
    message = _request(peer, "tools/list", {"_meta": {f"{META}protocolVersion": "2099-01-01"}})
    status, body = _post(peer, message, {"MCP-Protocol-Version": "2099-01-01"})
    assert (status, body["error"]["code"]) == (400, -32022)
    assert body["error"]["data"] == {"supported": [MODERN], "requested": "2099-01-01"}


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_meta_must_say_version_and_capabilities(peer: HttpPeer, missing: str) -> None:
    message = _request(peer, "tools/list", {})
    del message["params"]["_meta"][f"{META}{missing}"]
    status, body = _post(peer, message, {})
    assert (status, body["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("meta", [None, {}, 5, [], "x"])
def test_meta_must_be_there(peer: HttpPeer, meta: Any) -> None:
    message = {**_request(peer, "tools/list", {}), "params": {"_meta": meta}}
    status, body = _post(peer, message, {})
    assert (status, body["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("client", [None, {}, 5, {"name": 7}])
def test_who_the_client_is_need_not_be_said(peer: HttpPeer, client: Any) -> None:
    message = _request(peer, "tools/list", {"_meta": {f"{META}clientInfo": client}})
    if client is None:
        del message["params"]["_meta"][f"{META}clientInfo"]
    status, _ = _post(peer, message, {})
    assert status in ((200,) if client is None else (200, 400))


@pytest.mark.parametrize("method", ["no/such", "ping", "initialize", "logging/setLevel", ""])
def test_an_unknown_method_is_404(peer: HttpPeer, method: str) -> None:
    status, body = _post(peer, _request(peer, method, {}), {})
    assert (status, body["error"]["code"], body["id"]) == (404, -32601, "h")


# Arguments that are repeated in headers


def _headed(peer: HttpPeer, **given: Any) -> dict[str, Any]:
    return _request(peer, "tools/call", {"name": "test_x_mcp_header", "arguments": given})


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({"region": "eu"}, {"Mcp-Param-Region": "eu"}),
        ({"region": "eu"}, {"mcp-param-REGION": "eu"}),
        ({"region": "é"}, {"Mcp-Param-Region": _sentinel("é")}),
        ({"region": "Hello"}, {"Mcp-Param-Region": _sentinel("Hello")}),
        ({"region": "SGVsbG8="}, {"Mcp-Param-Region": "SGVsbG8="}),
        ({"region": "=?base64?SGVsbG8="}, {"Mcp-Param-Region": "=?base64?SGVsbG8="}),
        ({"region": "a", "priority": 3}, {"Mcp-Param-Region": "a", "Mcp-Param-Priority": "3"}),
        ({"region": "a", "urgent": True}, {"Mcp-Param-Region": "a", "Mcp-Param-Urgent": "true"}),
        ({"region": "a", "urgent": False}, {"Mcp-Param-Region": "a", "Mcp-Param-Urgent": "false"}),
        ({"region": "a", "priority": None}, {"Mcp-Param-Region": "a"}),
        ({"region": "a", "note": "free"}, {"Mcp-Param-Region": "a"}),
    ],
)
def test_marked_arguments_agree_with_their_headers(
    peer: HttpPeer, given: dict[str, Any], headers: dict[str, str]
) -> None:
    status, body = _post(peer, _headed(peer, **given), headers)
    assert (status, body["result"]["content"][0]["text"]) == (200, f"region={given['region']}")


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "us"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "EU"}),
        ({"region": "Hello"}, {"Mcp-Param-Region": "=?base64?SGVsbG8?="}),
        ({"region": "Hello"}, {"Mcp-Param-Region": "=?base64?SGVs!!!bG8=?="}),
        ({"region": "a"}, {"Mcp-Param-Region": "a", "Mcp-Param-Priority": "3"}),
        ({"region": "a", "priority": 3}, {"Mcp-Param-Region": "a"}),
        ({"region": "a", "urgent": True}, {"Mcp-Param-Region": "a", "Mcp-Param-Urgent": "True"}),
    ],
)
def test_marked_arguments_that_differ_from_their_headers_are_refused(
    peer: HttpPeer, given: dict[str, Any], headers: dict[str, str]
) -> None:
    status, body = _post(peer, _headed(peer, **given), headers)
    assert (status, body["error"]["code"]) == (400, MISMATCH)
