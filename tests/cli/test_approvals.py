"""`tidegate approvals`: the inbox. It needs the state directory and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Ended, serving

Run = Callable[..., Ended]
DELETE = "DELETE FROM towns\nWHERE id = 3"


@pytest.fixture
def agent(run: Run, state: Path, database: Path) -> Iterator[Callable[[str], str]]:
    """`agent(sql)` sends a statement as an agent on stdio that can ask no one."""
    added = run(
        "source",
        "add",
        "towns",
        f"sqlite:///{database}",
        "--allow-writes",
        "--approval-for",
        "writes",
    )
    assert added.status == 0, added.err
    with serving(["serve", "--surface", "core", "--allow-writes"], state) as server:

        def send(sql: str) -> str:
            params: dict[str, Any] = {"name": "query", "arguments": {"sql": sql}}
            return server.ask("tools/call", params)["result"]["content"][0]["text"]

        yield send


def question(run: Run, refusal: str) -> str:
    """The question that waits, of which the agent reads neither id nor command."""
    assert "approval.needed" in refusal
    (waiting,) = run("approvals", "list", "--json").json["approvals"]
    assert waiting["id"] not in refusal and "tidegate approvals" not in refusal
    assert "in the Inbox, which `tidegate console` on the server's machine opens" in refusal
    return waiting["id"]


def test_a_person_reads_and_allows(
    run: Run, agent: Callable[[str], str], contents: Callable[[], Any]
) -> None:
    id = question(run, agent(DELETE))
    listed = run("approvals", "list").out
    assert id in listed and "DELETE FROM towns WHERE id = 3" in listed
    shown = run("approvals", "show", id[:9]).out
    for words in (
        "pending",
        "  | DELETE FROM towns\n  | WHERE id = 3",
        "stdio",
        "write",
        "Dry run",
    ):
        assert words in shown
    assert len(contents()) == 3
    assert run("approvals", "allow", id).status == 0
    assert len(contents()) == 3
    agent(DELETE)
    assert len(contents()) == 2
    assert run("approvals", "list").out == ""
    (kept,) = run("approvals", "list", "--all", "--json").json["approvals"]
    assert (kept["id"], kept["state"]) == (id, "used")
    assert kept["decided_by"].startswith("cli:")
    assert "digest" not in kept


def test_the_record_of_a_source_tells_a_dry_run_from_the_run_and_who_allowed_it(
    run: Run, agent: Callable[[str], str]
) -> None:
    id = question(run, agent(DELETE))
    run("approvals", "allow", id)
    agent(DELETE)
    lines = run("audit", "tail", "--source", "towns").out.splitlines()
    (tried,) = [line for line in lines if "outcome" in line and "dry run, rolled back" in line]
    (ran,) = [line for line in lines if "outcome" in line and f"approval={id}" in line]
    (allowed,) = [line for line in lines if "approval.allowed" in line]
    assert "cli:" in allowed and f"approval={id}" in allowed
    assert lines.index(tried) < lines.index(allowed) < lines.index(ran)


def test_a_person_denies_and_says_why(
    run: Run, agent: Callable[[str], str], contents: Callable[[], Any]
) -> None:
    id = question(run, agent(DELETE))
    assert run("approvals", "deny", id, "--reason", "not on a Friday").status == 0
    refusal = agent(DELETE)
    assert "approval.declined" in refusal and "not on a Friday" in refusal
    again = run("approvals", "allow", id)
    assert again.status == 2 and "was denied by cli:" in again.err
    assert "not on a Friday" in run("approvals", "show", id).out
    assert len(contents()) == 3


def test_an_unknown_question_is_an_error(run: Run) -> None:
    for action in ("show", "allow", "deny"):
        ended = run("approvals", action, "feed")
        assert ended.status == 2 and "There is no question feed" in ended.err


def test_settings_of_a_source_survive_the_saving(run: Run, database: Path) -> None:
    flags = {
        "agents": "ask",
        "approval_for": "everything",
        "approval": "inbox",
        "unattended": "allow",
        "unqualified": "deny",
        "destructive_scope": "fullAccess",
    }
    words = [
        word for name, value in flags.items() for word in (f"--{name}".replace("_", "-"), value)
    ]
    assert run("source", "add", "towns", f"sqlite:///{database}", *words).status == 0
    (source,) = run("source", "list", "--json").json["sources"]
    assert {name: source[name] for name in flags} == flags


def test_a_state_file_without_its_table_is_an_error_of_ours(run: Run, state: Path) -> None:
    assert run("approvals", "list").status == 0
    with closing(sqlite3.connect(state / "state.db")) as connection:
        connection.execute("DROP TABLE approvals")
    ended = run("approvals", "list")
    assert ended.status == 74 and "state database" in ended.err
