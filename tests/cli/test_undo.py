"""`tidegate changes` and `tidegate undo`: a person at the terminal takes a change back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Ended, serving
from support.operator_terminal import operator_terminal

Run = Callable[..., Ended]
Contents = Callable[[], Any]


@pytest.fixture
def agreed(run: Run) -> Run:
    """Run a command at a terminal whose operator agrees."""

    def agreed(*words: str, agrees: bool = True) -> Ended:
        with operator_terminal(agrees=agrees) as terminal:
            return run(*words, terminal=terminal)

    return agreed


@pytest.fixture
def changed(run: Run, state: Path, database: Path) -> Iterator[Callable[[str], None]]:
    """`changed(sql)` lets an agent change the source `towns`, which keeps its changes."""
    url = f"sqlite:///{database}"
    added = run("source", "add", "towns", url, "--allow-writes", "--undo", "keep")
    assert added.status == 0, added.err
    with serving(["serve", "--surface", "core", "--allow-writes"], state) as server:

        def send(sql: str) -> None:
            params: dict[str, Any] = {"name": "query", "arguments": {"sql": sql}}
            assert not server.ask("tools/call", params)["result"].get("isError")

        yield send


def test_a_change_is_listed_shown_and_taken_back(
    run: Run, agreed: Run, changed: Callable[[str], None], contents: Contents
) -> None:
    before = contents()
    changed("UPDATE towns SET people = 7 WHERE id = 1")
    after = contents()
    (entry,) = run("changes", "--json").json["changes"]
    assert (entry["source"], entry["rows"], entry["state"]) == ("towns", 1, "done")
    listed = run("changes", "--source", "towns").out
    assert entry["id"] in listed and "stdio" in listed
    refused = agreed("undo", entry["id"], agrees=False)
    assert refused.status == 77 and contents() == after
    alone = run("undo", entry["id"])
    assert alone.status == 77 and contents() == after
    done = agreed("undo", entry["id"][:6])
    assert done.status == 0, done.err
    assert "7 -> 1084831" in done.out and "changes back" in done.out
    assert contents() == before
    again = agreed("undo", entry["id"])
    assert again.status == 66 and "already" in again.err
    assert "taken back" in run("changes").out


def test_a_conflict_names_the_rows_and_changes_nothing(
    run: Run, agreed: Run, changed: Callable[[str], None], contents: Contents
) -> None:
    changed("UPDATE towns SET people = 7 WHERE id = 1")
    changed("UPDATE towns SET people = 8 WHERE id = 1")
    _, first = run("changes", "--json").json["changes"]
    before = contents()
    refused = agreed("undo", first["id"])
    assert refused.status == 65 and "id = 1" in refused.err
    assert contents() == before


def test_the_person_at_the_terminal_is_the_one_who_approves(
    run: Run, agreed: Run, changed: Callable[[str], None], contents: Contents
) -> None:
    before = contents()
    changed("DELETE FROM towns WHERE id = 3")
    assert run("source", "update", "towns", "--approval-for", "writes").status == 0
    (entry,) = run("changes", "--json").json["changes"]
    done = agreed("undo", entry["id"], "--json")
    assert done.status == 0, done.err
    assert done.json["undone"] == entry["id"] and contents() == before


def test_a_change_that_is_not_kept_is_unknown(run: Run, agreed: Run, towns: Path) -> None:
    refused = agreed("undo", "0123456789ab")
    assert refused.status == 66 and "tidegate changes" in refused.err
    assert "--undo keep" in run("changes").err


def test_the_limit_of_rows_is_set_shown_and_removed(run: Run, agreed: Run, towns: Path) -> None:
    assert run("source", "update", "towns", "--max-rows-changed", "5").status == 0
    assert run("source", "show", "towns", "--json").json["max_rows_changed"] == 5
    wider = ("source", "update", "towns", "--max-rows-changed", "none")
    assert run(*wider, stdin="").status == 77
    assert agreed(*wider).status == 0
    assert run("source", "show", "towns", "--json").json["max_rows_changed"] is None
    made = agreed("token", "create", "bot", "--scope", "readWrite", "--max-rows-changed", "3")
    assert made.status == 0 and "at most 3 rows" in made.err
    assert run("token", "show", "bot", "--json").json["max_rows_changed"] == 3
    assert run("token", "edit", "bot", "--max-rows-changed", "2").status == 0
    assert run("token", "edit", "bot", "--max-rows-changed", "none", stdin="").status == 77
    assert (
        run("token", "create", "b", "--scope", "readWrite", "--max-rows-changed", "0").status == 2
    )
