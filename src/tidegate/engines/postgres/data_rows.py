"""Rows that travel on as the server has encoded them, as DataRow messages.

psycopg's compiled code writes them: a row of COPY's binary format is the body of a DataRow. That
function has no public name, so a slower one of our own replaces it where it is missing.

Source: PostgreSQL documentation, "Message Formats" (DataRow) and "COPY", "Binary Format" (Tuples).
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import Any, cast

from psycopg import abc, pq
from psycopg.adapt import AdaptersMap, Transformer
from psycopg.pq.abc import PGresult
from psycopg.types.string import ByteaBinaryLoader, BytesBinaryDumper

from tidegate.engines.api import Cursor
from tidegate.engines.postgres.cursor import PostgresCursor
from tidegate.engines.postgres.types import Rows
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import EngineRequest, Query
from tidegate.model.results import Column, DataRows, DataRowSink, takes_data_rows

MAX_FITS = 512
"""Statements of which it is remembered whether the binary format of their result fits."""
_COUNT = struct.Struct("!h")
_LENGTH = struct.Struct("!i")
_HEAD = struct.Struct("!ci")
_EMPTY_HEAD = bytes(_HEAD.size)


class _Context:
    """What psycopg's transformer asks for: every value is the bytes that came."""

    connection = None

    def __init__(self) -> None:
        self.adapters = AdaptersMap()
        self.adapters.register_loader(0, ByteaBinaryLoader)
        self.adapters.register_dumper(bytes, BytesBinaryDumper)


_context = cast("abc.AdaptContext", _Context())


class _Transformers(threading.local):
    """By the number of values in a row: a transformer keeps what it does to each."""

    def __init__(self) -> None:
        self.by_width: dict[int, abc.Transformer] = {}


_transformers = _Transformers()


class _EncodedValues:
    """Reads each value as its bytes (`cursor.ChunkReader`), whatever their format is."""

    def read(self, result: PGresult) -> Rows:
        """The rows of one chunk."""
        width = result.nfields
        transformer = _transformers.by_width.get(width)
        is_new = transformer is None
        if transformer is None:
            transformer = _transformers.by_width[width] = Transformer(_context)
        transformer.set_pgresult(result, set_loaders=is_new, format=pq.Format.BINARY)
        try:
            return transformer.load_rows(0, result.ntuples, tuple)
        finally:
            transformer.set_pgresult(None, set_loaders=False)  # or it would keep the chunk

    def coerced(self, rows: Rows) -> Rows:
        return rows


ENCODED_VALUES = _EncodedValues()


def write_row_plainly(row: Sequence[Any], _: abc.Transformer, out: bytearray) -> None:
    """Append the number of values, and each value after its length, which is -1 for NULL."""
    out += _COUNT.pack(len(row))
    for value in row:
        out += _LENGTH.pack(-1 if value is None else len(value))
        out += value or b""


try:
    from psycopg._copy_base import format_row_binary as write_row
except ImportError:
    write_row = write_row_plainly


def sink_of(request: EngineRequest) -> DataRowSink | None:
    """The sink of a request's rows as the server has encoded them, if it has such a place."""
    sink = request.sink if isinstance(request, Query) else None
    return sink if takes_data_rows(sink) else None


Key = tuple[bytes, bytes | None, str | None]
"""A text, a search path and a state of the catalog."""


class BinaryFits:
    """Of which statements the sink that asks for the binary format takes it."""

    def __init__(self) -> None:
        self._known: dict[Key, bool] = {}

    def of(self, key: Key) -> bool | None:
        """None: not known."""
        return self._known.get(key)

    def note(self, key: Key, fits: bool) -> bool:
        if len(self._known) >= MAX_FITS:
            self._known.clear()
        self._known[key] = fits
        return fits

    def form_in_block(
        self, sink: DataRowSink | None, key: Key, *, types_may_differ: bool
    ) -> int | None:
        """The format code in which rows of a statement in a transaction go on as the server
        encoded them; None: they are decoded. The binary one is asked for only where an earlier run
        has shown that it fits, and not where the transaction may have changed a type."""
        if sink is None or not sink.form:
            return None if sink is None else sink.form
        return 1 if self.of(key) and not types_may_differ else None

    async def check_cursor(
        self, sink: DataRowSink | None, key: Key, cursor: Cursor, form: int | None
    ) -> None:
        """Note whether the sink takes the binary format of a result. Closes the cursor and raises,
        as `check`, if that format was asked for and does not fit."""
        if sink is None or sink.form != 1:
            return
        if form is None:
            self.note(key, sink.takes_binary(cursor.columns))
            return
        try:
            self.check(sink, cursor.columns)
        except TidegateError:
            await cursor.close()
            raise

    def check(self, sink: DataRowSink, columns: tuple[Column, ...]) -> None:
        """Raises: TidegateError if a result came in binary format and the sink does not take it:
        the types of its columns are others than before."""
        if sink.takes_binary(columns):
            return
        self._known.clear()
        raise TidegateError(
            Code.SOURCE_BUSY,
            "The types of the result's columns changed while the statement was under way.",
            hint="Send the statement again.",
            details={"sqlstate": "0A000"},
        )


class DataRowPostgresCursor(PostgresCursor):
    """A cursor whose reader is `ENCODED_VALUES` (`model.results.DataRowCursor`)."""

    __slots__ = ()

    async def fetch_data_rows(self, max_rows: int) -> DataRows:
        """Up to `max_rows` further rows; fewer (perhaps none) only at the end. Raises: as
        `engines.api.Cursor.fetch`."""
        return data_rows(await self._gathered(max_rows))


def data_rows(rows: list[tuple[Any, ...]]) -> DataRows:
    """Rows of encoded values as messages."""
    messages = bytearray()
    if not rows:
        return DataRows(messages, 0)
    write, pack = write_row, _HEAD.pack_into
    transformer = _transformers.by_width[len(rows[0])]
    begin = 0
    for row in rows:
        messages += _EMPTY_HEAD
        write(row, transformer, messages)
        end = len(messages)
        pack(messages, begin, b"D", end - begin - 1)
        begin = end
    return DataRows(messages, len(rows))
