"""Figures of calls are the same from the index of the audit log as from the calls themselves."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.set_clock import SetClock
from tidegate.audit.activity import ActivityIndex
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.gateway.call_figures import CallFigures, Counted, Ending, Series, Span, series
from tidegate.products.console.activity_counts import CallCounts, count_calls

START = 1_700_000_000.0


@pytest.fixture
def clock() -> SetClock:
    return SetClock(START)


def read(figures: CallFigures, span: Span = "hour") -> Series:
    first, steps = figures.steps(span)
    return series(span, first, steps, lambda _: True)


def event(number: int, **changes: object) -> Event:
    fields: dict[str, object] = {
        "call_id": f"run-{number}", "phase": "outcome", "actor": "a", "actor_name": "a",
        "client": "c", "surface": "core", "tool": "query", "source": "shop", "request": "query",
        "effect": "read", "verdict": "allow", "rule": "", "code": "", "statement": None,
        "language": None, "dialect": "", "elapsed_ms": 1.0, **changes,
    }  # fmt: skip
    return Event(**fields)  # type: ignore[arg-type]


def counted(
    index: ActivityIndex, since: float, after: int, pending: tuple[int, ...], own: str
) -> CallCounts:
    return count_calls(index, since, after, pending, own=own, minutes_since=0.0)


def test_the_index_counts_by_the_same_rules(tmp_path: Path, clock: SetClock) -> None:
    live, rebuilt = CallFigures(clock), CallFigures(clock)
    log = AuditLog(tmp_path / "audit", clock)
    generator = random.Random(3)
    for number in range(500):
        elapsed_ms = 10.0 ** generator.uniform(-3, 6)
        source = f"source{number % 5}"
        live.count(source, elapsed_ms)
        log.append(event(number, source=source, elapsed_ms=elapsed_ms))
    endings: tuple[tuple[Ending, dict[str, str]], ...] = (
        ("denied", {"phase": "refusal", "code": "policy.denied", "verdict": "deny"}),
        ("denied", {"phase": "refusal", "code": "approval.needed"}),
        ("asked", {"phase": "refusal", "code": "approval.needed", "approval": "ask-1"}),
        ("failed", {"code": "sql.failed"}),
        ("failed", {"code": "sql.outcome_unknown"}),
        ("cancelled", {"code": "call.cancelled"}),
    )
    for number, (ending, changes) in enumerate(endings):
        live.count_failure("shop", ending)
        log.append(event(1_000 + number, **changes))
    log.append(event(2_000, request="sample"))
    log.close()
    index = ActivityIndex(tmp_path / "activity.db", tmp_path / "audit")
    index.update()
    counts = counted(index, clock.now - 86_400, 0, (), "another")
    rebuilt.add(Counted(*row) for row in counts.rows)
    assert read(rebuilt) == read(live) and read(rebuilt, "day") == read(live, "day")
    assert counted(index, clock.now - 86_400, counts.newest, counts.pending, "another").rows == []
    assert counted(index, clock.now - 86_400, 0, (), "run-").rows == []
    index.close()


def test_what_is_long_past_is_counted_by_ten_minutes_alike(tmp_path: Path, clock: SetClock) -> None:
    live, rebuilt = CallFigures(clock), CallFigures(clock)
    log = AuditLog(tmp_path / "audit", clock)
    for number in range(900):
        clock.now += 91.0
        live.count("shop", 1.0)
        log.append(event(number))
    log.close()
    index = ActivityIndex(tmp_path / "activity.db", tmp_path / "audit")
    index.update()
    now = clock.now
    counts = count_calls(index, now - 86_400, own="x", minutes_since=now - 7_200)
    assert len(counts.rows) < 300
    rebuilt.add(Counted(*row) for row in counts.rows)
    assert read(rebuilt) == read(live)
    assert read(rebuilt, "day").calls[1:] == read(live, "day").calls[1:]
    index.close()


def test_a_call_that_had_not_ended_is_counted_once_it_has(tmp_path: Path, clock: SetClock) -> None:
    log = AuditLog(tmp_path / "audit", clock)
    index = ActivityIndex(tmp_path / "activity.db", tmp_path / "audit")
    log.append(event(1, phase="intent", elapsed_ms=None))
    log.append(event(2))
    index.update()
    first = counted(index, 0.0, 0, (), "x")
    assert sum(row[-1] for row in first.rows) == 1 and len(first.pending) == 1
    log.append(event(1))
    log.close()
    index.update()
    second = counted(index, 0.0, first.newest, first.pending, "x")
    assert sum(row[-1] for row in second.rows) == 1 and second.pending == ()
    index.close()
