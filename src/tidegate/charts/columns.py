"""The columns of a result that a chart is of: found by name, and read once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from tidegate.charts.spec import Channel, ChartSpec
from tidegate.charts.values import Misfits, read_categories, read_numbers, read_times
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column

Part = Sequence[Sequence[Any]]
"""Some rows of a result."""
_ANY = frozenset({"count", "valid", "distinct"})
"""Aggregates of values of any type."""
_TIMES = frozenset({"date", "timestamp", "timestamp_tz", "text", "other"})
_NUMBERS = frozenset({"integer", "decimal", "float", "other"})


class ChartColumns:
    """The cells of the columns that a specification names, of all rows."""

    def __init__(self, spec: ChartSpec, columns: Sequence[Column], parts: Iterable[Part]) -> None:
        """Raises: TidegateError ARGUMENT_INVALID for a column that is not there, or of another type
        than the specification says."""
        self._columns = columns
        self.places: dict[str, int] = {}
        """The number of each column, by the name that the specification has for it."""
        for channel in spec.channels:
            if channel.field is not None:
                self.places[channel.field] = _place(channel, columns)
        self.cells: dict[str, list[Any]] = {name: [] for name in self.places}
        self.row_count = 0
        for part in parts:
            self.row_count += len(part)
            for name, place in self.places.items():
                self.cells[name].extend([row[place] for row in part])

    def read(self, channel: Channel) -> tuple[list[Any], Misfits]:
        """The values of a channel before it gathers them, and those that are none."""
        if channel.field is None:
            return [None] * self.row_count, Misfits("")
        column, cells = self._columns[self.places[channel.field]], self.cells[channel.field]
        misfits = Misfits(column.name)
        if channel.aggregate in _ANY or (channel.is_discrete and channel.time_unit is None):
            return list(read_categories(cells, column.kind)), misfits
        if channel.type == "quantitative":
            return list(read_numbers(cells, column.kind, misfits)), misfits
        return list(read_times(cells, column.kind, misfits)), misfits


def find_column(name: str, columns: Sequence[Column]) -> int:
    """The number of the column of a name; a dot in it may be escaped, as Vega-Lite wants it.

    Raises: TidegateError ARGUMENT_INVALID.
    """
    names = [each.name for each in columns]
    for wanted in (name, name.replace("\\.", ".")):
        found = [place for place, each in enumerate(names) if each == wanted]
        if len(found) > 1:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The result has {len(found)} columns named {name}",
                hint="Give each a name of its own in the statement.",
            )
        if found:
            return found[0]
    near = get_close_matches(name, names, 1)
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"The result has no column {name}",
        hint=f"Is it {near[0]}?" if near else f"It has {', '.join(names[:20])}.",
    )


def _place(channel: Channel, columns: Sequence[Column]) -> int:
    place = find_column(channel.field or "", columns)
    column = columns[place]
    takes = None
    if channel.aggregate in _ANY:
        pass
    elif channel.type == "quantitative" and column.kind not in _NUMBERS:
        takes = "numbers"
    elif (channel.type == "temporal" or channel.time_unit) and column.kind not in _TIMES:
        takes = "times"
    if takes is not None:
        kind = column.type or column.kind
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`encoding.{channel.name}` needs {takes}, and {column.name} is {kind}",
            hint="Choose another type or column, or convert it in the statement.",
        )
    return place
