"""Writes rows as CSV, JSON or SQL, chunk by chunk, so that no result is ever held whole.

A writer is a `model.results.RowWriter` over `put`, which takes bytes. Pure except for what `put`
does.

    csv    RFC 4180: a header, CRLF, quotes where needed. NULL is an empty field, an empty text
           is "". A text that a spreadsheet would take for a formula gets an apostrophe before
           it; a plain number, such as -12.50, is not one.
    json   an array of objects, one line for each; a name that comes twice gets `_2`, `_3`
    jsonl  the same objects, one on each line, without an array around them
    sql    one INSERT for each row, which a table like the one it came from takes back
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from tidegate.model.results import Column
from tidegate.results.json_values import encode_rows, text
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Write
from tidegate.sql.quoting import identifier

Format = Literal["csv", "json", "jsonl", "sql"]
Put = Callable[[bytes], None]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_NEEDS_QUOTES = frozenset(',;"\r\n')


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
            self._put(self._before + _json_object(self._names, row))
            self._before = b",\n"

    def end(self) -> None:
        self._put(b"[]\n" if self._before == b"[\n" else b"\n]\n")


class JsonLinesWriter:
    """Writes a result as JSON objects, one on each line."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._names: list[str] = []

    def begin(self, columns: tuple[Column, ...]) -> None:
        self._names = unique([column.name for column in columns])

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        self._put(b"".join([_json_object(self._names, row) + b"\n" for row in rows]))

    def end(self) -> None:
        """Nothing follows the last row."""


class SqlWriter:
    """Writes a result as INSERT statements into `table`, which is written as it is given.

    `overriding`: the table gives one of its columns values of its own unless the statement
    overrides it.
    """

    def __init__(self, put: Put, table: str, dialect: str, *, overriding: bool = False) -> None:
        self._put = put
        self._table = table
        self._dialect = dialect
        self._values = "OVERRIDING SYSTEM VALUE VALUES" if overriding else "VALUES"
        self._head = ""
        self._writes: list[Write] = []

    def begin(self, columns: tuple[Column, ...]) -> None:
        named = unique([column.name or f"column_{n}" for n, column in enumerate(columns, 1)])
        names = ", ".join([identifier(name, self._dialect) for name in named])
        self._head = f"INSERT INTO {self._table} ({names}) {self._values} ("
        self._writes = _literal_writers(columns, self._dialect)

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        writes = self._writes
        lines = [
            f"{self._head}{', '.join([w(v) for w, v in zip(writes, row, strict=True)])});\n"
            for row in rows
        ]
        self._put("".join(lines).encode("utf-8", "replace"))

    def end(self) -> None:
        """Nothing follows the last row."""


Writer = CsvWriter | JsonWriter | JsonLinesWriter | SqlWriter


def writer(
    format: Format, put: Put, *, table: str, dialect: str, overriding: bool = False
) -> Writer:
    """The writer of a format; `table` (quoted) and what follows matter to SQL alone."""
    if format == "csv":
        return CsvWriter(put)
    if format == "jsonl":
        return JsonLinesWriter(put)
    return (
        JsonWriter(put)
        if format == "json"
        else SqlWriter(put, table, dialect, overriding=overriding)
    )


def unique(names: Sequence[str]) -> list[str]:
    """The names, with `_2`, `_3` ... appended to those that came before."""
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


def _json_object(names: Sequence[str], row: Sequence[Any]) -> bytes:
    """The row as an object, with the rendering of pages, which repairs invalid text."""
    values = msgspec.json.decode(encode_rows([row]), type=list[list[msgspec.Raw]])[0]
    return msgspec.json.encode(dict(zip(names, values, strict=True)))


def is_formula(shown: str) -> bool:
    """Whether a spreadsheet would take a text of a CSV file for a formula."""
    return shown.startswith(_FORMULA) and not _NUMBER.fullmatch(shown)


def _csv_line(values: Sequence[Any]) -> bytes:
    line = ",".join([_csv_field(value) for value in values])
    return (line + "\r\n").encode("utf-8", "replace")


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    shown = text(value) or ""
    if isinstance(value, str) and is_formula(shown):
        shown = f"'{shown}"
    if not shown or not _NEEDS_QUOTES.isdisjoint(shown):
        return '"' + shown.replace('"', '""') + '"'
    return shown


def _literal_writers(columns: Sequence[Column], dialect: str) -> list[Write]:
    """For each column, what writes a value as the literal that the column takes back. Some
    databases do not read what results show: an ISO 8601 duration, a moment that ends in Z."""
    found = find(dialect)
    return [found.export_writer(column.type, text) or found.literal for column in columns]
