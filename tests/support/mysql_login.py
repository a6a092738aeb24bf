"""The server's side of a login to MySQL that asks for the password in the clear, as RDS does for
tokens of IAM; hand-made, since no server of Debian has the plugin. The login is then refused."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from support.eventually import HANG_S

_TLS = 0x800
_FLAGS = 0x1 | 0x2 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000
"""Long passwords, a database, protocol 4.1, transactions, secure logins, plugins."""
_REFUSED = b"\xff" + (1045).to_bytes(2, "little") + b"#28000Access denied for user 'ann'@'here'"


class ClearLogins:
    """What clients have sent when they were asked."""

    def __init__(self, tls: ssl.SSLContext | None, plugin: str) -> None:
        self.passwords: list[str] = []
        self._tls = tls
        self._plugin = plugin.encode()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listening.getsockname()[1]

    def serve(self) -> None:
        """Answer one client after the other, until the socket is shut down."""
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            client.settimeout(HANG_S)
            with client, suppress(OSError, EOFError):  # a client may go without an answer
                self._log_in(client)

    def _log_in(self, client: socket.socket) -> None:
        flags = _FLAGS | (_TLS if self._tls is not None else 0)
        greeting = (
            b"\x0a8.4.0\0" + (7).to_bytes(4, "little") + b"saltsalt\0"
            + (flags & 0xFFFF).to_bytes(2, "little") + b"\x2d\x02\0"
            + (flags >> 16).to_bytes(2, "little") + b"\x15" + b"\0" * 10
            + b"saltsaltsalt\0mysql_native_password\0"
        )  # fmt: skip
        _write(client, 0, greeting)
        number, first = _read(client)
        if self._tls is not None and int.from_bytes(first[:4], "little") & _TLS:
            with self._tls.wrap_socket(client, server_side=True) as hidden:
                number, _ = _read(hidden)
                self._ask(hidden, number)
        else:
            self._ask(client, number)

    def _ask(self, client: socket.socket, number: int) -> None:
        """Ask for the password, after the packet of this number."""
        prompt = b"\x05Password: " if self._plugin == b"dialog" else b""
        _write(client, number + 1, b"\xfe" + self._plugin + b"\0" + prompt)
        number, answer = _read(client)
        self.passwords.append(answer.rstrip(b"\0").decode())
        _write(client, number + 1, _REFUSED)


def _read(client: socket.socket) -> tuple[int, bytes]:
    """The number of a packet and what is in it. Raises: EOFError."""
    head = _exactly(client, 4)
    return head[3], _exactly(client, int.from_bytes(head[:3], "little"))


def _exactly(client: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = client.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def _write(client: socket.socket, number: int, payload: bytes) -> None:
    client.sendall(len(payload).to_bytes(3, "little") + bytes((number,)) + payload)


@asynccontextmanager
async def clear_logins(
    tls: ssl.SSLContext | None = None, plugin: str = "mysql_clear_password"
) -> AsyncGenerator[ClearLogins]:
    """The server on loopback, within a block; its clients have gone at the end of it."""
    logins = ClearLogins(tls, plugin)
    thread = threading.Thread(target=logins.serve, daemon=True)
    thread.start()
    try:
        yield logins
    finally:
        logins.listening.shutdown(socket.SHUT_RDWR)
        logins.listening.close()
        await asyncio.to_thread(thread.join, HANG_S)
