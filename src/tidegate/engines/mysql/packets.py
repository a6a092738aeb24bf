"""Decides how packets travel between the server and the event loop. Knows no command.

The driver's protocol collects what arrives, and parses rows in C; its insides are touched here and
in `login.py` alone. Reading pauses while nobody wants rows, so that a large result waits in the
server, and a row that is too large is not taken in.
"""

from __future__ import annotations

from typing import Any, cast

from asyncmy import protocol as parsing
from asyncmy.errors import MySQLError

from tidegate.engines.faults import lost, too_large

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
        """Whether the line still stands, as far as can be seen without asking the server."""
        protocol = self._protocol
        return not (protocol.eof or protocol.exc is not None or self._transport.is_closing())

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for what arrives next."""
        return self._protocol._read_waiter is not None

    @property
    def unread(self) -> int:
        """How many bytes have arrived and were not read yet."""
        return int(self._protocol.length - self._protocol.pos)

    def write(self, packets: list[bytes]) -> None:
        """Send packets. Raises: GateError SOURCE_UNREACHABLE."""
        if not self.open:
            raise lost()
        self._transport.write(b"".join(packets))

    def rows(self, specs: Specs, *, binary: bool, ends_with_ok: bool) -> Rows:
        """The rows that have arrived; none as well if what comes next is something else.

        Raises: GateError SOURCE_UNREACHABLE.
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
        """The row that a packet holds. Raises: GateError SOURCE_UNREACHABLE."""
        packet = _Packet(data, "utf8")
        try:
            return packet.read_binary_row(specs) if binary else packet.read_row(specs)
        except MySQLError as error:
            self.abort()
            raise lost() from error

    async def next(self) -> bytes:
        """The next packet, joined if it was sent in parts.

        Raises: GateError SOURCE_UNREACHABLE, LIMIT_BYTES.
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

    def close(self, farewell: bytes) -> None:
        """Hang up, with a last packet."""
        self._transport.write(farewell)
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
        """See that no packet was left out. Raises: GateError SOURCE_UNREACHABLE."""
        if self._protocol.buffer[self._protocol.pos + 3] != self.sequence:
            self.abort()
            raise lost()
