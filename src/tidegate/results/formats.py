"""Writes rows as CSV, JSON or SQL, chunk by chunk, so that no result is ever held whole.

A writer is a `types.RowWriter` over `put`, which takes bytes. Pure but for what `put` does.

    csv    RFC 4180: a header, CRLF, quotes where needed. NULL is an empty field, an empty text
           is "". A text that a spreadsheet would take for a formula gets an apostrophe before it.
    json   an array of objects, one line for each; a name that comes twice gets `_2`, `_3`
    sql    one INSERT for each row, quoted for the dialect it came from
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from tidegate.results.types import encode_rows, text
from tidegate.sql.quoting import identifier, literal
from tidegate.types import Column

Format = Literal["csv", "json", "sql"]
Put = Callable[[bytes], None]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NEEDS_QUOTES = frozenset(',"\r\n')


class CsvWriter:
    """Writes a result as CSV."""

    def __init__(self, put: Put) -> None:
        self._put = put

    def begin(self, columns: tuple[Column, ...]) -> None:
        self._put(_csv_line([column.name for column in columns]))

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        self._put(b"".join([_csv_line(row) for row in rows]))

    def end(self) -> None:
        """Nothing follows the last row."""


class JsonWriter:
    """Writes a result as a JSON array of objects."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._names: list[str] = []
        self._before = b"[\n"

    def begin(self, columns: tuple[Column, ...]) -> None:
        self._names = unique([column.name for column in columns])

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            # By way of the rendering that every page has, which mends what is no text.
            values = msgspec.json.decode(encode_rows([row]), type=list[list[msgspec.Raw]])[0]
            fields = dict(zip(self._names, values, strict=True))
            self._put(self._before + msgspec.json.encode(fields))
            self._before = b",\n"

    def end(self) -> None:
        self._put(b"[]\n" if self._before == b"[\n" else b"\n]\n")


class SqlWriter:
    """Writes a result as INSERT statements into `table`, which is written as it is given."""

    def __init__(self, put: Put, table: str, dialect: str) -> None:
        self._put = put
        self._table = table
        self._dialect = dialect
        self._head = ""

    def begin(self, columns: tuple[Column, ...]) -> None:
        names = ", ".join(identifier(column.name, self._dialect) for column in columns)
        self._head = f"INSERT INTO {self._table} ({names}) VALUES ("

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        dialect = self._dialect
        lines = [
            f"{self._head}{', '.join([literal(value, dialect) for value in row])});\n"
            for row in rows
        ]
        self._put("".join(lines).encode("utf-8", "replace"))

    def end(self) -> None:
        """Nothing follows the last row."""


Writer = CsvWriter | JsonWriter | SqlWriter


def writer(format: Format, put: Put, *, table: str, dialect: str) -> Writer:
    """The writer of a format; `table` (quoted) and `dialect` matter to SQL alone."""
    if format == "csv":
        return CsvWriter(put)
    return JsonWriter(put) if format == "json" else SqlWriter(put, table, dialect)


def unique(names: Sequence[str]) -> list[str]:
    """The names with `_2`, `_3` ... behind those that came before."""
    taken: set[str] = set()
    made: list[str] = []
    for name in names:
        candidate, count = name, 1
        while candidate in taken:
            count += 1
            candidate = f"{name}_{count}"
        taken.add(candidate)
        made.append(candidate)
    return made


def _csv_line(values: Sequence[Any]) -> bytes:
    line = ",".join([_csv_field(value) for value in values])
    return (line + "\r\n").encode("utf-8", "replace")


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    shown = text(value) or ""
    if isinstance(value, str) and shown.startswith(_FORMULA):
        shown = f"'{shown}"
    if not shown or not _NEEDS_QUOTES.isdisjoint(shown):
        return '"' + shown.replace('"', '""') + '"'
    return shown
