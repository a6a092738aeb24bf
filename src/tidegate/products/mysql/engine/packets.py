"""The packets of one connection, and how it logs in.

asyncmy connects, logs in and parses rows in C; its internals are touched here and in `types.py`
alone. Reading pauses while the caller does not want more, so that the server waits instead of
filling the memory.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
from typing import Any, cast

from asyncmy import protocol as parsing
from asyncmy.connection import Connection
from asyncmy.constants.CLIENT import MULTI_STATEMENTS, SSL
from asyncmy.errors import MySQLError

from tidegate.engines.common.errors import lost, too_large
from tidegate.products.mysql.engine.errors import asks_for_clear_password, unreachable
from tidegate.products.mysql.engine.url import Conninfo

_IN_THE_CLEAR = ("mysql_clear_password", "dialog")
"""Ways to log in by which the password is sent as it is, on whatever the server asks for them."""


class _Connection(Connection):
    """A connection that takes one statement at a time, and TLS as the target wants it."""

    def __init__(self, target: Conninfo) -> None:
        cast("Any", super()).__init__(**target.options())
        inside = cast("Any", self)
        inside._client_flag &= ~MULTI_STATEMENTS
        self._host_named = target.host
        self._must_hide = target.tls in ("require", "verify")
        self._shows_password = target.tls == "verify" or target.socket is not None

    async def _request_authentication(self) -> None:
        inside = cast("Any", self)
        if inside._ssl_context is not None and not inside.server_capabilities & SSL:
            if self._must_hide:
                raise unreachable("The server does not offer TLS.")
            inside._ssl_context = None
            inside._client_flag &= ~SSL
        inside._host = self._host_named  # TLS verifies this name, not the address of the connection
        await cast("Any", super())._request_authentication()

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> Any:
        # The driver would send the password to any server, without TLS as well.
        if plugin_name.decode("ascii", "replace") in _IN_THE_CLEAR and not self._shows_password:
            raise asks_for_clear_password()
        return await cast("Any", super())._process_auth(plugin_name, auth_packet)


async def log_in(target: Conninfo) -> Any:
    """The driver's connection, logged in. Raises: TidegateError, TimeoutError."""
    connection = cast("Any", _Connection(target))
    try:
        await connection.connect()
    except MySQLError as error:
        raise unreachable(*_described(error)) from error
    except TimeoutError:
        raise
    except (OSError, ValueError, IndexError, RuntimeError, struct.error) as error:
        raise unreachable("The server does not answer as MySQL does.") from error
    finally:
        if not connection.connected:
            connection.close()
    return connection


def _described(error: MySQLError) -> tuple[str, int]:
    """What the server said and its error number; 0 if it did not come to that."""
    number, *rest = (*error.args, 0)
    if isinstance(number, int) and (1000 <= number < 2000 or number >= 3000):
        return str(rest[0]), number
    cause = error.__cause__
    if isinstance(cause, socket.gaierror):
        return "The server cannot be reached: no address is known for its host.", 0
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"The server's certificate is not trusted: {cause.verify_message}.", 0
    if isinstance(cause, ssl.SSLError):
        return f"No TLS could be agreed on with the server: {cause.reason}.", 0
    if isinstance(cause, OSError) and cause.errno:
        return f"The server cannot be reached: {os.strerror(cause.errno)}.", 0
    return "The server cannot be reached.", 0


MAX_PACKET = 2**24 - 1

MAX_ROW_BYTES = 128 * 2**20
"""The largest row that is taken in: it is in our memory as a whole."""

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
        """Close the connection at once."""
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
