"""The command that a hint repeats has the arguments, and no password."""

from __future__ import annotations

import pytest

from tidegate.cli.hints import without_secrets


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("postgresql://reader:geheim@db/shop", "postgresql://reader@db/shop"),
        ("--url=postgresql://reader:geheim@db/shop", "--url=postgresql://reader@db/shop"),
        ("jdbc:postgresql://reader:geheim@db/shop", "jdbc:postgresql://reader@db/shop"),
        ("postgresql://reader:${ENV:PW}@db/shop", "postgresql://reader:${ENV:PW}@db/shop"),
        ("postgresql://db/shop?user=a&password=${FILE:/pw}", None),
        ("postgresql://reader@db/shop?sslmode=require", None),
        ("postgresql://db/shop?user=a&password=geheim", "postgresql://db/shop?user=a&password=***"),
        ("jdbc:sqlserver://db;user=a;password=geheim", "jdbc:sqlserver://db;user=a;password=***"),
        ("SELECT 'password' FROM t", None),
    ],
)
def test_a_password_in_a_url_is_left_out(word: str, shown: str | None) -> None:
    assert without_secrets([word]) == [word if shown is None else shown]
