"""How many calls and statements run at once, and how long one may take: the document's settings
that the original reads and does not follow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tidegate.errors import Code, TidegateError
from tidegate.model.worker_share import own_share
from tidegate.products.cloud.surface.settings import CloudSurfaceSettings


class Capacity:
    """The places of one server: for calls of tools, and for statements. A worker has its part."""

    def __init__(self, settings: CloudSurfaceSettings) -> None:
        server, backend, share = settings.server, settings.backend, own_share()
        self._calls = asyncio.Semaphore(share.of(server.max_concurrent_requests))
        self._statements = asyncio.Semaphore(share.of(backend.max_connections))
        self._request_s = server.request_timeout_s
        self._wait_s = backend.connection_timeout_s
        self._query_s = backend.query_timeout_s

    @asynccontextmanager
    async def call(self) -> AsyncGenerator[float]:
        """A place for a call, and the time (monotonic seconds) by which it must end.

        Raises: TidegateError SOURCE_BUSY if none is free within `request_timeout`.
        """
        until = time.monotonic() + self._request_s
        await _take(self._calls, self._request_s, "server.max_concurrent_requests")
        try:
            yield until
        finally:
            self._calls.release()

    @asynccontextmanager
    async def statement(self, until: float) -> AsyncGenerator[float]:
        """A place for a statement, and the seconds for which it may run.

        Raises: TidegateError SOURCE_BUSY, LIMIT_TIME.
        """
        left = until - time.monotonic()
        await _take(self._statements, min(self._wait_s, left), "backend.max_connections")
        try:
            left = until - time.monotonic()
            if left <= 0:
                raise TidegateError(
                    Code.LIMIT_TIME,
                    "The call took longer than `surface.cloud.server.request_timeout`",
                )
            yield min(left, self._query_s)
        finally:
            self._statements.release()


async def _take(places: asyncio.Semaphore, wait_s: float, setting: str) -> None:
    try:
        await asyncio.wait_for(places.acquire(), max(wait_s, 0.001))
    except TimeoutError:
        raise TidegateError(
            Code.SOURCE_BUSY,
            f"No place was free within {wait_s:.1f} s: as many calls run as"
            f" `surface.cloud.{setting}` admits",
            hint="Send the call again in a moment.",
        ) from None
