"""How a file is read, and what is found in it. Frozen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

FileKind = Literal["text", "workbook", "parquet"]
Encoding = Literal["utf-8", "utf-16", "cp1252"]
DateOrder = Literal["dmy", "mdy", "ymd"]
Kind = Literal[
    "text", "integer", "decimal", "float", "boolean", "date", "time", "timestamp", "timestamp_tz",
    "bytes",
]  # fmt: skip
"""What all values of a column can be read as."""
MOST_BYTES = 134_217_728
"""Bytes of a file, packed or not."""
MOST_COLUMNS = 1_000
MOST_NULLS = 20
Value = str | bytes | None


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a file is read. `nulls` are the words that are NULL where they are not quoted; `trims`
    leaves out spaces beside delimiters. `sheet` is that of a workbook."""

    encoding: Encoding = "utf-8"
    delimiter: Annotated[str, Meta(min_length=1, max_length=1)] = ","
    header: bool = True
    nulls: Annotated[
        tuple[Annotated[str, Meta(max_length=40)], ...], Meta(max_length=MOST_NULLS)
    ] = ("",)
    decimal: Literal[".", ","] = "."
    dates: DateOrder = "dmy"
    trims: bool = False
    sheet: Annotated[str, Meta(max_length=200)] = ""


class Record(NamedTuple):
    """A row of a file, and the line where it begins. `undecoded` are places of values with bytes
    that are not of the encoding; with a `problem` it has no values."""

    line: int
    values: list[Value]
    undecoded: tuple[int, ...] = ()
    problem: str = ""


class Records(Protocol):
    """The rows of a file, which can be read again and again."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The columns, where the file itself names them."""
        ...

    def __iter__(self) -> Iterator[Record]: ...


class LineError(msgspec.Struct, frozen=True):
    """What is wrong in a line of a file. `column` is that of the file, empty if it is about the
    line."""

    line: int
    column: str
    message: str


class Unreadable(Exception):
    """A file that cannot be read as its kind; the text says why, without a value of it."""
