"""HTTP and the wire protocol from one process, at the same time, over TLS: an agent with an
official SDK and psql join two providers; a new certificate reaches both."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from support.certificates import Authority
from support.cloud_surface import ADDRESS, PROVIDER, TICKETS, Desk, running_desk, write_desk
from support.command_line import HANG_S
from support.wire_server import WireServer, wire_server
from wire.conversations import python_sdk

pytestmark = pytest.mark.needs("cloud")

JOIN = (
    "SELECT a.id, a.title, b.title AS other FROM desk.tickets.tickets a JOIN help.tickets.tickets b"
    " ON b.id = a.id WHERE a.team = 'red' AND b.team = 'blue' ORDER BY a.id"
)
OTHER_ADDRESS = "https://help.example/v1"


class Dual(NamedTuple):
    """A server with both edges; `desks` are the two providers."""

    server: WireServer
    authority: Authority
    cert: Path
    key: Path
    http_port: int
    desks: tuple[Desk, Desk]

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority.file))

    def conninfo(self) -> str:
        return self.server.conninfo(
            "cloud", "reader", host="localhost", sslmode="verify-full",
            sslrootcert=self.authority.file,
        )  # fmt: skip


def write_help(folder: Path) -> None:
    """The documents of another provider, with the same resources."""
    services = folder / "src" / "help" / "v24.01.00001" / "services"
    services.mkdir(parents=True)
    for path, text in (
        (services.parent / "provider.yaml", PROVIDER),
        (services / "tickets.yaml", TICKETS.replace(ADDRESS, OTHER_ADDRESS)),
    ):
        path.write_text(
            text.replace("id: desk", "id: help")
            .replace("name: desk", "name: help")
            .replace("desk/v24", "help/v24")
            .replace("desk.tickets", "help.tickets")
        )


@pytest.fixture(scope="module")
def dual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dual]:
    folder = tmp_path_factory.mktemp("dual")
    write_help(write_desk(folder / "registry"))
    authority = Authority(folder, "authority")
    cert, key = authority.sign("first", "localhost", "127.0.0.1")
    source = {"name": "cloud", "url": f"cloud://{folder}/registry"}
    words = ("--surface", "cloud", "--http", "127.0.0.1:0",
             "--tls-cert", str(cert), "--tls-key", str(key))  # fmt: skip
    with running_desk() as desk, running_desk() as other:
        endpoints = {"endpoints": {ADDRESS: desk.url, OTHER_ADDRESS: other.url}}
        with wire_server(folder, *words, sources=[source], cloud=endpoints) as server:
            yield Dual(server, authority, cert, key, server.http_port, (desk, other))


def psql(dual: Dual, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["psql", "-X", "-A", "-t", dual.conninfo(), "-c", text],
        capture_output=True, text=True, timeout=HANG_S, check=False, env=dict(os.environ),
    )  # fmt: skip


def agent(dual: Dual, text: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("SSL_CERT_FILE", str(dual.authority.file))
    return python_sdk(
        2,
        {
            "url": f"https://localhost:{dual.http_port}/mcp/cloud",
            "token": dual.server.secrets["reader"],
            "mode": "legacy",
            "calls": [["run_select_query", {"sql": text}]],
        },
    )


def test_psql_and_an_agent_join_two_providers_at_the_same_time(
    dual: Dual, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No request of one is answered before the other's has come, so both statements are under way.
    together = threading.Barrier(2)
    for desk in dual.desks:
        answer = desk.answer

        def wait(method: str, target: str, body: Any, answer: Any = answer) -> Any:
            if "/red/" in target:
                together.wait(HANG_S)
            return answer(method, target, body)

        monkeypatch.setattr(desk, "answer", wait)
    with ThreadPoolExecutor(2) as threads:
        asked = threads.submit(agent, dual, JOIN, monkeypatch)
        shown = threads.submit(psql, dual, JOIN)
        found, printed = asked.result(), shown.result()
    (result,) = found["results"]
    assert not result["is_error"], result
    rows = result["structured"]["rows"]
    assert [row["id"] for row in rows] == ["1", "2"]
    assert [set(row) for row in rows] == [{"id", "title", "other"}] * 2
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.startswith("1|Printer | on fire|Printer | on fire\n")
    assert [len(desk.requests) for desk in dual.desks] == [2, 2]


def name_of(certificate: Any) -> str:
    return dict(pair for part in certificate["subject"] for pair in part)["commonName"]


def shown_by_http(dual: Dual) -> tuple[str, HTTPSConnection]:
    connection = HTTPSConnection("localhost", dual.http_port, timeout=HANG_S, context=dual.tls())
    connection.request("GET", "/health")
    assert connection.getresponse().read()
    assert isinstance(connection.sock, ssl.SSLSocket)
    return name_of(connection.sock.getpeercert()), connection


def shown_by_wire(dual: Dual) -> str:
    """The certificate that the wire shows after its request for TLS."""

    with socket.create_connection(("localhost", dual.server.port), HANG_S) as plain:
        plain.sendall(b"\0\0\0\x08\x04\xd2\x16\x2f")
        assert plain.recv(1) == b"S"
        with dual.tls().wrap_socket(plain, server_hostname="localhost") as secure:
            return name_of(secure.getpeercert())


def test_a_new_certificate_reaches_both_edges_and_open_sessions_stay(dual: Dual) -> None:
    assert shown_by_wire(dual) == "first"
    name, http = shown_by_http(dual)
    assert name == "first"
    with psycopg.connect(dual.conninfo(), autocommit=True) as session:
        cert, key = dual.authority.sign("second", "localhost", "127.0.0.1")
        shutil.copyfile(cert, dual.cert)
        shutil.copyfile(key, dual.key)
        dual.server.process.process.send_signal(signal.SIGHUP)
        for _ in range(2):
            assert "the certificate is good until" in dual.server.process.until("SIGHUP: the cert")
        assert shown_by_wire(dual) == "second"
        name, other = shown_by_http(dual)
        assert name == "second"
        assert session.execute("SELECT 1 AS n").fetchone() == (1,)
        http.request("GET", "/health")
        assert http.getresponse().status == 200
    for connection in (http, other):
        connection.close()
