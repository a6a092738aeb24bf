"""Decides how the event loop waits on libpq's socket, so that nothing blocks and no thread is
needed. Knows neither commands nor results."""

from __future__ import annotations

import asyncio

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn

from tidegate.engines.faults import lost, too_large
from tidegate.engines.postgres.meter import PORTION, Meter, waiting_bytes

MAX_BYTES = 128 * 2**20
"""How much is taken in of rows that libpq hands over together: it holds them as a whole."""

SWOLLEN_BYTES = 16 * 2**20
"""After so much at once a line is given up when it is free."""

ROOMY_BYTES = 2**20
"""After so much at once libpq has room to read on by itself: from then on all is counted."""


class Wire:
    """libpq's socket, watched by the event loop. One waits on it at a time."""

    __slots__ = (
        "_connection",
        "_loop",
        "_meter",
        "_roomy",
        "_socket",
        "_waiter",
        "_watched",
        "open",
        "swollen",
        "unanswered",
    )

    def __init__(self, connection: PGconn) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._socket = connection.socket
        self._waiter: asyncio.Future[None] | None = None
        self._watched = False
        self._meter: Meter | None = None
        self._roomy = False
        self.open = True
        self.swollen = False
        """Whether libpq may hold much memory for this line, which it never gives back."""
        self.unanswered = 0
        """Groups of commands that were sent and whose end has not been read."""
        self._watch()

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for the server."""
        return self._waiter is not None

    @property
    def taking(self) -> bool:
        """Whether a part of something large has come."""
        return self._meter is not None and self._meter.taken > 0

    def check(self) -> bool:
        """Whether the line still stands, as far as can be seen without asking the server."""
        if self.open:
            try:
                said = waiting_bytes(self._socket) > 0
                self._connection.consume_input()
                if said:  # a farewell: behind it the line may have ended
                    self._connection.consume_input()
            except (psycopg.Error, OSError):
                self.close()
            else:
                if self._connection.status != pq.ConnStatus.OK:
                    self.close()
        return self.open

    def close(self) -> None:
        """Hang up; whoever waits is told. Safe to call twice."""
        if not self.open:
            return
        self.open = False
        self._unwatch()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(lost())
        self._connection.finish()

    @property
    def gone(self) -> bool:
        """Whether the socket is closed: libpq closes it at once."""
        return not self.open

    async def closed(self) -> None:
        """Wait until the socket is closed."""

    async def fill(self) -> None:
        """Wait until the next result has arrived. Raises: GateError LIMIT_BYTES."""
        await self._until_readable()
        if not self._roomy and waiting_bytes(self._socket) < PORTION:
            self._connection.consume_input()
        if self._connection.is_busy():
            await self._fill_by_portions()

    async def _fill_by_portions(self) -> None:
        connection = self._connection
        self._unwatch()
        self._meter = meter = Meter(connection)
        self._loop.add_reader(meter.source, self._readable)
        try:
            while connection.is_busy():
                await self._signal()
                meter.take()
                if meter.taken > MAX_BYTES:
                    self.close()
                    raise too_large(MAX_BYTES)
        finally:
            self._loop.remove_reader(meter.source)
            meter.close(restore=self.open)
            self._meter = None
            self.swollen |= meter.taken > SWOLLEN_BYTES
            self._roomy |= meter.taken > ROOMY_BYTES

    async def _until_readable(self) -> None:
        if not self._watched:
            self._watch()
        await self._signal()

    async def _signal(self) -> None:
        """Wait until the socket that is watched is readable."""
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if not self.open:  # it was closed between the signal and our turn
            raise lost()

    async def until_writable(self) -> None:
        """Wait until more can be sent; take in meanwhile what the server sends, or both stall."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiter = waiter
        self._loop.add_writer(self._socket, _wake, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if self.open:
                self._loop.remove_writer(self._socket)
        self._connection.consume_input()

    def _watch(self) -> None:
        self._watched = True
        self._loop.add_reader(self._socket, self._readable)

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.remove_reader(self._socket)

    def _readable(self) -> None:
        if self._waiter is not None:
            _wake(self._waiter)
        elif self.unanswered:
            self._unwatch()  # the reader pauses: let the server wait
        else:
            self.check()  # a notice, or the server's farewell


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
