"""Figures of calls: by step and source, bounded."""

from __future__ import annotations

import random
import sys

import pytest

from support.set_clock import SetClock
from tidegate.gateway.call_figures import (
    BINS,
    MOST_SOURCES,
    OTHERS,
    CallFigures,
    Counted,
    Series,
    Span,
    bin_of,
    middle_of,
    series,
)

START = 1_700_000_000.0


@pytest.fixture
def clock() -> SetClock:
    return SetClock(START)


@pytest.fixture
def figures(clock: SetClock) -> CallFigures:
    return CallFigures(clock)


def read(figures: CallFigures, span: Span = "hour", *names: str) -> Series:
    first, steps = figures.steps(span)
    return series(span, first, steps, lambda name: not names or name in names)


def both(figures: CallFigures, *names: str) -> tuple[int, int]:
    """All calls of the hour and of the day."""
    return sum(read(figures, "hour", *names).calls), sum(read(figures, "day", *names).calls)


def test_calls_are_counted_in_the_step_in_which_they_end(
    figures: CallFigures, clock: SetClock
) -> None:
    figures.count("shop", 1.0)
    figures.count_failure("shop", "denied")
    clock.now += 60
    figures.count_failure("shop", "failed")
    figures.count_failure("shop", "cancelled")
    hour = read(figures)
    assert hour.calls[-2:] == [2, 2] and hour.denied[-2:] == [1, 0]
    assert hour.failed[-2:] == [0, 1] and hour.cancelled[-2:] == [0, 1]
    assert hour.since + 60 * hour.step_s > clock.now >= hour.since + 59 * hour.step_s
    assert hour.p50[-1] is None and hour.p50[-2] is not None


def test_reading_changes_nothing(figures: CallFigures, clock: SetClock) -> None:
    for _ in range(3):
        figures.count("shop", 1.0)
        clock.now += 25
        assert both(figures) == both(figures) == both(figures)
    assert both(figures) == (3, 3)


def test_the_hour_forgets_after_an_hour_and_the_day_after_a_day(
    figures: CallFigures, clock: SetClock
) -> None:
    figures.count("shop", 1.0)
    clock.now += 59 * 60
    assert both(figures) == (1, 1)
    clock.now += 2 * 60
    assert both(figures) == (0, 1)
    clock.now += 23 * 3_600 - 11 * 60
    assert both(figures) == (0, 1)
    clock.now += 22 * 60
    assert both(figures) == (0, 0)


def test_a_clock_that_is_set_back_loses_no_call(figures: CallFigures, clock: SetClock) -> None:
    figures.count("shop", 1.0)
    clock.now -= 3_600
    figures.count("shop", 1.0)
    assert both(figures) == (2, 2)


def test_a_reader_gets_the_sum_of_its_sources(figures: CallFigures) -> None:
    for source, count in (("shop", 3), ("books", 2), ("", 1)):
        for _ in range(count):
            figures.count(source, 1.0)
    assert both(figures, "shop") == (3, 3)
    assert both(figures, "shop", "books") == (5, 5)
    assert both(figures) == (6, 6)


def test_sources_beyond_the_bound_are_counted_together_and_that_is_said(
    figures: CallFigures,
) -> None:
    for number in range(10_000):
        figures.count(f"source{number}", 1.0)
    assert both(figures) == (10_000, 10_000)
    assert both(figures, "source1") == (1, 1) and both(figures, "source9999") == (0, 0)
    assert both(figures, OTHERS) == (10_000 - MOST_SOURCES,) * 2
    assert read(figures, "hour", "source1").shared
    assert not read(figures).shared


def test_memory_is_bounded_for_a_day_with_every_source_and_time(
    figures: CallFigures, clock: SetClock
) -> None:
    for _ in range(1_440):
        clock.now += 60
        for number in range(MOST_SOURCES + 5):
            figures.count(f"source{number}", 10.0 ** random.uniform(-2, 5))
    assert sum(read(figures, "day").calls) > 140 * 10 * MOST_SOURCES
    cells = [
        cell
        for steps in (figures._minutes, figures._tens)
        for step in steps.values()
        for cell in step.values()
    ]
    size = sum(sys.getsizeof(cell) + sys.getsizeof(cell.bins) for cell in cells)
    assert len(cells) <= (60 + 144) * (MOST_SOURCES + 1)
    assert size < 8_000_000


def test_quantiles_are_nine_percent_off_at_most(figures: CallFigures) -> None:
    generator = random.Random(7)
    times = [generator.lognormvariate(2.0, 1.5) for _ in range(20_000)]
    for each in times:
        figures.count("shop", each)
    times.sort()
    found = read(figures)
    for value, share in ((found.total_p50, 0.5), (found.total_p99, 0.99)):
        assert value == pytest.approx(times[int(share * len(times)) - 1], rel=0.095)


@pytest.mark.parametrize("elapsed_ms", [0.0, -1.0, 1e-9, 0.0625, 0.07, 1.0, 1e3, 3e5, 1e12])
def test_every_time_has_a_bin(figures: CallFigures, elapsed_ms: float) -> None:
    figures.count("shop", elapsed_ms)
    assert 0 <= bin_of(elapsed_ms) < BINS
    assert read(figures).total_p50 == middle_of(bin_of(elapsed_ms))


def test_counts_of_earlier_are_added_where_they_belong(
    figures: CallFigures, clock: SetClock
) -> None:
    minute = int(clock.now) // 60
    figures.add(
        [
            Counted(minute, "shop", "ok", 20, 5),
            Counted(minute - 30, "shop", "denied", -1, 3),
            Counted(minute - 600, "shop", "ok", 20, 2),
            Counted(minute - 3_000, "shop", "ok", 20, 100),
            Counted(minute + 5, "shop", "failed", -1, 1),
        ]
    )
    assert both(figures) == (9, 11)
    clock.now += 600
    assert both(figures) == (9, 11)
    hour = read(figures)
    assert sum(hour.denied) == 3 and sum(hour.failed) == 1
