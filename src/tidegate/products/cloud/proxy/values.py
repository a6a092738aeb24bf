"""The rows of a result in text format as the values of the engine `cloud`. Pure."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from psycopg.pq.abc import PGresult

from tidegate.engines.api import Row
from tidegate.model.results import Column, ColumnKind

Load = Callable[[bytes], Any]


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _or_text(load: Load) -> Load:
    """A reader for what SQLite may keep in a column of another type."""

    def read(value: bytes) -> Any:
        try:
            return load(value)
        except (ValueError, InvalidOperation):
            return _text(value)

    return read


def _boolean(value: bytes) -> bool:
    if value not in (b"t", b"f"):
        raise ValueError
    return value == b"t"


def _bytes(value: bytes) -> bytes:
    if not value.startswith(b"\\x"):
        raise ValueError
    return bytes.fromhex(value[2:].decode("ascii"))


_INTEGER: Final = ("INTEGER", "integer", _or_text(int))
_FLOAT: Final = ("REAL", "float", _or_text(float))
_TYPES: Final[dict[int, tuple[str, ColumnKind, Load]]] = {
    16: ("BOOLEAN", "boolean", _or_text(_boolean)),
    17: ("BLOB", "bytes", _or_text(_bytes)),
    20: _INTEGER,
    21: _INTEGER,
    23: _INTEGER,
    700: _FLOAT,
    701: _FLOAT,
    1700: ("NUMERIC", "decimal", _or_text(lambda value: Decimal(value.decode()))),
}  # type: ignore[assignment]
"""Name, kind and reader by the oid of the type; every other type is text."""
_TEXT: Final = ("TEXT", "text", _text)


class RowReader:
    """Reads the rows of one statement. `result` is the first that it gave."""

    def __init__(self, result: PGresult) -> None:
        types = [_TYPES.get(result.ftype(at), _TEXT) for at in range(result.nfields)]
        self.columns = tuple(
            Column((result.fname(at) or b"").decode(errors="replace"), name, kind)  # type: ignore[arg-type]
            for at, (name, kind, _) in enumerate(types)
        )
        self._loads = [load for _, _, load in types]

    def rows(self, result: PGresult) -> list[Row]:
        """All rows of a result."""
        get, loads = result.get_value, self._loads
        return [
            [
                None if (value := get(at, column)) is None else load(value)
                for column, load in enumerate(loads)
            ]
            for at in range(result.ntuples)
        ]
