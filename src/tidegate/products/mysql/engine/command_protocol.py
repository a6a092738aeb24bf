"""Commands and replies of one connection. Nothing here knows SQL.

Several commands may be sent at once: the server takes them in order.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from asyncmy.constants.COMMAND import (
    COM_INIT_DB,
    COM_QUERY,
    COM_QUIT,
    COM_STMT_CLOSE,
    COM_STMT_EXECUTE,
    COM_STMT_PREPARE,
)

from tidegate.engines.common.errors import lost
from tidegate.errors import Code, TidegateError
from tidegate.products.mysql.engine.errors import ServerError, unreachable
from tidegate.products.mysql.engine.packets import MAX_PACKET, Packets, Rows, Specs, log_in
from tidegate.products.mysql.engine.url import Conninfo

COM_RESET_CONNECTION = 0x1F

_MORE_RESULTS = 8
_IN_TRANSACTION = 1
_DEADLOCK = 1213
"""The error after which the server has rolled the whole transaction back."""
_WHOLE_REPLY = -1
_MATCHED = re.compile(rb": *(\d+)")
"""In the language of the server's messages: `Rows matched: 3  Changed: 2`, `Records: 3`."""
_WIDTHS = {0xFB: -1, 0xFC: 2, 0xFD: 3, 0xFE: 8, 0xFF: -1}
_NO_CURSOR_ONE_TIME = b"\x00\x01\x00\x00\x00"

__all__ = [
    "COM_INIT_DB",
    "COM_QUERY",
    "COM_RESET_CONNECTION",
    "CommandProtocol",
    "Done",
    "Fields",
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
        self._matched = 0
        self._in_rows = False
        self.in_transaction = False
        """Whether a transaction is open, by the last reply that tells it."""
        self.thread: int = connection.server_thread_id[0]
        """The server's thread that works for this line."""
        self.greeting: str = connection.server_version
        self.unanswered = 0
        """Commands that were sent and whose end has not been read."""
        self._prepare_left: int | None = None
        """Packets to come of a reply to `prepare`; None if none is under way."""
        self._statement = (0, 0, 0)
        self._definitions: list[bytes] = []

    @classmethod
    async def connect(cls, target: Conninfo) -> CommandProtocol:
        """Connect. Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_BUSY, within the target's
        time."""
        try:
            async with asyncio.timeout(target.connect_s):
                connection = await log_in(target)
        except TimeoutError:
            where = target.socket or f"{target.host} port {target.port}"
            raise unreachable(
                f"There was no answer from {where} within {target.connect_s:g} s"
                " (`connect_timeout` in the URL)."
            ) from None
        return cls(connection)

    @property
    def open(self) -> bool:
        """Whether the connection is open, as far as can be seen without asking the server."""
        return self._packets.open

    def check(self) -> bool:
        """The same: the event loop sees at once that the server has closed the connection."""
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
        self._matched = 0
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
                if self._prepare_left is not None:
                    statement, _, _ = await self._prepared()
                    self.forget(statement)
                elif self._in_rows or isinstance(await self.answer(), Fields):
                    await self.skip()
            except ServerError:
                continue

    async def prepare(self, text: bytes) -> tuple[int, int, int]:
        """Have a statement prepared, which runs nothing: (its number, its columns, its parameters).

        Raises: ServerError, TidegateError.
        """
        self.send((COM_STMT_PREPARE, text))
        self._packets.sequence = 1
        self._prepare_left = _WHOLE_REPLY
        return await self._prepared()

    def prepared_columns(self) -> tuple[bytes, ...]:
        """The definitions of the columns of what was prepared last."""
        _, columns, parameters = self._statement
        ends = 0 if self._ends_with_ok or not parameters else 1
        first = parameters + ends
        return tuple(self._definitions[first : first + columns])

    def execute(self, statement: int, params: bytes) -> None:
        """Send a prepared statement with its packed parameters, and forget it afterwards."""
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
    def matched(self) -> int:
        """Rows that the last UPDATE or INSERT was about, each once, those that it left as they were
        among them; 0 if the server does not say."""
        return self._matched

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

    async def _prepared(self) -> tuple[int, int, int]:
        """Read what is left of the reply to `prepare`: its task may end before the reply is read,
        and no other reply looks like this one."""
        if self._prepare_left == _WHOLE_REPLY:
            data = await self._packet()
            if data[0] != 0x00:
                raise self._broken()
            statement = int.from_bytes(data[1:5], "little")
            columns = int.from_bytes(data[5:7], "little")
            parameters = int.from_bytes(data[7:9], "little")
            self._statement = statement, columns, parameters
            self._prepare_left = sum(
                count + (0 if self._ends_with_ok or not count else 1)
                for count in (parameters, columns)
            )
            self._definitions = []
        while self._prepare_left:
            self._definitions.append(await self._packet())
            self._prepare_left -= 1
        self._prepare_left = None
        self.unanswered -= 1
        return self._statement

    async def _head(self) -> Done | Fields:
        data = await self._packet()
        first = data[0]
        if first in (0x00, 0xFE):
            await self._end(data)
            return Done(self._affected)
        if first == 0xFB:  # the server asks for a file of ours
            self.close()
            raise TidegateError(
                Code.UNSUPPORTED,
                "LOAD DATA LOCAL is not supported: the server may not read files of this machine.",
            )
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
        """Read the end of a result; what a procedure gives after its first one is discarded."""
        self._in_rows = False
        if data[0] == 0xFE and not self._ends_with_ok:
            status = int.from_bytes(data[3:5], "little")
        else:
            affected, at = self._number(data, 1)
            _, at = self._number(data, at)
            status = int.from_bytes(data[at : at + 2], "little")
            self._affected = max(self._affected, affected)
            found = _MATCHED.search(data, at + 4)
            self._matched = int(found[1]) if found else 0
        self.in_transaction = bool(status & _IN_TRANSACTION)
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
        """One packet. Raises: ServerError for one that reports an error; TidegateError."""
        data = await self._packets.next()
        if data[0] == 0xFF:
            self._in_rows = False
            self._prepare_left = None
            self.unanswered -= 1
            state, message = "", data[3:]
            if message[:1] == b"#":
                state, message = message[1:6].decode("ascii", "replace"), message[6:]
            number = int.from_bytes(data[1:3], "little")
            if number == _DEADLOCK:
                self.in_transaction = False
            raise ServerError(number, state, message.decode("utf-8", "replace"))
        return data

    def _broken(self) -> TidegateError:
        """What arrives makes no sense: close the connection."""
        self._packets.abort()
        return lost()
