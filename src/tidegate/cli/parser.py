"""The grammar of the command line, on argparse.

Each command names the module that runs it; `main.py` imports only that module, because a stdio
server is started for every agent. `docs/reference/cli.md` is generated from here.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, cast

from tidegate import __version__
from tidegate.cli.arguments.access import (
    add_approvals,
    add_audit,
    add_pair,
    add_passphrase,
    add_token,
)
from tidegate.cli.arguments.budgets import add_budget
from tidegate.cli.arguments.changes import add_changes, add_undo
from tidegate.cli.arguments.options import Commands
from tidegate.cli.arguments.people import add_operator, add_webhook
from tidegate.cli.arguments.search import add_embed, add_search
from tidegate.cli.arguments.serving import (
    add_bridge,
    add_completion,
    add_config,
    add_demo,
    add_doctor,
    add_health,
    add_install,
    add_serve,
    add_setup,
    add_status,
)
from tidegate.cli.arguments.sources import add_source
from tidegate.cli.arguments.statements import (
    add_explain,
    add_export,
    add_judge,
    add_query,
    add_tables,
)
from tidegate.errors import Code, TidegateError
from tidegate.product import (
    CommandEntry,
    CommandGroup,
    Product,
    add_installed,
    load,
    own_entries,
)


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises TidegateError ARGUMENT_INVALID where others print and exit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - argparse's own has overloads
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Like argparse's, but an unknown option is reported by the command that got it."""
        words = sys.argv[1:] if args is None else list(args)
        option = words[0].partition("=")[0] if words else ""
        known = self._option_string_actions
        if self._subparsers is not None and option.startswith("-") and option not in known:
            near = get_close_matches(option, known, 1, 0.8)
            self.error(
                f"There is no option {option}. Did you mean {near[0]}?"
                if near
                else f"Write the option {option} after the command"
                if self._is_known_below(option)
                else f"There is no option {option}"
            )
        parsed, rest = super().parse_known_args(words, namespace)
        into = self.get_default("rest_into")
        plain = False
        while rest and into is not None and (plain or _is_word(rest[0])):
            # argparse gives no positional that may be left out what follows an option.
            word = rest.pop(0)
            if word == "--" and not plain:
                plain = True
            else:
                setattr(parsed, into, [*getattr(parsed, into), word])
        if rest:
            option = rest[0].partition("=")[0]
            if not option.startswith("-"):
                self.error(f"Too many arguments: {' '.join(rest)}. Quote a value that has spaces")
            near = get_close_matches(option, known, 1)
            meant = f". Did you mean {near[0]}?" if near else ""
            self.error(f"There is no option {option}{meant}")
        return parsed, rest

    most_used: tuple[str, ...] = ()
    """The options that --help shows where --help-all shows all; empty: --help shows all."""

    def show_most_used(self, *options: str) -> None:
        """Let --help show these options only, each with the first part of its text, and --help-all
        all of them."""
        self.most_used = options
        self.add_argument("--help-all", action=_HelpAll, nargs=0, help="show all options")

    def format_help(self) -> str:
        """As argparse's, with an example at the end."""
        return self._format_most_used() if self.most_used else self.format_all()

    def format_all(self) -> str:
        """The help with every option."""
        return super().format_help() + self._format_example()

    def _format_most_used(self) -> str:
        from copy import copy  # imported lazily: only this help needs it

        formatter = self._get_formatter()
        words = [action for action in self._actions if not action.option_strings]
        usage = " ".join([self.prog, "[OPTIONS]", *(str(word.metavar) for word in words)])
        formatter.add_usage(usage, [], [])
        formatter.add_text(self.description)
        formatter.start_section("arguments")
        formatter.add_arguments(words)
        formatter.end_section()
        formatter.start_section("most used options (--help-all shows all)")
        for option in self.most_used:
            action = copy(self._option_string_actions[option])
            text = action.help or ""
            default = re.search(r" \(default: [^;]*\)$", text) if ";" in text else None
            action.help = text.partition(";")[0] + (default[0] if default else "")
            formatter.add_argument(action)
        formatter.end_section()
        return formatter.format_help() + self._format_example()

    def _format_example(self) -> str:
        example = _example_of(self.prog.partition(" ")[2])
        return f"\nexample:\n  {example}\n" if example else ""

    def _is_known_below(self, option: str) -> bool:
        """Whether a command, or an action of one, has the option."""
        for action in self._actions:
            choices: Any = action.choices
            if isinstance(choices, dict):
                for parser in cast("dict[str, Parser]", choices).values():
                    if option in parser._option_string_actions or parser._is_known_below(option):
                        return True
        return False

    def error(self, message: str) -> NoReturn:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            _plain(message),
            hint=f"`{self.prog} --help` lists the arguments.",
        )


