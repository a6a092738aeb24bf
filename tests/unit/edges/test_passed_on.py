"""What balancers say of a connection is read from its socket, and not a byte more."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from support.eventually import PATIENCE_S
from support.proxy_headers import LOCAL, header
from tidegate.edges.passed_on import HeaderWarnings, PassedOn

CLIENT = "203.0.113.9"


@contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection by TCP: the balancer's, and that of the gate."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        closing(socket.create_connection(listener.getsockname())) as there,
    ):
        here, _ = listener.accept()
        with closing(here):
            here.setblocking(False)
            yield there, here


def trusting(trusted: bool = True, header_s: float = PATIENCE_S) -> PassedOn:
    return PassedOn(lambda address: trusted and address == "127.0.0.1", header_s)


@pytest.mark.parametrize(
    ("sent", "client"),
    [
        (header(CLIENT), CLIENT),
        (header("2001:db8::7", summed=True), "2001:db8::7"),
        (header("::ffff:203.0.113.9"), CLIENT),
        (header(CLIENT, command=LOCAL), "127.0.0.1"),
    ],
)
def test_what_follows_the_header_is_left_to_the_protocol(sent: bytes, client: str) -> None:
    with pair() as (there, here):
        there.sendall(sent + b"next")
        assert asyncio.run(trusting().read_client(here)) == client
        assert here.recv(100) == b"next"


def test_a_header_may_come_byte_by_byte() -> None:
    async def send_slowly(there: socket.socket, here: socket.socket) -> str:
        reading = asyncio.create_task(trusting().read_client(here))
        for byte in header(CLIENT):
            there.sendall(bytes([byte]))
            await asyncio.sleep(0)
        return await reading

    with pair() as (there, here):
        assert asyncio.run(send_slowly(there, here)) == CLIENT


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "sent no header"),
        (b"\x00", "sent no header"),  # PostgreSQL's client waits for an answer to eight bytes
        (b"\x16\x03\x01", "sent no header"),
        (header(CLIENT)[:-1], "within 0.05 seconds"),
        (b"\r", "within 0.05 seconds"),
        (b"", "within 0.05 seconds"),
        (header(CLIENT)[:14] + b"\xff\xff", "the limit is 4096"),
    ],
)
def test_a_trusted_proxy_that_sends_no_whole_header_is_refused(
    sent: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pair() as (there, here), caplog.at_level(logging.WARNING, "tidegate.listening"):
        there.sendall(sent)
        assert asyncio.run(trusting(header_s=0.05).read_client(here)) == ""
    (line,) = caplog.messages
    assert "127.0.0.1" in line and reason in line and "`proxy_protocol`" in line


def test_a_proxy_that_leaves_is_refused_at_once() -> None:
    with pair() as (there, here):
        there.sendall(header(CLIENT)[:20])
        there.close()
        assert asyncio.run(trusting().read_client(here)) == ""


def test_nothing_is_read_of_a_client_that_comes_directly() -> None:
    with pair() as (there, here):
        there.sendall(header(CLIENT))
        assert asyncio.run(trusting(trusted=False).read_client(here)) == "127.0.0.1"
        assert here.recv(100) == header(CLIENT)


def test_one_address_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    warnings = HeaderWarnings()
    with caplog.at_level(logging.WARNING, "tidegate.listening"):
        for _ in range(3):
            warnings.note_unexpected("192.0.2.1", header(CLIENT))
            warnings.note_unexpected("192.0.2.2", b"GET / HTTP/1.1")
    assert len(caplog.messages) == 1 and "192.0.2.1" in caplog.text


class _From(socket.socket):
    """A connection whose other end has another address."""

    def __init__(self, address: str, connection: socket.socket) -> None:
        super().__init__(fileno=connection.detach())
        self._address = address

    def getpeername(self) -> tuple[str, int]:
        return self._address, 1


@pytest.mark.parametrize(
    "client", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.2", "10.0.0.5"]
)
def test_another_machine_cannot_name_this_one_by_any_address_of_loopback(client: str) -> None:
    with pair() as (there, here), _From("10.0.0.9", here) as far:
        far.setblocking(False)
        there.sendall(header(client))
        proxy = PassedOn(lambda address: True, listens_at="10.0.0.5")
        assert asyncio.run(proxy.read_client(far)) == "10.0.0.9"
