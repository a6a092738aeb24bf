"""Reads workbooks and Parquet files in a process of its own, which ends with the file.

A file may be made to do harm: what reads it is no code of ours, so it gets little memory and time,
and no more than the file. Run as `python -m tidegate.imports.extraction KIND PATH SHEET`; the rows
go to standard output as parts of msgpack, each after its length.
"""

from __future__ import annotations

import datetime
import sys
import zipfile
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec

from tidegate.imports.model import MOST_BYTES, MOST_COLUMNS, Unreadable
from tidegate.imports.row_parts import MOST_PART, Head, write_encoded, write_part
from tidegate.model.row_changes import MOST_FED
from tidegate.system.limits import bound_memory

MEMORY_BYTES = 1_610_612_736
MOST_WRITTEN = 2 * MOST_BYTES
"""Bytes of all rows: a value that is once in the file may be in each of them."""
_AT_ONCE = 500
_MOST_RATIO = 200
"""How many times larger than its file a workbook or Parquet file may be, above a megabyte."""
_NESTED = ("STRUCT", "MAP", "LIST", "UNION")


def main(words: Sequence[str]) -> int:
    """Write the rows of a file to standard output."""
    kind, path, sheet = words
    bound_memory(MEMORY_BYTES)
    write_rows(kind, Path(path), sheet, sys.stdout.buffer)
    return 0


def write_rows(kind: str, path: Path, sheet: str, file: IO[bytes]) -> None:
    """Write the rows of a file to another, or why it cannot be read."""
    out = _Output(file)
    try:
        if kind == "workbook":
            _write_sheet(path, sheet, out)
        else:
            _write_parquet(path, out)
    except Unreadable as error:
        out.fail(str(error))
    except MemoryError:
        out.fail("it takes too much memory")


class _Output:
    """What is written of a file: its head and its rows, or why it cannot be read."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._left = MOST_WRITTEN

    def begin(self, head: Head) -> None:
        write_part(self._out, head)

    def add(self, rows: Sequence[Any]) -> None:
        """Raises: Unreadable for more than is taken of a file, or of a row."""
        data = msgspec.msgpack.encode(rows)
        if len(data) > self._left:
            raise Unreadable(f"its rows take more than {MOST_WRITTEN >> 20} MB")
        if len(data) <= MOST_PART:
            self._left -= write_encoded(self._out, data)
        elif len(rows) == 1:
            raise Unreadable(f"a row takes more than {MOST_PART >> 20} MB")
        else:
            for row in rows:
                self.add([row])

    def fail(self, why: str) -> None:
        """Say why, in place of what was written: a part of the rows is no file."""
        self._out.flush()
        if self._out.seekable():
            self._out.seek(0)
            self._out.truncate()
        write_part(self._out, Head(error=why))


def _check_ratio(size: int, unpacked: int) -> None:
    """Raises: Unreadable."""
    if unpacked > MOST_BYTES:
        raise Unreadable(f"it has more than {MOST_BYTES >> 20} MB unpacked")
    if unpacked > 1_048_576 and unpacked > size * _MOST_RATIO:
        raise Unreadable(f"unpacked it is over {_MOST_RATIO} times as large as its file")


def _check_width(width: int) -> None:
    """Raises: Unreadable."""
    if width > MOST_COLUMNS:
        raise Unreadable(f"it has more than {MOST_COLUMNS:,} columns")


def _write_sheet(path: Path, sheet: str, out: _Output) -> None:
    try:
        calamine: Any = import_module("python_calamine")  # its types are not complete
    except ImportError:
        raise Unreadable("workbooks need the extra `excel`") from None
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            _check_ratio(path.stat().st_size, sum(each.file_size for each in archive.infolist()))
    try:
        with calamine.load_workbook(str(path)) as workbook:
            names: list[str] = list(workbook.sheet_names)
            chosen = sheet if sheet in names else next(iter(names), "")
            if not chosen:
                raise Unreadable("it has no sheet")
            found = workbook.get_sheet_by_name(chosen)
            _check_width(found.width)
            if found.height > MOST_FED + 1:
                raise Unreadable(f"the sheet has more than {MOST_FED:,} rows")
            out.begin(Head(sheets=names, sheet=chosen))
            rows = found.to_python(skip_empty_area=False)
            source = ([_text(value) for value in row] for row in rows)
            while part := list(islice(source, _AT_ONCE)):
                out.add(part)
    except (calamine.CalamineError, ValueError, zipfile.BadZipFile) as error:
        raise Unreadable(_reason(error)) from error


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else "it is damaged"


def _text(value: Any) -> str | None:
    """A cell as a text; a formula is the value that was computed last."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        return str(int(value)) if whole else format(Decimal(repr(value)), "f")
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(" ")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def _write_parquet(path: Path, out: _Output) -> None:
    try:
        duckdb: Any = import_module("duckdb")  # its types are not complete
    except ImportError:
        raise Unreadable("Parquet files need the extra `duckdb`") from None
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "512MB"})
    try:
        size, rows = connection.execute(
            "SELECT coalesce(sum(total_uncompressed_size), 0), (SELECT coalesce(sum(num_rows), 0)"
            " FROM parquet_file_metadata($1)) FROM parquet_metadata($1)",
            [str(path)],
        ).fetchall()[0]
        _check_ratio(path.stat().st_size, int(size))
        if int(rows) > MOST_FED:
            raise Unreadable(f"it has more than {MOST_FED:,} rows")
        described = connection.execute(
            "DESCRIBE SELECT * FROM read_parquet($1)", [str(path)]
        ).fetchall()
        _check_width(len(described))
        names = [str(row[0]) for row in described]
        types = [str(row[1]) for row in described]
        out.begin(Head(names=names, types=types))
        shown = [_expression(name, kind) for name, kind in zip(names, types, strict=True)]
        found = connection.execute(f"SELECT {', '.join(shown)} FROM read_parquet($1)", [str(path)])
        while part := found.fetchmany(_AT_ONCE):
            out.add(part)
    except duckdb.Error as error:
        raise Unreadable(_reason(error).replace(str(path), "the file")) from error


def _expression(name: str, kind: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if kind == "BLOB":
        return quoted
    if kind.startswith(_NESTED) or kind.endswith("]"):
        return f"CAST(to_json({quoted}) AS VARCHAR)"
    return f"CAST({quoted} AS VARCHAR)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
