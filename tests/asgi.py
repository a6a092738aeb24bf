"""An ASGI application asked directly: one request, one whole answer, no socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """An HTTP response as a whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    application: Any,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    address: str = "127.0.0.1",
) -> Answer:
    """Send one request; `body` goes as it is if it is bytes, else as JSON."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    sent = {"host": "127.0.0.1:7878", "content-type": "application/json", **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
        "client": (address, 50_000),
    }
    events = [{"type": "http.request", "body": raw, "more_body": False}]
    heard: list[Any] = []

    async def receive() -> Any:
        while not events:
            await asyncio.Event().wait()
        return events.pop()

    async def send(event: Any) -> None:
        heard.append(event)

    await application(scope, receive, send)
    start, *parts = heard
    names = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], names, b"".join(part.get("body", b"") for part in parts))
