"""A server of embeddings on loopback that answers as a test wants it to, faults included."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from support.loop_server import loop_server

Answer = Callable[[asyncio.StreamWriter, dict[str, Any], dict[str, str]], Awaitable[None]]


class EmbeddingServer:
    """A server on loopback that answers each request with the next of `answers`."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        async with loop_server(self._serve) as port:
            yield f"http://127.0.0.1:{port}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.requests.append((head[0], headers, body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await answer(writer, body, headers)
        await writer.drain()


def reply(
    body: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str
) -> Answer:
    async def answer(writer: asyncio.StreamWriter, *_: object) -> None:
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
        writer.write(f"{head}\r\n".encode() + body)

    return answer


def vectors(shape: str = "openai", dimensions: int = 3) -> Answer:
    """Vectors that tell the place of their text; OpenAI's in another order than asked."""

    async def answer(writer: asyncio.StreamWriter, body: dict[str, Any], _: object) -> None:
        found = [[float(at)] + [1.0] * (dimensions - 1) for at in range(len(body["input"]))]
        if shape == "ollama":
            document: dict[str, Any] = {"embeddings": found}
        else:
            entries = [{"index": at, "embedding": vector} for at, vector in enumerate(found)]
            document = {"data": entries[::-1]}
        await reply(json.dumps(document).encode())(writer, body, {})

    return answer


async def cut_off(writer: asyncio.StreamWriter, *_: object) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"data": [')


async def endless(writer: asyncio.StreamWriter, *_: object) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")
        await writer.drain()


async def silent(writer: asyncio.StreamWriter, *_: object) -> None:
    await asyncio.Event().wait()
