"""Packets, commands and replies of one connection. Nothing here knows SQL.

asyncmy connects, logs in and parses rows in C; its internals are touched here
alone. Several commands may be sent at once: the server takes them in order. Reading
pauses while the caller does not want more, so that the server waits instead of filling the memory.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import Any, cast

from asyncmy import protocol as parsing
from asyncmy.connection import Connection
from asyncmy.constants.CLIENT import MULTI_STATEMENTS, SSL
from asyncmy.constants.COMMAND import (
    COM_INIT_DB,
    COM_QUERY,
    COM_QUIT,
    COM_STMT_CLOSE,
    COM_STMT_EXECUTE,
    COM_STMT_PREPARE,
)
from asyncmy.errors import MySQLError

from tidegate.engines.common.errors import lost, too_large
from tidegate.engines.mysql.errors import ServerError, unreachable
from tidegate.engines.mysql.url import Conninfo
from tidegate.errors import Code, TidegateError


class _Connection(Connection):
    """A connection that takes one statement at a time, and TLS as the target wants it."""

    def __init__(self, target: Conninfo) -> None:
        cast("Any", super()).__init__(**target.options())
        inside = cast("Any", self)
        inside._client_flag &= ~MULTI_STATEMENTS
        self._host_named = target.host
        self._must_hide = target.tls in ("require", "verify")

    async def _request_authentication(self) -> None:
        inside = cast("Any", self)
        if inside._ssl_context is not None and not inside.server_capabilities & SSL:
            if self._must_hide:
                raise unreachable("The server does not offer TLS.")
            inside._ssl_context = None
            inside._client_flag &= ~SSL
        inside._host = self._host_named  # TLS verifies this name, not the address of the connection
        await cast("Any", super())._request_authentication()


async def log_in(target: Conninfo) -> Any:
    """The driver's connection, logged in. Raises: TidegateError, TimeoutError."""
    connection = cast("Any", _Connection(target))
    try:
        await connection.connect()
    except MySQLError as error:
        raise unreachable(*_told(error)) from error
    except TimeoutError:
        raise
    except (OSError, ValueError, IndexError, RuntimeError, struct.error) as error:
        raise unreachable("The server does not answer as MySQL does.") from error
    finally:
        if not connection.connected:
            connection.close()
    return connection


def _told(error: MySQLError) -> tuple[str, int]:
    """What the server said and its error number; 0 if it did not come to that."""
    number, *rest = (*error.args, 0)
    if isinstance(number, int) and (1000 <= number < 2000 or number >= 3000):
        return str(rest[0]), number
    cause = error.__cause__
    if isinstance(cause, socket.gaierror):
        return "The server cannot be reached: no address is known for its host.", 0
    if isinstance(cause, OSError) and cause.errno:
        return f"The server cannot be reached: {os.strerror(cause.errno)}.", 0
    return "The server cannot be reached.", 0


MAX_PACKET = 2**24 - 1

MAX_ROW_BYTES = 128 * 2**20
"""The largest row that is taken in: it stands in our memory as a whole."""

# The driver's own annotations leave out what its lists hold.
_parse_text = cast("Any", parsing).parse_rows_from_buffer
_parse_binary = cast("Any", parsing).parse_binary_rows_from_buffer
_Packet = cast("Any", parsing).MysqlPacket

Rows = list[tuple[Any, ...]]
Specs = tuple[tuple[Any, ...], ...]


