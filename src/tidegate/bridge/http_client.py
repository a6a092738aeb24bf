"""A small HTTP/1.1 client on asyncio streams, for a server on this machine.

Each request has a connection of its own. Here that costs little, and after a failure it is known
whether the request was sent.

A server of a handshake that listens at an address which others reach, too, is called from that same
address. So nothing leaves the machine: where it does not have the address, as after a move to
another network, there is no connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tidegate.config.addresses import is_this_machine

if TYPE_CHECKING:  # a name alone: other clients need no handshake
    from tidegate.bridge.handshake_file import ServerAddress

_MAX_HEADERS = 100


class WireError(Exception):
    """The connection ended before the response was complete, or the server was silent too long."""


class NotSent(WireError):
    """The connection could not be opened, so nothing was sent."""


class Event(NamedTuple):
    """One server-sent event. `retry_s` is the reconnection time, if the server gave one."""

    data: bytes
    id: str | None
    retry_s: float | None


class Answer:
    """The response to one request, whose body is not read yet."""

    def __init__(
        self,
        status: int,
        headers: dict[str, str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        patience_s: float,
    ) -> None:
        self.status = status
        self.headers = headers
        self._reader = reader
        self._writer = writer
        self._patience_s = patience_s

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    async def body(self) -> bytes:
        """The whole body. Raises: WireError."""
        return b"".join([part async for part in self._parts()])

    async def events(self) -> AsyncGenerator[Event]:
        """Each event that has data or a reconnection time. Raises: WireError."""
        data: list[bytes] = []
        id: str | None = None
        retry_s: float | None = None
        async for line in self._lines():
            if not line:
                if data or retry_s is not None:
                    yield Event(b"\n".join(data), id, retry_s)
                data, retry_s = [], None
                continue
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"id":
                id = value.decode("latin-1")
            elif field == b"retry" and value.isdigit():
                retry_s = int(value) / 1000

    def close(self) -> None:
        self._writer.close()

    async def _lines(self) -> AsyncGenerator[bytes]:
        rest = b""
        async for part in self._parts():
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                yield line.removesuffix(b"\r")

    async def _parts(self) -> AsyncGenerator[bytes]:
        try:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                while size := int(await self._read(self._reader.readline()), 16):
                    yield await self._read(self._reader.readexactly(size))
                    await self._read(self._reader.readexactly(2))
            elif (length := int(self.headers.get("content-length", "0"))) > 0:
                yield await self._read(self._reader.readexactly(length))
        except (OSError, ValueError, EOFError) as error:
            raise WireError(str(error)) from None
        finally:
            self.close()

    async def _read(self, reading: asyncio.Future[bytes] | object) -> bytes:
        async with asyncio.timeout(self._patience_s):
            return await reading  # type: ignore[misc]


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def send_request(
    server: ServerAddress,
    method: str,
    path: str,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    patience_s: float,
) -> Answer:
    """Send one request and read the head of the response. Raises: NotSent, WireError.

    No single read waits longer than `patience_s`; the whole response may take longer. Over HTTPS
    the certificate is not checked, as it names other hosts than the address. The caller proves in
    another way who answers there.
    """
    host, port, tls, is_own = server
    try:
        context = _unverified() if tls else None
        own = (host, 0) if is_own and not is_this_machine(host) else None
        reader, writer = await asyncio.open_connection(host, port, ssl=context, local_addr=own)
    except OSError as error:
        raise NotSent(str(error)) from None
    name = f"[{host}]" if ":" in host else host
    lines = [f"{method} {path} HTTP/1.1", f"Host: {name}:{port}", "Connection: close"]
    lines += [f"{field}: {value}" for field, value in headers]
    if method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        async with asyncio.timeout(patience_s):
            await writer.drain()
            status = int((await reader.readline()).split(b" ", 2)[1])
            fields: dict[str, str] = {}
            while line := (await reader.readline()).rstrip(b"\r\n"):
                field, _, value = line.decode("latin-1").partition(":")
                fields[field.strip().lower()] = value.strip()
                if len(fields) > _MAX_HEADERS:
                    raise ValueError("too many headers")
    except (OSError, ValueError, IndexError, EOFError) as error:
        writer.close()
        raise WireError(str(error)) from None
    except BaseException:
        writer.close()
        raise
    return Answer(status, fields, reader, writer, patience_s)
