"""Reads workbooks (Excel, OpenDocument) for tables of a folder. Runs in the worker.

The library `python-calamine` is imported when the first workbook is read; without it each workbook
is a table that says what to install.
"""

from __future__ import annotations

import datetime
import os
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import duckdb

from tidegate.sql.dialects import find

_quote = find("duckdb").quote

MOST_BYTES = 128 * 2**20
"""Of a workbook's content, unpacked. It is read as a whole into the worker's memory."""

MOST_COLUMNS = 1_000

_TYPES: tuple[tuple[frozenset[type[Any]], str], ...] = (
    (frozenset({bool}), "BOOLEAN"),
    (frozenset({int}), "BIGINT"),
    (frozenset({int, float}), "DOUBLE"),
    (frozenset({datetime.date}), "DATE"),
    (frozenset({datetime.date, datetime.datetime}), "TIMESTAMP"),
    (frozenset({datetime.time}), "TIME"),
    (frozenset({datetime.timedelta}), "INTERVAL"),
)
"""A column has the first type that takes all its values, otherwise VARCHAR."""

_MOST_EXACT = 2**53

Sheet = tuple[str, list[list[Any]]]


class UnreadableWorkbook(Exception):
    """A workbook that cannot be read; its text says why."""


def read_sheets(path: str) -> list[Sheet]:
    """The sheets that have rows, each with its name. Raises: UnreadableWorkbook, OSError."""
    try:
        calamine: Any = import_module("python_calamine")  # its types are not complete
    except ModuleNotFoundError:
        from tidegate.config.installation import add_command

        raise UnreadableWorkbook(
            f"workbooks need the extra `excel`. Run: {add_command('excel')}"
        ) from None
    _check_size(path)
    try:
        with calamine.load_workbook(path) as workbook:
            names: list[str] = workbook.sheet_names
            sheets = [(name, workbook.get_sheet_by_name(name).to_python()) for name in names]
    except (calamine.CalamineError, ValueError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else "it is damaged"
        raise UnreadableWorkbook(reason) from error
    found = [(name, rows) for name, rows in sheets if rows]
    if not found:
        raise UnreadableWorkbook("it has no rows")
    return found


def load_sheet(handle: duckdb.DuckDBPyConnection, table: str, rows: list[list[Any]]) -> None:
    """Make `table` (quoted) of a sheet: its first row names the columns."""
    width = max(len(row) for row in rows)
    if width > MOST_COLUMNS:
        raise UnreadableWorkbook(f"a sheet has more than {MOST_COLUMNS:,} columns")
    names = list(_names(rows[0], width))
    columns = [[_value(row, place) for row in rows[1:]] for place in range(width)]
    kinds = [_type_of(column) for column in columns]
    declared = ", ".join(f"{_quote(name)} {kind}" for name, kind in zip(names, kinds, strict=True))
    handle.execute(f"CREATE TABLE {table} ({declared})")
    if len(rows) > 1:
        values = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
        given = [
            [None if value is None else str(value) for value in column]
            if kind == "VARCHAR"
            else column
            for column, kind in zip(columns, kinds, strict=True)
        ]
        handle.execute(f"INSERT INTO {table} SELECT {values}", given)


def _check_size(path: str) -> None:
    size = os.stat(path).st_size  # noqa: PTH116 - the name as it was found
    if size <= MOST_BYTES and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    if size > MOST_BYTES:
        raise UnreadableWorkbook(
            f"it has more than {MOST_BYTES >> 20} MB; save it as Parquet or CSV"
        )


def _names(first: Sequence[Any], width: int) -> Iterator[str]:
    """Names of columns that differ; those without one have a number."""
    taken: set[str] = set()
    for place in range(width):
        given = str(first[place]).strip() if place < len(first) else ""
        base = " ".join(given.split()) or f"column{place + 1}"
        name, number = base, 1
        while name.casefold() in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name.casefold())
        yield name


def _value(row: Sequence[Any], place: int) -> Any:
    """A cell; a whole number is an integer, though workbooks hold all numbers as floats."""
    value = row[place] if place < len(row) else None
    if isinstance(value, float) and value.is_integer() and abs(value) < _MOST_EXACT:
        return int(value)
    return None if value == "" else value


def _type_of(column: Sequence[Any]) -> str:
    kinds: set[type[Any]] = {type(value) for value in column if value is not None}
    return next((name for fitting, name in _TYPES if kinds and kinds <= fitting), "VARCHAR")