class Packets:
    """The packets of one connection, in both directions."""

    __slots__ = ("_connection", "_paused", "_protocol", "_transport", "sequence")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._protocol = connection._proto
        self._transport = connection._transport
        self._paused = False
        self.sequence = 1
        """The number of the next packet of the reply."""

    @property
    def open(self) -> bool:
        """Whether the connection is open, as far as can be seen without asking the server."""
        protocol = self._protocol
        return not (protocol.eof or protocol.exc is not None or self._transport.is_closing())

    @property
    def unread(self) -> int:
        """How many bytes have arrived and were not read yet."""
        return int(self._protocol.length - self._protocol.pos)

    def write(self, packets: list[bytes]) -> None:
        """Send packets. Raises: TidegateError SOURCE_UNREACHABLE."""
        if not self.open:
            raise lost()
        self._transport.write(b"".join(packets))

    def rows(self, specs: Specs, *, binary: bool, ends_with_ok: bool) -> Rows:
        """The rows that have arrived; none as well if what comes next is something else.

        Raises: TidegateError SOURCE_UNREACHABLE.
        """
        protocol = self._protocol
        parse = _parse_binary if binary else _parse_text
        rows: Rows = []
        try:
            protocol.pos, self.sequence = parse(
                protocol.buffer,
                protocol.pos,
                protocol.length,
                specs,
                self.sequence,
                rows,
                ends_with_ok,
            )
        except MySQLError as error:  # what the parser says of a row that makes no sense
            self.abort()
            raise lost() from error
        return rows

    def row(self, data: bytes, specs: Specs, *, binary: bool) -> tuple[Any, ...]:
        """The row that a packet holds. Raises: TidegateError SOURCE_UNREACHABLE."""
        packet = _Packet(data, "utf8")
        try:
            return packet.read_binary_row(specs) if binary else packet.read_row(specs)
        except MySQLError as error:
            self.abort()
            raise lost() from error

    async def next(self) -> bytes:
        """The next packet, joined if it was sent in parts.

        Raises: TidegateError SOURCE_UNREACHABLE, LIMIT_BYTES.
        """
        data = self._at_hand()
        if data is None:
            data = await self._arrived()
        if len(data) == MAX_PACKET:
            parts = [data]
            while len(parts[-1]) == MAX_PACKET:
                if len(parts) * MAX_PACKET > MAX_ROW_BYTES:
                    self.abort()
                    raise too_large(MAX_ROW_BYTES)
                parts.append(await self._arrived())
            data = b"".join(parts)
        if not data:
            self.abort()
            raise lost()
        return data

    def pause(self) -> None:
        """Let the server wait until more is asked for."""
        if not self._paused and self.open:
            self._transport.pause_reading()
            self._paused = True

    def close(self, last_packet: bytes) -> None:
        """Send `last_packet`, then close the connection."""
        self._transport.write(last_packet)
        self._transport.close()
        self._ended()

    def abort(self) -> None:
        """Hang up at once."""
        self._transport.abort()
        self._ended()

    @property
    def gone(self) -> bool:
        """Whether the socket is closed."""
        return bool(self._protocol._closed_waiter.done())

    async def closed(self) -> None:
        """Wait until the socket is closed."""
        await self._protocol.wait_closed()

    def _ended(self) -> None:
        self._paused = False
        self._protocol.eof = True
        self._connection._connected = False

    def _at_hand(self) -> bytes | None:
        """The next packet if all of it has arrived."""
        protocol = self._protocol
        buffer, at = protocol.buffer, protocol.pos
        if protocol.length - at < 4:
            return None
        self._check_order()
        end = at + 4 + (buffer[at] | buffer[at + 1] << 8 | buffer[at + 2] << 16)
        if end > protocol.length:
            return None
        protocol.pos = end
        self.sequence = (self.sequence + 1) & 0xFF
        return bytes(memoryview(buffer)[at + 4 : end])

    async def _arrived(self) -> bytes:
        """The next packet, when all of it has arrived."""
        protocol = self._protocol
        while (data := self._at_hand()) is None:
            need = 4
            if protocol.length - protocol.pos >= 4:
                at = protocol.pos
                need += int.from_bytes(protocol.buffer[at : at + 3], "little")
            while protocol.length - protocol.pos < need:
                if not self.open:
                    raise lost()
                if self._paused:
                    self._transport.resume_reading()
                    self._paused = False
                await protocol.wait_for_data(need)
        return data

    def _check_order(self) -> None:
        """See that no packet was left out. Raises: TidegateError SOURCE_UNREACHABLE."""
        if self._protocol.buffer[self._protocol.pos + 3] != self.sequence:
            self.abort()
            raise lost()


COM_RESET_CONNECTION = 0x1F

_MORE_RESULTS = 8
_WIDTHS = {0xFB: -1, 0xFC: 2, 0xFD: 3, 0xFE: 8, 0xFF: -1}
_NO_CURSOR_ONE_TIME = b"\x00\x01\x00\x00\x00"

