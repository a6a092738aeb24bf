"""Patterns of callers cost no more than a bound that is known before they are used."""

from __future__ import annotations

import pytest

from tidegate.sql.patterns import PatternFault, compile_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a|a)*$",
        "(a|ab){30}",
        "(aa?)*b",
        "((a)*)*",
        "(a?){40}",
        "(?:(?:a|a))+b",
        "(?>a*)*",
        "(?=(a|a)*b)",
        "(?P<n>a*)+",
        "[[]a](b*)*",
        "a?" * 40 + "a" * 40,
        "(a|a)" * 40,
        ".*.*.*.*x",
        "(a*)\\1",
        "(?P<n>a)(?P=n)",
        "(?x)#[\n(a|a)*",
        "(?#[)(a|a)*",
        "a" * 1_025,
        "(",
        "[",
        "a**",
    ],
)
def test_a_pattern_without_a_bound_is_refused(pattern: str):
    with pytest.raises(PatternFault):
        compile_pattern(pattern, 200)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("^(users|items)$", True),
        ("^(item.*)$", True),
        ("(?i)ITEMS", True),
        (r"(?P<name>[a-z]+)s\b", True),
        ("(?:em)?s$", True),
        ("^[^]a(b|b)*]tem", True),
        (r"i{1}t+e*\w{2,}", True),
        ("(it)*ems", True),
        ("^a|b", False),
    ],
)
def test_a_pattern_with_a_bound_is_used_as_it_is(pattern: str, found: bool):
    assert bool(compile_pattern(pattern, 5).search("items")) is found


def test_a_longer_text_allows_fewer_repeats():
    assert compile_pattern("a.*b.*c", 100).search("a--b--c")
    with pytest.raises(PatternFault, match="too long in a text of 60,000 characters"):
        compile_pattern("a.*b.*c", 60_000)
