"""A TCP line that can be cut, stalled and corrupted: stands between a driver and its server."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager

from support.loop_server import loop_server


class Proxy:
    """Passes bytes on to a server. What the tests do to it holds for every connection."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._pairs: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._spoil = 0
        self._portions: int | None = None
        self.refusing = False
        self.accepted = 0
        self.port = 0

    def cut(self) -> None:
        """Reset every connection."""
        for pair in self._pairs:
            for writer in pair:
                sock = writer.get_extra_info("socket")
                if sock is not None and sock.fileno() >= 0:
                    sock.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                    )  # on, 0 s: a reset
                writer.transport.abort()
        self._pairs.clear()

    def stall(self) -> None:
        """Let nothing through from now on, and tell no one."""
        self._flowing.clear()

    def flow(self) -> None:
        """Let everything through again."""
        self._flowing.set()

    def corrupt(self, after: int) -> None:
        """Spoil what the server sends, `after` bytes from now."""
        self._spoil = after + 1

    def cut_after(self, portions: int) -> None:
        """Reset every connection when the server has sent so many portions from now."""
        self._portions = portions

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what one client and the server send, until either ends."""
        self.accepted += 1
        if self.refusing:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._upstream)
        except OSError:
            writer.transport.abort()
            return
        self._pairs.append((writer, server_writer))
        try:
            await asyncio.gather(
                self._pump(reader, server_writer, False), self._pump(server_reader, writer, True)
            )
        finally:
            server_writer.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, spoils: bool
    ) -> None:
        try:
            while data := await source.read(65_536):
                await self._flowing.wait()
                if spoils and self._spoil:
                    data = self._spoiled(data)
                sink.write(data)
                await sink.drain()
                if spoils and self._portions is not None:
                    self._portions -= 1
                    if self._portions <= 0:
                        self.cut()
        except OSError:
            pass
        finally:
            sink.transport.abort()

    def _spoiled(self, data: bytes) -> bytes:
        at = self._spoil - 1
        if at >= len(data):
            self._spoil -= len(data)
            return data
        self._spoil = 0
        return data[:at] + bytes(byte ^ 0xA5 for byte in data[at:])


@asynccontextmanager
async def between(host: str, port: int):
    """A proxy before a server, for the time of a test."""
    proxy = Proxy(host, port)
    async with loop_server(proxy.carry) as proxy.port:
        yield proxy
