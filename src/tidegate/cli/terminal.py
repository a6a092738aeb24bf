"""Output on a terminal: tables, colors, status lines, JSON; and questions, also hidden ones."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import msgspec

from tidegate.errors import Code, TidegateError

_WIDEST = 48


def uses_color(stream: TextIO) -> bool:
    """Whether colors are wanted on the stream."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def color(text: str, code: str) -> str:
    """The text in an SGR color (`1` bold, `2` dim, `32` green) if stdout shows colors."""
    return f"\x1b[{code}m{text}\x1b[0m" if uses_color(sys.stdout) else text


_HOSTILE = re.compile(
    "\x1b(?!\\[[0-9]{0,3}m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
"""What would move a terminal's cursor, write to its clipboard or turn its text around. Colors are
ours."""


def harmless(text: str) -> str:
    """The text as a terminal may get it: names and comments come from databases."""
    return _HOSTILE.sub("\N{REPLACEMENT CHARACTER}", text)


def _without_shape(text: str, failed: bool) -> str:
    return harmless(text)


_shape_status: Callable[[str, bool], str] = _without_shape


def shape_status(shape: Callable[[str, bool], str]) -> None:
    """From now on print status lines as `shape` gives them, from the text and whether it says why
    the command failed."""
    global _shape_status
    _shape_status = shape


def print_status(text: str = "", *, failed: bool = False) -> None:
    """Print one status line on stderr, so that stdout has results only. Commands in it are as they
    are typed here. If the command `failed`, the line says why."""
    if "`tidegate " in text:
        from tidegate.config.installation import as_typed  # lazily: it loads every product's entry

        text = as_typed(text)
    print(_shape_status(text, failed), file=sys.stderr, flush=True)


def ask_line(question: str, proposed: str = "") -> str:
    """What a person types on a line, `proposed` if that is nothing.

    Raises: TidegateError ARGUMENT_INVALID at the end of the input.
    """
    shown = f" [{proposed}]" if proposed else ""
    print(harmless(f"{question}{shown}: "), end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        print_status()
        raise TidegateError(
            Code.ARGUMENT_INVALID, "The input ended.", hint="Start the command again."
        )
    return line.strip() or proposed


def ask_secret(prompt: str, terminal: TextIO | None = None) -> str:
    """What a person types at the terminal, by default standard input, without its being shown.
    Empty at the end of the input."""
    from tidegate.system.terminals import hidden_typing, write_to_screen

    source = terminal or sys.stdin
    # Not `getpass`, which prefers the controlling terminal to standard input.
    with hidden_typing(source):
        write_to_screen(source, prompt)
        return source.readline().rstrip("\n")


def show(text: str = "") -> None:
    """Print one or more lines of the result on stdout."""
    print(harmless(text), flush=True)


def show_json(value: Any) -> None:
    """Print a value on stdout as indented JSON with a newline."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.flush()


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, fitted: bool = False
) -> None:
    """Print a table on stdout, with numbers aligned to the right.

    With `fitted`, long values are shortened with `…` on a terminal; a pipe gets whole values.
    """
    widest = _WIDEST if fitted and sys.stdout.isatty() else None
    shown = [[_cell(value, widest) for value in row] for row in rows]
    names = [_flat(name, widest) for name in columns]
    widths = [max(map(_width, column)) for column in zip(names, *shown, strict=True)]
    right = [_is_of_numbers([row[at] for row in rows]) for at in range(len(columns))]
    lines = [color(_line(names, widths, right), "1")]
    lines.append(color("  ".join("-" * width for width in widths), "2"))
    lines += [_line(row, widths, right) for row in shown]
    show("\n".join(lines))


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [_pad(*cell) for cell in zip(cells, widths, right, strict=True)]
    return "  ".join(padded).rstrip()


def _is_of_numbers(values: Sequence[Any]) -> bool:
    there = [value for value in values if value is not None]
    return bool(there) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in there
    )


def _cell(value: Any, widest: int | None) -> str:
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return _flat(text, widest)


def _flat(text: str, widest: int | None) -> str:
    """The text on one line, without control characters, shortened to `widest` columns."""
    flat = "".join(
        " " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in text
    )
    if widest is None or _width(flat) <= widest:
        return flat
    kept: list[str] = []
    width = 0
    for char in flat:
        width += _columns(char)
        if width >= widest:
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
