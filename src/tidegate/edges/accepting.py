"""How connections are taken from a socket: by the event loop's own server; or one by one, where
several processes have the same socket, so that each gets its part of them, and where a balancer
says first whose connection it is.

A socket of its own for each process (SO_REUSEPORT) would spread callers by their addresses: some
processes get twice what others do, what waits at the socket of one that is gone is lost, and not
every system spreads at all. With one socket all processes wake for a connection, and the quickest
takes it, which with few callers is always the same one. So each shows the others how many
connections it has, and one that has more than another leaves the next to it for `LEAVE_S`.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple

from tidegate.edges.passed_on import PassedOn

logger = logging.getLogger("tidegate.listening")

LEAVE_S = 0.002
"""How long a connection is left to others. Who is to take it may be busy."""
REST_S = 0.5
"""How long none is taken after one could not be, as without a free descriptor."""
MOST_SOCKETS = 8
MOST_PROCESSES = 256
PAGE_BYTES = 4 * MOST_SOCKETS * MOST_PROCESSES
"""The size of the memory in which processes show their numbers."""


class ConnectionCounts:
    """How many connections of one socket each process has: memory that all of them see, with a
    number for each, one more than it has, 0 for one that takes none. `row` is that of the socket,
    `own` the place of this process."""

    def __init__(self, descriptor: int, row: int, own: int) -> None:
        self._map = mmap.mmap(descriptor, PAGE_BYTES)
        numbers = memoryview(self._map).cast("I")
        self._row = numbers[row * MOST_PROCESSES : (row + 1) * MOST_PROCESSES]
        self._own = own

    def show(self, count: int) -> None:
        """This process has so many."""
        self._row[self._own] = count + 1

    def withdraw(self) -> None:
        """This process takes no more."""
        self._row[self._own] = 0

    def has_most_of(self, count: int) -> bool:
        """Whether another process has less than so many."""
        mine = count + 1
        return any(0 < number < mine for at, number in enumerate(self._row) if at != self._own)


def clear_counts(memory: mmap.mmap, process: int) -> None:
    """A process is gone: it takes no more connections of any socket."""
    for row in range(MOST_SOCKETS):
        at = 4 * (row * MOST_PROCESSES + process)
        memory[at : at + 4] = bytes(4)


class Secured(NamedTuple):
    """TLS of what listens, and how many seconds a client may take for its handshake."""

    context: ssl.SSLContext
    handshake_s: float


MakeProtocol = Callable[[str], asyncio.Protocol]
"""The protocol of a new connection, given the client's address; empty: that of the connection."""


class Entrance(NamedTuple):
    """What a connection passes before its protocol: `passed_on`, in which a balancer names the
    client, then TLS."""

    passed_on: PassedOn | None = None
    secured: Secured | None = None


class OneByOne:
    """Takes connections from a socket: one for each turn of the event loop, so that a process that
    has work leaves the next one to the others that take from the same socket, which `counts` shows.
    The loop's own server takes all that wait at once. `count` says how many this process has."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: MakeProtocol,
        count: Callable[[], int],
        entrance: Entrance,
        counts: ConnectionCounts | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._make_protocol = make_protocol
        self._counts = counts
        self._count = count
        self._entrance = entrance
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False
        self.show()
        self._loop.add_reader(listener, self._look)

    def close(self) -> None:
        """Take no more. A socket from which others take stays open."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._listener)
        if self._counts is None:
            self._listener.close()
        else:
            self._counts.withdraw()

    def show(self) -> None:
        """The number of connections has changed."""
        if not self._closed and self._counts is not None:
            self._counts.show(self._count() + len(self._opening))

    def _look(self) -> None:
        """A connection waits."""
        counts = self._counts
        if counts is not None and counts.has_most_of(self._count() + len(self._opening)):
            self._pause(LEAVE_S)
        else:
            self._take()

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener, self._look)
            self._take()

    def _take(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another process was quicker, or the client has gone
        except OSError as error:
            logger.error("no connection can be taken: %s", error.strerror)
            self._pause(REST_S)
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._open(connection))
        self._opening.add(task)
        self.show()
        task.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        self.show()

    async def _open(self, connection: socket.socket) -> None:
        passed_on, secured = self._entrance
        client = ""
        try:
            if passed_on is not None and not (client := await passed_on.read_client(connection)):
                connection.close()
                return
            await self._loop.connect_accepted_socket(
                lambda: self._make_protocol(client),
                connection,
                ssl=None if secured is None else secured.context,
                ssl_handshake_timeout=None if secured is None else secured.handshake_s,
            )
        except (OSError, ssl.SSLError):  # as a client that speaks no TLS
            connection.close()


Acceptor = OneByOne | asyncio.Server


async def open_acceptor(
    listener: socket.socket,
    make_protocol: MakeProtocol,
    count: Callable[[], int],
    *,
    backlog: int,
    entrance: Entrance,
    counts: ConnectionCounts | None = None,
) -> Acceptor:
    """Take connections from a socket until what is returned is closed; from one of this process
    alone without `counts`. `count` says how many this process has."""
    passed_on, secured = entrance
    if counts is None and passed_on is None:
        return await asyncio.get_running_loop().create_server(
            lambda: make_protocol(""),
            sock=listener,
            backlog=backlog,
            ssl=None if secured is None else secured.context,
            ssl_handshake_timeout=None if secured is None else secured.handshake_s,
        )
    if counts is None:
        listener.listen(backlog)
    return OneByOne(listener, make_protocol, count, entrance, counts)
