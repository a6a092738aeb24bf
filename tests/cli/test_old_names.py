"""What an operator may have written down under an old name still works in this release, with a note
that says the new one; what is gone is in the changelog."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli import settings
from tidegate.cli.main import main
from tidegate.config.old_names import OLD_POLICY, OLD_WORKBENCH

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()

OPTIONS = [
    (f"--{old.replace('_', '-')}", word, new)
    for old, words in OLD_POLICY.items()
    for word, new in words.items()
]
SETTINGS = [(old, word, new) for old, words in OLD_POLICY.items() for word, new in words.items()]
WORKBENCH: dict[str, Any] = {
    "http_error_status": "auto", "export_directory": "exports", "extended": True,
}  # fmt: skip
GONE = (
    "memory://",
    "desk.unknown_tab",
    "source.shield",
    "shield.*",
    "source.external_access",
    "source.ai_policy",
    "source.safe_mode",
    "actor.scope",
)
"""Codes, rule ids and URLs of earlier versions."""

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run a command in this process, on a state of the test's own."""
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setenv("TIDEGATE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(settings, "_noted", set())  # a process prints each note once

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(words)
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


@pytest.mark.parametrize(("option", "word", "new"), OPTIONS)
def test_an_old_option_sets_what_it_stands_for_now_and_says_so(
    command: Command, option: str, word: str, new: dict[str, str]
) -> None:
    for words in (("add", "shop", "sqlite://"), ("update", "shop")):
        status, _, err = command("source", *words, option, word)
        assert status == 0, err
        assert f"`{option}` has a new name" in err
        assert all(f"`--{name.replace('_', '-')}`" in err for name in new)
        (saved,) = json.loads(command("source", "list", "--json")[1])["sources"]
        assert {name: saved[name] for name in new} == new
    assert option not in command("source", "add", "--help")[1]


@pytest.mark.parametrize("option", [f"--{old.replace('_', '-')}" for old in OLD_POLICY])
def test_an_old_option_with_a_word_it_never_had_saves_nothing(
    command: Command, option: str
) -> None:
    assert command("source", "add", "shop", "sqlite://", option, "sometimes")[0] == 2
    assert json.loads(command("source", "list", "--json")[1]) == {"sources": []}


@pytest.mark.parametrize(("old", "word", "new"), SETTINGS)
def test_an_old_setting_of_a_source_works_and_says_so(
    command: Command, tmp_path: Path, old: str, word: str, new: dict[str, str]
) -> None:
    source = {"name": "shop", "url": "sqlite://", old: word}
    path = tmp_path / "tidegate.json"
    path.write_text(json.dumps({"sources": [source]}))
    path.chmod(0o600)
    status, out, err = command(
        "explain", "SELECT 1", "--source", "shop", "--json", "--config", str(path)
    )
    assert status == 0, err
    assert f"`{old}` has a new name" in err
    blocked = new.get("access") == "none"
    asked = new.get("approval_for") == "everything"
    assert json.loads(out)["verdict"] == ("deny" if blocked else "ask" if asked else "allow")


@pytest.mark.parametrize("old", OLD_WORKBENCH)
def test_an_old_setting_of_the_workbench_works_and_says_so(
    command: Command, tmp_path: Path, old: str
) -> None:
    (tmp_path / "exports").mkdir()
    value = str(tmp_path / "exports") if old == "export_directory" else WORKBENCH[old]
    source = {"name": "shop", "url": "sqlite://"}
    path = tmp_path / "tidegate.json"
    path.write_text(json.dumps({old: value, "sources": [source]}))
    path.chmod(0o600)
    status, _, err = command("query", "shop", "SELECT 1", "--config", str(path))
    assert status == 0, err
    assert f"`{old}` has a new name: use `surface.workbench.{old}`" in err


def test_every_old_setting_of_the_workbench_is_tried_here() -> None:
    assert set(WORKBENCH) == set(OLD_WORKBENCH)


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone_is_in_the_changelog(name: str) -> None:
    assert f"`{name}`" in CHANGELOG
