"""The HTTP server itself, on raw sockets: what reaches the application, in what order, and what
ends a connection. What it must not do is take one request for two, or two for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest

from support.eventually import PATIENCE_S
from support.http_application import Wire
from tidegate.edges.http1.head import MOST_BYTES, read_head
from tidegate.edges.http1.reader import Pattern
from tidegate.edges.http1.request import CutOff, IncomingRequest, TooLarge, block_of
from tidegate.edges.http1.server import Deadlines, Server
from tidegate.edges.listening import bind

LIMIT = 1_000_000
HEAD = b"POST /echo HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


GRACE_S = 5.0
LINGERS_LESS = partial(Server, deadlines=Deadlines(linger_s=1.0))
"""For who sends a body whose end never comes."""


class Harness:
    """A running server, whose application notes what reaches it."""

    def __init__(self) -> None:
        self.reached: list[tuple[str, str, bytes | None]] = []
        self.left = asyncio.Event()
        self.go = asyncio.Event()
        self.port = 0
        self.requests: list[IncomingRequest] = []
        self.server: Server | None = None

    async def application(self, request: IncomingRequest) -> None:
        self.requests.append(request)
        path = request.head.path
        if path == "/deaf":  # answers without a look at the body
            self.reached.append((request.head.method, path, None))
            request.respond(401, b"", b"who are you?")
            return
        try:
            body = await request.read(LIMIT)
        except TooLarge:
            request.respond(413, b"", close=True)
            return
        except CutOff:
            request.respond(400, b"", close=True)
            return
        self.reached.append((request.head.method, path, body))
        await self._answer(request, path, body)

    async def _answer(self, request: IncomingRequest, path: str, body: bytes) -> None:
        if path == "/wait":
            request.when_gone(self.left.set)
            await self.go.wait()
        if path == "/fault":
            raise ValueError("a fault")
        if path == "/cancelled":
            waited = asyncio.get_running_loop().create_future()
            waited.cancel()
            await waited
        if path == "/stream":
            request.start(b"")
            for part in (b"one", b"two"):
                request.push(part)
            request.finish()
        elif path == "/torn":
            request.start(b"")
            request.push(b"one")
        elif path == "/early":  # the answer ends long before the work does
            request.respond(200, b"", b"early")
            await self.go.wait()
        elif path == "/large":
            request.respond(200, b"", b"x" * 30_000_000)
        else:
            request.respond(200, block_of([(b"x-echo", b"yes")]), body or path.encode())

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def say(self, *pieces: bytes) -> bytes:
        """All that comes back on a connection of its own until the server ends it."""
        reader, writer = await self.connect()
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        received = await rest_of(reader)
        writer.close()
        return received


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    received = b""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while piece := await reader.read(65_536):
                received += piece
    except ConnectionError:
        pass
    return received


@asynccontextmanager
async def running(server: Callable[..., Server] = Server) -> AsyncIterator[Harness]:
    harness = Harness()
    listener = bind("127.0.0.1", 0)
    harness.port = listener.getsockname()[1]
    harness.server = server(harness.application)
    await harness.server.accept(listener)
    try:
        yield harness
    finally:
        stopping = asyncio.ensure_future(harness.server.stop(GRACE_S))
        while not harness.server.stopping:
            await asyncio.sleep(0)
        harness.go.set()
        await stopping


def run(test: Callable[[Harness], Awaitable[None]], **more: Any) -> None:
    async def main() -> None:
        async with running(**more) as harness:
            await test(harness)

    asyncio.run(main())


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer
    return int(answer[9:12])


def sized(body: bytes, path: bytes = b"/echo", more: bytes = b"") -> bytes:
    length = str(len(body)).encode()
    start = b"POST " + path + b" HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + b"\r\n"
    return start + more + b"\r\n" + body


LAST = b"Connection: close\r\n"

# What two readers could understand in two ways, and what is no HTTP at all: status, bytes.
REFUSED: dict[str, tuple[int, bytes]] = {
    "a length and chunks": (
        400,
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "chunks and a length": (
        400,
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ),
    "two lengths": (400, HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
    "one length twice": (400, HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab"),
    "a list of lengths": (400, HEAD + b"Content-Length: 2, 2\r\n\r\nab"),
    "a signed length": (400, HEAD + b"Content-Length: +2\r\n\r\nab"),
    "a negative length": (400, HEAD + b"Content-Length: -2\r\n\r\nab"),
    "a length in hex": (400, HEAD + b"Content-Length: 0x2\r\n\r\nab"),
    "a length in two words": (400, HEAD + b"Content-Length: 2 2\r\n\r\nab"),
    "a length that overflows": (400, HEAD + b"Content-Length: 99999999999999999999\r\n\r\nab"),
    "a length of nothing": (400, HEAD + b"Content-Length: \r\n\r\nab"),
    "a blank before the colon": (400, HEAD + b"Content-Length : 2\r\n\r\nab"),
    "identity": (501, HEAD + b"Transfer-Encoding: identity\r\n\r\nab"),
    "chunks that are not last": (
        400,
        HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    "chunks that are compressed": (
        501,
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ),
    "something like chunks": (501, HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    "chunks twice": (
        400,
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "chunks behind another coding on a line of its own": (
        501,
        HEAD + b"Transfer-Encoding: cow\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "chunks behind a tabulator": (
        400,
        HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    ),
    "chunks behind a fold": (400, HEAD + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    "chunks in HTTP/1.0": (
        400,
        b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "a folded header": (400, HEAD + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\nab"),
    "a blank before the first header": (400, b"POST / HTTP/1.1\r\n Host: a\r\n\r\n"),
    "a line feed alone in the request line": (400, b"POST / HTTP/1.1\nHost: a\r\n\r\n"),
    "a line feed alone in a header": (400, HEAD + b"X: a\nContent-Length: 2\r\n\r\nab"),
    "a line feed alone at the end": (400, HEAD + b"Content-Length: 2\r\n\nab"),
    "a carriage return alone": (400, HEAD + b"X: a\rY: b\r\n\r\n"),
    "a NUL in a header": (400, HEAD + b"X: a\x00\r\n\r\n"),
    "a control character in a header": (400, HEAD + b"X: a\x01\r\n\r\n"),
    "a blank in a name": (400, HEAD + b"X Y: a\r\n\r\n"),
    "no name": (400, HEAD + b": a\r\n\r\n"),
    "no colon": (400, HEAD + b"X\r\n\r\n"),
    "no method": (400, b"/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a method in lower case": (400, b"post / HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a blank in the target": (400, b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a fragment": (400, b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a target without a slash": (400, b"GET mcp HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a target of another host": (400, b"GET http://b/mcp HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a target of another kind": (400, b"GET ftp://a/mcp HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a version to come": (505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    "a version that never was": (400, b"GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
    "HTTP/2": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "another protocol": (400, b"PLAY rtsp://a/ RTSP/1.0\r\n\r\n"),
    "TLS": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "a tunnel": (501, b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
    "many headers": (431, HEAD + b"X: y\r\n" * 300 + b"\r\n"),
    "a long header": (431, HEAD + b"X: " + b"y" * MOST_BYTES + b"\r\n\r\n"),
    "a long target": (431, b"GET /" + b"y" * MOST_BYTES + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two hosts": (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
}
TORN: dict[str, bytes] = {
    "a size in words": b"two\r\nab\r\n0\r\n\r\n",
    "a size with a blank": b"2 \r\nab\r\n0\r\n\r\n",
    "a blank before the size": b" 2\r\nab\r\n0\r\n\r\n",
    "a size with a prefix": b"0x2\r\nab\r\n0\r\n\r\n",
    "a negative size": b"-2\r\nab\r\n0\r\n\r\n",
    "a size that overflows": b"FFFFFFFFFFFFFFFFF\r\nab\r\n0\r\n\r\n",
    "a line feed alone behind the size": b"2\nab\r\n0\r\n\r\n",
    "a line feed alone behind an extension": b"2;a\nab\r\n0\r\n\r\n",
    "a line feed alone behind the data": b"2\r\nab\n0\r\n\r\n",
    "more data than said": b"2\r\nabc\r\n0\r\n\r\n",
    "a length behind the last": b"2\r\nab\r\n0\r\nContent-Length: 5\r\n\r\n",
    "an extension without end": b"2;" + b"a" * 200_000,
    "trailers without end": b"2\r\nab\r\n0\r\n" + b"X: y\r\n" * 40_000,
}


@pytest.mark.parametrize(("status", "sent"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_ambiguous_or_no_http_reaches_no_one(status: int, sent: bytes) -> None:
    async def test(harness: Harness) -> None:
        # What follows would be a second request, for those who see an end before it.
        received = await harness.say(sent + sized(b"second"))
        assert status_of(received) == status
        assert received.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in received
        assert harness.reached == []

    run(test)


@pytest.mark.parametrize("body", TORN.values(), ids=TORN.keys())
def test_a_body_that_is_none_reaches_no_one(body: bytes) -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(CHUNKED + body + sized(b"second"))
        assert status_of(received) == 400
        assert received.count(b"HTTP/1.1 ") == 1
        assert harness.reached == []

    run(test)


@pytest.mark.parametrize("ordinary", [b"", sized(b"first")], ids=["first", "behind another"])
@pytest.mark.parametrize(("status", "sent"), REFUSED.values(), ids=REFUSED.keys())
def test_a_known_head_opens_no_door_for_another(status: int, sent: bytes, ordinary: bytes) -> None:
    """The connection remembers the head of its last request; one that is alike is read again."""

    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        for _ in range(3):
            writer.write(sized(b"ordinary"))
            assert await answer_of(reader) == b"ordinary"
        del harness.reached[:]
        writer.write(ordinary + sent + sized(b"second"))
        received = await rest_of(reader)
        writer.close()
        assert received.count(b"HTTP/1.1 200 ") == (1 if ordinary else 0)
        assert [body for _, _, body in harness.reached] == ([b"first"] if ordinary else [])

    run(test)


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    """The body of the next whole answer."""
    async with asyncio.timeout(PATIENCE_S):
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        return await reader.readexactly(int(fields[b"content-length"]))


def test_a_connection_is_kept_for_many_requests_of_any_length() -> None:
    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        for length in (1, 1, 9, 10, 99, 1_000, 5, 70_000, 300_000, 2):
            body = b"y" * length
            writer.write(sized(body))
            assert await answer_of(reader) == body
        writer.close()

    run(test)


def test_requests_that_come_in_pieces_are_whole() -> None:
    async def test(harness: Harness) -> None:
        whole = sized(b"a body") + CHUNKED + b"2\r\nab\r\n1;x=y\r\nc\r\n0\r\nX: y\r\n\r\n"
        reader, writer = await harness.connect()
        writer.get_extra_info("socket").setsockopt(6, 1, 1)  # TCP_NODELAY
        for place in range(len(whole)):
            writer.write(whole[place : place + 1])
            await writer.drain()
            await asyncio.sleep(0)
        assert await answer_of(reader) == b"a body"
        assert await answer_of(reader) == b"abc"
        writer.close()
        assert [body for _, _, body in harness.reached] == [b"a body", b"abc"]

    run(test)


def test_pipelined_requests_are_answered_in_order_one_at_a_time() -> None:
    async def test(harness: Harness) -> None:
        bodies = [str(number).encode() for number in range(200)]
        reader, writer = await harness.connect()
        writer.write(sized(b"w", b"/wait") + b"".join(map(sized, bodies)))
        async with asyncio.timeout(PATIENCE_S):
            while not harness.reached:
                await asyncio.sleep(0)
        assert harness.reached == [("POST", "/wait", b"w")]
        harness.go.set()
        assert await answer_of(reader) == b"w"
        for body in bodies:
            assert await answer_of(reader) == body
        writer.close()

    run(test)


def test_a_flood_of_pipelined_requests_ends_the_connection() -> None:
    async def test(harness: Harness) -> None:
        flood = sized(b"w", b"/wait") + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 5_000
        reader, writer = await harness.connect()
        writer.write(flood)
        async with asyncio.timeout(PATIENCE_S):
            while not harness.reached:
                await asyncio.sleep(0)
        harness.go.set()
        received = await rest_of(reader)
        writer.close()
        assert received.startswith(b"HTTP/1.1 200")
        assert received.endswith(b"/")

    run(test)


def test_what_is_malformed_behind_a_request_does_not_keep_it_from_its_answer() -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(sized(b"first") + sized(b"second") + b"nonsense\r\n\r\n")
        assert received.count(b"HTTP/1.1 200") == 2
        assert [body for _, _, body in harness.reached] == [b"first", b"second"]

    run(test)


@pytest.mark.parametrize(
    "sent",
    [
        sized(b"a", more=LAST) + sized(b"b"),
        b"POST /echo HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\n\r\na" + sized(b"b"),
        b"POST /echo HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
    ],
    ids=["close", "HTTP/1.0", "HTTP/1.0 that would stay"],
)
def test_the_last_request_of_a_connection_is_answered_and_nothing_behind_it(sent: bytes) -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(sent)
        assert status_of(received) == 200
        assert b"connection: close\r\n" in received
        assert received.endswith(b"\r\n\r\na")
        assert [body for _, _, body in harness.reached] == [b"a"]

    run(test)


OFFERS = {
    "a request without a body": (
        b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        ("GET", "/echo", b""),
    ),
    "a body of known length": (
        HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABk\r\nContent-Length: 3\r\n\r\nabc",
        ("POST", "/echo", b"abc"),
    ),
    "a body in chunks": (
        HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        ("POST", "/echo", b"abc"),
    ),
}


@pytest.mark.parametrize("piece", [1, 40, 10_000])
@pytest.mark.parametrize(("sent", "reached"), OFFERS.values(), ids=OFFERS.keys())
def test_b16_an_offer_of_another_protocol_is_ignored(
    sent: bytes, reached: tuple[str, str, bytes], piece: int
) -> None:
    """TRIALS B16: Java's HttpClient offers h2c with every first request."""

    async def test(harness: Harness) -> None:
        both = sent + HEAD + LAST + b"Content-Length: 1\r\n\r\nb"
        received = await harness.say(*(both[at : at + piece] for at in range(0, len(both), piece)))
        assert received.count(b"HTTP/1.1 200 OK\r\n") == 2
        assert harness.reached == [reached, ("POST", "/echo", b"b")]

    run(test)


