"""The event loop's wait on libpq's socket: nothing blocks and no thread is needed.

libpq knows no limit. Once it has seen how long a row is, it reads on for as long as the server
sends: one value of a gigabyte would hold the event loop for seconds and fill the memory. So while a
row comes in parts, libpq's socket is one end of a pair, and `ReadLimit` at the other end passes on
and counts what arrives. It inspects no byte, so the connection may be encrypted.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn

from tidegate.engines.common.errors import lost, too_large
from tidegate.system.descriptors import duplicate, lead_to, waiting_bytes

PORTION = 65_536
"""Bytes that are passed on at once; more than the pair holds would have to wait."""


class ReadLimit:
    """Passes bytes between libpq and the server until `close`. Nothing may be sent meanwhile."""

    __slots__ = ("_connection", "_hand", "_place", "source", "taken")

    def __init__(self, connection: PGconn) -> None:
        self._connection = connection
        self._place = connection.socket
        self.source = duplicate(self._place)
        """The server's socket: call `take` when it is readable."""
        self.taken = 0
        """Bytes that were passed on."""
        inside, self._hand = socket.socketpair()
        inside.setblocking(False)
        self._hand.setblocking(False)
        lead_to(self._place, inside.fileno())
        inside.close()

    def take(self) -> None:
        """Hand on what has arrived, a portion at most. Raises: psycopg.OperationalError."""
        try:
            data = os.read(self.source, PORTION)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._hand.shutdown(socket.SHUT_WR)  # libpq sees that the server has disconnected
            self._connection.consume_input()
        self.taken += len(data)
        while data:
            data = data[self._hand.send(data) :]
            while waiting_bytes(self._place):
                self._connection.consume_input()
        self._connection.consume_input()  # what an encrypted record still holds

    def close(self, *, restore: bool) -> None:
        """Step aside; `restore` gives libpq, if it lives, its socket back."""
        if restore:
            lead_to(self._place, self.source)
        os.close(self.source)
        self._hand.close()


MAX_BYTES = 128 * 2**20
"""How much is taken in of rows that libpq passes on together: it holds them as a whole."""

LARGE_BUFFER_BYTES = 16 * 2**20
"""After so much at once a line is given up when it is free."""

LARGE_READ_BYTES = 2**20
"""After so much at once libpq has room to read on by itself: from then on all is counted."""


class SocketIO:
    """libpq's socket, watched by the event loop. One waits on it at a time."""

    __slots__ = (
        "_begun",
        "_connection",
        "_copy_meter",
        "_grown",
        "_loop",
        "_meter",
        "_poll",
        "_reads_large",
        "_socket",
        "_waiter",
        "_watched",
        "buffer_is_large",
        "open",
        "rows_together",
        "unanswered",
    )

    def __init__(self, connection: PGconn) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._socket = connection.socket
        self._waiter: asyncio.Future[None] | None = None
        self._watched = False
        self._meter: ReadLimit | None = None
        self._copy_meter: ReadLimit | None = None
        self._begun = False
        self._grown = False
        """Whether libpq has made more room than the few portions that it begins with."""
        self._reads_large = False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        self._poll = poll.poll
        self.rows_together = 1
        """How many rows of a result libpq passes on at once."""
        self.open = True
        self.buffer_is_large = False
        """Whether libpq may hold much memory for this line, which it never gives back."""
        self.unanswered: int = 0
        """Groups of commands that were sent and whose end has not been read."""
        self._watch()

    @property
    def taking(self) -> bool:
        """Whether a part of something large has come."""
        return self._meter is not None and self._meter.taken > 0

    def check(self) -> bool:
        """Whether the connection is open, as far as can be seen without asking the server."""
        if self.open and self._poll(0):  # there are bytes, an end or a failure
            try:
                has_message = waiting_bytes(self._socket) > 0
                self._connection.consume_input()
                if has_message:  # a last message: the connection may have ended after it
                    self._connection.consume_input()
            except (psycopg.Error, OSError):
                self.close()
            else:
                if self._connection.status != pq.ConnStatus.OK:
                    self.close()
        return self.open

    def passed(self, size: int) -> None:
        """So many bytes of what was taken in have been passed on, and are held no longer."""
        for meter in (self._meter, self._copy_meter):
            if meter is not None:
                self._note_size(meter)
                meter.taken = max(0, meter.taken - size)

    def close(self) -> None:
        """Close the connection; a waiting task gets an error. Safe to call twice."""
        if not self.open:
            return
        self.open = False
        self._unwatch()
        self.end_copy()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(lost())
        self._connection.finish()

    @property
    def gone(self) -> bool:
        """Whether the socket is closed: libpq closes it at once."""
        return not self.open

    async def closed(self) -> None:
        """Wait until the socket is closed."""

    def expect_answer(self) -> None:
        """Commands are sent, and all that came before is read: libpq holds no part of a message."""
        self._begun = False

    async def fill(self) -> None:
        """Wait until the next result has arrived. Raises: TidegateError LIMIT_BYTES."""
        if not self._watched:
            self._watch()
        await self._signal()
        # From the first part of an answer on, libpq may hold the beginning of a message, have made
        # room for all of it, and take all of it in at once.
        if not (self._begun or self._reads_large) and (
            not self._grown or waiting_bytes(self._socket) < PORTION
        ):
            self._connection.consume_input()
        self._begun = True
        if self._connection.is_busy():
            await self._fill_by_portions()

    async def _fill_by_portions(self) -> None:
        connection = self._connection
        self._unwatch()
        self._meter = meter = ReadLimit(connection)
        self._loop.add_reader(meter.source, self._readable)
        try:
            while connection.is_busy():
                await self._signal()
                meter.take()
                if meter.taken > MAX_BYTES:
                    self.close()
                    raise too_large(MAX_BYTES, self.rows_together)
        finally:
            self._loop.remove_reader(meter.source)
            meter.close(restore=self.open)
            self._meter = None
            self._grown = True
            self._note_size(meter)

    def _note_size(self, meter: ReadLimit) -> None:
        """Note how much was taken in at once."""
        self.buffer_is_large |= meter.taken > LARGE_BUFFER_BYTES
        self._reads_large |= meter.taken > LARGE_READ_BYTES

    async def fill_copy(self) -> None:
        """Wait until more of a copy has arrived, and take a portion of it in: libpq does not say
        whether it has a whole line. Raises: TidegateError LIMIT_BYTES for one that is too long.
        """
        self._unwatch()
        meter = self._copy_meter
        if meter is None:
            self._copy_meter = meter = ReadLimit(self._connection)
        self._loop.add_reader(meter.source, self._readable)
        try:
            await self._signal()
        finally:
            self._loop.remove_reader(meter.source)
        meter.take()
        if meter.taken > MAX_BYTES:
            self.close()
            raise too_large(MAX_BYTES)

    def copied(self) -> None:
        """A whole line was read: the next one has the whole bound."""
        if self._copy_meter is not None:
            self._copy_meter.taken = 0

    def end_copy(self) -> None:
        """The copy has ended: libpq gets its socket back, if it lives. Safe to call twice."""
        meter, self._copy_meter = self._copy_meter, None
        if meter is not None:
            meter.close(restore=self.open)

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
        self._loop.add_writer(self._socket, wake, waiter)
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
            wake(self._waiter)
        elif self.unanswered:
            self._unwatch()  # the reader pauses: let the server wait
        else:
            self.check()  # a notice, or the server's last message


def wake(waiter: asyncio.Future[None]) -> None:
    """End the waiting, unless it has ended."""
    if not waiter.done():
        waiter.set_result(None)
