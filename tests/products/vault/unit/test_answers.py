"""What a vault answers is read within a size and a time, whatever it sends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.vault.reading import read_all
from tidegate.products.vault.settings import VaultSettings

pytestmark = pytest.mark.needs("vault")

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


@contextmanager
def vault(answer: Callable[[socket.socket, threading.Event], None]) -> Generator[VaultSettings]:
    """A server that reads one request and answers so."""
    listener, stop = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        with suppress(OSError):
            connection = listener.accept()[0]
            with connection:
                connection.recv(65_536)
                connection.sendall(HEAD)
                answer(connection, stop)

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield VaultSettings(address=address, token="${ENV:PATH}", timeout_s=0.5)
    finally:
        stop.set()
        listener.close()
        serving.join(60)


def send_slowly(connection: socket.socket, stop: threading.Event) -> None:
    for _ in range(200):
        connection.sendall(b" ")
        if stop.wait(0.01):
            return
    connection.sendall(b'{"data": {"data": {"x": "late"}}}')


def send_much(connection: socket.socket, stop: threading.Event) -> None:
    connection.sendall(b'{"data": {"data": {"x": "' + b"a" * 3_000_000 + b'"}}}')


def send_deep(connection: socket.socket, stop: threading.Event) -> None:
    connection.sendall(b"[" * 200_000)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (send_slowly, "did not answer within 0.5 s"),
        (send_much, "more than any answer"),
        (send_deep, "no answer of its API"),
    ],
)
def test_an_answer_without_end_is_an_error(
    answer: Callable[[socket.socket, threading.Event], None], why: str
) -> None:
    with vault(answer) as settings, pytest.raises(TidegateError, match=why) as raised:
        read_all(["secret/data/shop#x"], settings)
    assert raised.value.code is Code.SECRET_UNAVAILABLE
