"""What the parent of workers and a worker say to each other, over a pair of connected sockets.

A message is its length in four bytes, and an array of MessagePack. Each end takes what it does not
know for nothing, so that workers of a newer release run below an older parent until that is started
again. The end of the channel means that the other process is gone.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Literal

import msgspec

from tidegate.typed_values import msgpack_decoder

Kind = Literal["secret", "announce", "ask", "pass", "ready", "answer", "tell", "last", "other"]
"""`secret`: what all workers know. `announce`: print where the gate is. `ask`, `answer`: a question
by its topic and number, and the reply. `tell`, `pass`: what one worker says to all others. `ready`:
callers are served. `last`: the answer at the end, which was not asked for."""

_LENGTH_BYTES = 4
_MOST_BYTES = 256 * 1024 * 1024


class Message(msgspec.Struct, array_like=True, frozen=True):
    """One message."""

    kind: str
    topic: str = ""
    number: int = 0
    body: bytes = b""


class Ready(msgspec.Struct, frozen=True):
    """What a worker says of itself when it serves: the names of where it listens, and the address
    of the console, empty if it has none."""

    edges: tuple[str, ...]
    console: str = ""
    release: str = ""


class WorkerChannel:
    """One end. `send` never waits: the messages are few and small except figures, of which there
    is one answer at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = msgpack_decoder(Message)

    @classmethod
    async def open(cls, end: socket.socket) -> WorkerChannel:
        """Take one end of the pair."""
        end.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=end))

    def send(self, kind: Kind, topic: str = "", number: int = 0, body: bytes = b"") -> None:
        """Say something; nothing happens if the other end is gone."""
        if self._writer.is_closing():
            return
        message = msgspec.msgpack.encode(Message(kind, topic, number, body))
        self._writer.write(len(message).to_bytes(_LENGTH_BYTES, "big") + message)

    async def flush(self) -> None:
        """Wait until the other end has taken what was said, or is gone."""
        try:
            await self._writer.drain()
        except OSError:
            return

    async def messages(self) -> AsyncIterator[Message]:
        """What the other end says, until it is gone."""
        while True:
            try:
                size = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES), "big")
                if size > _MOST_BYTES:
                    return
                message = self._decoder.decode(await self._reader.readexactly(size))
            except (OSError, asyncio.IncompleteReadError, msgspec.DecodeError):
                return
            yield message

    def close(self) -> None:
        """Close this end; safe to call twice."""
        self._writer.close()
