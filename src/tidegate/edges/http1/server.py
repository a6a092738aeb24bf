"""The connections of one server: how many there may be, how long each may keep the server
waiting, and how they end.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from contextlib import suppress
from typing import NamedTuple

from tidegate.edges.accepting import (
    Acceptor,
    ConnectionCounts,
    Entrance,
    OneByOne,
    Secured,
    open_acceptor,
)
from tidegate.edges.http1.connection import ClientConnection
from tidegate.edges.http1.request import Application
from tidegate.edges.passed_on import HeaderWarnings, PassedOn

logger = logging.getLogger("tidegate.http")

MOST_CONNECTIONS = 10_000
MOST_UNREAD = 256 * 1024 * 1024
"""Bytes of answers that all clients together may leave unread. A reply of MCP is one message, so
it waits here as a whole until its client has read it."""
SWEEP_S = 5.0
BACKLOG = 2_048
LAST_IN_S = 0.25
"""How long the requests of the last connections may take to come, where others take new ones."""
HANDSHAKE_S = 15.0
"""How long a client may take for the handshake of TLS."""


class Deadlines(NamedTuple):
    """Seconds that a client may let pass: between requests, from the first byte of a request to
    the end of its head, and to the end of its body. An answer may be read however slowly, but not
    be left lying for `idle_s`. A stream is bounded by what it may leave unread (`sse`). For
    `linger_s` a refused client may go on sending its body, so that it comes to read the answer."""

    idle_s: float = 75.0
    head_s: float = 30.0
    body_s: float = 120.0
    linger_s: float = 5.0


class Server:
    """Has `application` answer what comes. `now` is a clock that goes in steps of a sweep."""

    def __init__(
        self,
        application: Application,
        *,
        deadlines: Deadlines | None = None,
        most_connections: int = MOST_CONNECTIONS,
        most_unread: int = MOST_UNREAD,
        sweep_s: float = SWEEP_S,
    ) -> None:
        self.application = application
        self.stopping = False
        self.now = asyncio.get_running_loop().time()
        self.workers: set[asyncio.Task[None]] = set()
        self.header_warnings = HeaderWarnings()
        self._connections: set[ClientConnection] = set()
        self._most = most_connections
        self._most_unread = most_unread
        self._unread: dict[ClientConnection, None] = {}
        self._checking_unread = False
        self._sweep_s = sweep_s
        self._accepting: Acceptor | None = None
        self._sweeping: asyncio.Task[None] | None = None
        deadlines = deadlines or Deadlines()
        self.linger_s = deadlines.linger_s
        self._patience = {
            "request": deadlines.idle_s,
            "reading": deadlines.idle_s,
            "head": deadlines.head_s,
            "body": deadlines.body_s,
        }

    async def accept(
        self,
        listener: socket.socket,
        tls: ssl.SSLContext | None = None,
        counts: ConnectionCounts | None = None,
        passed_on: PassedOn | None = None,
    ) -> None:
        """Take connections from a bound socket, with `tls` over TLS, until `drain` or `stop`. With
        `counts` other processes take some from the same one, with `passed_on` balancers name their
        clients."""
        self._sweeping = asyncio.get_running_loop().create_task(self.sweep())
        self._accepting = await open_acceptor(
            listener,
            self.connection,
            self._connections.__len__,
            backlog=BACKLOG,
            entrance=Entrance(passed_on, None if tls is None else Secured(tls, HANDSHAKE_S)),
            counts=counts,
        )

    def connection(self, client: str = "") -> ClientConnection:
        """A new connection, of a client at that address."""
        return ClientConnection(self, client)

    def admit(self, connection: ClientConnection) -> bool:
        """Take a connection in, unless there are too many."""
        if self.stopping or len(self._connections) >= self._most:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: ClientConnection) -> None:
        self._connections.discard(connection)
        if isinstance(self._accepting, OneByOne):
            self._accepting.show()

    def hold_unread(self, connection: ClientConnection) -> None:
        """Count what waits for this client, until `release_unread`. Call it again for more."""
        self._unread.setdefault(connection)
        if not self._checking_unread:
            self._checking_unread = True
            # Not within the write that led here: aborting may end the very connection.
            asyncio.get_running_loop().call_soon(self._limit_unread)

    def release_unread(self, connection: ClientConnection) -> None:
        """Count this client's answers no more: it has read them, or has gone."""
        self._unread.pop(connection, None)

    def _limit_unread(self) -> None:
        """Abort the clients that have read nothing for longest until the rest leave no more than
        `most_unread`. One answer may always be larger. `since` goes in steps: of clients of one
        step the one goes first whose answers have waited for longest."""
        self._checking_unread = False
        unread = {connection: connection.backlog for connection in self._unread}
        total = sum(unread.values())
        if total <= self._most_unread:
            return
        for late in sorted(unread, key=lambda each: each.since)[:-1]:
            logger.warning(
                "closed the connection of %s, which left %d bytes unread: all clients together "
                "left over %d",
                late.address, unread[late], self._most_unread,
            )  # fmt: skip
            self._unread.pop(late, None)
            late.abort()
            total -= unread[late]
            if total <= self._most_unread:
                return

    async def sweep(self) -> None:
        """Close what keeps us waiting for too long, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self.now = loop.time()
            for connection in list(self._connections):
                connection.look()
                waits = connection.waits
                if waits and self.now - connection.since > self._patience[waits]:
                    connection.abort()
            await asyncio.sleep(self._sweep_s)

    async def drain(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Accept no more connections, close those that are idle, and wait until the others have
        their answers: at most `grace_s` seconds, and not once `hurry` is set."""
        if self._accepting is not None:
            self._accepting.close()
        if isinstance(self._accepting, OneByOne) and not self.stopping:
            # Who was let in last and has not been read yet is not sent away.
            await asyncio.sleep(LAST_IN_S)
        self.stopping = True
        for connection in list(self._connections):
            connection.close()
        if not self.workers:
            return
        if hurry is None:
            await asyncio.wait(self.workers, timeout=grace_s)
            return
        hurried = asyncio.ensure_future(hurry.wait())
        answered = asyncio.ensure_future(asyncio.wait(self.workers))
        await asyncio.wait(
            {hurried, answered}, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED
        )
        hurried.cancel()
        answered.cancel()

    async def stop(self, grace_s: float) -> None:
        """Drain, then abort the connections that are left and cancel their requests."""
        await self.drain(grace_s)
        for connection in list(self._connections):
            connection.abort()
        for worker in list(self.workers):
            worker.cancel()
        for worker in list(self.workers):
            with suppress(asyncio.CancelledError):
                await worker
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
