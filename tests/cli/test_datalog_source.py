"""A Datalog source at the command line: added, imported into, asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import Ended
from support.datalog import CACHE_HOME, prepare
from support.operator_terminal import operator_terminal

Run = Callable[..., Ended]

PEOPLE = "name,age\nAda,80\nBen,52\n"


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE_HOME))
    prepare()


def test_a_file_is_imported_once_a_person_agrees_and_is_then_asked(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    words = ("datalog", "import", "facts", str(tmp_path / "people.csv"), "--key", "people/name")
    url = f"datalevin://{tmp_path / 'facts'}"
    added = ("source", "add", "facts", url, "--allow-writes")
    assert run(*added).status == 69
    assert run(*added, "--anyway").status == 0
    shown = run(*words, "--schema-only")
    assert (shown.status, ":people/age" in shown.out) == (0, True)
    refused = run(*words)
    assert (refused.status, (tmp_path / "facts").exists()) == (77, False)
    for _ in range(2):  # an entity is known again by its key
        with operator_terminal() as agreeing:
            assert run(*words, terminal=agreeing).status == 0
    text = "[:find ?n ?a :where [?e :people/name ?n] [?e :people/age ?a]]"
    found = run("query", "facts", text, "--json")
    assert found.json["rows"] == [["Ada", 80], ["Ben", 52]]


def test_the_state_of_the_preparation_is_shown(run: Run) -> None:
    shown = run("datalog", "warm-up", "--status", "--json")
    assert shown.status == 0
    assert shown.json["builds"][0]["state"] == "ready"
    assert run("datalog", "warm-up", "--json").json["state"] == "ready"
