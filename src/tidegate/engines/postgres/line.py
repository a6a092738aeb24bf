"""Decides how commands and their results follow each other on a connection. Knows no SQL.

libpq does the protocol, `wire.py` waits for its socket. A line is always in pipeline mode: commands
are sent together, replies are read in order, and `sync` ends a group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn, PGresult

from tidegate.engines.faults import lost
from tidegate.engines.postgres.faults import unreachable
from tidegate.engines.postgres.login import ask_to_cancel, log_in
from tidegate.engines.postgres.target import Target
from tidegate.engines.postgres.wire import Wire
from tidegate.errors import GateError

Params = Sequence[bytes | None] | None

CAN_CHUNK = pq.version() >= 170000
"""libpq hands over several rows at once from version 17 on; before, one by one."""

FAILED = frozenset({int(pq.ExecStatus.FATAL_ERROR), int(pq.ExecStatus.PIPELINE_ABORTED)})
"""States of a result that is a failure, its own or that of a command before it."""

_OK = pq.ConnStatus.OK
_SYNC = int(pq.ExecStatus.PIPELINE_SYNC)


class Line(Wire):
    """One connection. One caller at a time sends and reads."""

    __slots__ = ()

    def __init__(self, connection: PGconn) -> None:
        connection.nonblocking = 1
        connection.enter_pipeline_mode()
        super().__init__(connection)

    @classmethod
    async def connect(cls, target: Target, **others: str) -> Line:
        """Connect. Raises: GateError SOURCE_UNREACHABLE within the target's time."""
        try:
            async with asyncio.timeout(target.connect_s):
                return cls(await log_in(target, others))
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
                await self.until_writable()
        except psycopg.OperationalError as error:
            raise self._broken() from error

    async def result(self) -> PGresult | None:
        """The next result; None ends the results of one command. Raises: GateError."""
        self._check_open()
        connection = self._connection
        try:
            if connection.is_busy():
                await self.fill()
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
                    await self.fill()
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

    async def cancel(self) -> None:
        """Ask the server, on a connection of its own, to end what runs. Never raises GateError."""
        try:
            await ask_to_cancel(self._connection)
        except (psycopg.Error, GateError, TimeoutError, OSError):
            self.close()

    def _check_open(self) -> None:
        if not self.open:
            raise lost()

    def _broken(self) -> GateError:
        self.close()
        return lost()
