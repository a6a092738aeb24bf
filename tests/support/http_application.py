"""An application of the HTTP server asked directly: one request, one whole answer, no socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tidegate.edges.http1.request import Application
from tidegate.edges.http1.server import Server


class Answer(NamedTuple):
    """An HTTP response as a whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 50_000)})
        self.written = b""
        self.closed = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.written += b"".join(list_of_data)

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        self.closed.set()

    def abort(self) -> None:
        self.closed.set()


async def ask(
    application: Application,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    address: str = "127.0.0.1",
) -> Answer:
    """Send one request; `body` goes as it is if it is bytes, else as JSON."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    sent = {"host": "127.0.0.1:7878", "content-type": "application/json", **(headers or {})}
    sent |= {"content-length": str(len(raw)), "connection": "close"}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    wire = Wire(address)
    connection = Server(application).connection()
    connection.connection_made(wire)
    connection.data_received("\r\n".join([*lines, "", ""]).encode() + raw)
    await wire.closed.wait()
    connection.connection_lost(None)
    head, _, rest = wire.written.partition(b"\r\n\r\n")
    status, *given = head.decode().split("\r\n")
    names = dict(line.split(": ", 1) for line in given)
    return Answer(int(status.split(" ")[1]), names, rest)
