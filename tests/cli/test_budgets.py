"""`tidegate budget`: set, listed and removed; a person agrees to what gives more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import Ended

Run = Callable[..., Ended]


@pytest.fixture
def agent(run: Run, towns: Path) -> str:
    return run("token", "create", "ann", "--scope", "readOnly").out.strip()


def sizes(run: Run) -> list[tuple[str, float]]:
    listed = run("budget", "list", "--json").json["budgets"]
    return [(f"{each['measure']}/{each['window']}", each["amount"]) for each in listed]


def test_budgets_are_set_lowered_listed_and_named(run: Run, agent: str) -> None:
    words = ("--token", "ann", "--source", "towns")
    assert run("budget", "set", "20k", "rows/day", *words).status == 0
    assert run("budget", "set", "2.5", "seconds/minute", "--token", "ann").status == 0
    assert run("budget", "set", "19_000", "rows/day", *words).status == 0
    assert sizes(run) == [("seconds/minute", 2.5), ("rows/day", 19_000)]
    ended = run("budget", "list")
    assert "the token ann on towns" in ended.out and "19,000 rows a day" in ended.out
    assert "2.5 seconds" in ended.out


def test_more_and_none_need_a_person(run: Run, agent: str) -> None:
    run("budget", "set", "5", "calls/hour", "--token", "ann")
    for words in (("set", "6", "calls/hour"), ("remove", "calls/hour")):
        ended = run("budget", *words, "--token", "ann", stdin="")
        assert ended.status != 0 and "a person must agree" in ended.err
    assert sizes(run) == [("calls/hour", 5)]
    assert run("budget", "set", "5", "calls/hour", "--token", "ann").status == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("set", "5", "calls/hour"), "about a token, an operator or a source"),
        (("set", "5", "calls/week", "--token", "ann"), "minute, hour, day"),
        (("set", "5.5", "calls/hour", "--token", "ann"), "no amount of calls"),
        (("set", "some", "rows/hour", "--token", "ann"), "no amount of rows"),
        (("set", "5", "calls/hour", "--token", "an"), "Did you mean 'ann'?"),
        (("set", "5", "calls/hour", "--owner", "none"), "none"),
        (("set", "5", "calls/hour", "--source", "none"), "no source 'none'"),
        (("set", "5", "calls/hour", "--token", "ann", "--owner", "ada"), "--owner"),
        (("remove", "calls/hour", "--token", "ann"), "no budget of calls"),
    ],
)
def test_what_cannot_be_a_budget_is_refused(
    run: Run, agent: str, words: tuple[str, ...], says: str
) -> None:
    ended = run("budget", *words, stdin="")
    assert ended.status != 0 and says in ended.err, ended.err
    assert sizes(run) == []


def test_a_query_at_the_command_line_costs_the_budget_of_its_source(
    run: Run, agent: str, tmp_path: Path
) -> None:
    run("budget", "set", "3", "rows/day", "--source", "towns")
    text = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9) SELECT i FROM n"
    made = tmp_path / "out.csv"
    ended = run("query", "towns", text, "--format", "csv", "--output", str(made))
    assert ended.status != 0 and "3 rows a day" in ended.err and not made.exists()
    run("budget", "set", "2", "calls/day", "--source", "towns")
    assert run("query", "towns", "SELECT 1").status == 75
    listed = run("budget", "list", "--json").json["budgets"]
    assert [each["left"] for each in listed] == [2, 0]