__all__ = [
    "COM_INIT_DB",
    "COM_QUERY",
    "COM_RESET_CONNECTION",
    "CommandProtocol",
    "Done",
    "Fields",
    "Rows",
    "Specs",
]


class Done:
    """The end of one command's results: rows changed."""

    __slots__ = ("affected",)

    def __init__(self, affected: int) -> None:
        self.affected = affected


class Fields:
    """The beginning of a result: a definition for each of its columns."""

    __slots__ = ("definitions",)

    def __init__(self, definitions: tuple[bytes, ...]) -> None:
        self.definitions = definitions


class CommandProtocol:
    """One connection. One caller at a time sends and reads."""

    def __init__(self, connection: Any) -> None:
        self._packets = Packets(connection)
        self._ends_with_ok: bool = connection._deprecate_eof
        self._affected = 0
        self._in_rows = False
        self.thread: int = connection.server_thread_id[0]
        """The server's thread that works for this line."""
        self.greeting: str = connection.server_version
        self.unanswered = 0
        """Commands that were sent and whose end has not been read."""

    @classmethod
    async def connect(cls, target: Conninfo) -> CommandProtocol:
        """Connect. Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_BUSY, within the target's
        time."""
        try:
            async with asyncio.timeout(target.connect_s):
                connection = await log_in(target)
        except TimeoutError:
            raise unreachable(f"There was no answer within {target.connect_s:g} s.") from None
        return cls(connection)

    @property
    def open(self) -> bool:
        """Whether the connection is open, as far as can be seen without asking the server."""
        return self._packets.open

    def check(self) -> bool:
        """The same: the event loop has seen at once if the server hung up."""
        return self.open

    def send(self, *commands: tuple[int, bytes]) -> None:
        """Send commands. Raises: TidegateError SQL_TOO_LONG, SOURCE_UNREACHABLE."""
        packets: list[bytes] = []
        for command, payload in commands:
            size = len(payload) + 1
            if size >= MAX_PACKET:
                raise TidegateError(
                    Code.SQL_TOO_LONG, "The statement with its parameters is too long."
                )
            packets.append(size.to_bytes(3, "little") + bytes((0, command)) + payload)
        self._packets.write(packets)
        self.unanswered += len(commands)

    def query(self, *texts: bytes) -> None:
        """Send statements by the text protocol, each a command of its own."""
        self.send(*[(COM_QUERY, text) for text in texts])

    async def answer(self) -> Done | Fields:
        """The beginning of the next command's reply. Raises: ServerError, TidegateError."""
        self._packets.sequence = 1
        self._affected = 0
        return await self._head()

    async def done(self) -> int:
        """The reply of a command without rows: how many rows it changed."""
        answer = await self.answer()
        if isinstance(answer, Fields):
            await self.skip()
        return self._affected

    async def rows(self, specs: Specs, *, binary: bool = False) -> Rows | None:
        """Rows that have arrived, or else the next to arrive; None at the end of the reply.

        Raises: ServerError, TidegateError.
        """
        packets = self._packets
        rows = packets.rows(specs, binary=binary, ends_with_ok=self._ends_with_ok)
        if rows:
            return rows
        data = await self._packet()
        if self._is_end(data):
            await self._end(data)
            return None
        return [packets.row(data, specs, binary=binary)]

    async def skip(self) -> None:
        """Read the rest of a reply and throw it away. Raises: ServerError, TidegateError."""
        while True:
            data = await self._packet()
            if self._is_end(data):
                return await self._end(data)

    async def settle(self) -> None:
        """Read whatever was sent for and not read. Raises: TidegateError SOURCE_UNREACHABLE."""
        while self.unanswered:
            try:
                if self._in_rows or isinstance(await self.answer(), Fields):
                    await self.skip()
            except ServerError:
                continue

    async def prepare(self, text: bytes) -> tuple[int, int, int]:
        """Have a statement prepared, which runs nothing: (its number, its columns, its parameters).

        Raises: ServerError, TidegateError.
        """
        self.send((COM_STMT_PREPARE, text))
        self._packets.sequence = 1
        data = await self._packet()
        if data[0] != 0x00:
            raise self._broken()
        statement = int.from_bytes(data[1:5], "little")
        columns = int.from_bytes(data[5:7], "little")
        parameters = int.from_bytes(data[7:9], "little")
        for count in (parameters, columns):
            packets = count + (0 if self._ends_with_ok or not count else 1)
            for _ in range(packets):
                await self._packet()
        self.unanswered -= 1
        return statement, columns, parameters

    def execute(self, statement: int, params: bytes) -> None:
        """Send a prepared statement with its packed parameters, and forget it behind that."""
        number = statement.to_bytes(4, "little")
        self.send((COM_STMT_EXECUTE, number + _NO_CURSOR_ONE_TIME + params))
        self.forget(statement)

    def forget(self, statement: int) -> None:
        """Let the server forget a prepared statement; it does not reply to that."""
        self.send((COM_STMT_CLOSE, statement.to_bytes(4, "little")))
        self.unanswered -= 1

    @property
    def affected(self) -> int:
        """Rows that the last command changed, once its reply has been read to the end."""
        return self._affected

    @property
    def unread(self) -> int:
        """How many bytes have arrived and were not read yet."""
        return self._packets.unread

    def pause(self) -> None:
        """Let the server wait until `rows` is asked again."""
        self._packets.pause()

    def close(self) -> None:
        """Close the connection; a waiting task gets an error. Safe to call twice."""
        if self.open and not self.unanswered:
            self._packets.close(bytes((1, 0, 0, 0, COM_QUIT)))
        else:
            self._packets.abort()

    @property
    def gone(self) -> bool:
        """Whether the socket is closed."""
        return self._packets.gone

    async def closed(self) -> None:
        """Wait until the socket is closed."""
        await self._packets.closed()

    async def _head(self) -> Done | Fields:
        data = await self._packet()
        first = data[0]
        if first in (0x00, 0xFE):
            await self._end(data)
            return Done(self._affected)
        if first == 0xFB:  # the server asks for a file of ours
            self.close()
            raise TidegateError(Code.UNSUPPORTED, "LOAD DATA LOCAL is not offered here.")
        count, _ = self._number(data, 0)
        definitions = [await self._packet() for _ in range(count)]
        if not self._ends_with_ok:
            await self._packet()
        self._in_rows = True
        return Fields(tuple(definitions))

    def _is_end(self, data: bytes) -> bool:
        """Whether a packet that could be a row is the end of the rows."""
        return data[0] == 0xFE and (
            len(data) < 9 or (self._ends_with_ok and len(data) < MAX_PACKET)
        )

    async def _end(self, data: bytes) -> None:
        """Read the end of a result; what a procedure gives behind its first one is thrown away."""
        self._in_rows = False
        if data[0] == 0xFE and not self._ends_with_ok:
            status = int.from_bytes(data[3:5], "little")
        else:
            affected, at = self._number(data, 1)
            _, at = self._number(data, at)
            status = int.from_bytes(data[at : at + 2], "little")
            self._affected = max(self._affected, affected)
        if not status & _MORE_RESULTS:
            self.unanswered -= 1
        elif isinstance(await self._head(), Fields):
            await self.skip()

    def _number(self, data: bytes, at: int) -> tuple[int, int]:
        """A length-encoded integer and where it ends. Raises: TidegateError SOURCE_UNREACHABLE."""
        size = _WIDTHS.get(data[at], 0) if at < len(data) else -1
        if size < 0:
            raise self._broken()
        if size == 0:
            return data[at], at + 1
        return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size

    async def _packet(self) -> bytes:
        """One packet. Raises: ServerError for one that tells of an error; TidegateError."""
        data = await self._packets.next()
        if data[0] == 0xFF:
            self._in_rows = False
            self.unanswered -= 1
            state, message = "", data[3:]
            if message[:1] == b"#":
                state, message = message[1:6].decode("ascii", "replace"), message[6:]
            number = int.from_bytes(data[1:3], "little")
            raise ServerError(number, state, message.decode("utf-8", "replace"))
        return data

    def _broken(self) -> TidegateError:
        """What arrives makes no sense: hang up."""
        self._packets.abort()
        return lost()