class _HelpAll(argparse.Action):
    """Prints the help with every option, and ends."""

    def __call__(self, parser: Any, *_: Any) -> None:
        from tidegate.cli.terminal import show

        show(parser.format_all().rstrip("\n"))
        parser.exit()


def _example_of(command: str) -> str | None:
    from tidegate.cli.arguments.examples import example_of  # imported lazily: only help needs it

    return example_of(command)


def _is_word(text: str) -> bool:
    return not text.startswith("-") or re.fullmatch(r"-(-|\d.*)?", text) is not None


class _Help(argparse.HelpFormatter):
    """argparse's help formatter, with the indent of commands added to the column width."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        for command in self._iter_indented_subactions(action):
            length = len(self._format_action_invocation(command)) + self._current_indent
            self._action_max_length = max(self._action_max_length, length)


_TAKES_AWAY = {"remove", "revoke"}


def _plain(message: str) -> str:
    """argparse's message as one sentence, with the nearest valid word for a mistyped one."""
    choice = re.match(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", message)
    if choice:
        name, given, offered = choice.groups()
        words = re.findall(r"[\w-]+", offered)
        # What takes something away is no guess: `remane` is a slip of `rename`, not of `remove`.
        harmless = [word for word in words if word not in _TAKES_AWAY]
        near = get_close_matches(given, words, 1, 0.9) or get_close_matches(given, harmless, 1)
        meant = f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(words)}."
        return f"There is no {name.lstrip('-').lower()} {given!r}. {meant}"
    required = message.partition("the following arguments are required: ")[2]
    if required:
        names = required.split(", ")
        return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing."
    whole = message[:1].upper() + message[1:].rstrip(".")
    return whole if whole.endswith("?") else f"{whole}."


def _add_version(commands: Commands) -> None:
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(module="version")


_GROUPS: dict[CommandGroup, tuple[str, dict[str, Callable[[Commands], None]]]] = {
    "start": (
        "start",
        {
            "setup": add_setup,
            "demo": add_demo,
            "serve": add_serve,
            "bridge": add_bridge,
            "install": add_install,
            "status": add_status,
            "stop": add_status,
            "health": add_health,
            "doctor": add_doctor,
            "config": add_config,
            "completion": add_completion,
            "version": _add_version,
        },
    ),
    "ask": (
        "ask",
        {
            "query": add_query,
            "tables": add_tables,
            "describe": add_tables,
            "export": add_export,
            "explain": add_explain,
            "judge": add_judge,
        },
    ),
    "databases": (
        "databases",
        {"source": add_source, "search": add_search, "embed": add_embed},
    ),
    "people": (
        "people and rights",
        {
            "token": add_token,
            "budget": add_budget,
            "pair": add_pair,
            "approvals": add_approvals,
            "operator": add_operator,
            "passphrase": add_passphrase,
            "webhook": add_webhook,
        },
    ),
    "after": (
        "after a call",
        {"audit": add_audit, "changes": add_changes, "undo": add_undo},
    ),
}
"""The title of each group of commands, and what adds each command of the kernel in it, in the order
of the help. One function may add several commands."""

_SCREEN_WIDTH = 79
_MOST_USED = frozenset(
    {"setup", "demo", "serve", "install", "doctor", "query", "tables", "source"}
    | {"token", "approvals", "audit", "undo"}
)
"""The commands that --help explains; it names the others, and --help-all explains all."""


