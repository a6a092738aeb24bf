"""The HTTP client on raw connections: what is sent, what of a reply counts, and what is kept."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from socketserver import StreamRequestHandler
from typing import Any

import msgspec
import pytest

from support.certificates import Authority
from support.eventually import until
from support.http_site import reply, serve_proxy, serve_site
from support.loop_server import LoopServer
from support.thread_server import thread_server
from tidegate.errors import Code
from tidegate.http_client.client import HttpClient
from tidegate.http_client.rules import ClientRules, HttpRequest, HttpResponse, RequestFailed

RULES = ClientRules(max_bytes=1_000, total_s=20.0, max_head_bytes=4_096)
REAL = socket.getaddrinfo
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Raw:
    """A server that gives `replies` in turn, one to each request, whatever the connection; an empty
    one closes it. `heads` are the requests, with the number of their connection."""

    def __init__(self, *replies: bytes) -> None:
        self.replies = list(replies)
        self.heads: list[tuple[int, str]] = []
        self.connections = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/path"


@contextmanager
def serving(*replies: bytes) -> Generator[Raw]:
    raw = Raw(*replies)

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            raw.connections += 1
            number = raw.connections
            while lines := list(iter(lambda: self.rfile.readline().strip(), b"")):
                raw.heads.append((number, b"\n".join(lines).decode()))
                if not (answer := raw.replies.pop(0)):
                    return
                self.wfile.write(answer)

    with thread_server(Handler) as port:
        raw.port = port
        yield raw


def send(url: str, rules: ClientRules = RULES, **given: Any) -> HttpResponse:
    request = HttpRequest(url=url, **{"networks": None, **given})
    return HttpClient(rules).send_blocking(request)


def failure(url: str, rules: ClientRules = RULES, **given: Any) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught:
        send(url, rules, **given)
    return caught.value


async def send_all(rules: ClientRules, *requests: HttpRequest) -> list[bytes]:
    client = HttpClient(rules)
    try:
        return [(await client.send(each)).body for each in requests]
    finally:
        await client.close()


def lead(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Every name leads to these addresses."""

    def look_up(host: str, port: int, *args: Any, **options: Any) -> Any:
        return [found for each in addresses for found in REAL(each, port, *args, **options)]

    monkeypatch.setattr("socket.getaddrinfo", look_up)


def test_a_trailer_is_no_header() -> None:
    chunked = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-a: 1\r\n\r\n"
        b"2\r\nok\r\n0\r\nx-a: 2\r\ncontent-encoding: gzip\r\n\r\n"
    )
    with serving(chunked) as raw:
        found = send(raw.url)
    assert found.body == b"ok" and found.headers["x-a"] == "1"
    assert "content-encoding" not in found.headers


def test_the_reply_after_interim_ones_counts_and_interim_ones_without_end_are_refused() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    with serving(interim * 2 + OK, interim * 1_000) as raw:
        found = send(raw.url)
        assert (found.status, found.body, "link" in found.headers) == (200, b"ok", False)
        assert "head of more than 4,096 bytes" in failure(raw.url).message


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"SSH-2.0-x\r\n\r\n", Code.PROVIDER_REPLY),
        (b"HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", Code.PROVIDER_REPLY),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n",
         Code.PROVIDER_REPLY),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
         Code.PROVIDER_REPLY),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 5_000, Code.PROVIDER_TOO_LARGE),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n", Code.PROVIDER_TOO_LARGE),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\nx",
         Code.PROVIDER_REPLY),
        (b"", Code.PROVIDER_CUT_OFF),
    ],
)  # fmt: skip
def test_each_fault_of_a_reply_has_its_code_and_names_host_and_port(
    sent: bytes, code: Code
) -> None:
    with serving(sent) as raw:
        error = failure(f"{raw.url}?token=s3cret", name="The server")
    assert error.code is code and error.was_sent and error.hint
    assert error.message.startswith(f"The server at 127.0.0.1:{raw.port} ")
    assert "s3cret" not in error.in_full and "path" not in error.in_full


def test_what_comes_after_a_reply_is_no_reply_to_the_next_request() -> None:
    evil = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"
    with serving(OK + evil, OK) as raw:
        rules = msgspec.structs.replace(RULES, max_idle=4)
        request = HttpRequest(url=raw.url, networks=None)
        assert asyncio.run(send_all(rules, request, request)) == [b"ok", b"ok"]
        assert [number for number, _ in raw.heads] == [1, 2]


