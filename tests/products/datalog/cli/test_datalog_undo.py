"""A change of a Datalog source is taken back by its journal, unless its facts changed since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import Ended
from support.datalog import CACHE_HOME, prepare
from support.operator_terminal import operator_terminal

Run = Callable[..., Ended]
TEXT = "[:find ?n ?a ?c :where [?e :p/name ?n] [?e :p/age ?a] [?e :p/code ?c]]"


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE_HOME))
    prepare()


def test_a_change_is_taken_back_unless_its_facts_changed_since(run: Run, tmp_path: Path) -> None:
    def agreed(*words: str) -> Ended:
        with operator_terminal() as agreeing:
            return run(*words, terminal=agreeing)

    def imported(age: int) -> None:
        file = tmp_path / "p.jsonl"
        file.write_text(f'{{"name": "Ada", "age": {age}, "code": ":x"}}')
        assert agreed("datalog", "import", "facts", str(file), "--key", "p/name").status == 0

    journal = tmp_path / "journal"
    url = f"datalevin://{tmp_path / 'facts'}"
    added = ("source", "add", "facts", url, "--allow-writes", "--anyway")
    assert agreed(*added).status == 0
    refused = run("datalog", "undo", "facts")
    assert refused.status == 2 and "journal=FILE" in refused.err
    assert (
        agreed("source", "update", "facts", "--option", f"journal={journal}", "--anyway").status
        == 0
    )
    imported(80)
    imported(81)
    assert journal.stat().st_mode & 0o777 == 0o600
    first, second = run("datalog", "undo", "facts", "--json").json["records"]
    assert (first["added"], second["added"], second["retracted"]) == (3, 1, 1)
    early = agreed("datalog", "undo", "facts", first["record"])
    assert early.status == 2 and ":p/age 80 is gone" in early.err
    undo = ("datalog", "undo", "facts", second["record"])
    assert run(*undo).status == 77  # no person agreed, so the facts are as they were:
    assert agreed(*undo).status == 0
    assert run("query", "facts", TEXT, "--json").json["rows"] == [["Ada", 80, ":x"]]
    again = agreed(*undo)
    assert again.status == 2 and "is there again since" in again.err
