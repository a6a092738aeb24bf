"""Attacks on the HTTP edge: headers that say two things, names that look like loopback."""

from __future__ import annotations

import json

import pytest

from support.attack_target import Target, headers_of, target, tool_call

BODY = json.dumps(tool_call("query", sql="SELECT 1")).encode()


def ask(server: Target, *headers: str, path: str = "/mcp/core", host: str | None = None) -> int:
    """The status of a request with exactly these headers beside those it needs."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{server.port}'}"]
    lines += ["Content-Type: application/json", "Accept: */*", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers_of("query").items()]
    lines += [*headers, f"Content-Length: {len(BODY)}", "", ""]
    return int(server.raw("\r\n".join(lines).encode("latin-1") + BODY).split(None, 2)[1])


def test_an_honest_request_is_answered(server: Target) -> None:
    assert ask(server) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "localhost.", "127.0.0.1.evil.example", "localhost@evil.example",
        "user@localhost", "[::1].evil.example", "[::1]evil", "localhost:\u00b2", "127.1", "0.0.0.0",  # noqa: S104
        "[::]", "localhost:1:2", "localhost evil.example", "[::1",
    ],
)  # fmt: skip
def test_a_host_that_only_looks_like_loopback_is_refused(server: Target, host: str) -> None:
    assert ask(server, host=host) == 403


@pytest.mark.parametrize(
    "origin",
    [
        "null", "http://evil.example", "http://localhost.evil.example", "file://localhost",
        "http://localhost@evil.example", "http://[::1].evil.example", "http://evil.example#localhost",
        "http://localhost:80@evil.example", "chrome-extension://localhost", "//localhost",
    ],
)  # fmt: skip
def test_a_foreign_origin_is_refused_and_never_reflected(server: Target, origin: str) -> None:
    answer = server.post(
        BODY, {**headers_of("query"), "Origin": origin, "Host": f"127.0.0.1:{server.port}"}
    )
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "header",
    ["Host: localhost", "Origin: http://localhost", "Authorization: Bearer x",
     "Mcp-Session-Id: x", "MCP-Protocol-Version: 2026-07-28", "Mcp-Name: sources",
     "Mcp-Method: tools/call", "Content-Type: application/json"],
)  # fmt: skip
def test_a_header_that_is_sent_twice_is_refused(server: Target, header: str) -> None:
    """Whoever stands before us may have looked at the other one."""
    assert ask(server, header, header) == 400


@pytest.mark.parametrize(
    "path",
    ["/mcp//core", "/mcp/./core", "/mcp/../mcp/core", "/MCP/core", "/mcp/core;x", "/mcp/core%00",
     "//127.0.0.1/mcp/core", "/mcp/nothing", "*"],
)  # fmt: skip
def test_a_path_that_is_not_served_is_not_found(server: Target, path: str) -> None:
    assert ask(server, path=path) == 404


def test_a_forwarded_address_does_not_escape_the_lockout(tmp_path) -> None:
    guess = "tg_" + "A" * 43
    with target(tmp_path) as server:
        statuses = []
        for number in range(8):
            forwarded = {"X-Forwarded-For": f"10.0.0.{number}", "Forwarded": f"for=10.0.0.{number}"}
            answer = server.post(BODY, {**headers_of("query"), **forwarded}, token=guess)
            statuses.append(answer.status)
    assert statuses == [401] * 5 + [429] * 3


def test_a_guesser_does_not_lock_out_who_holds_a_token_at_the_same_address(tmp_path) -> None:
    with target(tmp_path) as server:
        token = server.token("mine")
        for _ in range(6):
            server.post(BODY, headers_of("query"), token="tg_" + "A" * 43)
        assert server.post(BODY, headers_of("query"), token=token).status == 200
        assert server.post(BODY, headers_of("query"), token="tg_" + "B" * 43).status == 429


def test_a_token_in_the_address_is_no_token(tmp_path) -> None:
    with target(tmp_path) as server:
        token = server.token("mine")
        for path in (f"/mcp/core?token={token}", f"/mcp/core?access_token={token}"):
            assert ask(server, path=path) == 401
        assert ask(server, f"Authorization: Bearer {token}") == 200
