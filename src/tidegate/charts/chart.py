"""A chart as data: its axes, its marks where they lie, and all that it shows as texts. Frozen.

`charts/chart.js` draws it; nothing in it needs the rows that it was made of.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from tidegate.charts.spec import Mark, Stack


class Axis(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an axis or the colors show. The places of a `band` are the indexes of its `labels`,
    those of a `time` milliseconds since 1970, in UTC."""

    title: str
    kind: Literal["number", "time", "band"]
    log: bool = False
    unit: str = ""
    """The unit of a time, or `bin`: a mark goes from a beginning to an end."""
    labels: tuple[str, ...] = ()
    null: int | None = None
    """Which label is that of NULL."""
    other: int = 0
    """How many values the last label, `other (n)`, is of."""


Place = float | int | None

MarkPlace = tuple[Place, Place, Place, Place, Place]
"""Where x begins and ends, where y begins and ends, and the color. What has no end has None."""


class MarkValues(NamedTuple):
    """A mark by the values of its channels: x, y, and color if there is one."""

    x: Any
    y: Any
    color: Any = None


class Chart(msgspec.Struct, frozen=True, omit_defaults=True):
    """`rows` say the same as `marks`, one for each, exactly: they are the table of the chart."""

    mark: Mark
    x: Axis
    y: Axis
    columns: tuple[str, ...]
    marks: tuple[MarkPlace, ...]
    rows: tuple[tuple[str | None, ...], ...]
    row_count: int
    """The rows of the result that the chart is of."""
    color: Axis | None = None
    value_axis: Literal["x", "y"] | None = None
    stack: Stack | None = None
    notes: tuple[str, ...] = ()
    """What the chart does not show, and why."""
