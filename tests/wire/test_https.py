"""HTTPS: the certificate that clients verify, its exchange while connections are open, and the
files that are refused at the start.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization

from support.certificates import Authority
from support.command_line import Serving, serving, tidegate
from support.eventually import PATIENCE_S
from tidegate.surfaces.registry import SURFACES

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})


class Files(NamedTuple):
    """The certificate and key that a server is started with, and who signed it."""

    authority: Authority
    cert: Path
    key: Path

    @property
    def options(self) -> tuple[str, ...]:
        return ("--tls-cert", str(self.cert), "--tls-key", str(self.key))

    def replace(self) -> None:
        """Another certificate of the same authority, in the same place."""
        cert, key = self.authority.sign("second", "localhost", "127.0.0.1")
        shutil.copyfile(cert, self.cert)
        shutil.copyfile(key, self.key)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    authority = Authority(tmp_path, "authority")
    return Files(authority, *authority.sign("first", "localhost", "127.0.0.1"))


@pytest.fixture
def server(files: Files, tmp_path: Path) -> Iterator[Serving]:
    words = ("serve", "--http", "127.0.0.1:0", "--no-auth", *files.options)
    with serving(words, tmp_path / "state") as server:
        yield server


def port_of(server: Serving) -> int:
    line = server.until("serving")
    address = next(word for word in line.split() if word.startswith("https://127.0.0.1:"))
    return int(address.removeprefix("https://127.0.0.1:").removesuffix("/mcp"))


def connect(port: int, files: Files) -> HTTPSConnection:
    """A client that trusts the authority alone."""
    context = ssl.create_default_context(cafile=str(files.authority.file))
    connection = HTTPSConnection("localhost", port, timeout=PATIENCE_S, context=context)
    connection.connect()
    return connection


def name_of(connection: HTTPSConnection) -> str:
    """The common name of the certificate that the server showed."""
    assert isinstance(connection.sock, ssl.SSLSocket)
    shown: Any = connection.sock.getpeercert()
    return dict(pair for part in shown["subject"] for pair in part)["commonName"]


def post(connection: HTTPSConnection, body: str = PING, path: str = "/mcp/v1") -> tuple[int, Any]:
    connection.request("POST", path, body)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_a_client_that_verifies_the_certificate_is_answered(server: Serving, files: Files) -> None:
    connection = connect(port_of(server), files)
    assert post(connection) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert isinstance(connection.sock, ssl.SSLSocket)
    assert connection.sock.version() in ("TLSv1.2", "TLSv1.3")
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()


def test_every_surface_is_served_over_https(server: Serving, files: Files) -> None:
    port = port_of(server)
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
        },
    }
    for path in ("/mcp", *(f"/mcp/{name}" for name in SURFACES)):
        connection = connect(port, files)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        connection.request("POST", path, json.dumps(initialize), headers)
        response = connection.getresponse()
        assert response.status == 200
        assert b'"protocolVersion"' in response.read()
        connection.close()


@pytest.mark.parametrize("start", [b"GET /health HTTP/1.1", b"POST /mcp/core HTTP/1.1"])
def test_a_client_that_speaks_plain_http_is_answered_with_what_to_write_and_nothing_else(
    server: Serving, files: Files, start: bytes
) -> None:
    port = port_of(server)
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain:
        plain.sendall(start + b"\r\nHost: localhost\r\n\r\n")
        received = b""
        while not received.endswith(b"in the address.\n"):
            part = plain.recv(4_096)
            assert part, received
            received += part
        plain.sendall(start + b"\r\nHost: localhost\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Connection: close" in received and b"https://" in received
    assert received.count(b"HTTP/1.1") == 1
    connection = connect(port, files)
    assert post(connection)[0] == 200
    connection.close()


def test_a_client_that_trusts_another_authority_sends_nothing(
    server: Serving, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    context = ssl.create_default_context(cafile=str(Authority(folder, "other").file))
    connection = HTTPSConnection("localhost", port_of(server), timeout=PATIENCE_S, context=context)
    with pytest.raises(ssl.SSLCertVerificationError):
        connection.connect()


def test_sighup_exchanges_the_certificate_and_open_connections_stay(
    server: Serving, files: Files
) -> None:
    port = port_of(server)
    before = connect(port, files)
    assert (name_of(before), post(before)[0]) == ("first", 200)
    files.replace()
    server.process.send_signal(signal.SIGHUP)
    assert "the certificate is good until" in server.until("SIGHUP")
    after = connect(port, files)
    assert (name_of(after), post(after)[0]) == ("second", 200)
    assert post(before)[0] == 200
    for connection in (before, after):
        connection.close()


def test_a_certificate_that_cannot_be_used_leaves_the_old_one_in_place(
    server: Serving, files: Files
) -> None:
    port = port_of(server)
    _, other_key = files.authority.sign("other", "localhost")
    shutil.copyfile(other_key, files.key)
    server.process.send_signal(signal.SIGHUP)
    said = server.until("SIGHUP")
    assert "the certificate stays as it was" in said
    assert "does not belong to the certificate" in said
    connection = connect(port, files)
    assert (name_of(connection), post(connection)[0]) == ("first", 200)
    connection.close()


def test_bodies_of_megabytes_pass_both_ways(server: Serving, files: Files) -> None:
    connection = connect(port_of(server), files)
    large = json.dumps({"jsonrpc": "2.0", "id": "x" * 3_000_000, "method": "ping"})
    status, reply = post(connection, large)
    assert (status, len(reply.get("id") or reply["error"]["message"]) > 0) == (200, True)
    too_large = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x" * 12_000_000})
    assert post(connection, too_large)[0] == 413
    connection.close()


def test_the_commands_of_this_state_find_a_server_on_https(server: Serving, tmp_path: Path) -> None:
    port = port_of(server)
    ended = tidegate("status", "--json", state=tmp_path / "state")
    assert (ended.status, ended.json["address"]) == (0, f"https://127.0.0.1:{port}")
    bridged = tidegate("bridge", "--surface", "core", state=tmp_path / "state", stdin=PING + "\n")
    assert json.loads(bridged.out)["id"] == 1
    assert tidegate("stop", state=tmp_path / "state").status == 0


def refused(tmp_path: Path, *words: str) -> str:
    """What `serve` says when it does not start."""
    ended = tidegate("serve", "--no-auth", *words, state=tmp_path / "state")
    assert (ended.status in (2, 78), ended.out) == (True, "")
    return ended.err


def test_files_that_cannot_be_used_are_refused_by_name_at_the_start(
    files: Files, tmp_path: Path
) -> None:
    http = ("--http", "127.0.0.1:0")
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    _, other_key = files.authority.sign("other", "localhost")
    locked = tmp_path / "locked.key"
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    opened = tmp_path / "open.key"
    shutil.copyfile(files.key, opened)
    opened.chmod(0o644)
    cert = ("--tls-cert", str(files.cert))
    told = {
        "no such file": (*cert, "--tls-key", str(tmp_path / "none.key")),
        "is not a certificate": ("--tls-cert", str(text), "--tls-key", str(files.key)),
        "cannot be used": (*cert, "--tls-key", str(text)),
        "does not belong to": (*cert, "--tls-key", str(other_key)),
        "is encrypted": (*cert, "--tls-key", str(locked)),
        "every account can read": (*cert, "--tls-key", str(opened)),
        "--tls-key is missing": cert,
        "--tls-cert is missing": ("--tls-key", str(files.key)),
    }
    text.chmod(0o600)
    locked.chmod(0o600)
    for said, words in told.items():
        error = refused(tmp_path, *http, *words)
        assert said in error.lower(), (said, error)
        assert error.count("\n") == 1
    assert "add --http" in refused(tmp_path, *files.options).lower()


def test_the_settings_name_the_files_as_the_options_do(files: Files, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'http = "127.0.0.1:0"\nauth = false\n[tls]\ncert = "{files.cert}"\nkey = "{files.key}"\n'
    )
    settings.chmod(0o600)
    os.chmod(tmp_path, 0o700)
    with serving(("serve", "--config", str(settings)), tmp_path / "state") as server:
        connection = connect(port_of(server), files)
        assert post(connection)[0] == 200
        connection.close()
