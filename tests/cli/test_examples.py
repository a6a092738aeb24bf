"""Each help has an example, which is a use of its command; those that only read are run."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Run
from tidegate.cli.arguments.examples import EXAMPLES, example_of
from tidegate.cli.parser import Parser, build
from tidegate.product import built_in

ALL = {
    **EXAMPLES,
    **{
        name: text
        for product in built_in()
        for entry in product.commands.values()
        for name, text in entry.examples.items()
    },
}
READS = (
    *("source list", "token list", "pair list", "audit verify", "audit key", "completion"),
    *("version", "judge", "driver list"),
)


def parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[Parser, bool]]:
    """Every parser below this one, and whether it is that of a group."""
    groups = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    assert isinstance(parser, Parser)
    yield parser, bool(groups)
    for group in groups:
        for child in group.choices.values():
            yield from parsers(child)


def test_every_command_has_an_example_and_every_example_a_command() -> None:
    leaves = {parser.prog.partition(" ")[2] for parser, group in parsers(build()) if not group}
    assert leaves == ALL.keys()


@pytest.mark.parametrize("command", ALL)
def test_an_example_is_a_use_of_its_command(command: str) -> None:
    words = shlex.split(ALL[command])
    assert words[: len(command.split())] == command.split()
    parsed = build().parse_args(words)
    assert parsed.module


def test_every_help_shows_an_example_on_one_line() -> None:
    for parser, _ in parsers(build()):
        command = parser.prog.partition(" ")[2]
        begins = "example:\n  " if command else "example: "
        assert f"{begins}{example_of(command)}\n" in parser.format_help(), parser.prog


@pytest.mark.parametrize("command", READS)
def test_an_example_that_reads_runs(run: Run, towns: Path, command: str) -> None:
    ended = run(*shlex.split(ALL[command]))
    assert (ended.status, "tidegate:" in ended.err) == (0, False), ended.err


def test_the_help_of_a_process_shows_the_example(run: Run) -> None:
    assert "tidegate source harden shop --apply" in run("source", "harden", "--help").out
