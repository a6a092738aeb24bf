"""The HTTP client on raw connections: what is sent, what of a reply counts, and what is kept."""

from __future__ import annotations

import asyncio
import gzip
import random
import socket
import sys
import threading
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
        await until(lambda: kept.reader.unread, "the server has said something")
        assert (await client.send(request)).status == 200
        assert len(connections) == 2
    finally:
        await client.close()
        await server.close()


async def test_what_the_loop_has_not_seen_yet_of_a_kept_connection_is_no_reply() -> None:
    said = threading.Event()

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            while [*iter(lambda: self.rfile.readline().strip(), b"")]:
                self.wfile.write(OK)
                if not said.is_set():
                    answered.acquire()
                    self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")
                    said.set()

    answered = threading.Semaphore(0)
    client = HttpClient(msgspec.structs.replace(RULES, max_idle=4))
    with thread_server(Handler) as port:
        request = HttpRequest(url=f"http://127.0.0.1:{port}/", networks=None)
        try:
            assert (await client.send(request)).body == b"ok"
            answered.release()
            said.wait(20)  # blocks the loop, as other work does
            assert (await client.send(request)).body == b"ok"
        finally:
            await client.close()


def test_a_reply_of_many_empty_members_of_gzip_is_refused_soon() -> None:
    packed = gzip.compress(b"") * 500_000
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    with serving(head + packed) as raw:
        error = failure(raw.url, msgspec.structs.replace(RULES, max_bytes=16_777_216))
    assert error.code is Code.PROVIDER_REPLY and "packed its reply wrongly" in error.message


@pytest.mark.parametrize("size", [0, 1, 4_095, 4_096, 4_097, 1_000_000])
def test_members_of_gzip_with_zeros_between_them_are_one_body(size: int) -> None:
    content = random.Random(size).randbytes(size)
    packed = gzip.compress(content) + b"\0" * 9_000 + gzip.compress(content) + b"\0" * 5_000
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    with serving(head + packed) as raw:
        found = send(raw.url, msgspec.structs.replace(RULES, max_bytes=16_777_216))
    assert found.body == content * 2


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


@pytest.mark.parametrize(
    "given",
    [
        {"headers": (("x-a", "1\r\nhost: other"),)},
        {"headers": (("x-a\r\nhost", "other"),)},
        {"headers": (("x-a: 1\nb", "1"),)},
        {"headers": (("x-a:", "1"),)},
        {"headers": (("", "1"),)},
        {"headers": (("x-a", "a\0b"),)},
        {"credentials": (("authorization", "Bearer \u2026"),)},
        {"host": "other\u2026"},
        {"host": "other\r\nx-a: 1"},
        {"verb": "GET /other HTTP/1.1\r\nhost: x\r\n\r\nGET"},
        {"verb": ""},
    ],
)
def test_what_would_be_another_request_or_none_of_http_is_not_sent(given: dict[str, Any]) -> None:
    with serving(OK) as raw:
        error = failure(raw.url, **given)
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


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "a.localhost", "127.0.0.2", "[::ffff:127.0.0.1]"]
)
def test_this_machine_is_never_reached_through_a_proxy(host: str) -> None:
    with serve_proxy() as proxy:
        rules = msgspec.structs.replace(RULES, proxies={"https": proxy.url, "http": proxy.url})
        for url in (f"https://{host}:1/", f"http://{host}:1/"):
            failure(url, rules)
            assert failure(url, rules, networks=()).code in (
                Code.HOST_REFUSED,
                Code.PROVIDER_UNREACHABLE,  # a name that leads nowhere here
            )
        assert proxy.heads == []


def test_a_redirect_through_a_proxy_leads_to_no_address_in_disguise(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path, "sites")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    places = ["127.1", "2130706433", "0x7f.1", "127.0.0.1.", "[64:ff9b:1::a00:1]", "localhost."]
    with serve_proxy() as proxy:
        rules = msgspec.structs.replace(RULES, proxies={"https": proxy.url}, max_redirects=3)
        for place in places:
            with serve_site(authority, reply(302, location=f"https://{place}/x")) as site:
                failure(site.url("outside.example"), rules)
        assert len(proxy.heads) == len(places)
        assert all(head.startswith("CONNECT outside.example:") for head in proxy.heads)


def test_no_proxy_names_a_host_and_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    lead(monkeypatch, "127.0.0.1")
    with serving(OK, OK) as raw, serve_proxy() as proxy:
        rules = msgspec.structs.replace(RULES, proxies={"http": proxy.url})
        url = raw.url.replace("127.0.0.1", "inside.example")
        monkeypatch.setenv("NO_PROXY", f"inside.example:{raw.port}")
        assert send(url, rules).body == b"ok" and proxy.heads == []
        monkeypatch.setenv("NO_PROXY", f"inside.example:{raw.port - 1}")
        assert send(url, rules).body == b"ok" and len(proxy.heads) == 1


def test_a_proxy_that_switches_to_another_protocol_is_an_error() -> None:
    says = b"HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"
    with serving(says) as raw:
        rules = msgspec.structs.replace(RULES, proxies={"https": f"http://127.0.0.1:{raw.port}"})
        assert failure("https://outside.example/", rules).code is Code.PROVIDER_UNREACHABLE


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
