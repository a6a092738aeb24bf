"""`tidegate approvals list --watch`: approvals as they come and are answered, until Ctrl-C."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command_line import Ended, Serving, serving, tidegate
from support.terminal import terminal

Run = Callable[..., Ended]


@pytest.fixture
def asking(run: Run, towns: Path, state: Path) -> Callable[[str], object]:
    """Leaves a question: an agent's change of a source that asks a person."""
    settings = ("--access", "write", "--approval-for", "writes", "--approval", "inbox")
    assert run("source", "update", "towns", *settings).status == 0

    def ask(name: str) -> object:
        with agent(state) as process:
            sql = f"UPDATE towns SET name = '{name}' WHERE id = 1"
            answer = process.ask("tools/call", {"name": "query", "arguments": {"sql": sql}})
        return answer["result"]

    return ask


@contextmanager
def agent(state: Path) -> Generator[Serving]:
    with serving(["serve", "--allow-writes"], state) as process:
        yield process


def first_id(run: Run) -> str:
    return run("approvals", "list", "--json").json["approvals"][0]["id"]


def test_a_pipe_gets_an_object_for_each_change(
    run: Run, state: Path, asking: Callable[[str], object]
) -> None:
    asking("one")
    with serving(["approvals", "list", "--watch", "--json"], state) as watch:
        first = json.loads(watch.line())
        assert first["state"] == "pending" and "one" in first["subject"]["statement"]
        asking("two")
        second = json.loads(watch.line())
        assert second["state"] == "pending" and second["id"] != first["id"]
        assert run("approvals", "deny", first["id"]).status == 0
        answered = json.loads(watch.line())
        assert (answered["id"], answered["state"]) == (first["id"], "denied")
        ended = watch.tell(signal.SIGINT)
    assert (ended.status, ended.out) == (130, "")
    assert ended.err.count("\n") <= 1 and "Traceback" not in ended.err


def test_a_terminal_shows_the_list_as_it_is_and_ctrl_c_ends_it(
    run: Run, state: Path, asking: Callable[[str], object]
) -> None:
    with terminal(("approvals", "list", "--watch"), state) as screen:
        screen.until("no pending approvals")
        asking("one")
        screen.until("1 pending approval at")
        screen.until("UPDATE towns")
        assert tidegate("approvals", "deny", first_id(run), state=state).status == 0
        screen.until("no pending approvals")
        screen.interrupt()
        assert screen.end() == 130
        assert "Traceback" not in screen.said
