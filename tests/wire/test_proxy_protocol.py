"""The PROXY protocol before HTTP: HAProxy names its clients, and nobody else can."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.certificates import Authority
from support.command_line import Serving, serving, tidegate
from support.eventually import PATIENCE_S
from support.proxies import passing_on, program
from support.proxy_headers import header
from wire.test_client_address import GUESS, Gate
from wire.test_gate import _port

CLIENT = "203.0.113.9"
PROXY, DIRECT = "127.0.0.2", "127.0.0.1"
SETTINGS = {"trusted_proxies": [PROXY], "proxy_protocol": True}


@contextmanager
def gate(folder: Path, **more: Any) -> Iterator[tuple[Gate, Serving]]:
    """A gate behind the proxy 127.0.0.2, which must send headers."""
    made = Gate(folder, ())
    made.settings.write_text(json.dumps(json.loads(made.settings.read_text()) | SETTINGS | more))
    words = ["serve", "--config", str(made.settings), "--http", "127.0.0.1:0"]
    with serving(words, made.state) as server:
        made.port = _port(server)
        yield made, server


def connect(port: int, source: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S, (source, 0))


def status_of(connection: socket.socket, *headers: str, token: str = GUESS) -> int:
    """The status of a request with a token; 0 if the connection ends instead."""
    lines = (
        "POST /mcp HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}",
        "Content-Type: application/json", "Content-Length: 2", "Connection: close", *headers,
    )  # fmt: skip
    try:
        connection.sendall("\r\n".join([*lines, "", "{}"]).encode())
        answer = connection.makefile("rb").readline()
    except ConnectionError:
        return 0
    return int(answer.split()[1]) if answer else 0


def failures(gate: Gate) -> list[str]:
    """The addresses from which a token was wrong."""
    found = [each for each in gate.records() if each.get("name") == "login.failed"]
    return [each["details"]["address"] for each in found]


def test_the_address_of_the_header_counts_from_a_trusted_proxy_alone(tmp_path: Path) -> None:
    with gate(tmp_path) as (served, server):

        def guess(source: str, sent: bytes, *headers: str) -> int:
            with closing(connect(served.port, source)) as connection:
                connection.sendall(sent)
                return status_of(connection, *headers)

        forged = "X-Forwarded-For: 198.51.100.1"
        assert [guess(PROXY, header(CLIENT), forged) for _ in range(6)] == [401] * 5 + [429]
        assert guess(PROXY, header("203.0.113.10")) == 401  # others there are not locked out
        assert guess(PROXY, header(PROXY), forged) == 401  # one trusted proxy after another
        assert guess(PROXY, b"") == 0
        assert "127.0.0.2: it sent no header" in server.until("refused")
        assert guess(DIRECT, b"") == 401
        assert guess(DIRECT, header(CLIENT)) == 400
        assert "127.0.0.1: it began with a header" in server.until("refused")
    assert failures(served) == [CLIENT] * 5 + ["203.0.113.10", "198.51.100.1", DIRECT]


@pytest.mark.parametrize("workers", [1, 2])
def test_clients_of_haproxy_have_their_own_addresses(tmp_path: Path, workers: int) -> None:
    if program("haproxy") is None:
        pytest.skip("haproxy is not installed (tests/external/debian.sh)")
    authority = Authority(tmp_path, "authority")
    cert, key = authority.sign("server", "localhost", "127.0.0.1")
    tls = {"tls": {"cert": str(cert), "key": str(key)}} if workers == 1 else {}
    context = ssl.create_default_context(cafile=str(authority.file))
    with (
        gate(tmp_path, workers=workers, **tls) as (served, _),
        passing_on(tmp_path, served.port) as (port, _),
    ):
        for source in ("127.0.0.3", "127.0.0.4", "127.0.0.3"):
            with closing(connect(port, source)) as plain:
                if not tls:
                    assert status_of(plain) == 401
                    continue
                with context.wrap_socket(plain, server_hostname="localhost") as secured:
                    assert status_of(secured) == 401
    assert sorted(failures(served)) == ["127.0.0.3", "127.0.0.3", "127.0.0.4"]


def test_headers_take_a_proxy_that_may_send_them(tmp_path: Path) -> None:
    settings = tmp_path / "tidegate.toml"
    settings.write_text("proxy_protocol = true\n")
    ended = tidegate("config", "check", "--config", str(settings), state=tmp_path / "state")
    assert ended.status != 0 and "trusted_proxies" in ended.err
