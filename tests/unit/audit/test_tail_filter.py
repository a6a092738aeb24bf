"""What a filter of the record selects: both ends of a time, actors by id or name, sources."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidegate.audit.tail import Record, TailFilter

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CALL = {"phase": "outcome", "actor": "tok_1", "actor_name": "ann", "source": "shop"}


def selects(only: TailFilter, time: datetime = NOON, **fields: object) -> bool:
    return only.matches(Record(time, {**CALL, **fields}))


@pytest.mark.parametrize(("late", "found"), [(-SECOND, False), (0 * SECOND, True), (SECOND, True)])
def test_a_time_begins_with_its_first_moment(late: timedelta, found: bool) -> None:
    assert selects(TailFilter(since=NOON), NOON + late) is found


@pytest.mark.parametrize(("late", "found"), [(-SECOND, True), (0 * SECOND, False), (SECOND, False)])
def test_a_time_ends_before_its_last_moment(late: timedelta, found: bool) -> None:
    assert selects(TailFilter(until=NOON), NOON + late) is found


def test_a_source_is_found_where_a_server_event_names_it() -> None:
    only = TailFilter(source="shop")
    assert selects(only) and not selects(only, source="crm")
    assert selects(only, source=None, details={"source": "shop"})
    assert not selects(only, source=None, details={"source": "crm"})


def test_what_no_caller_asked_for_is_shown_on_demand_alone() -> None:
    for name, word in (("phase", "checkpoint"), ("phase", "open"), ("request", "sample")):
        record = Record(NOON, {**CALL, name: word})
        assert not TailFilter().matches(record)
        assert TailFilter(everything=True).matches(record)
