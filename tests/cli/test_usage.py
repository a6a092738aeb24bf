"""How the command line is spoken to: words it knows, words it does not, what failure looks like."""

from __future__ import annotations

import argparse
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import environment, tidegate
from support.eventually import HANG_S
from support.free_ports import claim_port
from tidegate import __version__
from tidegate.cli.parser import build
from tidegate.product import built_in
from tidegate.sql.dialects import DIALECTS
from tidegate.surfaces.registry import SURFACES


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


@pytest.mark.parametrize("group", ["source", "token", "approvals", "pair", "audit"])
def test_help_gives_each_action_a_line_with_what_it_does(group: str) -> None:
    """`approvals` once stood on a line of its own: argparse forgets the indent of commands."""
    shown = tidegate(group, "--help").out
    listed = shown.partition("  ACTION\n")[2].split("\n\n")[0]
    lines = [line for line in listed.splitlines() if line[4:5].strip()]
    assert lines
    assert [line for line in lines if len(line.split(maxsplit=1)) == 1] == []


GROUPS = ("start", "ask", "databases", "people and rights", "after a call")
"""What people want, in the order of the first screen."""


def test_help_is_one_screen_of_the_most_used_commands_with_the_names_of_the_others() -> None:
    shown = tidegate("--help").out
    lines = shown.splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 80
    words = set(re.findall(r"[a-z-]+", shown))
    assert [name for name in build().commands.choices if name not in words] == []
    assert [title for title in GROUPS if f"\n{title}:\n" not in shown] == []
    assert "--help-all" in shown


def test_all_help_lists_each_command_once_in_the_group_of_what_people_want() -> None:
    shown = tidegate("--help-all").out
    sections = dict(part.split(":\n", 1) for part in shown.split("\n\n") if ":\n" in part)
    assert tuple(title for title in sections if title not in ("options", "example")) == GROUPS
    lines = [line for title in GROUPS for line in sections[title].splitlines()]
    listed = [line for line in lines if line[2:3].strip()]
    assert [line for line in listed if len(line.split(maxsplit=1)) == 1] == []
    names = [line.split()[0] for line in listed]
    assert sorted(names) == sorted(build().commands.choices)
    for title, name in [("start", "setup"), ("databases", "source"), ("after a call", "undo")]:
        assert f"  {name} " in sections[title]


def test_a_command_of_a_product_is_in_the_group_that_the_product_names() -> None:
    groups = build().groups
    for product in built_in():
        for name, entry in product.commands.items():
            (title,) = [title for title, names in groups.items() if name in names]
            assert title.startswith(entry.group), name


def test_help_is_given_to_who_asks_for_it_by_a_word() -> None:
    assert tidegate("help", "source", "add") == tidegate("source", "add", "--help")
    assert tidegate("help").out == tidegate("--help").out


def test_without_a_command_all_are_named_on_one_screen_of_a_small_terminal() -> None:
    ended = tidegate()
    assert (ended.status, ended.out) == (2, "")
    lines = ended.err.splitlines()
    assert len(lines) < 24 and max(map(len, lines)) <= 80
    words = ended.err.split()
    assert [name for name in build().commands.choices if name not in words] == []
    assert [title for title in GROUPS if f"\n  {title} " not in ended.err] == []
    assert "tidegate setup" in ended.err and "tidegate --help" in ended.err


@pytest.mark.parametrize("command", ["add", "update"])
def test_the_most_used_options_of_a_source_are_on_one_screen_and_all_are_a_word_away(
    command: str,
) -> None:
    short = tidegate("source", command, "--help").out
    assert len(short.splitlines()) < 24
    assert "--help-all" in short and "--mask" in short and "--destructive-scope" not in short
    whole = tidegate("source", command, "--help-all")
    assert (whole.status, whole.err) == (0, "")
    options = {
        option
        for prog, action in actions(build())
        if prog == f"tidegate source {command}"
        for option in action.option_strings
    }
    assert len(options) > 25
    assert [option for option in sorted(options) if option not in whole.out] == []


