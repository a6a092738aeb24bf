"""Logins that are bound to TLS, TLS without a request for it, and versions of the protocol."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from psycopg import pq

from support.certificates import Authority
from support.eventually import HANG_S, PATIENCE_S
from support.jdbc_drivers import QUICK, jars_of
from support.wire_server import WireServer, wire_server

SSL_REQUEST = struct.pack("!II", 8, 80_877_103)
GSSENC_REQUEST = struct.pack("!II", 8, 80_877_104)
needs_direct = pytest.mark.skipif(pq.version() < 170000, reason="libpq 17 or newer is needed")
needs_3_2 = pytest.mark.skipif(pq.version() < 180000, reason="libpq 18 or newer is needed")


class Secured(NamedTuple):
    server: WireServer
    authority: Authority

    def conninfo(self, **more: str | int) -> str:
        words = {"sslmode": "verify-full", "sslrootcert": self.authority.file, **more}
        return self.server.conninfo(**words)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder, "authority")
    cert, key = authority.sign("server", "localhost", "127.0.0.1")
    options = ("--tls-cert", str(cert), "--tls-key", str(key))
    with wire_server(folder, *options, lockout={"failures": 100}) as server:
        yield Secured(server, authority)


def startup(version: int = 196_608, *more: bytes) -> bytes:
    words = (b"user", b"writer", b"database", b"shop", *more)
    body = struct.pack("!I", version) + b"".join(word + b"\0" for word in words) + b"\0"
    return struct.pack("!I", len(body) + 4) + body


def sasl(mechanism: bytes, first: bytes) -> bytes:
    body = mechanism + b"\0" + struct.pack("!i", len(first)) + first
    return b"p" + struct.pack("!I", len(body) + 4) + body


@contextmanager
def tls_line(secured: Secured, *, asks: bool = True, alpn: str | None = None):
    context = ssl.create_default_context(cafile=str(secured.authority.file))
    if alpn is not None:
        context.set_alpn_protocols([alpn])
    with socket.create_connection(("127.0.0.1", secured.server.port), PATIENCE_S) as plain:
        if asks:
            plain.sendall(SSL_REQUEST)
            assert plain.recv(1) == b"S"
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as line:
            yield line


def test_libpq_binds_its_login_to_tls(secured: Secured):
    with psycopg.connect(secured.conninfo(channel_binding="require")) as gate:
        assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)
    command = ["psql", secured.conninfo(channel_binding="require"), "-Atc", "SELECT 1"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"
    with psycopg.connect(secured.conninfo(channel_binding="disable")) as gate:
        assert gate.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="channel binding"):
        psycopg.connect(secured.server.conninfo(sslmode="disable", channel_binding="require"))


@pytest.mark.skipif(shutil.which("javac") is None, reason="a Java compiler is needed")
def test_pgjdbc_logs_in_over_tls(secured: Secured):
    program = Path(__file__).parent / "clients" / "SecuredClient.java"
    words = (f"127.0.0.1:{secured.server.port}", str(secured.authority.file))
    command = ["java", QUICK, "-cp", str(jars_of("postgresql")), str(program), *words]
    done = subprocess.run(
        [*command, secured.server.secrets["writer"], "prefer"],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.stdout == "3\n", done.stderr


async def test_a_login_through_another_end_of_tls_is_refused(secured: Secured, tmp_path: Path):
    """Someone between, with a certificate that the client trusts, can read a login that is not
    bound to TLS, and cannot pass on one that is."""
    authority = Authority(tmp_path, "authority")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("between", "127.0.0.1"))
    own = ssl.create_default_context(cafile=str(secured.authority.file))

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
        target.close()

    async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"S")
        await writer.start_tls(context)
        inner_reader, inner = await asyncio.open_connection("127.0.0.1", secured.server.port)
        inner.write(SSL_REQUEST)
        await inner_reader.readexactly(1)
        await inner.start_tls(own, server_hostname="127.0.0.1")
        await asyncio.gather(pump(reader, inner), pump(inner_reader, writer))

    relay = await asyncio.start_server(between, "127.0.0.1", 0)
    port = relay.sockets[0].getsockname()[1]

    def connect(wish: str):
        info = secured.conninfo(
            port=port, sslrootcert=str(authority.file), channel_binding=wish, connect_timeout=10
        )
        return psycopg.AsyncConnection.connect(info)

    async with relay:
        async with await connect("disable") as gate:
            found = await gate.execute("SELECT 1")
            assert await found.fetchone() == (1,)
        for wish in ("require", "prefer"):
            with pytest.raises(psycopg.OperationalError, match="wrong"):
                await connect(wish)


@pytest.mark.parametrize(
    ("mechanism", "first", "says"),
    [
        (b"SCRAM-SHA-256", b"y,,n=,r=abcdef", b"was not offered it"),
        (b"SCRAM-SHA-256", b"p=tls-server-end-point,,n=,r=abcdef", b"does not fit"),
        (b"SCRAM-SHA-256-PLUS", b"n,,n=,r=abcdef", b"does not fit"),
        (b"SCRAM-SHA-256-PLUS", b"p=tls-unique,,n=,r=abcdef", b"tls-server-end-point only"),
    ],
)
def test_a_downgrade_of_the_binding_is_refused(
    secured: Secured, mechanism: bytes, first: bytes, says: bytes
):
    with tls_line(secured) as line:
        line.sendall(startup())
        assert b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0" in line.recv(65_536)
        line.sendall(sasl(mechanism, first))
        said = b""
        while more := line.recv(65_536):
            said += more
    assert says in said
    assert b"C28P01" in said


def test_without_tls_no_binding_is_offered_and_a_client_that_could_bind_may_log_in(
    secured: Secured,
):
    with socket.create_connection(("127.0.0.1", secured.server.port), PATIENCE_S) as line:
        line.sendall(startup())
        assert b"PLUS" not in line.recv(65_536)
        line.sendall(sasl(b"SCRAM-SHA-256", b"y,,n=,r=abcdef"))
        assert b"r=abcdef" in line.recv(65_536)


@needs_direct
def test_tls_begins_without_a_request_for_it(secured: Secured):
    direct = secured.conninfo(sslnegotiation="direct", channel_binding="require")
    with psycopg.connect(direct) as gate:
        assert gate.pgconn.ssl_in_use
        assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)


@pytest.mark.parametrize("alpn", [None, "http/1.1"])
def test_tls_that_is_not_meant_for_this_protocol_gets_no_session(
    secured: Secured, alpn: str | None
):
    with tls_line(secured, asks=False, alpn=alpn) as line:
        line.sendall(startup())
        said = b""
        with suppress(OSError):
            while more := line.recv(65_536):
                said += more
    assert b"SCRAM" not in said


@pytest.mark.parametrize("together", [True, False], ids=["with the request", "behind it"])
def test_bytes_that_someone_adds_in_plain_text_before_tls_are_never_read(
    secured: Secured, together: bool
):
    """Whoever is between the two could send them as if the client had (CVE-2021-23222)."""
    with socket.create_connection(("127.0.0.1", secured.server.port), PATIENCE_S) as line:
        line.sendall(SSL_REQUEST + (startup() if together else b""))
        said = line.recv(1)
        if not together:
            assert said == b"S"
            line.sendall(startup())
        with suppress(OSError):
            while more := line.recv(65_536):
                said += more
    assert b"SCRAM" not in said
    assert said[:1] == (b"E" if together else b"S")


def test_requests_for_encryption_are_answered_once_each(secured: Secured):
    with socket.create_connection(("127.0.0.1", secured.server.port), PATIENCE_S) as line:
        line.sendall(GSSENC_REQUEST)
        assert line.recv(1) == b"N"
        line.sendall(GSSENC_REQUEST)
        assert b"C08P01" in line.recv(65_536)
        assert line.recv(1) == b""


@needs_3_2
def test_version_3_2_has_a_longer_key_to_cancel_with(secured: Secured):
    newest = secured.conninfo(min_protocol_version="3.2", max_protocol_version="3.2")
    with psycopg.connect(newest, autocommit=True) as gate:
        timer = threading.Timer(0.3, gate.cancel_safe)
        timer.start()
        endless = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        )
        with pytest.raises(psycopg.errors.QueryCanceled):
            gate.execute(endless)
        timer.join()
        assert gate.execute("SELECT 1").fetchone() == (1,)


def test_a_newer_version_and_unknown_options_are_negotiated_down(secured: Secured):
    with socket.create_connection(("127.0.0.1", secured.server.port), PATIENCE_S) as line:
        line.sendall(startup(196_608 + 99, b"_pq_.future", b"on"))
        said = line.recv(65_536)
    assert said[:1] == b"v"
    assert struct.unpack_from("!II", said, 5) == (196_608 + 2, 1)
    assert b"_pq_.future\0" in said


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the signal is POSIX's")
def test_a_login_is_bound_to_the_certificate_that_was_loaded_last(secured: Secured):
    with psycopg.connect(secured.conninfo(channel_binding="require"), autocommit=True) as before:
        secured.authority.sign("server", "localhost", "127.0.0.1")
        secured.server.process.process.send_signal(signal.SIGHUP)
        secured.server.process.until("SIGHUP")
        with psycopg.connect(secured.conninfo(channel_binding="require")) as gate:
            assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)
        assert before.execute("SELECT 1").fetchone() == (1,)