def test_b16_a_refused_body_is_read_to_its_end_before_the_connection_closes() -> None:
    """TRIALS B16: a client that still writes must come to read the 413."""

    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        size = 8 * 1024 * 1024
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % size)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert status_of(answer) == 413
        assert b"connection: close\r\n" in answer
        for _ in range(size // 65_536):
            assert not reader.at_eof()
            writer.write(b"b" * 65_536)
            await writer.drain()
        assert await rest_of(reader) == b""
        writer.close()
        assert harness.reached == []

    run(test)


def test_b16_an_escaped_slash_separates_no_path() -> None:
    """TRIALS B16: `/mcp%2Fcore` is another path than `/mcp/core`."""

    async def test(harness: Harness) -> None:
        await harness.say(b"GET /a%2Fb%20c/%64 HTTP/1.1\r\nHost: a\r\n" + LAST + b"\r\n")
        assert harness.reached == [("GET", "/a%2Fb c/d", b"")]

    run(test)


@pytest.mark.parametrize("begun", [HEAD + b"X: ", b"GET /"], ids=["header", "target"])
def test_a_head_without_end_is_cut_off(begun: bytes) -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(begun, b"y" * MOST_BYTES)
        assert status_of(received) == 431
        assert harness.reached == []

    run(test)


def test_a_head_of_too_many_headers_is_cut_off_before_its_end() -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(HEAD + b"a:\r\n" * 300)
        assert status_of(received) == 431
        assert harness.reached == []

    run(test)


def test_a_head_request_gets_a_head() -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(b"HEAD /echo HTTP/1.1\r\nHost: a\r\n" + LAST + b"\r\n")
        assert status_of(received) == 200
        assert b"content-length: 5\r\n" in received
        assert received.endswith(b"\r\n\r\n")

    run(test)


def test_an_answer_is_dated_and_says_its_length() -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(sized(b"a", more=LAST))
        head = received.partition(b"\r\n\r\n")[0]
        assert b"\r\ndate: " in head
        assert b" GMT\r\n" in head
        assert b"\r\nx-echo: yes" in head
        assert b"\r\ncontent-length: 1" in head

    run(test)


def test_targets_of_every_form_name_a_path() -> None:
    async def test(harness: Harness) -> None:
        for target in (b"/a%20b?q=/c", b"http://a/a%20b", b"http://a", b"*", b"/\xc3\xa4"):
            method = b"OPTIONS " if target == b"*" else b"GET "
            await harness.say(method + target + b" HTTP/1.1\r\nHost: a\r\n" + LAST + b"\r\n")
        assert [path for _, path, _ in harness.reached] == ["/a b", "/a b", "/", "*"]

    run(test)


def test_a_body_is_asked_for_when_someone_reads_it() -> None:
    async def test(harness: Harness) -> None:
        expects = b"Expect: 100-continue\r\n"
        reader, writer = await harness.connect()
        head, _, _ = sized(b"body", more=expects).partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"body")
        assert await answer_of(reader) == b"body"
        writer.close()

    run(test)


