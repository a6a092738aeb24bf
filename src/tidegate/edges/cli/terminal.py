"""How things look on a terminal: tables, colors, one line for an error. Knows no data source."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

import msgspec

_WIDEST = 48


def paints(stream: TextIO) -> bool:
    """Whether colors are wanted on the stream."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def paint(text: str, code: str, stream: TextIO | None = None) -> str:
    """The text in an SGR color (`1` bold, `2` dim, `32` green) if the stream, stdout where none
    is given, wants colors."""
    return f"\x1b[{code}m{text}\x1b[0m" if paints(stream or sys.stdout) else text


def say(text: str = "") -> None:
    """One line for the person, on stderr, so that stdout holds answers alone."""
    print(text, file=sys.stderr, flush=True)


def show(text: str = "") -> None:
    """One or more lines of what was asked for, on stdout."""
    print(text, flush=True)


def show_json(value: Any) -> None:
    """One JSON value on stdout, indented, with a newline."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.flush()


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows under their columns on stdout; numbers to the right, NULL dim."""
    shown = [[_cell(value) for value in row] for row in rows]
    widths = [_width(_fit(name)) for name in columns]
    for row in shown:
        for at, text in enumerate(row):
            widths[at] = max(widths[at], _width(text))
    right = [_is_of_numbers([row[at] for row in rows]) for at in range(len(columns))]
    head = [
        _pad(_fit(name), width, to) for name, width, to in zip(columns, widths, right, strict=True)
    ]
    print(paint("  ".join(head).rstrip(), "1"))
    print(paint("  ".join("-" * width for width in widths), "2"))
    for values, row in zip(rows, shown, strict=True):
        cells = [_pad(text, width, to) for text, width, to in zip(row, widths, right, strict=True)]
        if paints(sys.stdout):
            cells = [
                paint(cell, "2") if value is None else cell
                for cell, value in zip(cells, values, strict=True)
            ]
        print("  ".join(cells).rstrip())


def _is_of_numbers(values: Sequence[Any]) -> bool:
    there = [value for value in values if value is not None]
    return bool(there) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in there
    )


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return _fit(value)
    return _fit(msgspec.json.encode(value).decode())


def _fit(text: str) -> str:
    """The text on one line and without control characters, cut to the widest cell."""
    flat = "".join(
        " " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in text
    )
    if _width(flat) <= _WIDEST:
        return flat
    kept: list[str] = []
    width = 0
    for char in flat:
        width += _columns(char)
        if width >= _WIDEST:
            break
        kept.append(char)
    return "".join(kept) + "…"


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def _pad(text: str, width: int, right: bool) -> str:
    gap = " " * (width - _width(text))
    return gap + text if right else text + gap
