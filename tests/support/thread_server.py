"""Servers in threads of a test's process, of which no thread and no socket is left at their end.

`ThreadingHTTPServer` leaves the threads that answer to themselves: one that a client keeps open
goes on in the tests that follow, and may still record a request there.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn
from ssl import SSLContext
from typing import Any


class ThreadServer(ThreadingMixIn, TCPServer):
    """Answers each connection with a handler in a thread of its own.

    A client that has gone is no fault; any other exception of a handler is raised by `close`.
    """

    daemon_threads = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, handler: type[BaseRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        self._faults: list[BaseException] = []
        super().__init__(("127.0.0.1", 0), handler)
        self._accepting = threading.Thread(target=self.serve_forever, args=(0.02,))

    @property
    def port(self) -> int:
        return self.server_address[1]

    def encrypt(self, context: SSLContext) -> None:
        """Speak TLS; before it is started."""
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def start(self) -> None:
        self._accepting.start()

    def close(self) -> None:
        """Listen no longer, end the connections, and wait for their threads."""
        if self._accepting.is_alive():
            self.shutdown()
            self._accepting.join()
        for connection in list(self._open):
            with suppress(OSError):  # closed by its own thread meanwhile
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()
        for fault in self._faults:
            raise fault

    # What `TCPServer` calls.

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        fault = sys.exception()
        if fault is not None and not isinstance(fault, OSError):
            self._faults.append(fault)


class ThreadHttpServer(ThreadServer, HTTPServer):
    """The same for handlers of HTTP."""


@contextmanager
def running(server: ThreadServer) -> Generator[ThreadServer]:
    """The server, started, within a block."""
    server.start()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def thread_server(handler: type[BaseRequestHandler]) -> Generator[int]:
    """A server of raw bytes within a block; gives its port."""
    with running(ThreadServer(handler)) as server:
        yield server.port


@contextmanager
def thread_http_server(
    handler: type[BaseHTTPRequestHandler], tls: SSLContext | None = None
) -> Generator[int]:
    """A server of HTTP, or of HTTPS, within a block; gives its port."""
    server = ThreadHttpServer(handler)
    if tls is not None:
        server.encrypt(tls)
    with running(server):
        yield server.port
