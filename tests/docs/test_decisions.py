"""The decision records: each has a number of its own, and its title says it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

DECISIONS = sorted(
    (Path(__file__).parents[2] / "docs" / "explanation" / "decisions").glob("[0-9]*.md")
)


def test_each_decision_has_a_number_of_its_own() -> None:
    numbers = Counter(path.name[:4] for path in DECISIONS)
    assert [number for number, count in numbers.items() if count > 1] == []
    assert len(numbers) >= 50


def test_the_title_of_a_decision_begins_with_its_number() -> None:
    wrong = [
        path.name
        for path in DECISIONS
        if not path.read_text(encoding="utf-8").startswith(f"# {int(path.name[:4])}. ")
    ]
    assert wrong == []
