"""Records as rows, and rows as records: a column for each field, by its name. Lists, sets and
records within records are JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec

from tidegate.typed_values import convert_value

Record = TypeVar("Record", bound=msgspec.Struct)

_QUOTED = frozenset({"table", "database", "schema", "offset", "by", "window", "text"})


def quoted(names: Iterable[str]) -> str:
    """The columns of these names, as SQL has them."""
    return ", ".join(f'"{name}"' if name in _QUOTED else name for name in names)


class Rows(Generic[Record]):
    """The rows of one kind of record. Of the fields `as_json` the columns are JSON."""

    def __init__(
        self, kind: type[Record], as_json: Sequence[str] = (), without: Sequence[str] = ()
    ) -> None:
        self._kind = kind
        self.names = tuple(name for name in kind.__struct_fields__ if name not in without)
        self._json = frozenset(as_json)
        self.columns = quoted(self.names)
        self.marks = ", ".join(["%s"] * len(self.names))

    def columns_of(self, table: str) -> str:
        """The columns with the name of their table."""
        return ", ".join(f"{table}.{quoted([name])}" for name in self.names)

    def value(self, name: str, value: Any) -> Any:
        """What the column of a field holds for a value."""
        if isinstance(value, Enum):
            return value.value
        if name in self._json and value is not None:
            if isinstance(value, frozenset):
                value = sorted(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            return msgspec.json.encode(value).decode()
        return value

    def values(self, record: Record, names: Sequence[str] | None = None) -> list[Any]:
        """What the columns hold for a record: all, or those of these names."""
        return [self.value(name, getattr(record, name)) for name in names or self.names]

    def named(self, record: Record, names: Sequence[str] | None = None) -> dict[str, Any]:
        """What the columns hold for a record, by their names."""
        return dict(zip(names or self.names, self.values(record, names), strict=True))

    def record(self, row: Sequence[Any]) -> Record:
        """The record of a row of `columns`."""
        fields = dict(zip(self.names, row, strict=True))
        for name in self._json:
            if fields[name] is not None:
                fields[name] = msgspec.json.decode(fields[name])
        return convert_value(fields, self._kind)

    def records(self, rows: Iterable[Sequence[Any]]) -> list[Record]:
        """The records of rows."""
        return [self.record(row) for row in rows]
