"""The load client against a real server of raw bytes: whole, in pieces, in chunks, and wrong."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from bench.client import Shot, WrongAnswerError, dechunk, volley

from support.eventually import PATIENCE_S

Answer = Callable[[bytes], list[bytes]]


@contextmanager
def serving(answer: Answer) -> Iterator[int]:
    """A server on loopback that answers each `GET NUMBER` line with pieces of bytes."""
    ready = threading.Event()
    opened: list[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while number := (await reader.readline()).strip():
                for piece in answer(number):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        stop = asyncio.Event()
        port = server.sockets[0].getsockname()[1]
        opened.append((asyncio.get_running_loop(), stop, port))
        ready.set()
        async with server:
            await stop.wait()

    # asyncio.run ends what the connections still do, so that nothing is left pending.
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(PATIENCE_S)
    loop, stop, port = opened[0]
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_S)


def shots(times: int = 0) -> Iterator[Shot]:
    for number in count(1):
        yield Shot(b"%d\n" % number, b"row", b"<%d>" % number, times)


def plain(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def chunked(*parts: bytes) -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunks


def test_right_answers_are_counted_once_each() -> None:
    with serving(lambda number: [plain(b"row <%b>" % number)]) as port:
        fired = volley(port, shots(), clients=4, calls=40, seconds=PATIENCE_S)
    assert fired.calls == 40
    assert fired.wall > 0
    assert fired.client_cpu > 0


@pytest.mark.parametrize("cut", [1, 20, 44, 60, 5000])
def test_an_answer_in_pieces_is_put_together(cut: int) -> None:
    def answer(number: bytes) -> list[bytes]:
        whole = plain(b"row <%b>" % number + b"x" * 9000)
        return [whole[:cut], whole[cut : cut + 100], whole[cut + 100 :]]

    with serving(answer) as port:
        fired = volley(port, shots(), clients=1, calls=3, seconds=PATIENCE_S)
    assert fired.calls == 3
    assert fired.answer_bytes == 9007


@pytest.mark.parametrize("cut", [10, 60, 70])
def test_a_chunked_answer_is_put_together(cut: int) -> None:
    def answer(number: bytes) -> list[bytes]:
        whole = chunked(b"row <", number, b"> 0\r\n", b"row")
        return [whole[:cut], whole[cut:-3], whole[-3:]]

    with serving(answer) as port:
        fired = volley(port, shots(times=2), clients=1, calls=3, seconds=PATIENCE_S)
    assert fired.calls == 3


def test_half_a_chunked_body_is_no_body() -> None:
    whole = chunked(b"one", b"two")
    start = whole.index(b"\r\n\r\n") + 4
    assert dechunk(whole, start) == b"onetwo"
    assert dechunk(whole[:-7], start) is None


@pytest.mark.parametrize(
    "reply",
    [
        plain(b"row <0>"),
        plain(b"error <1>"),
        plain(b"row <1>").replace(b"200", b"500"),
        b"HTTP/1.1 200 OK\r\n\r\nrow <1>",
    ],
    ids=["another id", "no row", "status 500", "no length"],
)
def test_a_wrong_answer_ends_the_volley(reply: bytes) -> None:
    with (
        serving(lambda number: [reply]) as port,
        pytest.raises(WrongAnswerError),
    ):
        volley(port, shots(), clients=1, calls=1, seconds=PATIENCE_S)


def test_a_marker_too_many_ends_the_volley() -> None:
    with (
        serving(lambda number: [plain(b"row row row <%b>" % number)]) as port,
        pytest.raises(WrongAnswerError),
    ):
        volley(port, shots(times=2), clients=1, calls=1, seconds=PATIENCE_S)


def test_a_lost_connection_ends_the_volley() -> None:
    with serving(lambda number: []) as port, pytest.raises(WrongAnswerError):
        volley(port, iter([Shot(b"\n", b"row", b"")]), clients=1, calls=1, seconds=PATIENCE_S)
