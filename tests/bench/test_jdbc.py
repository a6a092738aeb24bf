"""The arithmetic of the JDBC workload, and a reading of rows by each reader without peers."""

from __future__ import annotations

from typing import Any

import pytest

from bench import jdbc
from support import jdbc_drivers


def reads(*cpu: float) -> dict[str, Any]:
    return {
        "connect": {"cpu": 0.5, "wall": 0.6},
        "reads": [{"cpu": each, "wall": 2 * each} for each in cpu],
    }


def a_round(worker: tuple[float, ...], psycopg: tuple[float, ...]) -> dict[str, Any]:
    return {
        "load": 1.0,
        "worker": reads(*worker),
        "psycopg": reads(*psycopg),
        "start": {"cpu": 0.1, "wall": 0.2},
        "h2": reads(0.2),
    }


def test_ratios_are_taken_within_a_round_and_of_the_third_run() -> None:
    rounds = [
        a_round((3.0, 0.4, 0.1), (0.1, 0.1, 0.1)),
        a_round((6.0, 0.8, 0.4), (0.2, 0.2, 0.2)),
        a_round((3.0, 0.4, 0.3), (0.1, 0.1, 0.1)),
    ]
    found = jdbc.figures({"rounds": rounds})
    assert list(found.values()) == pytest.approx([2.0, 12.0, 3.0, 0.2, 1.0])
    text = jdbc.render({"rounds": rounds, "java": 17, "rows": 100_000})
    assert "| worker, third run, CPU beside psycopg's third | 1 | 2.00 (missed) |" in text
    assert "| worker ready, wall in s | 0.4 | 0.20 |" in text
    assert "| worker | 0.500 | 3.000 | 0.400 | 0.300 | 0.600 |" in text


def test_the_worker_is_read_three_times_after_it_is_connected() -> None:
    jdbc_drivers.driver_path("h2")
    found = jdbc.read("worker", jdbc.h2_settings(None))
    assert len(found["reads"]) == 3 and found["first"] == ["1"] and found["rows"] == 1
    assert found["connect"]["cpu"] > 0


def test_a_reader_that_fails_says_why() -> None:
    jdbc_drivers.driver_path("h2")
    settings = {**jdbc.h2_settings(None), "sql": "SELECT nonsense"}
    with pytest.raises(RuntimeError, match="worker failed"):
        jdbc.read("worker", settings)
