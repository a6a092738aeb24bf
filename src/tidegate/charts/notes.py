"""What is said beside a chart: names of its axes, and what it does not show. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.charts.spec import Channel
from tidegate.charts.time_units import unit_words
from tidegate.charts.values import Misfits

_AGGREGATES = {
    "count": "Count", "valid": "Values of", "distinct": "Distinct", "sum": "Sum of",
    "mean": "Mean of", "median": "Median of", "min": "Least", "max": "Greatest",
}  # fmt: skip


def axis_title(channel: Channel) -> str:
    """What a channel shows, in words."""
    if channel.aggregate is not None:
        return f"{_AGGREGATES[channel.aggregate]} {channel.field or ''}".strip()
    if channel.time_unit is not None:
        return f"{channel.field} ({unit_words(channel.time_unit)})"
    return str(channel.field)


def misfit_notes(found: Sequence[tuple[Channel, Misfits]]) -> list[str]:
    """What is said of cells that are NULL, or no number or time."""
    notes: list[str] = []
    for channel, misfits in found:
        op = channel.aggregate
        ending = f", which {op} leaves out." if op is not None else ", which are not drawn."
        counts = [("NULL", misfits.nulls)] if misfits.nulls else []
        for why, count in [*counts, *misfits.others]:
            one = ending.replace("which are", "which is") if count == 1 else ending
            notes.append(f"{misfits.column} is {why} in {count:,} row{'s' * (count != 1)}{one}")
    return list(dict.fromkeys(notes))


def rest_note(left: int, drawn: int, *, aggregated: bool) -> str:
    """That there are more marks than are drawn."""
    advice = (
        "choose a larger bin or unit"
        if aggregated
        else "an aggregate, bin or timeUnit gathers them"
    )
    return f"other ({left:,}): only the first {drawn:,} marks are drawn; {advice}."


def unplaced_note(count: int, marks: int) -> str:
    """That marks have no place on their axes."""
    if not count:
        return ""
    verb = "has" if count == 1 else "have"
    why = "a value is NULL, too large, or not above 0 on a log scale"
    return f"{count:,} of {marks:,} marks {verb} no place: {why}."