def test_connections_are_kept_for_what_reads_and_one_that_was_closed_is_replaced() -> None:
    with serving(OK, OK, OK, b"", OK) as raw:
        rules = msgspec.structs.replace(RULES, max_idle=4)
        get = HttpRequest(url=raw.url, networks=None)
        post = msgspec.structs.replace(get, verb="POST", body=b"")
        replies = asyncio.run(send_all(rules, get, get, post, get))
        assert replies == [b"ok"] * 4
        assert [number for number, _ in raw.heads] == [1, 1, 2, 2, 1]


async def test_what_a_server_says_to_a_kept_connection_is_no_reply() -> None:
    said = asyncio.Event()
    connections: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await said.wait()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    server = LoopServer(answer)
    await server.start()
    client = HttpClient(msgspec.structs.replace(RULES, max_idle=4))
    request = HttpRequest(url=f"http://127.0.0.1:{server.port}/", networks=None)
    try:
        assert (await client.send(request)).status == 200
        said.set()
        (kept,) = next(iter(client._idle.values()))
        await until(lambda: kept.reader.has_more, "the server has said something")
        assert (await client.send(request)).status == 200
        assert len(connections) == 2
    finally:
        await client.close()
        await server.close()


def test_a_connection_is_kept_for_so_long() -> None:
    with serving(OK, OK) as raw:
        rules = msgspec.structs.replace(RULES, max_idle=4, max_idle_s=0.0)
        get = HttpRequest(url=raw.url, networks=None)
        asyncio.run(send_all(rules, get, get))
        assert raw.connections == 2


def test_a_kept_connection_serves_no_request_that_may_not_reach_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lead(monkeypatch, "127.0.0.1")
    with serving(OK, OK) as raw:
        rules = msgspec.structs.replace(RULES, max_idle=4)
        url = raw.url.replace("127.0.0.1", "inside.example")
        allowed = HttpRequest(url=url, networks=("127.0.0.1",))
        with pytest.raises(RequestFailed, match="an address of this machine"):
            asyncio.run(send_all(rules, allowed, msgspec.structs.replace(allowed, networks=())))
        assert len(raw.heads) == 1


def test_a_header_of_several_lines_is_not_sent() -> None:
    with serving(OK) as raw:
        error = failure(raw.url, headers=(("x-a", "1\r\nhost: other"),))
        assert error.code is Code.HOST_REFUSED and not error.was_sent
        assert raw.heads == []


def test_localhost_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    lead(monkeypatch, "192.0.2.1")
    assert failure("http://localhost:1/").code is Code.HOST_REFUSED


def test_one_private_address_of_several_is_enough_to_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(OK) as raw:
        lead(monkeypatch, "93.184.216.34", "127.0.0.1")
        error = failure(raw.url.replace("127.0.0.1", "outside.example"), networks=())
        assert error.code is Code.HOST_REFUSED and raw.connections == 0
        lead(monkeypatch, "127.0.0.2", "127.0.0.1")  # nothing listens at the first
        url = raw.url.replace("127.0.0.1", "inside.example")
        found = send(url, networks=("127.0.0.0/8",))
        assert (found.body, found.peer) == (b"ok", "127.0.0.1")


def test_what_a_proxy_says_after_its_reply_is_no_reply_of_the_server(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path, "sites")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with serve_site(authority, reply(200, b"real")) as site, serve_proxy(says=OK) as proxy:
        rules = msgspec.structs.replace(RULES, proxies={"https": proxy.url})
        assert send(site.url("outside.example"), rules).body == b"real"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "https://127.0.0.1:1", "http://[", "::"])
def test_a_proxy_of_another_form_is_refused(proxy: str) -> None:
    rules = msgspec.structs.replace(RULES, proxies={"https": proxy})
    assert "is not written like http://HOST:PORT" in failure("https://a.example/", rules).message


@pytest.mark.skipif(sys.platform != "linux", reason="every address of 127.0.0.0/8 is this machine")
def test_an_address_that_does_not_answer_leaves_time_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(OK) as raw, socket.socket() as silent, ExitStack() as waiting:
        silent.bind(("127.0.0.2", raw.port))
        silent.listen(0)
        for _ in range(4):  # its queue is full then, and what else comes is dropped
            filler = waiting.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.2", raw.port))
        lead(monkeypatch, "127.0.0.2", "127.0.0.1")
        rules = msgspec.structs.replace(RULES, connect_s=0.4)
        url = raw.url.replace("127.0.0.1", "inside.example")
        assert send(url, rules).peer == "127.0.0.1"
        lead(monkeypatch, "127.0.0.2")
        error = failure(url, rules)
        assert error.code is Code.PROVIDER_TIMEOUT and not error.was_sent
        assert "did not accept a connection within 0.4 s" in error.message
