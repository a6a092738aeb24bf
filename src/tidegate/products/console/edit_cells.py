"""Values of staged edits as the page sends and shows them: exact, and each of one state. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.editing import EditColumn
from tidegate.model.row_changes import DEFAULT

_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(
    r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|NaN|[-+]?inf(?:inity)?",
    re.IGNORECASE,
)
_BOOLEANS = frozenset({"true", "false"})
_BITS = {"true": 1, "false": 0}
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value that is not NULL: a text (with a class where the database keeps one), bytes in
    hexadecimal, or DEFAULT."""

    text: str | None = None
    hex: str | None = None
    default: bool = False
    storage: str | None = msgspec.field(default=None, name="class")


Cells = dict[str, Cell | None]


def cell_of(value: Any, *, classes: bool) -> Cell | None:
    """A value of a row as a cell."""
    if value is None:
        return None
    if value == DEFAULT:
        return Cell(default=True)
    if isinstance(value, bytes):
        return Cell(hex=value.hex())
    kind = None
    if classes:
        kind = (
            "real" if isinstance(value, float) else "text" if isinstance(value, str) else "integer"
        )
    text = repr(value) if isinstance(value, float) else str(value)
    return Cell(text=text, storage=kind)


def value_of(cell: Cell | None, column: EditColumn, was: Any = None) -> Any:
    """The value that a cell writes into a column, where `was` is the one that is there.

    Raises: TidegateError ARGUMENT_INVALID for what is no value of the column.
    """
    if cell is None:
        return None
    given = [cell.text is not None, cell.hex is not None, cell.default]
    if sum(given) != 1 or (cell.storage is not None and cell.text is None):
        raise _no_value(column, "one of `text`, `hex` and `default`")
    if cell.default:
        return DEFAULT
    if cell.hex is not None:
        return _bytes(cell.hex, column)
    text = cell.text or ""
    if column.classes:
        return _of_class(text, cell.storage, column, was)
    return _checked(text, column)


def _bytes(digits: str, column: EditColumn) -> bytes:
    if column.editor != "bytes" and not column.classes:
        raise _no_value(column, "a text")
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise _no_value(column, "bytes in hexadecimal, such as 00ff") from None


def _checked(text: str, column: EditColumn) -> str:
    """The text, if it can be a value of the column as far as its kind tells."""
    if column.editor == "bytes":
        raise _no_value(column, "bytes in hexadecimal, such as 00ff")
    stripped = text.strip()
    if column.editor == "integer" and not _INTEGER.fullmatch(stripped):
        raise _no_value(column, "a whole number")
    if column.editor in ("decimal", "float") and not _NUMBER.fullmatch(stripped):
        raise _no_value(column, "a number")
    if column.editor == "boolean":
        if stripped.lower() not in _BOOLEANS:
            raise _no_value(column, "true or false")
        return stripped.lower()
    if column.editor == "enum" and text not in column.labels:
        raise _no_value(column, "one of its values")
    return stripped if column.editor in ("integer", "decimal", "float") else text


def _of_class(text: str, storage: str | None, column: EditColumn, was: Any) -> Any:
    """The value of a class: the one that is named; else a number stays a number where the text is
    one, and all else is a text, which the database may convert for the column. True and false are
    1 and 0 there: the word `true` is a false condition."""
    if storage == "text":
        return text
    number = text.strip()
    bit = _BITS.get(number.lower()) if column.editor == "boolean" and storage is None else None
    if bit is not None and not isinstance(was, str):
        return bit
    whole = int(number) if _INTEGER.fullmatch(number) and len(number) <= 20 else None
    fits = whole is not None and _SMALLEST <= whole <= _LARGEST
    if storage == "integer":
        if not fits:
            raise _no_value(column, "a whole number of 64 bits")
        return whole
    if storage == "real":
        if not _NUMBER.fullmatch(number) or number.lower() == "nan":
            raise _no_value(column, "a number")
        return float(number)
    if storage is not None:
        raise _no_value(column, "one of the classes integer, real and text")
    if isinstance(was, float) and _NUMBER.fullmatch(number) and number.lower() != "nan":
        return float(number)
    if isinstance(was, int) and fits:
        return whole
    if isinstance(was, int) and _NUMBER.fullmatch(number) and number[-1:].isdigit():
        return float(number)
    return text


def _no_value(column: EditColumn, wanted: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID, f"That is no value of {column.name} ({column.type}): {wanted}"
    )
