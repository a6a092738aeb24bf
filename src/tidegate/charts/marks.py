"""The marks of a chart, computed from all rows of a result. Pure.

Rows are gathered by the values of the channels without an aggregate, as Vega-Lite does. There are
at most `MOST_MARKS`: the lightest categories become one, `other (n)`, which is computed from all of
their rows; what then is left over is not drawn, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from tidegate.charts.aggregates import aggregate
from tidegate.charts.bins import Bins, bins_of
from tidegate.charts.categories import Other, Weights, merge_rest, order_of
from tidegate.charts.chart import Axis, Chart, MarkPlace, MarkValues, Place
from tidegate.charts.columns import ChartColumns, Part
from tidegate.charts.notes import axis_title, misfit_notes, rest_note, unplaced_note
from tidegate.charts.spec import Channel, ChartSpec
from tidegate.charts.stacking import stack_marks
from tidegate.charts.time_units import begin_of, end_of, unit_text
from tidegate.charts.values import Misfits, label_of, place_of
from tidegate.model.results import Column

MOST_MARKS = 5_000
MOST_COLORS = 12


def compute_chart(
    spec: ChartSpec,
    columns: Sequence[Column],
    parts: Iterable[Part],
    most_marks: int = MOST_MARKS,
) -> Chart:
    """The chart of a result. Raises: TidegateError ARGUMENT_INVALID."""
    return _Computation(spec, ChartColumns(spec, columns, parts), most_marks).chart()


class _Computation:
    """One chart on its way."""

    def __init__(self, spec: ChartSpec, columns: ChartColumns, most: int) -> None:
        self._spec = spec
        self._most = most
        self._columns = columns
        self._notes: list[str] = []
        self._bins: dict[str, Bins] = {}
        self._raw: dict[str, list[Any]] = {}
        """The values of each channel, by row, before an aggregate."""
        self._shown: dict[str, list[Any]] = {}
        """Those of the channels that gather rows: units, bins, categories."""
        misfits: list[tuple[Channel, Misfits]] = []
        for channel in spec.channels:
            self._raw[channel.name], found = columns.read(channel)
            misfits.append((channel, found))
        self._notes += misfit_notes(misfits)
        for channel in spec.channels:
            if channel.aggregate is None:
                self._shown[channel.name] = self._gathered(channel, self._raw[channel.name])

    def _gathered(self, channel: Channel, values: list[Any]) -> list[Any]:
        if channel.time_unit is not None:
            unit = channel.time_unit
            known = {each: None if each is None else begin_of(each, unit) for each in set(values)}
            return [known[each] for each in values]
        if channel.maxbins is None:
            return values
        there = [each for each in values if each is not None]
        if not there:
            return values
        bins = self._bins[channel.name] = bins_of(min(there), max(there), channel.maxbins)
        return list(bins.begin_of_each(values))

    # Marks

    def chart(self) -> Chart:
        spec = self._spec
        self._merge()
        marks = self._group() if spec.is_aggregated else self._each_row()
        orders = {
            each.name: order_of(each, self._shown[each.name], self._weights_for(each.sort))
            for each in spec.channels
            if each.is_discrete
        }
        if spec.stack is not None and spec.mark == "area":
            marks = self._filled(marks)
        marks, left = marks[: self._most], len(marks) - self._most
        if left > 0:
            self._notes.append(rest_note(left, len(marks), aggregated=spec.is_aggregated))
        readers = [_Reader(each, orders.get(each.name), self._bins) for each in spec.channels]
        places: list[list[Place]] = []
        kept: list[MarkValues] = []
        for mark in marks:
            place: list[Place] = []
            for reader, value in zip(readers, mark, strict=False):
                place += reader.places_of(value)
            place = place[:5] if len(place) > 4 else [*place, None]
            if self._is_placed(place):
                places.append(place)
                kept.append(mark)
        if unplaced := unplaced_note(len(marks) - len(kept), len(marks)):
            self._notes.append(unplaced)
        if spec.stack is not None and spec.value_axis is not None:
            stack_marks(spec, kept, places)
        return self._result(readers, orders, kept, places)

    def _result(
        self,
        readers: Sequence[_Reader],
        orders: dict[str, list[Any]],
        kept: Sequence[MarkValues],
        places: Sequence[Sequence[Place]],
    ) -> Chart:
        spec = self._spec
        axes = {
            reader.channel.name: _axis(reader.channel, orders.get(reader.channel.name))
            for reader in readers
        }
        order = sorted(range(len(kept)), key=lambda n: self._rank(places[n]))
        rows = [
            tuple([reader.text_of(value) for reader, value in zip(readers, mark, strict=False)])
            for mark in kept
        ]
        found: list[MarkPlace] = [tuple(place) for place in places]  # pyright: ignore[reportAssignmentType]
        return Chart(
            spec.mark,
            axes["x"],
            axes["y"],
            tuple([each.title for each in axes.values()]),
            tuple([found[n] for n in order]),
            tuple([rows[n] for n in order]),
            self._columns.row_count,
            color=axes.get("color"),
            value_axis=spec.value_axis,
            stack=spec.stack,
            notes=tuple(self._notes),
        )

    def _rank(self, place: Sequence[Place]) -> tuple[float, float]:
        """Along the axis that is not of values, then by color; points stay in their order."""
        if self._spec.mark == "point":
            return 0, 0
        along = place[2] if self._spec.value_axis == "x" else place[0]
        return along or 0, place[4] or 0

    def _is_placed(self, place: Sequence[Place]) -> bool:
        """Whether a mark can be drawn. A line and an area have a gap where they have no value."""
        spec = self._spec
        for channel, at in zip(spec.channels, (place[0], place[2], place[4]), strict=False):
            if at is None:
                is_gap = spec.mark in ("line", "area") and channel.name == spec.value_axis
                if not is_gap:
                    return False
            elif channel.log and at <= 0:
                return False
        return True

    def _each_row(self) -> list[MarkValues]:
        return [MarkValues(*values) for values in zip(*self._shown.values(), strict=True)]

    def _group(self) -> list[MarkValues]:
        spec = self._spec
        index: dict[tuple[Any, ...], int] = {}
        if self._shown:
            keys = zip(*self._shown.values(), strict=True)
            places = [index.setdefault(key, len(index)) for key in keys]
        else:
            index, places = {(): 0}, [0] * self._columns.row_count
        found: dict[str, Sequence[Any]] = {
            name: [key[number] for key in index] for number, name in enumerate(self._shown)
        }
        for channel in spec.channels:
            if channel.aggregate is not None:
                found[channel.name] = self._measured(channel, places, len(index))
        return [
            MarkValues(*values)
            for values in zip(*[found[each.name] for each in spec.channels], strict=True)
        ]

    def _measured(self, channel: Channel, places: Sequence[int], count: int) -> list[Any]:
        if channel.aggregate == "count":
            counts = [0] * count
            for place in places:
                counts[place] += 1
            return counts
        buckets: list[list[Any]] = [[] for _ in range(count)]
        for place, value in zip(places, self._raw[channel.name], strict=True):
            buckets[place].append(value)
        op = channel.aggregate or "count"
        return [aggregate(op, values) for values in buckets]

    def _filled(self, marks: list[MarkValues]) -> list[MarkValues]:
        """Stacked areas with 0 where a color has no value, so that those above it do not sink."""
        value_axis = self._spec.value_axis
        along = "y" if value_axis == "x" else "x"
        there = {(getattr(each, along), each.color) for each in marks}
        colors = dict.fromkeys([each.color for each in marks])
        for place in dict.fromkeys([getattr(each, along) for each in marks]):
            for color in colors:
                if (place, color) not in there and len(marks) <= self._most:
                    x, y = (0, place) if value_axis == "x" else (place, 0)
                    marks.append(MarkValues(x, y, color))
        return marks

    # Too many

    def _merge(self) -> None:
        color = self._spec.color
        if color is not None and color.is_discrete:
            self._merge_channel(color, MOST_COLORS)
        if not self._spec.is_aggregated:
            return
        discrete = [
            each
            for each in (self._spec.x, self._spec.y)
            if each.is_discrete and each.name in self._shown
        ]
        discrete.sort(key=lambda each: -len(set(self._shown[each.name])))
        for channel in discrete:
            count = len(set(zip(*self._shown.values(), strict=True)))
            if count <= self._most:
                return
            others = [values for name, values in self._shown.items() if name != channel.name]
            per_place = len(set(zip(*others, strict=True))) if others else 1
            self._merge_channel(channel, max(2, self._most // per_place))

    def _merge_channel(self, channel: Channel, most: int) -> None:
        weights = self._weights_for_merging(channel)
        merged, other = merge_rest(self._shown[channel.name], most, weights)
        self._shown[channel.name] = merged
        if other is not None:
            self._notes.append(
                f"{axis_title(channel)} has {other.count + most - 1:,} values: the {most - 1:,}"
                f" largest are shown, and the others together as other ({other.count:,})."
            )

    def _weights_for_merging(self, channel: Channel) -> Weights:
        for other in self._spec.channels:
            if other is not channel and other.aggregate is not None:
                return Weights(other.aggregate, self._values_of(other))
        return Weights("count", None)

    def _weights_for(self, sort: Any) -> Weights | None:
        if not isinstance(sort, str) or sort in ("ascending", "descending"):
            return None
        name = sort.removeprefix("-")
        other = {each.name: each for each in self._spec.channels}[name]
        stacked = self._spec.stack is not None and name == self._spec.value_axis
        op = other.aggregate or ("sum" if stacked else "min")
        return Weights(op, self._values_of(other))

    def _values_of(self, channel: Channel) -> list[Any] | None:
        return None if channel.aggregate == "count" else self._raw[channel.name]


class _Reader:
    """Places and texts of one channel's values."""

    def __init__(
        self, channel: Channel, order: Sequence[Any] | None, bins: dict[str, Bins]
    ) -> None:
        self.channel = channel
        self._index = None if order is None else {each: n for n, each in enumerate(order)}
        self._bins = bins.get(channel.name)

    def places_of(self, value: Any) -> tuple[Place, Place]:
        if self._index is not None:
            return self._index[value], None
        if value is None:
            return None, None
        if self.channel.time_unit is not None:
            return place_of(value), place_of(end_of(value, self.channel.time_unit))
        if self._bins is not None:
            return place_of(value), place_of(self._bins.end_of(value))
        return place_of(value), None

    def text_of(self, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, Decimal) and self._bins is not None:
            return f"{label_of(value)} – {label_of(self._bins.end_of(value))}"
        return _label(self.channel, value)


def _label(channel: Channel, value: Any) -> str:
    if isinstance(value, Other):
        return f"other ({value.count:,})"
    if channel.time_unit is not None and value is not None:
        return unit_text(value, channel.time_unit)
    return label_of(value)


def _axis(channel: Channel, order: Sequence[Any] | None) -> Axis:
    if order is not None:
        labels = tuple([_label(channel, each) for each in order])
        null = order.index(None) if None in order else None
        other = order[-1].count if order and isinstance(order[-1], Other) else 0
        return Axis(axis_title(channel), "band", labels=labels, null=null, other=other)
    unit = "bin" if channel.maxbins is not None else channel.time_unit or ""
    kind = "time" if channel.type == "temporal" else "number"
    return Axis(axis_title(channel), kind, channel.log, unit)
