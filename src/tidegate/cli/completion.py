"""What a shell completes: commands and options by their grammar, and the names of what is saved.

A shell starts `tidegate` with the variables of argcomplete at each TAB; only then is argcomplete
imported. Nothing is printed but the completions, and whatever fails completes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, cast

import argcomplete

from tidegate.app import App
from tidegate.cli.local_actor import with_app
from tidegate.cli.parser import Parser, build
from tidegate.cli.settings import load_for_query
from tidegate.cli.supported_clients import CLIENTS
from tidegate.config.state import state_path

Names = Callable[[App], Iterable[str]]


def complete() -> None:
    """Write what a shell asks for, and end the process."""
    parser = build()
    for command, action in _arguments(parser, ()):
        if command == ("install",) and action.dest == "client":
            # They are no choices of the parser: for another client it says what to put where.
            setattr(action, "completer", _complete_client)  # noqa: B010 - as below
            continue
        names = _names_of(command, action)
        if names is not None:
            setattr(action, "completer", _completer(names))  # noqa: B010 - argcomplete's protocol
    argcomplete.autocomplete(parser, always_complete_options="long")


def _arguments(
    parser: argparse.ArgumentParser, command: tuple[str, ...]
) -> Iterable[tuple[tuple[str, ...], argparse.Action]]:
    """Every argument with the words of its command."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] - there is no other way
        choices: Any = action.choices
        if isinstance(choices, dict):
            for name, inner in cast("dict[str, Parser]", choices).items():
                yield from _arguments(inner, (*command, name))
        else:
            yield command, action


def _names_of(command: tuple[str, ...], action: argparse.Action) -> Names | None:
    """Where the values of an argument come from, if they name something that is saved."""
    if action.dest == "source" and action.metavar in ("NAME", "SOURCE"):
        return _sources
    if command == ("explain",) and action.dest == "first":
        return _sources
    if command[:1] == ("source",) and action.dest == "name" and command[1:] != ("add",):
        return _sources
    if command[:1] == ("token",) and action.dest == "name" and command[1:] != ("create",):
        return _tokens
    if action.dest in ("token_name", "token"):
        return _tokens
    if command[:1] == ("approvals",) and action.dest == "id":
        return _approvals
    return None


def _complete_client(**_: Any) -> list[str]:
    return list(CLIENTS)


def _sources(app: App) -> Iterable[str]:
    return [source.name for source in app.connections.sources()]


def _tokens(app: App) -> Iterable[str]:
    return [entry.name for entry in app.tokens.list() if entry.revoked_at is None]


def _approvals(app: App) -> Iterable[str]:
    return [question.id for question in app.approvals.list()]


def _completer(names: Names) -> Callable[..., list[str]]:
    def complete(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        async def read(app: App) -> list[str]:
            return list(names(app))

        with suppress(Exception):
            config = load_for_query(parsed_args)
            if config.sources or state_path(config.state).is_dir():
                return with_app(App.open(config), read)
        return []

    return complete
