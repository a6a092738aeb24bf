"""Sinks that send the rows of a result to a client as they are fetched, as DataRow or COPY."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from struct import Struct
from typing import Any, Protocol

from msgspec import structs

from tidegate.errors import TidegateError
from tidegate.model.results import Column, ColumnKind, DataRows
from tidegate.products.pgwire import messages
from tidegate.products.pgwire.parsed_commands import CopyOut
from tidegate.products.pgwire.row_encoder import RowEncoder, row_encoder
from tidegate.products.pgwire.values import is_whole_type, wire_type
from tidegate.sql.dialects import find

Rows = Sequence[Sequence[Any]]


class Client(Protocol):
    """The connection that a session writes to."""

    def end(self, error: TidegateError) -> None:
        """Say why, and close the connection."""
        ...

    def write(self, data: bytes | bytearray) -> None:
        """Send bytes; they may wait in memory."""
        ...

    async def drain(self) -> None:
        """Return when the client has read enough of what waits. Raises: TidegateError
        CALL_CANCELLED once it is gone."""
        ...


class RowSender:
    """Sends rows as DataRow messages (`model.results.DataRowSink`). With `describes` the columns go
    first, as their description; a result without columns has none, and with `says_nothing` a
    message that tells it."""

    def __init__(
        self,
        client: Client,
        dialect: str,
        formats: Sequence[int],
        *,
        describes: bool,
        says_nothing: bool = False,
    ) -> None:
        self._client = client
        self._dialect = dialect
        self._formats = formats
        self._describes = describes
        self._says_nothing = says_nothing
        self._described = False
        self._encoder: RowEncoder | None = None
        self.form = _one_form(formats)
        self.columns: tuple[Column, ...] = ()

    @property
    def writer(self) -> None:
        return None

    def begin(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns

    def finish(self, *, reads_nothing: bool = False) -> None:
        """Describe the columns of a result without rows. `reads_nothing`: see `Page`."""
        if self._encoder is None:
            self._describe((), rows_follow=reads_nothing)

    def _describe(self, rows: Rows, *, rows_follow: bool = False) -> None:
        columns = self.columns
        if self._describes:
            columns = with_kinds_of(columns, rows, self._dialect)
        shows_text = self._describes and bool(rows)  # rows that are encoded here
        self._encoder = row_encoder(
            columns, self._dialect, tuple(self._formats), shows_text=shows_text
        )
        if self._describes and (
            columns or rows or rows_follow
        ):  # the rows of a query may have no column
            self._described = True
            self._client.write(messages.row_description(self._encoder.fields))
        elif self._describes and self._says_nothing:
            self._client.write(messages.NO_DATA)

    async def write(self, rows: Rows) -> None:
        if self._encoder is None:
            self._describe(rows)
        if self._encoder is None or not (self.columns or self._described):
            return
        buffer = bytearray()
        self._encoder.append(buffer, rows)
        self._client.write(buffer)
        await self._client.drain()

    def takes_binary(self, columns: tuple[Column, ...]) -> bool:
        return all(is_whole_type(column, self._dialect) for column in columns)

    async def write_data_rows(self, rows: DataRows) -> None:
        if self._encoder is None:
            self._describe((), rows_follow=bool(rows.messages))
        if self.columns or self._described:
            self._client.write(rows.messages)
            await self._client.drain()


def _one_form(formats: Sequence[int]) -> int | None:
    """The format of all columns, by the formats of a Bind; None if they differ."""
    found = set(formats)
    return None if len(found) > 1 else next(iter(found), 0)


_KINDS: dict[type[Any], ColumnKind] = {
    bool: "boolean",
    int: "integer",
    float: "float",
    bytes: "bytes",
    Decimal: "decimal",
}


def with_kinds_of(columns: tuple[Column, ...], rows: Rows, dialect: str) -> tuple[Column, ...]:
    """The columns, with the kinds of the first values where the database names no type: of an
    expression such as `count(*)` SQLite says none. Values of several types stay text."""
    if find(dialect).is_postgres or not rows or all(each.kind != "other" for each in columns):
        return columns
    found: list[Column] = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        types: set[type[Any]] = {type(value) for value in values if value is not None}
        kind = _KINDS.get(types.pop()) if column.kind == "other" and len(types) == 1 else None
        found.append(column if kind is None else structs.replace(column, kind=kind))
    return tuple(found)


class CopySender:
    """Sends rows as the data of a COPY, in its text, CSV or binary format
    (`model.results.RowSink`). Source: PostgreSQL documentation, "COPY", "File Formats"."""

    def __init__(self, client: Client, dialect: str, command: CopyOut) -> None:
        self._client = client
        self._dialect = dialect
        self._command = command
        self._types: list[Any] = []
        self._encoder: RowEncoder | None = None
        self._head = _BINARY_HEAD
        self._line = self._csv_line if command.form == "csv" else self._text_line
        self._null = command.null.encode()
        self._delimiter = command.delimiter.encode()

    @property
    def writer(self) -> None:
        return None

    def begin(self, columns: tuple[Column, ...]) -> None:
        if self._command.form == "binary":
            self._encoder = RowEncoder(columns, self._dialect, (1,), b"d")
            self._client.write(messages.copy_out(len(columns), 1))
            return
        self._types = [wire_type(column, self._dialect).text for column in columns]
        self._client.write(messages.copy_out(len(columns), 0))
        if self._command.header:
            names = [column.name.encode("utf-8", "replace") for column in columns]
            self._client.write(messages.copy_data(self._line(names)))

    def finish(self) -> None:
        """Say that there are no more rows."""
        if self._encoder is not None:
            self._client.write(messages.copy_data(self._head + _BINARY_END))
        self._client.write(messages.COPY_DONE)

    async def write(self, rows: Rows) -> None:
        buffer = bytearray()
        if self._encoder is not None:
            self._encoder.append(buffer, rows)
            if self._head and buffer:  # in one message with the first row, as PostgreSQL sends it
                first = _COPY_HEAD.size + _COPY_HEAD.unpack_from(buffer)[1] - 4
                buffer[:first] = messages.copy_data(self._head + buffer[_COPY_HEAD.size : first])
                self._head = b""
        else:
            for row in rows:
                cells = [
                    None if value is None else encode(value)
                    for value, encode in zip(row, self._types, strict=True)
                ]
                buffer += messages.copy_data(self._line(cells))
        self._client.write(buffer)
        await self._client.drain()

    def _text_line(self, cells: Sequence[bytes | None]) -> bytes:
        parts = [self._null if cell is None else self._escaped(cell) for cell in cells]
        return self._delimiter.join(parts) + b"\n"

    def _escaped(self, cell: bytes) -> bytes:
        for byte, escape in _ESCAPES:
            if byte in cell:
                cell = cell.replace(byte, escape)
        if self._delimiter != b"\t" and self._delimiter in cell:
            cell = cell.replace(self._delimiter, b"\\" + self._delimiter)
        return cell

    def _csv_line(self, cells: Sequence[bytes | None]) -> bytes:
        parts = [self._null if cell is None else self._quoted(cell) for cell in cells]
        return self._delimiter.join(parts) + b"\n"

    def _quoted(self, cell: bytes) -> bytes:
        special = self._delimiter in cell or any(byte in cell for byte in (b'"', b"\n", b"\r"))
        if special or cell in (self._null, b"\\."):
            return b'"' + cell.replace(b'"', b'""') + b'"'
        return cell


_BINARY_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
"""The signature, no flags, and an extension of no length."""
_BINARY_END = b"\xff\xff"
_COPY_HEAD = Struct("!ci")

_ESCAPES = (
    (b"\\", b"\\\\"),
    (b"\n", b"\\n"),
    (b"\r", b"\\r"),
    (b"\t", b"\\t"),
    (b"\b", b"\\b"),
    (b"\f", b"\\f"),
    (b"\v", b"\\v"),
)
