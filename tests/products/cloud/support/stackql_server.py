"""A fake of StackQL's PostgreSQL server: the simple protocol without a login, and the answers that
its documentation shows. StackQL itself is in none of the package registries."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import cast

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]

ANSWERS: dict[str, Table] = {
    "SHOW PROVIDERS": (("name", "version"), [("github", "v24.11.00274")]),
    "SHOW SERVICES IN github": (
        ("id", "name", "title"),
        [("repos:v24.11.00274", "repos", "GitHub v3 REST API - repos")],
    ),
    "SELECT name FROM github.repos.repos WHERE org = 'psycopg'": (("name",), [("psycopg",)]),
    "EXPLAIN SELECT name FROM github.repos.repos WHERE org = 'psycopg'": (
        ("query", "result"),
        [("SELECT", "OK")],
    ),
}
DELETE = "DELETE FROM github.repos.repos WHERE owner = 'psycopg' AND repo = 'x'"
DENIED = "SELECT name FROM github.repos.repos WHERE org = 'denied'"
_ERROR = 'upstream http error: {"http_status": 403, "retryable": false}: Must have admin rights'


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        if not self._begin():
            return
        while head := self.rfile.read(5):
            body = self.rfile.read(struct.unpack("!I", head[1:])[0] - 4)
            if head[:1] != b"Q":
                return
            self._answer(body[:-1].decode())

    def _begin(self) -> bool:
        while True:
            head = self.rfile.read(8)
            if len(head) < 8:
                return False
            length, code = struct.unpack("!II", head)
            self.rfile.read(length - 8)
            if code >> 16 == 3:
                break
            self.wfile.write(b"N")  # neither TLS nor GSS
        self._send(b"R", struct.pack("!I", 0))
        for name, value in cast("_Server", self.server).reported.items():
            self._send(b"S", f"{name}\0{value}\0".encode())
        self._send(b"K", struct.pack("!II", 1, 1))
        self._send(b"Z", b"I")
        return True

    def _answer(self, text: str) -> None:
        server = cast("_Server", self.server)
        server.statements.append(text)
        for kind, body in server.before(text):
            self._send(kind, body)
        found = server.answers.get(text)
        if found is not None:
            names, rows = found
            fields = b"".join(
                name.encode() + b"\0" + struct.pack("!IhIhih", 0, 0, 25, -1, -1, 0)
                for name in names
            )
            self._send(b"T", struct.pack("!h", len(names)) + fields)
            for row in rows:
                cells = b"".join(struct.pack("!i", len(cell)) + cell.encode() for cell in row)
                self._send(b"D", struct.pack("!h", len(row)) + cells)
            self._send(b"C", f"SELECT {len(rows)}\0".encode())
        elif text.startswith(server.accepted):
            self._send(b"C", b"OK\0")
        else:
            message = _ERROR if text == DENIED else f"syntax error: {text[:40]}"
            self._send(b"E", f"SERROR\0VERROR\0CXX000\0M{message}\0\0".encode())
        self._send(b"Z", b"I")

    def _send(self, kind: bytes, body: bytes) -> None:
        self.wfile.write(kind + struct.pack("!I", len(body) + 4) + body)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.statements: list[str] = []
        self.answers = dict(ANSWERS)
        self.accepted: tuple[str, ...] = (DELETE,)
        """How statements begin that it carries out without rows."""
        self.reported = {"server_version": "0.10.1"}
        self.before: Callable[[str], Iterable[tuple[bytes, bytes]]] = lambda text: ()
        """What it sends, as messages of the protocol, before what it says to a statement."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextmanager
def stackql_server() -> Iterator[_Server]:
    """One; `statements` are those that were sent to it."""
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
