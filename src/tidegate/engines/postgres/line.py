"""Decides how bytes travel between libpq and the event loop. Knows no SQL.

libpq does the protocol; here its socket is watched by the event loop, so that nothing blocks and no
thread is needed. A line is always in pipeline mode: commands are sent together, replies are read
in order, and `sync` ends a group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGcancelConn, PGconn, PGresult

from tidegate.engines.faults import lost
from tidegate.engines.postgres.faults import unreachable
from tidegate.engines.postgres.target import Target
from tidegate.errors import GateError

Params = Sequence[bytes | None] | None

CANCEL_S = 2.0
"""How long a cancel request may take on its own connection."""

CAN_CHUNK = pq.version() >= 170000
"""libpq hands over several rows at once from version 17 on; before, one by one."""

FAILED = frozenset({int(pq.ExecStatus.FATAL_ERROR), int(pq.ExecStatus.PIPELINE_ABORTED)})
"""States of a result that is a failure, its own or that of a command before it."""

_OK = pq.ConnStatus.OK
_SYNC = int(pq.ExecStatus.PIPELINE_SYNC)
_READING = pq.PollingStatus.READING
_WRITING = pq.PollingStatus.WRITING


class Line:
    """One connection. One caller at a time sends and reads."""

    __slots__ = ("_connection", "_loop", "_socket", "_waiter", "_watched", "open", "unanswered")

    def __init__(self, connection: PGconn) -> None:
        connection.nonblocking = 1
        connection.enter_pipeline_mode()
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._socket = connection.socket
        self._waiter: asyncio.Future[None] | None = None
        self._watched = False
        self.open = True
        self.unanswered = 0
        """Groups of commands that were sent and whose end has not been read."""
        self._watch()

    @classmethod
    async def connect(cls, target: Target, **others: str) -> Line:
        """Connect. Raises: GateError SOURCE_UNREACHABLE within the target's time."""
        try:
            async with asyncio.timeout(target.connect_s):
                return cls(await _connect(target, others))
        except TimeoutError:
            raise unreachable(f"no answer within {target.connect_s:g} s") from None

    @property
    def server_version(self) -> int:
        """Like 180006."""
        return self._connection.server_version

    @property
    def backend(self) -> int:
        """The server's process that works for this line."""
        return self._connection.backend_pid

    def parameter(self, name: bytes) -> str:
        """What the server reports of itself, like `server_version`."""
        return (self._connection.parameter_status(name) or b"").decode()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, as far as replies have been read."""
        return self._connection.transaction_status != pq.TransactionStatus.IDLE

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for the server."""
        return self._waiter is not None

    def send(self, *commands: tuple[bytes, Params]) -> None:
        """Queue commands by the extended protocol, which takes one statement each."""
        self._check_open()
        send = self._connection.send_query_params
        try:
            for text, params in commands:
                send(text, params)
        except psycopg.OperationalError as error:
            raise self._broken() from error

    def prepare(self, text: bytes) -> None:
        """Queue the parsing of a statement, without running it."""
        self._check_open()
        try:
            self._connection.send_prepare(b"", text)
        except psycopg.OperationalError as error:
            raise self._broken() from error

    async def sync(self) -> None:
        """End the group and see that all of it is sent."""
        connection = self._connection
        try:
            connection.pipeline_sync()
            self.unanswered += 1
            while connection.flush():
                await self._until_writable()
        except psycopg.OperationalError as error:
            raise self._broken() from error

    async def result(self) -> PGresult | None:
        """The next result; None ends the results of one command. Raises: GateError."""
        self._check_open()
        connection = self._connection
        try:
            if connection.is_busy():
                await self._fill()
            result = connection.get_result()
        except psycopg.OperationalError as error:
            raise self._broken() from error
        if result is not None and result.status == _SYNC:
            self.unanswered -= 1
        if connection.status != _OK:
            self.close()
        return result

    async def pass_over(self, commands: int) -> PGresult | None:
        """Read the results of commands that are to succeed; the failure if one does not."""
        connection = self._connection
        try:
            while commands:
                if connection.is_busy():
                    await self._fill()
                result = connection.get_result()
                if result is None:
                    commands -= 1
                    if connection.status != _OK:
                        raise self._broken()
                elif result.status in FAILED:
                    return result
        except psycopg.OperationalError as error:
            raise self._broken() from error
        return None

    def ready_result(self) -> PGresult | None:
        """The next result if it has arrived; None as well if there is none yet."""
        self._check_open()
        try:
            if self._connection.is_busy():
                return None
            return self._connection.get_result()
        except psycopg.OperationalError as error:
            raise self._broken() from error

    def settle(self) -> bool:
        """Read, and let go, what has arrived of the groups under way; whether that is all."""
        self._check_open()
        connection = self._connection
        try:
            while self.unanswered:
                if connection.is_busy():
                    return False
                result = connection.get_result()
                if result is None:
                    if connection.status != _OK:
                        raise self._broken()
                elif result.status == _SYNC:
                    self.unanswered -= 1
        except psycopg.OperationalError as error:
            raise self._broken() from error
        return True

    def stream(self, rows: int) -> None:
        """Have the command whose results come next give up to `rows` rows at a time."""
        if CAN_CHUNK and rows > 1:
            self._connection.set_chunked_rows_mode(rows)
        else:
            self._connection.set_single_row_mode()

    def check(self) -> bool:
        """Whether the line still stands, as far as can be seen without asking the server."""
        if self.open:
            try:
                self._connection.consume_input()
            except psycopg.Error:
                self.close()
            else:
                if self._connection.status != _OK:
                    self.close()
        return self.open

    async def cancel(self) -> None:
        """Ask the server, on a connection of its own, to end what runs. Never raises GateError."""
        try:
            async with asyncio.timeout(CANCEL_S):
                request = self._connection.cancel_conn()
                try:
                    request.start()
                    await _poll(request.poll, request)
                finally:
                    request.finish()
        except psycopg.NotSupportedError:
            old = self._connection.get_cancel()
            await asyncio.get_running_loop().run_in_executor(None, old.cancel)
        except (psycopg.Error, TimeoutError, OSError):
            self.close()

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

    async def _fill(self) -> None:
        """Wait until the next result has arrived."""
        connection = self._connection
        while True:
            await self._until_readable()
            connection.consume_input()
            if not connection.is_busy():
                return

    async def _until_readable(self) -> None:
        if not self._watched:
            self._watch()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def _until_writable(self) -> None:
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

    def _check_open(self) -> None:
        if not self.open:
            raise lost()

    def _broken(self) -> GateError:
        self.close()
        return lost()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def _connect(target: Target, others: dict[str, str]) -> PGconn:
    addresses = await _resolved(target)
    connection = pq.PGconn.connect_start(target.conninfo(**others, **addresses))
    try:
        await _poll(connection.connect_poll, connection)
    except BaseException:
        connection.finish()
        raise
    return connection