def test_a_command_alone_is_read_as_in_the_whole_command_line() -> None:
    """Its grammar is built without that of the others."""

    def grammar(parser: argparse.ArgumentParser) -> dict[str, str]:
        return {child.prog: child.format_help() for child in parsers(parser)}

    def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for child in action.choices.values():
                    yield child
                    yield from parsers(child)

    whole = grammar(build())
    names = [name.split()[1] for name in whole if name.count(" ") == 1]
    assert sorted(names) == sorted(build().commands.choices)
    for name in names:
        alone = grammar(build([name]))
        assert f"tidegate {name}" in alone
        assert alone.items() <= whole.items()


@pytest.mark.parametrize(
    ("command", "option", "names"),
    [("serve", "--surface", list(SURFACES)), ("judge", "--dialect", list(DIALECTS))],
)
def test_help_names_all_that_an_option_takes(command: str, option: str, names: list[str]) -> None:
    (helped,) = [
        action.help or ""
        for prog, action in actions(build())
        if prog == f"tidegate {command}" and option in action.option_strings
    ]
    other_names = {"postgresql", "mariadb"}  # of dialects that are in the list
    assert [name for name in names if name not in other_names and name not in helped] == []


def test_a_hint_that_the_message_ends_with_is_said_once(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "x.db").close()
    tidegate("source", "add", "x", f"sqlite:///{tmp_path}/x.db", state=tmp_path / "state")
    ended = tidegate("query", "x", "SELECT 1; SELECT 2", state=tmp_path / "state")
    assert ended.err.count("Send one statement at a time.") == 1


def test_every_argument_is_explained() -> None:
    unexplained = [(prog, action.dest) for prog, action in actions(build()) if not action.help]
    assert unexplained == []


@pytest.mark.parametrize("listing", ["source list", "token list", "approvals list", "pair list"])
def test_a_listing_of_nothing_says_so_and_prints_nothing(tmp_path: Path, listing: str) -> None:
    ended = tidegate(*listing.split(), state=tmp_path / "state")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("listing", ["source list", "token list"])
def test_every_listing_has_json(listing: str) -> None:
    parsed = build().parse_args([*listing.split(), "--json"])
    assert parsed.json


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sevre"], "Did you mean serve?"),
        (["source", "rmove"], "Did you mean remove?"),
        (["source", "remane"], "Did you mean rename?"),
        (["source", "modfy"], "Choose from add, "),
        (["token", "create", "a", "--scope", "readonly"], "Did you mean readOnly?"),
        (["token", "create", "a"], "--scope is missing"),
        (["query"], "SOURCE is missing"),
        (["serve", "--source", "shop"], "'shop' is not of the form NAME=URL"),
        (["serve", "--surf", "core"], "There is no option --surf. Did you mean --surface?"),
        (["serve", "--htp=x"], "There is no option --htp. Did you mean --http?"),
        (["--verison"], "Did you mean --version?"),
        (["--config", "x.toml", "query", "a", "b"], "Write the option --config after the command"),
        (["source", "--json", "list"], "Write the option --json after the command"),
        (["query", "shop", "SELECT", "1"], "Quote the whole statement"),
        (["query", "shop"], "SQL is missing. Write it after the source"),
        (["query", "SELECT 1"], "SOURCE is missing. Write it before the statement"),
        (["query", "shop", "SELECT 1", "--rows", "0"], "--rows 0"),
        (["explain", "SELECT 1"], "SOURCE is missing"),
        (["explain", "shop", "SELECT", "1"], "Too many arguments: 1. Quote a value"),
    ],
)
def test_words_it_does_not_know_are_one_line_and_status_2(words: list[str], said: str) -> None:
    ended = tidegate(*words)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("tidegate: ") and ended.err.count("\n") == 1
    assert said in ended.err


def test_a_source_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    url = f"postgresql://me@127.0.0.1:{claim_port()}/x"
    for words in (("add", "x", url), ("add", "x", url, "--anyway"), ("test", "x")):
        ended = tidegate("source", *words, state=tmp_path / "state")
        lines = [line for line in ended.err.splitlines() if "Connection refused" in line]
        assert len(lines) == 1, ended.err


