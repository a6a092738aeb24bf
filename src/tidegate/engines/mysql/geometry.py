"""Decides how a shape is written: well-known binary as well-known text, by OGC 06-103r4."""

from __future__ import annotations

import struct

_NAMES = {
    1: "POINT",
    2: "LINESTRING",
    3: "POLYGON",
    4: "MULTIPOINT",
    5: "MULTILINESTRING",
    6: "MULTIPOLYGON",
    7: "GEOMETRYCOLLECTION",
}
_MOST_DEPTH = 32


def well_known_text(data: bytes) -> str:
    """The text of a shape, like `POINT(1 2)`. Raises: ValueError, struct.error, IndexError."""
    reader = _Reader(data)
    text = reader.shape(0)
    if reader.at != len(data):
        raise ValueError("There are bytes behind the shape.")
    return text


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order = "<"
        self.at = 0

    def shape(self, depth: int, *, named: bool = True) -> str:
        """One shape, with its name before it."""
        if depth > _MOST_DEPTH:
            raise ValueError("The shape is nested too deeply.")
        self._order = "<" if self._data[self.at] else ">"
        self.at += 1
        kind = self._count()
        name = _NAMES.get(kind)
        if name is None:
            raise ValueError("This kind of shape is unknown.")
        if kind == 1:
            body = f"({self._point()})"
        elif kind == 2:
            body = self._points()
        elif kind == 3:
            body = self._parts([self._points() for _ in range(self._count())])
        else:
            inner = [self.shape(depth + 1, named=kind == 7) for _ in range(self._count())]
            body = self._parts(inner)
        return name + body if named else body

    def _parts(self, parts: list[str]) -> str:
        return f"({','.join(parts)})" if parts else " EMPTY"

    def _points(self) -> str:
        return f"({','.join([self._point() for _ in range(self._count())])})"

    def _point(self) -> str:
        x, y = struct.unpack_from(self._order + "dd", self._data, self.at)
        self.at += 16
        return f"{_number(x)} {_number(y)}"

    def _count(self) -> int:
        (count,) = struct.unpack_from(self._order + "I", self._data, self.at)
        self.at += 4
        if count > len(self._data):
            raise ValueError("The shape says that it is larger than it is.")
        return count


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
