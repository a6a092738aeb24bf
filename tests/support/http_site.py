"""A site over TLS on loopback that answers as a test says, and a proxy that tunnels to it."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from socketserver import StreamRequestHandler

from support.certificates import Authority
from support.thread_server import ThreadServer, running, thread_http_server

NAMES = ("127.0.0.1", "outside.example")

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """`answer` replies to every request; `requests` holds path and headers of each that came."""

    def __init__(self, authority: Authority, answer: Answer) -> None:
        self.authority = authority
        self.answer = answer
        self.requests: list[str] = []
        self.port = 0

    def url(self, host: str = "127.0.0.1") -> str:
        return f"https://{host}:{self.port}"


@contextmanager
def serve_site(authority: Authority, answer: Answer) -> Generator[Site]:
    """The site, with a certificate of the authority for `NAMES`."""
    site = Site(authority, answer)

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            site.requests.append(f"{self.path}\n{self.headers}")
            with suppress(OSError):  # the client may leave
                site.answer(self)

        do_GET = do_POST = handle_any

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on stderr."""

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.sign("site", *NAMES))
    with thread_http_server(Handler, tls) as port:
        site.port = port
        yield site


def reply(status: int, body: bytes = b"{}", **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


class Proxy(ThreadServer):
    """Tunnels to this machine, whatever the host is. `heads` holds what it was asked; it `says`
    something of its own right after it has agreed."""

    def __init__(self, status: int, says: bytes) -> None:
        self.heads: list[str] = []
        heads = self.heads

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                head = b""
                while (line := self.rfile.readline()).strip():
                    head += line
                heads.append(head.decode())
                if status != 200:
                    self.wfile.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n".encode())
                    return
                port = int(head.split()[1].rpartition(b":")[2])
                with socket.create_connection(("127.0.0.1", port)) as there:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + says)
                    _pipe(self.connection, there)

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def _pipe(left: socket.socket, right: socket.socket) -> None:
    """Until one of both ends."""
    other = {left: right, right: left}
    with suppress(OSError):
        while True:
            for ready in select.select(list(other), [], [])[0]:
                if not (data := ready.recv(65_536)):
                    return
                other[ready].sendall(data)


@contextmanager
def serve_proxy(status: int = 200, says: bytes = b"") -> Generator[Proxy]:
    proxy = Proxy(status, says)
    with running(proxy):
        yield proxy
