"""How many requests are traced is decided here, whatever their callers say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import SpanContext, TraceFlags

from tidegate.products.otel.sampling import Limit


def parent(trace: int = 1, flags: int = 1) -> SpanContext:
    return SpanContext(trace, 1, is_remote=True, trace_flags=TraceFlags(flags))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("given_parent", [None, parent()])
def test_no_more_are_traced_in_a_second_than_the_limit(given_parent: SpanContext | None) -> None:
    clock = Clock()
    limit = Limit(1.0, 3, clock)
    assert [limit.admits(given_parent) for _ in range(5)] == [True, True, True, False, False]
    assert limit.refused == 2
    clock.now += 0.34
    assert [limit.admits(given_parent) for _ in range(3)] == [True, False, False]
    clock.now += 60.0
    assert [limit.admits(given_parent) for _ in range(5)] == [True, True, True, False, False]


def test_a_worker_has_its_part_of_the_limit_also_where_that_is_less_than_one() -> None:
    clock = Clock()
    limit = Limit(1.0, 2 / 8, clock)
    assert [limit.admits(None) for _ in range(3)] == [True, False, False]
    clock.now += 2.0
    assert not limit.admits(None)
    clock.now += 2.0
    assert [limit.admits(None) for _ in range(3)] == [True, False, False]


def test_a_clock_that_stands_still_admits_no_more() -> None:
    limit = Limit(1.0, 1, Clock())
    assert sum(limit.admits(None) for _ in range(1_000)) == 1


@pytest.mark.parametrize(("ratio", "per_s"), [(0.0, 100), (1.0, 0)])
def test_a_callers_flag_cannot_have_it_traced_where_nothing_is(ratio: float, per_s: int) -> None:
    limit = Limit(ratio, per_s, Clock())
    assert not any(limit.admits(each) for each in (None, parent(), parent(2**128 - 1)))


def test_a_caller_may_ask_for_less() -> None:
    limit = Limit(1.0, 100, Clock())
    assert not limit.admits(parent(flags=0))
    assert not limit.admits(parent(flags=2))
    assert limit.admits(parent(flags=3))
    assert limit.refused == 0


@given(st.integers(1, 2**128 - 1), st.floats(0, 1))
def test_a_trace_is_sampled_as_others_sample_it_by_its_id(trace: int, ratio: float) -> None:
    others = TraceIdRatioBased(ratio).should_sample(None, trace, "")
    assert Limit(ratio, 10, Clock()).admits(parent(trace)) == others.decision.is_sampled()


def test_of_requests_without_a_parent_the_share_is_traced() -> None:
    limit = Limit(0.25, 100_000, Clock())
    assert 4_000 < sum(limit.admits(None) for _ in range(20_000)) < 6_000
