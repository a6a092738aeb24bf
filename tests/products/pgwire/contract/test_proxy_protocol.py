"""The PROXY protocol before the wire protocol: HAProxy names its clients, and nobody else can."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.certificates import Authority
from support.command_line import tidegate
from support.eventually import PATIENCE_S, wait_until
from support.proxies import passing_on, program
from support.proxy_headers import header
from support.wire_server import WireServer, wire_server

CLIENT = "203.0.113.9"
PROXY, DIRECT = "127.0.0.2", "127.0.0.1"
SETTINGS = {"trusted_proxies": [PROXY], "pg": {"proxy_protocol": True}}
STARTUP = b"\0\0\0\x08\x04\xd2\x16\x2f"
"""A request for TLS."""


def records(server: WireServer) -> list[dict[str, Any]]:
    files = sorted((server.folder / "state" / "audit").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def first_answer(port: int, source: str, sent: bytes) -> bytes:
    """The first byte of the answer; none if the connection ends instead."""
    place = ("127.0.0.1", port)
    with closing(socket.create_connection(place, PATIENCE_S, (source, 0))) as connection:
        connection.sendall(sent + STARTUP)
        try:
            return connection.recv(1)
        except ConnectionError:
            return b""


def test_psycopg_through_haproxy_has_its_own_address(tmp_path: Path) -> None:
    if program("haproxy") is None:
        pytest.skip("haproxy is not installed (tests/external/debian.sh)")
    authority = Authority(tmp_path, "authority")
    cert, key = authority.sign("server", "localhost", "127.0.0.1")
    tls = {"tls": {"cert": str(cert), "key": str(key)}}
    with (
        wire_server(tmp_path, **SETTINGS, **tls) as server,
        passing_on(tmp_path, server.port, server.port) as (_, port),
    ):
        for user, mode in (("reader", "disable"), ("writer", "verify-full")):
            info = server.conninfo(user=user, port=port, sslmode=mode, sslrootcert=authority.file)
            with psycopg.connect(info, autocommit=True) as gate:
                assert gate.pgconn.ssl_in_use is (mode != "disable")
                assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.conninfo(port=port, password="wrong", sslmode="require"))

        def failed() -> list[str]:
            found = [each for each in records(server) if each.get("name") == "login.failed"]
            return [each["details"]["address"] for each in found]

        wait_until(lambda: failed() == [DIRECT], "the address of the failed login is recorded")
    assert {each["address"] for each in records(server) if "call_id" in each} == {DIRECT}


def test_only_a_trusted_proxy_names_clients_and_it_must(tmp_path: Path) -> None:
    with wire_server(tmp_path, **SETTINGS) as server:
        assert first_answer(server.port, PROXY, header(CLIENT)) == b"N"
        assert first_answer(server.port, PROXY, b"") == b""
        assert "127.0.0.2: it sent no header" in server.process.until("refused")
        assert first_answer(server.port, DIRECT, b"") == b"N"
        assert first_answer(server.port, DIRECT, header(CLIENT)) == b""
        assert "127.0.0.1: it began with a header" in server.process.until("refused")


def test_headers_take_a_proxy_that_may_send_them(tmp_path: Path) -> None:
    settings = tmp_path / "tidegate.toml"
    settings.write_text("[pg]\nproxy_protocol = true\n")
    ended = tidegate("config", "check", "--config", str(settings), state=tmp_path / "state")
    assert ended.status != 0 and "trusted_proxies" in ended.err
