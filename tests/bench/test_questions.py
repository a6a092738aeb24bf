"""The bench of questions, on the small database of ours, and how its thresholds are read."""

import asyncio
import tomllib
from pathlib import Path

from bench import questions

SAMPLE = Path(__file__).parents[1] / "support" / "defog_sample"


def test_accepted_statements_come_through_and_mutations_are_repaired() -> None:
    found = asyncio.run(questions.run(SAMPLE, postgres=False))
    wanted = tomllib.loads(questions.THRESHOLDS.read_text())
    assert questions.missed(found, wanted) == []
    assert found["accuracy"]["statements"] > 0
    assert found["repair"]["mutations"] > 0
    assert found["linking"]["tables"] > questions.DECOYS


def test_a_missed_threshold_is_named() -> None:
    wanted = {"judge": {"max_false_alarms": 0.0}, "linking": {"min_at_10": 0.85}}
    found = {"judge": {"false_alarms": 0.25}, "linking": {"at_10": 0.5}}
    assert questions.missed(found, wanted) == [
        "judge.false_alarms is 0.25, not max 0",
        "linking.at_10 is 0.5, not min 0.85",
    ]
