"""The export of Activity: lines as a file of JSON lines or CSV, which says what it lacks."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tidegate.audit.activity_lines import Line
from tidegate.errors import Code, TidegateError
from tidegate.products.console.activity_pages import LeftOut, MergedLines
from tidegate.products.console.downloads import DraftFile, MadeFile
from tidegate.results.formats import is_formula

EXPORTED = 100_000
"""The most lines of one export."""
_COLUMNS = tuple(name for name in Line.__struct_fields__ if name not in ("n", "offset", "session"))


class NotExported(NamedTuple):
    """What an export has not: the lines that it `lacks`, in words, and the reads of the console's
    own that are `left` out."""

    lacks: tuple[str, ...]
    left: LeftOut


def export_lines(
    form: str, directory: Path, lines: MergedLines, find_rest: Callable[[], NotExported]
) -> MadeFile:
    """A file of these lines. `find_rest` is asked once they have been read. On a thread.

    Raises: TidegateError ARGUMENT_INVALID, LIMIT_BYTES, STATE_FAILED.
    """
    if form not in ("jsonl", "csv"):
        raise TidegateError(Code.ARGUMENT_INVALID, "`format` is jsonl or csv")
    draft = DraftFile(directory)
    count, more, columns = 0, False, _COLUMNS
    try:
        for gate, line in lines:
            if not count:
                columns = (*_COLUMNS, "gate") if gate else _COLUMNS
                draft.put(_csv_line(columns) if form == "csv" else b"")
            if count == EXPORTED:
                more = True
                break
            draft.put(_line(line, gate, columns, form))
            count += 1
        draft.put(_csv_line(columns) if form == "csv" and not count else b"")
        draft.finish()
        rest = find_rest()
    except BaseException:
        draft.close()
        raise
    cut = f"cut after the newest {count:,} lines, the limit: there are older ones" if more else ""
    details = {"lines": str(count), "format": form, **({"cut": cut} if more else {})}
    notes = list(rest.lacks)
    if rest.lacks:
        details["lacks"] = "; ".join(rest.lacks)
    if rest.left.left_out:
        number = f"{rest.left.left_out:,}{'+' if rest.left.more else ''}"
        notes.append(f"without {number} reads of the console's own, as the page shows it")
        details["own"] = f"{number} left out"
    made = MadeFile(draft, "activity", form, count, cut=cut, notes=notes, details=details)
    made.is_whole = made.is_whole and not rest.lacks
    return made


def _line(line: Line, gate: str, columns: Sequence[str], form: str) -> bytes:
    fields: dict[str, Any] = {
        name: gate if name == "gate" else getattr(line, name) for name in columns
    }
    if form == "csv":
        return _csv_line([_cell(each) for each in fields.values()])
    return msgspec.json.encode(fields) + b"\n"


def _csv_line(cells: Sequence[Any]) -> bytes:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow(cells)
    return line.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> Any:
    """A value for CSV; what a spreadsheet would take for a formula begins with a quote."""
    if isinstance(value, str) and is_formula(value):
        return f"'{value}"
    return value
