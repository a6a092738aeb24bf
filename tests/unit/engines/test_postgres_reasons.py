"""Why PostgreSQL cannot be reached is told in its own main words."""

from __future__ import annotations

import pytest

from tidegate.engines.postgres.errors import unreachable


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "connection failed: FATAL:  the database system is not yet accepting connections\n"
            "DETAIL:  Consistent recovery state has not been yet reached.",
            "not yet accepting connections",
        ),
        (
            "Connection refused\n\tIs the server running on that host?",
            "Connection refused",
        ),
        ("DETAIL:  nothing but a detail", "nothing but a detail"),
        ("", "no answer"),
    ],
)
def test_the_reason_is_neither_a_question_nor_a_detail(said: str, reason: str) -> None:
    message = unreachable(said).message
    assert reason in message
    assert "Is the server running" not in message and "Consistent" not in message