def test_a_body_is_not_asked_for_when_no_one_reads_it() -> None:
    async def test(harness: Harness) -> None:
        head, _, _ = sized(b"body", b"/deaf", b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
        received = await harness.say(head + b"\r\n\r\n")
        assert status_of(received) == 401
        assert b"connection: close\r\n" in received
        assert b"100 Continue" not in received

    run(test)


def test_a_small_body_that_no_one_reads_keeps_the_connection() -> None:
    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        request = sized(b"b" * 100, b"/deaf")
        writer.write(request[:-50])
        assert await answer_of(reader) == b"who are you?"
        writer.write(request[-50:] + sized(b"next"))
        assert await answer_of(reader) == b"next"
        writer.close()

    run(test)


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
def test_a_large_body_that_no_one_reads_ends_the_connection_behind_the_answer(
    chunked: bool,
) -> None:
    async def test(harness: Harness) -> None:
        body = b"b" * 200_000
        if chunked:
            start = CHUNKED.replace(b"/echo", b"/deaf")
            request = start + b"%x\r\n" % len(body) + body
        else:
            request = sized(body, b"/deaf")[:-1]
        received = await harness.say(request)
        assert status_of(received) == 401
        assert received.endswith(b"who are you?")
        assert b"connection: close\r\n" in received

    run(test, server=LINGERS_LESS)


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
def test_a_body_above_the_limit_is_refused_before_it_is_here(chunked: bool) -> None:
    async def test(harness: Harness) -> None:
        if chunked:
            sent = CHUNKED + b"%x\r\n" % (3 * LIMIT) + b"b" * (LIMIT + 1)
        else:
            sent = HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (LIMIT + 1)
        received = await harness.say(sent)
        assert status_of(received) == 413
        assert harness.reached == []

    run(test, server=LINGERS_LESS)


def test_a_client_that_goes_is_noticed_while_its_request_runs() -> None:
    async def test(harness: Harness) -> None:
        _, writer = await harness.connect()
        writer.write(sized(b"w", b"/wait"))
        async with asyncio.timeout(PATIENCE_S):
            while not harness.reached:
                await asyncio.sleep(0)
            writer.transport.abort()
            await harness.left.wait()
        assert harness.requests[0].gone

    run(test)


def test_a_client_that_goes_within_a_body_reaches_no_one() -> None:
    async def test(harness: Harness) -> None:
        _, writer = await harness.connect()
        writer.write(sized(b"body")[:-1])
        async with asyncio.timeout(PATIENCE_S):
            while not harness.requests:
                await asyncio.sleep(0)
            writer.close()
            while not harness.requests[0].answered:
                await asyncio.sleep(0)
        assert harness.reached == []

    run(test)


def test_a_fault_of_the_application_is_answered_and_ends_the_connection() -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(sized(b"x", b"/fault"))
        assert status_of(received) == 500
        assert b"fault" not in received
        assert status_of(await harness.say(sized(b"x", more=LAST))) == 200

    run(test)


def test_an_application_that_is_cancelled_does_not_leave_its_client_waiting() -> None:
    async def test(harness: Harness) -> None:
        assert await harness.say(sized(b"x", b"/cancelled")) == b""
        assert status_of(await harness.say(sized(b"x", more=LAST))) == 200

    run(test)


def test_a_stream_is_sent_in_parts_and_the_connection_goes_on() -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(sized(b"x", b"/stream") + sized(b"next", more=LAST))
        assert b"transfer-encoding: chunked\r\n" in received
        assert b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\nHTTP/1.1 200" in received
        assert received.endswith(b"next")

    run(test)


def test_a_stream_to_an_old_client_ends_with_the_connection() -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(b"GET /stream HTTP/1.0\r\nHost: a\r\n\r\n")
        assert b"chunked" not in received
        assert received.endswith(b"\r\n\r\nonetwo")

    run(test)


def test_a_stream_that_was_not_ended_does_not_look_whole() -> None:
    async def test(harness: Harness) -> None:
        received = await harness.say(sized(b"x", b"/torn"))
        assert not received.endswith(b"0\r\n\r\n")

    run(test)


def test_work_behind_an_answer_does_not_hold_up_the_next_request() -> None:
    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        writer.write(sized(b"x", b"/early"))
        assert await answer_of(reader) == b"early"
        writer.write(sized(b"next"))
        assert await answer_of(reader) == b"next"
        writer.write(sized(b"x", b"/early") + sized(b"last"))
        assert await answer_of(reader) == b"early"
        assert await answer_of(reader) == b"last"
        writer.close()

    run(test)


def test_the_next_request_waits_for_a_client_that_does_not_read() -> None:
    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        writer.write(sized(b"x", b"/large") * 2)
        async with asyncio.timeout(PATIENCE_S):
            while not harness.reached:
                await asyncio.sleep(0)
            # Another client is served meanwhile; the answer that no one reads holds up its own.
            assert status_of(await harness.say(sized(b"x", more=LAST))) == 200
        assert [path for _, path, _ in harness.reached] == ["/large", "/echo"]
        for _ in range(2):
            assert len(await answer_of(reader)) == 30_000_000
        writer.close()

    run(test)


def test_clients_that_read_nothing_are_disconnected_when_all_together_leave_too_much() -> None:
    async def test(harness: Harness) -> None:
        clients = [await harness.connect() for _ in range(4)]
        for count, (_, writer) in enumerate(clients, 1):
            writer.write(sized(b"x", b"/large"))  # 30 MB, of which the system holds a few
            async with asyncio.timeout(PATIENCE_S):
                while len(harness.reached) < count:
                    await asyncio.sleep(0)
        assert status_of(await harness.say(sized(b"x", more=LAST))) == 200
        answered = 0
        for reader, writer in clients:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                answered += len(await answer_of(reader)) == 30_000_000
            writer.close()
        assert answered == 2

    run(test, server=partial(Server, most_unread=70_000_000))


def test_one_answer_may_be_larger_than_all_clients_may_leave_unread() -> None:
    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        writer.write(sized(b"x", b"/large"))
        assert len(await answer_of(reader)) == 30_000_000
        writer.close()

    run(test, server=partial(Server, most_unread=1_000_000))


def test_connections_beyond_the_bound_are_refused() -> None:
    async def test(harness: Harness) -> None:
        connections = [await harness.connect() for _ in range(2)]
        for reader, writer in connections:
            writer.write(sized(b"x"))
            assert await answer_of(reader) == b"x"
        refused = await harness.say()
        assert (status_of(refused), b"retry-after: 1\r\n" in refused) == (503, True)
        connections[0][1].close()
        async with asyncio.timeout(PATIENCE_S):
            while status_of(await harness.say(sized(b"y", more=LAST))) != 200:
                pass
        connections[1][1].close()

    run(test, server=partial(Server, most_connections=2))


SLOW: dict[str, tuple[Deadlines, bytes]] = {
    "between requests": (Deadlines(0.2, 60, 60), b""),
    "within a head": (Deadlines(60, 0.2, 60), HEAD),
    "within a body": (Deadlines(60, 60, 0.2), sized(b"body")[:-1]),
    "within a body that no one reads": (Deadlines(60, 60, 0.2), sized(b"body", b"/deaf")[:-1]),
    "within chunks": (Deadlines(60, 60, 0.2), CHUNKED + b"5\r\nab"),
}


@pytest.mark.parametrize(("deadlines", "sent"), SLOW.values(), ids=SLOW.keys())
def test_who_keeps_us_waiting_is_cut_off(deadlines: Deadlines, sent: bytes) -> None:
    async def test(harness: Harness) -> None:
        await harness.say(sent)
        assert [body for _, _, body in harness.reached if body] == []

    run(test, server=partial(Server, deadlines=deadlines, sweep_s=0.05))


def test_the_time_for_a_head_begins_with_its_first_byte() -> None:
    async def main() -> None:
        server = Server(Harness().application)
        connection = server.connection()
        connection.connection_made(Wire("127.0.0.1"))
        server.now += 70
        connection.data_received(b"POST /")
        assert connection.waits == "head"
        assert connection.since == server.now
        connection.connection_lost(None)

    asyncio.run(main())


def test_who_leaves_an_answer_lying_is_cut_off() -> None:
    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        writer.write(sized(b"x", b"/large") * 2)
        async with asyncio.timeout(PATIENCE_S):
            while not harness.reached:
                await asyncio.sleep(0)
            # There is room for one connection only: until that one is cut off.
            while status_of(await harness.say(sized(b"y", more=LAST))) != 200:
                pass
        assert len(await rest_of(reader)) < 30_000_000
        writer.close()
        assert [path for _, path, _ in harness.reached] == ["/large", "/echo"]

    server = partial(Server, deadlines=Deadlines(0.2, 60, 60), sweep_s=0.05, most_connections=1)
    run(test, server=server)


class Pipe(Wire):
    """A client that leaves `unread` bytes of what it was answered."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1")
        self.unread = 0
        self.received = True

    def get_write_buffer_size(self) -> int:
        return self.unread

    def pause_reading(self) -> None:
        self.received = False

    def resume_reading(self) -> None:
        self.received = True


def test_who_reads_an_answer_slowly_is_let_be() -> None:
    async def main() -> None:
        harness, pipe = Harness(), Pipe()
        server = Server(harness.application)
        connection = server.connection()
        connection.connection_made(pipe)
        pipe.unread = 30_000_000
        for last in (b"", LAST):
            connection.data_received(sized(b"x", b"/echo", last))
            while b"x-echo" not in pipe.written:
                await asyncio.sleep(0)
            pipe.written = b""
            connection.look()
            for _ in range(3):
                server.now += 70
                pipe.unread -= 1_000_000
                connection.look()
                assert connection.waits == "reading"
                assert connection.since == server.now
            server.now += 70
            connection.look()
            assert connection.since < server.now
        connection.connection_lost(None)

    asyncio.run(main())


def test_who_does_not_read_is_not_read_from() -> None:
    async def main() -> None:
        harness, pipe = Harness(), Pipe()
        server = Server(harness.application)
        connection = server.connection()
        connection.connection_made(pipe)
        connection.pause_writing()
        assert not pipe.received
        connection.data_received(sized(b"early", b"/early") + sized(b"x" * 70_000)[:-1])
        connection.resume_writing()
        assert not pipe.received, "a body that no one asked for is still ahead of its time"
        while not pipe.written.endswith(b"early"):
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S):
            while not pipe.received:
                await asyncio.sleep(0)
        connection.data_received(b"x" + sized(b"behind", b"/early"))
        while not pipe.written.endswith(b"early"):
            await asyncio.sleep(0)
        connection.connection_lost(None)
        harness.go.set()

    asyncio.run(main())


def test_nothing_is_answered_while_an_answer_is_not_taken() -> None:
    async def main() -> None:
        harness, pipe = Harness(), Pipe()
        connection = Server(harness.application).connection()
        connection.connection_made(pipe)
        connection.data_received(sized(b"x", b"/early"))
        while not pipe.written:
            await asyncio.sleep(0)
        connection.pause_writing()
        connection.data_received(sized(b"next") * 3)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [path for _, path, _ in harness.reached] == ["/early"]
        connection.resume_writing()
        async with asyncio.timeout(PATIENCE_S):
            while pipe.written.count(b"\r\n\r\nnext") < 3:
                await asyncio.sleep(0)
        connection.connection_lost(None)
        harness.go.set()

    asyncio.run(main())


def test_a_head_is_not_charged_for_what_came_before_it_in_one_piece() -> None:
    async def main() -> None:
        harness, pipe = Harness(), Pipe()
        connection = Server(harness.application).connection()
        connection.connection_made(pipe)
        last = sized(b"last", more=LAST)
        connection.data_received(sized(b"b" * 1_000) * 100 + last[:20])
        connection.data_received(last[20:])
        async with asyncio.timeout(PATIENCE_S):
            await pipe.closed.wait()
        assert pipe.written.count(b"HTTP/1.1 200") == 101
        connection.connection_lost(None)

    asyncio.run(main())


def test_a_client_that_sends_no_more_ends_what_runs_for_it() -> None:
    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        writer.write(sized(b"w", b"/wait"))
        async with asyncio.timeout(PATIENCE_S):
            while not harness.reached:
                await asyncio.sleep(0)
            writer.write_eof()
            await harness.left.wait()
        assert await rest_of(reader) == b""
        writer.close()

    run(test)


def test_who_waits_for_us_is_not() -> None:
    async def test(harness: Harness) -> None:
        reader, writer = await harness.connect()
        writer.write(sized(b"w", b"/wait"))
        await harness.say()  # another connection, which is cut off for its silence
        await harness.say()
        harness.go.set()
        assert await answer_of(reader) == b"w"
        writer.close()

    run(test, server=partial(Server, deadlines=Deadlines(0.2, 0.2, 0.2), sweep_s=0.05))


def test_the_end_waits_for_what_is_being_answered_and_for_nothing_else() -> None:
    async def main() -> bytes:
        async with running() as harness:
            reader, writer = await harness.connect()
            idle, other = await harness.connect()
            writer.write(sized(b"w", b"/wait"))
            other.write(sized(b"x"))
            assert await answer_of(idle) == b"x"
            async with asyncio.timeout(PATIENCE_S):
                while len(harness.reached) < 2:
                    await asyncio.sleep(0)
        assert await rest_of(idle) == b""
        received = await rest_of(reader)
        writer.close()
        other.close()
        return received

    received = asyncio.run(main())
    assert status_of(received) == 200
    assert b"connection: close\r\n" in received


def test_a_header_of_ours_has_one_line() -> None:
    with pytest.raises(ValueError, match="line break"):
        block_of([(b"x", b"a\r\nset-cookie: b")])


ALIKE = (
    sized(b"abc").replace(b"/echo", b"/other"),
    sized(b"abc").replace(b"Host: a", b"Host: b"),
    sized(b"abc").replace(b"Host: a", b"host: a"),
    sized(b"abcd").replace(b"Length: 4", b"Length: 3"),
    sized(b"ab").replace(b"Length: 2", b"Length: 3"),
    sized(b"abc").replace(b"Length: 3", b"Length: +3"),
    sized(b"abc").replace(b"Length: 3", b"Length: 3\x00"),
    sized(b"abc").replace(b"Length: 3", b"Length:  3"),
    sized(b"abc").replace(b"Length: 3", b"Length: "),
    sized(b"abc").replace(b"Length: 3", "Length: \u0663".encode()),
    sized(b"abc", more=b"X: y\r\n"),
    sized(b"abc") + b"x",
    sized(b"abc")[:-1],
    b"\r\n" + sized(b"abc"),
)


@pytest.mark.parametrize("data", ALIKE, ids=range(len(ALIKE)))
def test_a_pattern_fits_only_its_own_head_with_another_length(data: bytes) -> None:
    raw = [(b"Host", b"a"), (b"Content-Length", b"5")]
    head = read_head(b"POST", b"/echo", raw, "1.1", keeps_alive=True)
    pattern = Pattern.of(sized(b"first"), head)
    assert pattern is not None
    assert pattern.body_of(sized(b"abc")) == b"abc"
    assert pattern.body_of(sized(b"a" * 4_321)) == b"a" * 4_321
    assert pattern.body_of(data) is None
