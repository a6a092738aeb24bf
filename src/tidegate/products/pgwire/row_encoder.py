"""Rows as DataRow messages, encoded column by column.

Source: PostgreSQL documentation, "Message Formats" (DataRow).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column
from tidegate.products.pgwire.packers import INT32
from tidegate.products.pgwire.values import Encode, as_text, field_of, wire_type, write_text

_NULL = INT32.pack(-1)
"""The length of a cell that is NULL."""


def _cells(values: Sequence[Any], encode: Encode) -> list[bytes]:
    """The values with their lengths before them."""
    pack = INT32.pack
    found: list[bytes] = []
    add = found.append
    if encode is write_text:
        for value in values:
            if value is None:
                add(_NULL)
                continue
            if type(value) is str and "\0" not in value:
                cell = value.encode("utf-8", "replace")
            elif type(value) is int:
                cell = b"%d" % value
            elif type(value) is float and isfinite(value):
                cell = repr(value).encode()
            else:
                cell = write_text(value)
            add(pack(len(cell)) + cell)
        return found
    for value in values:
        if value is None:
            add(_NULL)
        else:
            cell = encode(value)
            add(pack(len(cell)) + cell)
    return found


class RowEncoder:
    """Writes rows as DataRow messages. `formats` are those of a Bind: none means all text, one
    applies to all; `kind` is the type of a message: DataRow, or the CopyData of a binary COPY, in
    which a row is the same. Raises: TidegateError ARGUMENT_INVALID for another number of formats.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        dialect: str,
        formats: Sequence[int],
        kind: bytes = b"D",
        *,
        shows_text: bool = False,
    ) -> None:
        """`shows_text`: the columns are described with these rows, so that one whose type is not
        written in binary here may be a text."""
        if len(formats) not in (0, 1, len(columns)):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"Bind asks for {len(formats)} formats, and the result has {len(columns)} columns.",
            )
        types = [wire_type(column, dialect) for column in columns]
        if len(formats) == 1:
            formats = tuple(formats) * len(types)
        forms = [*formats, *[0] * (len(types) - len(formats))]
        if shows_text:
            types = [
                as_text(kind) if form else kind for kind, form in zip(types, forms, strict=True)
            ]
        self._columns = columns
        self._kind = kind
        self.fields = [
            field_of(column, kind, form)
            for column, kind, form in zip(columns, types, forms, strict=True)
        ]
        self._encoders = [
            kind.binary if form else kind.text for kind, form in zip(types, forms, strict=True)
        ]
        self._count = struct.pack("!H", len(types))

    def append(self, buffer: bytearray, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows after what the buffer holds. Raises: TidegateError SQL_FAILED for a value
        that is not of its column's type, for which the binary format has no room."""
        if not rows:
            return
        if not self._encoders:
            buffer += (self._kind + INT32.pack(6) + self._count) * len(rows)
            return
        try:
            # Column by column: one function serves all of its values in a row.
            columns = [
                _cells(values, encode)
                for values, encode in zip(zip(*rows, strict=True), self._encoders, strict=True)
            ]
        except (ValueError, TypeError, struct.error, OverflowError, AttributeError):
            raise self._unfit(rows) from None
        pack, count, kind = INT32.pack, self._count, self._kind
        parts: list[bytes] = []
        for body in map(b"".join, zip(*columns, strict=True)):
            parts += kind, pack(len(body) + 6), count, body
        buffer += b"".join(parts)

    def _unfit(self, rows: Sequence[Sequence[Any]]) -> TidegateError:
        for values, column, encode in zip(
            zip(*rows, strict=True), self._columns, self._encoders, strict=True
        ):
            try:
                _cells(values, encode)
            except (ValueError, TypeError, struct.error, OverflowError, AttributeError):
                return TidegateError(
                    Code.SQL_FAILED,
                    f"A value of the column `{column.name[:80]}` does not fit its type"
                    f" ({column.type[:80] or column.kind}) in the format that was asked for.",
                    hint="Cast the column to text, or ask for the text format.",
                    details={"sqlstate": "22P03"},
                )
        raise AssertionError("every value fits")


@lru_cache(maxsize=256)
def row_encoder(
    columns: tuple[Column, ...], dialect: str, formats: tuple[int, ...], *, shows_text: bool = False
) -> RowEncoder:
    """The encoder of these columns: statements that come again share it."""
    return RowEncoder(columns, dialect, formats, shows_text=shows_text)
