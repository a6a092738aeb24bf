"""The specification of a chart: a strict subset of Vega-Lite 6, one view.

    {"mark": "bar", "encoding": {
        "x": {"field": "day", "type": "temporal", "timeUnit": "yearmonth"},
        "y": {"aggregate": "sum", "field": "amount"},
        "color": {"field": "country", "type": "nominal"}}}

What is accepted means what it means there. Anything else is refused by its name, so that no chart
is drawn that is not the one that was asked for. Times are those of UTC, whether or not the name of
a time unit begins with `utc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

import msgspec

from tidegate.charts.time_units import TIME_UNITS
from tidegate.errors import Code, TidegateError

Mark = Literal["bar", "line", "area", "point", "rect"]
FieldType = Literal["quantitative", "temporal", "ordinal", "nominal"]
Aggregate = Literal["count", "valid", "distinct", "sum", "mean", "median", "min", "max"]
Stack = Literal["zero", "normalize"]

MARKS: tuple[Mark, ...] = ("bar", "line", "area", "point", "rect")
TYPES: tuple[FieldType, ...] = ("quantitative", "temporal", "ordinal", "nominal")
AGGREGATES: tuple[Aggregate, ...] = (
    "count", "valid", "distinct", "sum", "mean", "median", "min", "max",
)  # fmt: skip
SUMS: frozenset[Aggregate] = frozenset({"count", "valid", "distinct", "sum"})
"""Aggregates of parts that add up to that of the whole, and so may be stacked."""
MOST_TEXT = 20_000
"""Characters of a specification."""
_CHANNELS = ("x", "y", "color")
_PROPERTIES = ("field", "type", "aggregate", "bin", "timeUnit", "sort", "stack", "scale")
_MOST_BINS = 1_000
_MOST_NAMED = 500
"""Values of a `sort` that lists them."""


class Channel(msgspec.Struct, frozen=True):
    """What one of x, y and color shows. `maxbins` is there where the values are binned."""

    name: str
    type: FieldType
    field: str | None = None
    aggregate: Aggregate | None = None
    maxbins: int | None = None
    time_unit: str | None = None
    sort: str | tuple[Any, ...] | None = "ascending"
    """`ascending`, `descending`; a channel, with `-` before it for descending; the values in their
    order; None: as they come."""
    log: bool = False

    @property
    def is_discrete(self) -> bool:
        """Whether each value has a place of its own, and no axis of numbers or times."""
        return self.type in ("ordinal", "nominal")

    @property
    def is_measure(self) -> bool:
        """Whether it has a number for each mark, and not a range."""
        return self.type == "quantitative" and self.maxbins is None


class ChartSpec(msgspec.Struct, frozen=True):
    """A specification that was read. `value_axis` is the axis of the length of bars, or of the
    height of lines and areas."""

    mark: Mark
    x: Channel
    y: Channel
    color: Channel | None = None
    value_axis: Literal["x", "y"] | None = None
    stack: Stack | None = None

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (self.x, self.y) if self.color is None else (self.x, self.y, self.color)

    @property
    def is_aggregated(self) -> bool:
        return any(each.aggregate is not None for each in self.channels)


def read_spec(value: Any) -> ChartSpec:
    """Raises: TidegateError ARGUMENT_INVALID, which names what is refused."""
    spec = _object(value, "The chart", ("mark", "encoding"))
    mark = _one_of(spec.get("mark"), "mark", MARKS)
    encoding = _object(spec.get("encoding"), "encoding", _CHANNELS)
    for name in ("x", "y"):
        if name not in encoding:
            raise _refusal(f"`encoding.{name}` is missing")
    channels = {name: _read_channel(name, encoding[name]) for name in _CHANNELS if name in encoding}
    x, y, color = channels["x"], channels["y"], channels.get("color")
    _check_sorts(channels)
    value_axis = _value_axis(mark, x, y)
    stack = _read_stack(mark, channels, encoding, value_axis)
    return ChartSpec(mark, x, y, color, value_axis, stack)


def written_chart(value: Mapping[str, Any] | None) -> str:
    """A specification as it is kept; empty for none. Raises: TidegateError ARGUMENT_INVALID for one
    that is too long. What it means is read when it is drawn."""
    text = "" if value is None else msgspec.json.encode(value).decode()
    if len(text) > MOST_TEXT:
        raise _refusal(f"A chart of more than {MOST_TEXT:,} characters is not kept")
    return text


def _read_channel(name: str, value: Any) -> Channel:
    place = f"encoding.{name}"
    given = _object(value, place, _PROPERTIES)
    aggregate = given.get("aggregate")
    if aggregate is not None:
        names = (*AGGREGATES, "average")
        aggregate = _one_of(aggregate, f"{place}.aggregate", names)
        aggregate = "mean" if aggregate == "average" else aggregate
    field = given.get("field")
    if field is None and aggregate != "count":
        raise _refusal(f"`{place}.field` is missing")
    if field is not None and not isinstance(field, str):
        raise _refusal(f"`{place}.field` must be the name of a column")
    maxbins = _read_bin(given.get("bin"), place, 6 if name == "color" else 10)
    time_unit = given.get("timeUnit")
    if time_unit is not None:
        if not isinstance(time_unit, str) or time_unit.removeprefix("utc") not in TIME_UNITS:
            raise _refusal(f"`{place}.timeUnit` must be one of {_listed(TIME_UNITS)}")
        time_unit = time_unit.removeprefix("utc")
    if sum([aggregate is not None, maxbins is not None, time_unit is not None]) > 1:
        raise _refusal(f"`{place}` has more than one of aggregate, bin and timeUnit")
    channel = Channel(
        name,
        _read_type(given.get("type"), place, aggregate or maxbins, time_unit),
        field if aggregate != "count" else None,
        cast("Any", aggregate),
        maxbins,
        time_unit,
        _read_sort(given["sort"], place) if "sort" in given else "ascending",
        _read_scale(given.get("scale"), place),
    )
    return _checked(channel, given, place)


def _checked(channel: Channel, given: Mapping[str, Any], place: str) -> Channel:
    """The channel, if its parts fit each other."""
    if channel.aggregate is not None and channel.type != "quantitative":
        raise _refusal(f"`{place}.type` of an aggregate must be quantitative")
    if channel.maxbins is not None and channel.type != "quantitative":
        raise _refusal(f"`{place}.type` of a bin must be quantitative")
    if channel.time_unit is not None and channel.type not in ("temporal", "ordinal"):
        raise _refusal(f"`{place}.type` of a timeUnit must be temporal or ordinal")
    if channel.log and not channel.is_measure:
        raise _refusal(f"`{place}.scale` log is for quantitative values that are not binned")
    if "sort" in given and not channel.is_discrete and channel.sort != "ascending":
        raise _refusal(f"`{place}.sort` is for the types nominal and ordinal")
    return channel


def _read_bin(value: Any, place: str, usual: int) -> int | None:
    """How many bins there may be; None if values are not binned."""
    if value is None or value is False:
        return None
    if value is True:
        return usual
    bins = _object(value, f"{place}.bin", ("maxbins",)).get("maxbins", usual)
    if type(bins) is not int or not 2 <= bins <= _MOST_BINS:
        raise _refusal(f"`{place}.bin.maxbins` must be from 2 to {_MOST_BINS}")
    return bins


def _read_type(value: Any, place: str, number: object, time_unit: object) -> FieldType:
    if value is not None:
        return _one_of(value, f"{place}.type", TYPES)
    if number is not None:
        return "quantitative"
    if time_unit is not None:
        return "temporal"
    raise _refusal(f"`{place}.type` is missing: one of {_listed(TYPES)}")


def _read_sort(value: Any, place: str) -> str | tuple[Any, ...] | None:
    orders = ("ascending", "descending", "x", "-x", "y", "-y", "color", "-color")
    if value is None or value in orders:
        return value
    if isinstance(value, list):
        values = tuple(cast("list[Any]", value))
        if len(values) <= _MOST_NAMED and all(_is_plain(each) for each in values):
            return values
    raise _refusal(
        f"`{place}.sort` must be one of {_listed(orders)}, null, or up to {_MOST_NAMED} values"
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


def _read_scale(value: Any, place: str) -> bool:
    if value is None:
        return False
    kind = _object(value, f"{place}.scale", ("type",)).get("type", "linear")
    return _one_of(kind, f"{place}.scale.type", ("linear", "log")) == "log"


def _check_sorts(channels: Mapping[str, Channel]) -> None:
    for name, channel in channels.items():
        if not isinstance(channel.sort, str) or channel.sort in ("ascending", "descending"):
            continue
        other = channels.get(channel.sort.removeprefix("-"))
        if other is None or other is channel:
            raise _refusal(f"`encoding.{name}.sort` must name another channel that is there")
        if not other.is_measure:
            raise _refusal(f"`encoding.{name}.sort` must name a channel of numbers")


def _value_axis(mark: Mark, x: Channel, y: Channel) -> Literal["x", "y"] | None:
    if mark == "point":
        return None
    if mark == "rect":
        for each in (x, y):
            if not (each.is_discrete or each.maxbins is not None or each.time_unit is not None):
                raise _refusal(
                    f"`encoding.{each.name}` of a rect must be discrete, bin or timeUnit"
                )
        return None
    if x.is_measure and y.is_measure:
        return "x" if x.aggregate is not None and y.aggregate is None else "y"
    if not x.is_measure and not y.is_measure:
        raise _refusal(f"A {mark} needs x or y to be quantitative, without a bin")
    return "x" if x.is_measure else "y"


def _read_stack(
    mark: Mark,
    channels: Mapping[str, Channel],
    encoding: Mapping[str, Any],
    value_axis: Literal["x", "y"] | None,
) -> Stack | None:
    """Whether the values of one place lie on each other, as Vega-Lite decides it."""
    wanted: dict[str, Any] = {
        name: encoding[name]["stack"] for name in channels if "stack" in encoding[name]
    }
    for name, value in wanted.items():
        if value not in (None, True, False, "zero", "normalize"):
            raise _refusal(
                f"`encoding.{name}.stack` must be one of zero, normalize, true, false, null"
            )
        if value and (name != value_axis or mark not in ("bar", "area")):
            raise _refusal(
                f"`encoding.{name}.stack` is for the quantitative axis of bars and areas"
            )
    color = channels.get("color")
    if value_axis is None or mark not in ("bar", "area"):
        return None
    measure = channels[value_axis]
    parts = color is not None and color.aggregate is None and not _same(color, channels, value_axis)
    is_raw = all(each.aggregate is None for each in channels.values())
    value = wanted.get(value_axis, parts or not measure.log)
    if not value or not (parts or is_raw):
        return None
    if measure.log:
        raise _refusal(
            f"`encoding.{value_axis}.stack` must be null: parts on a log scale do not add up"
        )
    if measure.aggregate is not None and measure.aggregate not in SUMS:
        raise _refusal(
            f"`encoding.{value_axis}.stack` must be null: a {measure.aggregate} is no sum of parts"
        )
    return "normalize" if value == "normalize" else "zero"


def _same(color: Channel, channels: Mapping[str, Channel], value_axis: str) -> bool:
    """Whether the color shows what the other axis shows, so that no place has several."""
    other = channels["y" if value_axis == "x" else "x"]
    mine, its = ((e.field, e.maxbins is None, e.time_unit) for e in (color, other))
    return mine == its


def _object(value: Any, place: str, known: Iterable[str]) -> Mapping[str, Any]:
    known = tuple(known)
    named = place if place[0].isupper() else f"`{place}`"
    if not isinstance(value, dict):
        raise _refusal(f"{named} must be an object with {_listed(known)}")
    given = cast("dict[str, Any]", value)
    for name in given:
        if name not in known:
            prefix = "" if place[0].isupper() else f"{place}."
            raise _refusal(f"`{prefix}{name}` is not supported: there are {_listed(known)}")
    return given


def _one_of(value: Any, place: str, known: tuple[str, ...]) -> Any:
    if not isinstance(value, str) or value not in known:
        raise _refusal(f"`{place}` must be one of {_listed(known)}")
    return value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _refusal(message: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        message,
        hint="A chart is a single view of Vega-Lite: mark, and encoding with x, y and color.",
    )
