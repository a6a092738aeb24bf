"""The words of the command line, on argparse: what may be said, not what it does.

Each command names the module that runs it; `main.py` imports that module and no other, because
start-up is paid again for every agent. `docs/reference/cli.md` is generated from here.
"""

from __future__ import annotations

import argparse
import re
from difflib import get_close_matches
from typing import Any, NoReturn

from tidegate import __version__
from tidegate.edges.cli.words.people import add_approvals, add_audit, add_pair, add_token
from tidegate.edges.cli.words.serving import add_bridge, add_demo, add_install, add_serve
from tidegate.edges.cli.words.sources import add_explain, add_judge, add_query, add_source
from tidegate.errors import Code, GateError


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises GateError ARGUMENT_INVALID where others print and exit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise GateError(
            Code.ARGUMENT_INVALID,
            _plain(message),
            hint=f"`{self.prog} --help` lists what there is.",
        )


def _plain(message: str) -> str:
    """argparse's message as one sentence, with the nearest word where one was mistyped."""
    choice = re.match(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", message)
    if choice:
        name, given, offered = choice.groups()
        words = re.findall(r"[\w-]+", offered)
        near = get_close_matches(given, words, 1)
        meant = f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(words)}."
        return f"There is no {name.lstrip('-').lower()} {given!r}. {meant}"
    return message[:1].upper() + message[1:].rstrip(".") + "."


def build() -> Parser:
    """The whole command line."""
    parser = Parser(
        prog="tidegate",
        description="One gate between AI agents and data.",
        epilog="Every command has --help. Exit statuses: docs/reference/cli.md.",
    )
    parser.add_argument("--version", action="version", version=f"tidegate {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add_serve(commands)
    add_bridge(commands)
    add_install(commands)
    add_source(commands)
    add_query(commands)
    add_judge(commands)
    add_explain(commands)
    add_token(commands)
    add_approvals(commands)
    add_pair(commands)
    add_audit(commands)
    add_demo(commands)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(module="version")
    return parser