def _commands(product: Product) -> Mapping[str, CommandEntry]:
    return product.commands


def _kernel_words() -> set[str]:
    """The commands of the kernel, which are no package's."""
    return {word for _, adders in _GROUPS.values() for word in adders}


def _adder_of(word: str) -> Callable[[Commands], None] | None:
    """What adds one command; None if there is none of this word."""
    for _, adders in _GROUPS.values():
        if word in adders:
            return adders[word]
    own = own_entries(_commands)
    if word not in own:
        add_installed(own, _commands, "command", _kernel_words())
    return load(own[word].place) if word in own else None


class CommandLine(Parser):
    """The parser of the whole command line, whose help lists the commands in groups."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = self.add_subparsers(
            parser_class=Parser, dest="command", metavar="COMMAND", required=True
        )
        self.groups: dict[str, list[str]] = {}
        """The names of the commands by the title of their group."""
        self.add_argument("--help-all", action=_HelpAll, nargs=0, help="explain every command")

    def add_all(self) -> None:
        """Add every command."""
        own = own_entries(_commands)
        add_installed(own, _commands, "command", _kernel_words())
        for group, (title, kernel) in _GROUPS.items():
            added = [load(entry.place) for entry in own.values() if entry.group == group]
            before = set(self.commands.choices)
            for add in dict.fromkeys([*kernel.values(), *added]):
                add(self.commands)
            self.groups[title] = [name for name in self.commands.choices if name not in before]

    def format_help(self) -> str:
        """The most used commands, and the names of the others, on one screen."""
        helps = {line.dest: line.help or "" for line in self.commands._get_subactions()}
        width = max(map(len, _MOST_USED)) + 2
        rows: list[str] = []
        for title, names in self.groups.items():
            used = [name for name in names if name in _MOST_USED]
            others = [name for name in names if name not in _MOST_USED]
            rows += [f"{title}:", *(f"  {name:<{width}}{helps[name]}" for name in used)]
            rows += [_wrap(f"also: {', '.join(others)}", 2, 8)] if others else []
        return "\n".join(
            [
                "usage: tidegate [--help-all] [--version] COMMAND ...",
                "",
                self.description or "",
                "",
                *rows,
                "",
                "--help-all explains every command, `tidegate COMMAND --help` one of them.",
                f"example: {_example_of('')}",
                "",
            ]
        )

    def format_all(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        lines = {line.dest: line for line in self.commands._get_subactions()}
        for title, names in self.groups.items():
            formatter.start_section(title)
            formatter.add_arguments([lines[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([each for each in self._actions if each.option_strings])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help() + self._format_example()

    def format_screen(self) -> str:
        """The names of the commands in their groups, on one screen of a small terminal."""
        width = max(map(len, self.groups)) + 2
        rows = [
            f"  {title}{_wrap(' '.join(names), width + 2, width + 2)[len(title) + 2 :]}"
            for title, names in self.groups.items()
        ]
        return "\n".join(
            [
                self.description or "",
                "",
                "usage: tidegate COMMAND ...",
                "",
                *rows,
                "",
                "`tidegate demo` shows it on a sample; `tidegate setup` adds a database of yours.",
                "`tidegate --help` explains the most used ones, `tidegate COMMAND --help` each.",
            ]
        )


def _wrap(text: str, indent: int, later: int) -> str:
    """The text in lines of the screen, the first of them and the later ones indented so far."""
    from textwrap import fill  # imported lazily: only help needs it

    return fill(text, _SCREEN_WIDTH, initial_indent=" " * indent, subsequent_indent=" " * later)


def build(words: Sequence[str] | None = None) -> CommandLine:
    """The whole command line, or the part of it that parses `words`: a command alone takes no time
    for the options of the others."""
    parser = CommandLine(
        prog="tidegate",
        description="Governed access to databases for AI agents, over MCP.",
        epilog="Every command has --help. Exit statuses: docs/reference/cli.md.",
    )
    parser.add_argument("--version", action="version", version=f"tidegate {__version__}")
    add = _adder_of(words[0]) if words else None
    if add is None:
        parser.add_all()
    else:
        add(parser.commands)
    return parser
