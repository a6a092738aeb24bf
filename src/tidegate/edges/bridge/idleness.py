"""Ends a server that a bridge has started when nobody has asked it anything for long."""

from __future__ import annotations

import asyncio

from tidegate.edges.http1.request import Application, Request


class Idleness:
    """The application around another that knows since when there was no request.

    An open stream is a request too: a bridge that listens keeps its server.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._running = 0
        self._moved = asyncio.Event()

    async def __call__(self, request: Request) -> None:
        self._running += 1
        self._moved.set()
        try:
            await self._application(request)
        finally:
            self._running -= 1
            self._moved.set()

    async def lasts(self, idle_s: float) -> None:
        """Return once no request has been running for `idle_s` seconds on end."""
        while True:
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), idle_s)
            except TimeoutError:
                if not self._running:
                    return

    async def end(self, idle_s: float, stop: asyncio.Event) -> None:
        """Set `stop` then."""
        await self.lasts(idle_s)
        stop.set()
