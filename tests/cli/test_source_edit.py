"""`tidegate source edit`: questions with the present settings as answers, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from support.command_line import Ended, tidegate
from support.terminal import Terminal, terminal
from tidegate.model.source_settings import source_settings

Run = Callable[..., Ended]
SECRET = postgres_server.PASSWORD


@pytest.fixture
def rich(run: Run, towns: Path) -> Path:
    """The source `towns` with something in every setting."""
    words = ("--tag", "eu", "--mask", "towns.people=hash", "--filter", "visits: id > 1")
    words += ("--option", "timeout=7", "--approval-for", "writes", "--access", "write")
    assert run("source", "update", "towns", *words).status == 0
    return towns


def shown(run: Run) -> Any:
    return run("source", "show", "towns", "--json").json


def answer(screen: Terminal, question: str, text: str = "") -> None:
    screen.until(question)
    screen.type(text)


def answer_rules(screen: Terminal, **answers: str | tuple[str, ...]) -> None:
    """Answer the questions about policy; several answers are for the same question, asked again."""
    for name in [each.name for each in source_settings() if each.form == "words"]:
        given = answers.get(name, "")
        for text in (given,) if isinstance(given, str) else given:
            answer(screen, f"{name} (", text)


def test_enter_alone_changes_nothing(run: Run, rich: Path, state: Path) -> None:
    before = shown(run)
    with terminal(("source", "edit", "towns"), state) as screen:
        answer(screen, "URL")
        answer_rules(screen)
        answer(screen, "tags")
        assert screen.end() == 0
        assert "nothing was changed" in screen.said
    assert shown(run) == before


def test_what_is_answered_changes_and_the_rest_stays(run: Run, rich: Path, state: Path) -> None:
    before = shown(run)
    with terminal(("source", "edit", "towns"), state) as screen:
        answer(screen, "URL")
        answer_rules(screen, access="read", unqualified=("no", "deny"))
        answer(screen, "tags", "none")
        answer(screen, "Type update to agree", "update")  # a mask may be for all with the tag
        assert screen.end() == 0, screen.said
    now = shown(run)
    changed = {name for name in before if before[name] != now[name]}
    assert changed == {"access", "unqualified", "tags"}
    assert (now["access"], now["unqualified"], now["tags"]) == ("read", "deny", [])


def test_a_wrong_url_is_asked_for_again_and_one_that_does_not_work_changes_nothing(
    run: Run, rich: Path, state: Path
) -> None:
    before = shown(run)
    with terminal(("source", "edit", "towns"), state) as screen:
        answer(screen, "URL", "sqlte:///x.db")
        screen.until("Did you mean `sqlite://`?")
        answer(screen, "URL", "sqlite:////no/such.db")
        answer_rules(screen)
        answer(screen, "tags")
        assert screen.end() != 0
        assert "There is no file" in screen.said
    assert shown(run) == before


@pytest.mark.parametrize("after", ["URL", "access (", "tags"])
def test_who_stops_on_the_way_has_changed_nothing(
    run: Run, rich: Path, state: Path, after: str
) -> None:
    before = shown(run)
    with terminal(("source", "edit", "towns"), state) as screen:
        if after != "URL":
            answer(screen, "URL")
        if after == "tags":
            answer_rules(screen, access="read")
        screen.until(after)
        screen.interrupt()
        assert screen.end() == 130
    assert shown(run) == before


def test_without_a_terminal_it_names_the_command_for_scripts(run: Run, rich: Path) -> None:
    ended = run("source", "edit", "towns", stdin="")
    assert ended.status == 2 and "tidegate source update towns" in ended.err


def test_an_unknown_source_is_answered_with_the_nearest(run: Run, rich: Path) -> None:
    ended = run("source", "edit", "town", stdin="")
    assert ended.status == 66 and "Did you mean 'towns'?" in ended.err


def test_a_password_stays_or_is_typed_without_being_shown(state: Path) -> None:
    server = postgres_server.shared("wheel")
    first, second = server.new_database(), server.new_database()
    url = f"postgresql://postgres@127.0.0.1:{server.port}"
    ended = tidegate(
        "source", "add", "pg", f"{url}/{first}", "--password-stdin", state=state, stdin=SECRET
    )
    assert ended.status == 0, ended.err
    before = tidegate("source", "show", "pg", "--json", state=state).json
    with terminal(("source", "edit", "pg"), state) as screen:
        answer(screen, f"URL [{url}/{first}]", f"{url}/{second}")
        answer(screen, "Type a new password?")
        answer_rules(screen)
        answer(screen, "tags")
        answer(screen, "Type update to agree", "update")
        assert screen.end() == 0, screen.said
    now = tidegate("source", "show", "pg", "--json", state=state).json
    assert now["url"] == before["url"].replace(first, second)
    with terminal(("source", "edit", "pg"), state) as screen:
        answer(screen, "URL")
        answer(screen, "Type a new password?", "y")
        answer_rules(screen)
        answer(screen, "tags")
        answer(screen, "Password of postgres", SECRET)
        assert screen.end() == 0, screen.said
        assert SECRET not in screen.said
    again = tidegate("source", "show", "pg", "--json", state=state).json
    assert again["url"] != now["url"] and SECRET not in again["url"]
    assert tidegate("query", "pg", "SELECT 1", state=state).status == 0
