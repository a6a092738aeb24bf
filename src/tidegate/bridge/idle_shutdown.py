"""Ends a server that a bridge has started, when it has had no request for long enough."""

from __future__ import annotations

import asyncio

from tidegate.edges.http1.request import Application, Request


class IdleShutdown:
    """An application around another that counts the requests that are running, and sets `stop`
    once there was none for `idle_s` seconds (`edges.edge.Companion`).

    An open stream is a request, too: a bridge that listens keeps its server.
    """

    def __init__(self, application: Application, idle_s: float, stop: asyncio.Event) -> None:
        self._application = application
        self._idle_s = idle_s
        self._stop = stop
        self._running = 0
        self._changed = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    async def __call__(self, request: Request) -> None:
        self._running += 1
        self._changed.set()
        try:
            await self._application(request)
        finally:
            self._running -= 1
            self._changed.set()

    async def start(self) -> None:
        """Watch from now on."""
        self._watching = asyncio.ensure_future(self._watch())

    async def stop(self) -> None:
        """Watch no longer."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch(self) -> None:
        while True:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), self._idle_s)
            except TimeoutError:
                if not self._running:
                    self._stop.set()
                    return