async def _poll(step: Callable[[], int], connection: PGconn | PGcancelConn) -> None:
    """Drive one of libpq's state machines to its end. Raises: GateError SOURCE_UNREACHABLE."""
    loop = asyncio.get_running_loop()
    state: int = _WRITING
    while state != pq.PollingStatus.OK:
        if connection.status == pq.ConnStatus.BAD or state not in (_READING, _WRITING):
            raise unreachable(connection.get_error_message())
        waiter: asyncio.Future[None] = loop.create_future()
        socket = connection.socket
        if state == _READING:
            loop.add_reader(socket, _wake, waiter)
        else:
            loop.add_writer(socket, _wake, waiter)
        try:
            await waiter
        finally:
            loop.remove_reader(socket)
            loop.remove_writer(socket)
        state = step()


async def _resolved(target: Target) -> dict[str, str]:
    """Addresses for names: libpq would ask the name server and block everything meanwhile."""
    if not target.hosts:
        return {}
    loop = asyncio.get_running_loop()
    hosts = target.parameters.get("host", "").split(",")
    ports = target.parameters.get("port", "").split(",")
    named: list[tuple[str, str, str]] = []
    for place, host in enumerate(hosts):
        port = ports[place] if len(ports) == len(hosts) else ports[0]
        if host.startswith(("/", "@")) or not host:
            return {}  # a mixture with Unix sockets: libpq has no way to say it
        try:
            found = await loop.getaddrinfo(host, None, proto=6)
        except OSError:
            continue
        named += [(host, str(entry[4][0]), port) for entry in found]
    if not named:
        raise unreachable(f"no address is known for {hosts[0]}")
    return {
        "host": ",".join(host for host, _, _ in named),
        "hostaddr": ",".join(address for _, address, _ in named),
        "port": ",".join(port for _, _, port in named),
    }
