"""Rows as the text that the document's tools return: a Markdown table, or labelled records. Pure.

Columns are in the order of the rows, not of the alphabet, and what would break a table or forge a
record is escaped: the original does neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

NO_RESULTS: Final = "**no results**"
_PLAIN_FLOATS: Final = 1e15
"""Below, a whole number that is a float is written without `.0`."""

_LINE_ENDS = {"\r": "\\r", "\n": "\\n", "\u2028": "\\u2028", "\u2029": "\\u2029", "\0": "\\0"}
_CELL = str.maketrans({**_LINE_ENDS, "\\": "\\\\", "|": "\\|"})
_VALUE = str.maketrans(_LINE_ENDS)

Rows = Sequence[Mapping[str, Any]]


def table(rows: Rows) -> str:
    """The rows as a table; its columns are those of the rows, in their order of appearance."""
    if not rows:
        return NO_RESULTS
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [_line(columns), "|---" * len(columns) + "|"]
    lines += [_line([row.get(name) for name in columns]) for row in rows]
    return "\n".join(lines) + "\n"


def records(title: str, found: Rows) -> str:
    """The rows under `title`, each as lines of `name: value`, sorted by name."""
    if not found:
        return f"# {title}\n\n{NO_RESULTS}"
    parts = [
        f"## Record {number}\n\n"
        + "".join(f"{name.translate(_VALUE)}: {shown(row[name])}\n" for name in sorted(row))
        for number, row in enumerate(found, 1)
    ]
    return f"# {title}\n\n" + "\n".join(parts)


def shown(value: Any) -> str:
    """A value on one line; a list of texts as `[a b]`, nothing for null."""
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(shown, value)) + "]"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - JSON has no type
    return _text(value).translate(_VALUE)


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, with `_2` and so on after one that is there already: rows are objects."""
    taken: set[str] = set(names)
    given: set[str] = set()
    unique: list[str] = []
    for name in names:
        chosen, count = name, 1
        while chosen in given or (chosen != name and chosen in taken):
            count += 1
            chosen = f"{name}_{count}"
        given.add(chosen)
        unique.append(chosen)
    return unique


def _line(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(_text(cell).translate(_CELL) for cell in cells) + " |"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _PLAIN_FLOATS:
        return str(int(value))
    return msgspec.json.encode(value).decode()
