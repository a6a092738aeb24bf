"""Stops a server that a bridge started, after a time without requests."""

from __future__ import annotations

import asyncio

from tidegate.edges.http1.request import Application, IncomingRequest


class IdleShutdown:
    """Wraps an application and sets `stop` after `idle_s` seconds without a running request.

    An open stream is a running request, so a connected bridge keeps the server alive. Source of the
    lifecycle: `edges.edge.Companion`.
    """

    def __init__(self, application: Application, idle_s: float, stop: asyncio.Event) -> None:
        self._application = application
        self._idle_s = idle_s
        self._stop = stop
        self._active = 0
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, request: IncomingRequest) -> None:
        self._active += 1
        self._changed.set()
        try:
            await self._application(request)
        finally:
            self._active -= 1
            self._changed.set()

    async def start(self) -> None:
        """Start to watch for idle time."""
        self._task = asyncio.ensure_future(self._watch())

    async def stop(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        while True:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), self._idle_s)
            except TimeoutError:
                if not self._active:
                    self._stop.set()
                    return
