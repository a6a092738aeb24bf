"""How the command line is spoken to: words it knows, words it does not, what failure looks like."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import tidegate
from tidegate import __version__
from tidegate.edges.cli.parser import build


def actions(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Every argument of every command, with the command's name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from actions(child)
        else:
            yield parser.prog, action


def test_version_is_one_line() -> None:
    ended = tidegate("version")
    assert ended == (0, f"tidegate {__version__}\n", "")


def test_help_names_every_command() -> None:
    ended = tidegate("--help")
    assert ended.status == 0
    for command in ("serve", "source", "query", "token", "demo", "version"):
        assert f"\n    {command} " in ended.out


def test_every_argument_is_explained() -> None:
    unexplained = [(prog, action.dest) for prog, action in actions(build()) if not action.help]
    assert unexplained == []


@pytest.mark.parametrize("listing", ["source list", "token list"])
def test_every_listing_has_json(listing: str) -> None:
    parsed = build().parse_args([*listing.split(), "--json"])
    assert parsed.json


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "COMMAND"),
        (["sevre"], "Did you mean serve?"),
        (["source", "rmove"], "Did you mean remove?"),
        (["token", "create", "a", "--scope", "readonly"], "Did you mean readOnly?"),
        (["token", "create", "a"], "--scope"),
        (["serve", "--source", "shop"], "'shop' is not of the form NAME=URL"),
        (["serve", "--surf", "core"], "--surf"),
        (["query", "shop"], "SQL"),
        (["query", "shop", "SELECT 1", "--rows", "0"], "--rows 0"),
    ],
)
def test_words_it_does_not_know_are_one_line_and_status_2(words: list[str], said: str) -> None:
    ended = tidegate(*words)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("tidegate: ") and ended.err.count("\n") == 1
    assert said in ended.err


def test_an_unknown_surface_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    ended = tidegate("serve", "--surface", "wrokbench", state=tmp_path)
    assert (ended.status, ended.out) == (78, "")
    assert "wrokbench" in ended.err and "core, workbench" in ended.err


def test_an_address_without_a_port_is_refused(tmp_path: Path) -> None:
    ended = tidegate("serve", "--http", "localhost", state=tmp_path)
    assert (ended.status, ended.out) == (78, "")
    assert "HOST:PORT" in ended.err


def test_a_misspelt_setting_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    ended = tidegate("serve", "--config", '{"surface": ["core"]}', state=tmp_path)
    assert (ended.status, ended.out) == (78, "")
    assert "surfaces" in ended.err


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = tidegate("token", "list", "--state", str(tmp_path / "file" / "state"))
    assert (ended.status, ended.out) == (74, "")
    assert str(tmp_path / "file") in ended.err


def test_state_goes_where_the_option_says_before_the_environment(tmp_path: Path) -> None:
    chosen, other = tmp_path / "chosen", tmp_path / "other"
    assert tidegate("token", "list", "--state", str(chosen), state=other).status == 0
    assert chosen.is_dir() and not other.exists()
