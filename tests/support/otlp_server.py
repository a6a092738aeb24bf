"""What hand-made receivers of OTLP over HTTP have in common: they take a request, and answer."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from ssl import SSLContext
from typing import Any

from support.thread_server import thread_http_server


def respond(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **more: str) -> None:
    """Answer a request."""
    handler.send_response(status)
    for name, value in more.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("content-type", "application/x-protobuf")
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def otlp_server(
    take: Callable[[BaseHTTPRequestHandler], None], tls: SSLContext | None = None
) -> Generator[int]:
    """A server within a block that gives each request to `take`; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            take(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing on stderr."""

    with thread_http_server(Handler, tls) as port:
        yield port
