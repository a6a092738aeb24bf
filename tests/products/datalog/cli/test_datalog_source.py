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
    tested = run("source", "test", "facts", "--json")
    assert (tested.status, tested.json["tables"]) == (0, 1), tested.err


def test_the_state_of_the_preparation_is_shown(run: Run) -> None:
    shown = run("datalog", "warm-up", "--status", "--json")
    assert shown.status == 0
    assert shown.json["builds"][0]["state"] == "ready"
    assert run("datalog", "warm-up", "--json").json["state"] == "ready"


def test_a_source_is_copied_dumped_loaded_and_measured(run: Run, tmp_path: Path) -> None:
    def named(name: str, *more: str) -> None:
        url = f"datalevin://{tmp_path / name}"
        assert run("source", "add", name, url, "--allow-writes", "--anyway").status == 0

    (tmp_path / "people.csv").write_text(PEOPLE)
    named("facts")
    with operator_terminal() as agreeing:
        words = ("datalog", "import", "facts", str(tmp_path / "people.csv"))
        assert run(*words, terminal=agreeing).status == 0
    text = "[:find ?n ?a :where [?e :people/name ?n] [?e :people/age ?a]]"
    rows = [["Ada", 80], ["Ben", 52]]

    stat = run("datalog", "stat", "facts", "--json").json
    assert stat["tables"]["datalevin/eav"]["entries"] == 4
    assert run("datalog", "copy", "facts", str(tmp_path / "copied")).status == 0
    named("copied")
    assert run("datalog", "copy", "facts", str(tmp_path / "copied")).status == 2  # it is there

    dumped = tmp_path / "facts.edn"
    assert run("datalog", "dump", "facts", str(dumped)).status == 0
    assert '"Ada"' in dumped.read_text() and dumped.stat().st_mode & 0o777 == 0o600
    assert {each.name for each in tmp_path.iterdir() if each.name.startswith(".dump")} == set()
    named("restored")
    load = ("datalog", "load", "restored", str(dumped))
    assert (run(*load).status, (tmp_path / "restored").exists()) == (77, False)
    with operator_terminal() as agreeing:
        assert run(*load, terminal=agreeing).status == 0
    assert run("query", "restored", text, "--json").json["rows"] == rows
    assert run(*load).status == 2  # it holds data now

    (tmp_path / "copied" / "VERSION").write_text("1.2.1")
    refused = run("query", "copied", text)
    assert refused.status != 0 and "datalog migrate" in refused.err
    moved = run("datalog", "migrate", "copied", "--copy-to", str(tmp_path / "moved"))
    assert moved.status == 0
    named("moved")
    assert run("query", "moved", text, "--json").json["rows"] == rows
    (tmp_path / "copied" / "VERSION").write_text("0.9.27")
    older = run("datalog", "migrate", "copied", "--copy-to", str(tmp_path / "older"))
    assert older.status != 0 and "datalog load" in older.err
    assert (tmp_path / "copied" / "VERSION").read_text() == "0.9.27"
    assert not (tmp_path / "older").exists()
