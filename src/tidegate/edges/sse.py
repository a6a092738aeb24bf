"""Server-sent events as a response to a POST or a GET, with event ids where they can be resumed.

Source: specification, `basic/transports` (Streamable HTTP) and the HTML standard, section 9.2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tidegate.protocol.session import Stream

KEEP_ALIVE_S = 30.0
HeaderList = list[tuple[bytes, bytes]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_END = object()


class EventStream:
    """An outlet that becomes an event stream with its first message.

    `stream` keeps events for a client that comes back; None where the revision cannot resume.
    """

    def __init__(
        self,
        send: Send,
        headers: HeaderList,
        stream: Stream | None = None,
        *,
        allowed: bool = True,
        started: Callable[[], None] | None = None,
    ) -> None:
        self._send = send
        self._headers = headers
        self._started_hook = started
        self._queue: asyncio.Queue[Any] | None = None
        self._pump: asyncio.Task[None] | None = None
        self.open = allowed
        self.stream = stream
        self.closed = False

    @property
    def started(self) -> bool:
        return self._pump is not None

    def send(self, message: bytes) -> None:
        """Queue one message; dropped if the client takes no event stream."""
        if not self.open:
            return
        if self.stream is None:
            self.send_event(None, message)
        elif self.closed:
            self.stream.add(message)
        else:
            self.start()
            self.send_event(self.stream.add(message), message)

    def send_event(self, event_id: str | None, message: bytes) -> None:
        prefix = f"id: {event_id}\n".encode() if event_id is not None else b""
        self.put(prefix + b"event: message\ndata: " + message + b"\n\n")

    def put(self, event: bytes) -> None:
        self.start()
        self._enqueue(event)

    def _enqueue(self, event: Any) -> None:
        if self._queue is not None:
            self._queue.put_nowait(event)

    def start(self) -> None:
        """Begin the response; with a priming event if the stream can be resumed."""
        if self._pump is not None or self.closed:
            return
        self._queue = asyncio.Queue()
        self._pump = asyncio.get_running_loop().create_task(self._run(self._queue))
        if self._started_hook is not None:
            self._started_hook()
        if self.stream is not None:
            self._enqueue(f"id: {self.stream.event_id()}\ndata: \n\n".encode())

    async def finish(self) -> None:
        """Send what is queued and end the response."""
        if self._pump is not None and not self.closed:
            self.closed = True
            self._enqueue(_END)
            await self._pump

    async def drained(self) -> None:
        """Wait until the response has ended."""
        if self._pump is not None:
            await self._pump

    def stop(self) -> None:
        """End the response as soon as what is queued has left."""
        if self._pump is not None and not self.closed:
            self.closed = True
            self._enqueue(_END)

    async def _run(self, queue: asyncio.Queue[Any]) -> None:
        await self._send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (b"content-type", b"text/event-stream"),
                    (b"cache-control", b"no-cache, no-transform"),
                    (b"x-accel-buffering", b"no"),
                    *self._headers,
                ],
            }
        )
        # The start leaves with the first body part: let the client see the headers now.
        await self._send({"type": "http.response.body", "body": b"", "more_body": True})
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), KEEP_ALIVE_S)
            except TimeoutError:
                event = b": keep-alive\n\n"
            if event is _END:
                break
            await self._send({"type": "http.response.body", "body": event, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})
