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


def test_of_several_servers_each_says_why():
    message = (
        'connection to server at "a.example" (10.0.0.1), port 5432 failed: FATAL:  the database'
        " system is starting up\n"
        'connection to server at "b.example" (10.0.0.2), port 5432 failed: Connection refused\n'
        "\tIs the server running on that host and accepting TCP/IP connections?\n"
    )
    error = unreachable(message)
    assert "server 1: the database system is starting up" in error.message
    assert "server 2: Connection refused" in error.message
    assert "example" not in error.message


def test_two_addresses_of_one_server_are_one_reason():
    message = (
        'connection to server at "localhost" (::1), port 5432 failed: Connection refused\n'
        'connection to server at "localhost" (127.0.0.1), port 5432 failed: FATAL:  password'
        ' authentication failed for user "x"\n'
    )
    error = unreachable(message)
    assert "server 1" not in error.message and "password authentication failed" in error.message