def test_an_unknown_surface_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    ended = tidegate("serve", "--surface", "croe", state=tmp_path)
    assert (ended.status, ended.out) == (78, "")
    assert f"'croe'. Did you mean core? Choose from {', '.join(SURFACES)}." in ended.err


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


NOT_UTF8 = os.fsdecode(b"\xff\xfe")
LATE = "2026-01-01T00:00:00+99:99"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["token", "create", NOT_UTF8, "--scope", "readOnly"], 2),
        (["source", "remove", NOT_UTF8], 2),
        (["query", "shop", NOT_UTF8], 2),
        (["audit", "tail", "--state", NOT_UTF8], 2),
        (["bridge", "--surface", NOT_UTF8], 2),
        (["query", "shop", "SELECT 1", "--config", ""], 2),
        (["query", "shop", "SELECT 1", "--state", ""], 2),
        (["serve", "--http", ""], 2),
        (["install", "cursor", "--http", ""], 2),
        (["audit", "verify", "--directory", ""], 2),
        (["audit", "tail", "--since", ""], 2),
        (["audit", "tail", "--until", "0001-01-01T00:00+14:00"], 2),
        (["audit", "tail", "--since", LATE], 2),
        (["audit", "tail", "--since", "999999w"], 2),
        (["audit", "tail", "-n", "0"], 2),
        (["audit", "tail", "-n", "-5"], 2),
        (["token", "create", "a", "--scope", "readOnly", "--expires", "999999w"], 2),
        (["pair", "ask", "http://127.0.0.1:99999", "--name", "x"], 2),
        (["pair", "ask", "http://127.0.0.1:x", "--name", "x"], 2),
        (["pair", "ask", "http://[::1", "--name", "x"], 2),
        (["demo", "--once", "--port", "99999"], 2),
        (["demo", "--once", "--state", "/proc/none"], 74),
        (["demo", "--once", "--state", "/dev/null"], 74),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_does_nothing(
    tmp_path: Path, words: list[str], status: int
) -> None:
    ended = tidegate(*words, state=tmp_path / "state")
    assert (ended.status, ended.out) == (status, ""), ended.err
    assert ended.err.startswith("tidegate: ") and ended.err.count("\n") == 1
    assert "Internal error" not in ended.err
    assert tidegate("token", "list", "--json", state=tmp_path / "state").json == {"tokens": []}


def in_shell(line: str, state: Path) -> tuple[int, str]:
    """Status and standard error of a line for the shell; `$T` is `tidegate`."""
    ended = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, timeout=HANG_S, check=False,
        env={**environment(state), "T": f"{sys.executable} -m tidegate"},
    )  # fmt: skip
    return ended.returncode, ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    "words", ["token list --json", "judge 'SELECT 1'", "audit key", "source list --json"]
)
def test_an_output_that_is_full_is_one_line(tmp_path: Path, words: str) -> None:
    status, said = in_shell(f"$T {words} > /dev/full", tmp_path / "state")
    full = "tidegate: Cannot read or write standard input or output: No space left on device.\n"
    assert (status, said) == (74, full)


def test_streams_that_are_closed_are_no_files_of_ours(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert in_shell("$T token create a --scope readOnly 2>&- >/dev/null", state) == (0, "")
    status, said = in_shell("$T token create b --scope readOnly >&-", state)
    assert (status, said.count("\n")) == (74, 1)
    assert in_shell("$T query shop - <&-", state)[0] == 66
    assert in_shell("$T serve --surface core <&-", state) == (0, "")
    listed = tidegate("token", "list", "--json", state=state).json["tokens"]
    assert [each["name"] for each in listed] == ["a"]


def test_a_state_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    for words in ("source list", "token list", "approvals list", "pair list", "audit tail",
                  "serve --surface core", "query shop 'SELECT 1'"):  # fmt: skip
        status, said = in_shell(f"$T {words}", tmp_path / "state")
        assert (status, said.count("\n")) == (74, 1), words
        assert "File exists" in said
