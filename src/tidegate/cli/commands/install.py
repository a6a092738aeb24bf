"""`tidegate install`: write, show or remove the entry for Tidegate in the settings of clients."""

from __future__ import annotations

import argparse
import os
import re
from difflib import get_close_matches
from typing import Any, NamedTuple

from tidegate.app import App
from tidegate.cli.allowlist import given, refuse_unknown
from tidegate.cli.client_entries import http_entry, link_of, local_entry
from tidegate.cli.client_settings_file import ClientSettingsFile
from tidegate.cli.entry_editing import (
    entry_to_write,
    find_entry,
    remove_entry,
    show_entry,
    write_entry,
)
from tidegate.cli.entry_extras import extras_to_name
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import chosen_state, chosen_state_url, config_path, load_for_query
from tidegate.cli.source_check import can_ask
from tidegate.cli.supported_clients import CLIENTS, OTHER, Client, find_clients, settings_file
from tidegate.cli.terminal import ask_line, print_status, show
from tidegate.config.addresses import check_private_url, parse_http_url
from tidegate.config.installation import client_command
from tidegate.config.loading import is_inline
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.secrets.references import variables_of
from tidegate.surfaces.registry import check_surface

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Planned(NamedTuple):
    """What is to be done to a client's settings: the entry, None to remove it; or why it cannot be
    done."""

    client: Client
    file: ClientSettingsFile
    entry: dict[str, Any] | None
    changes: bool


class Failed(NamedTuple):
    """A client for which nothing can be done."""

    client: Client
    problem: TidegateError


def run(arguments: argparse.Namespace) -> int:
    """Write, show or remove the entry; returns 0 also if nothing had to be changed. Without a
    client, list those that are found here."""
    if not _NAME.fullmatch(arguments.name):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{arguments.name[:80]}` cannot name an entry in a client's settings.",
            hint="Use letters, digits, `_` and `-`, beginning with a letter.",
        )
    if arguments.client is None:
        if arguments.all and not arguments.link:
            return _write_all(arguments)
        if arguments.print or arguments.remove or arguments.force or arguments.link:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "Which client's settings are meant is not said.",
                hint=f"Name one of {', '.join(CLIENTS)}.",
            )
        return _list_found(arguments)
    if arguments.all:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "--all means every client that is found here.",
            hint=f"Leave out {arguments.client[:80]}, or --all.",
        )
    client = CLIENTS.get(arguments.client)
    if client is None:
        return _show_for_other(arguments)
    return _write_one(client, arguments)


def _write_one(client: Client, arguments: argparse.Namespace) -> int:
    path = settings_file(client, arguments.scope or client.scope)
    if arguments.remove:
        remove_entry(ClientSettingsFile(path), client, arguments.name)
        return 0
    entry = _entry(client, arguments)
    if not arguments.allow_unknown and (arguments.source or arguments.table):
        _refuse_unknown(arguments)
    if arguments.link:
        show(link_of(client, arguments.name, entry))
        return 0
    if arguments.print:
        print_status(f"tidegate: for {path}")
        show(show_entry(client, arguments.name, entry))
        return 0
    write_entry(ClientSettingsFile(path), client, arguments.name, entry, arguments.force)
    _note_next(arguments)
    return 0


def _note_next(arguments: argparse.Namespace) -> None:
    """Say what the entry needs that is not in it."""
    if not arguments.http:
        _note_variables(arguments)
    elif arguments.token_env:
        print_status(
            f"tidegate: the client reads the token from the variable {arguments.token_env}"
        )
    else:
        print_status(
            "tidegate: the client signs in at the server, in a browser; for a token instead, name "
            "its variable with --token-env"
        )


def _list_found(arguments: argparse.Namespace) -> int:
    """Show the clients that are found here, and whether each has the entry."""
    found = find_clients()
    width = max((len(client.name) for client in found), default=0)
    for client in found:
        path = settings_file(client, "user")
        try:
            there = find_entry(ClientSettingsFile(path), client, arguments.name)
            state = "no entry" if there is None else f"has the entry {arguments.name}"
        except TidegateError as error:
            state = error.message
        show(f"{client.name:<{width}}  {path}  {state}")
    if found:
        print_status(
            "tidegate: `tidegate install CLIENT` writes the entry for one, and "
            "`tidegate install --all` for each of these"
        )
    else:
        print_status("tidegate: no client is found here; `tidegate install CLIENT` writes for one")
    others = [name for name in CLIENTS if name not in {client.name for client in found}]
    if others:
        print_status(f"tidegate: it also knows {', '.join(others)}")
    return 0


def _write_all(arguments: argparse.Namespace) -> int:
    """Write the entry for every client that is found here, once a person agrees. Returns the status
    of the first that failed."""
    if arguments.scope == "project" or arguments.print:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "--all is for your own settings of every client, and shows them before it writes.",
            hint="Name a client for --scope project or --print.",
        )
    if not arguments.allow_unknown and (arguments.source or arguments.table):
        _refuse_unknown(arguments)
    planned = [_plan(client, arguments) for client in find_clients()]
    if not planned:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "No client is found here.",
            hint=f"Name one of {', '.join(CLIENTS)}.",
        )
    if any(isinstance(each, Planned) and each.changes for each in planned):
        if not can_ask():
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "There is no terminal to ask on; nothing was changed.",
                hint="Name a client: that needs no answer.",
            )
        if not _is_wanted(planned, arguments):
            print_status("nothing was changed")
            return 0
    status = 0
    for each in planned:
        problem = each.problem if isinstance(each, Failed) else _carry_out(each, arguments)
        if problem is not None:
            print_status(f"tidegate: {each.client.name}: {problem.message} {problem.hint}")
            status = status or problem.mapping.exit_status
    if not arguments.remove and any(isinstance(each, Planned) for each in planned):
        _note_next(arguments)
    return status


def _is_wanted(planned: list[Planned | Failed], arguments: argparse.Namespace) -> bool:
    """Show what would be changed, and ask."""
    verb = "removed from" if arguments.remove else "written to"
    print_status(f"The entry {arguments.name} would be {verb}:")
    for each in planned:
        if isinstance(each, Planned) and each.changes:
            print_status(f"  {each.client.name:<{max(map(len, CLIENTS))}}  {each.file.path}")
    return ask_line("Go on? (y/n)", "n").lower() in ("y", "yes")


def _plan(client: Client, arguments: argparse.Namespace) -> Planned | Failed:
    try:
        file = ClientSettingsFile(settings_file(client, "user"))
        there = find_entry(file, client, arguments.name)
        entry = None if arguments.remove else _entry(client, arguments)
        if entry is not None:
            entry = entry_to_write(file, client, arguments.name, entry, arguments.force)
    except TidegateError as error:
        return Failed(client, error)
    return Planned(client, file, entry, there != entry)


def _carry_out(planned: Planned, arguments: argparse.Namespace) -> TidegateError | None:
    client, file, entry, _ = planned
    try:
        if entry is None:
            remove_entry(file, client, arguments.name)
        else:
            write_entry(file, client, arguments.name, entry, arguments.force)
    except TidegateError as error:
        return error
    return None


def _show_for_other(arguments: argparse.Namespace) -> int:
    """Show the entry that most clients read, for one that is not known.

    Raises: TidegateError ARGUMENT_INVALID: nothing was written.
    """
    name: str = arguments.client[:80]
    if not arguments.remove:
        show(show_entry(OTHER, arguments.name, _entry(OTHER, arguments)))
    near = get_close_matches(name, CLIENTS, 1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"The settings of `{name}` are not known here; nothing was changed.",
        hint=f"{hint}Known are {', '.join(CLIENTS)}."
        + ("" if arguments.remove else " For another client, put what is shown into its settings."),
    )


def _refuse_unknown(arguments: argparse.Namespace) -> None:
    """Raises: TidegateError if a source or table of the entry does not exist."""
    listed = given(arguments)
    with_app(
        App.open(load_for_query(arguments)), lambda app: refuse_unknown(app, "install", listed)
    )


def _entry(client: Client, arguments: argparse.Namespace) -> dict[str, Any]:
    if (arguments.http or arguments.stdio) and (
        arguments.bridge_scope or arguments.source or arguments.table
    ):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "--bridge-scope, --source and --table apply to an entry with a bridge only.",
            hint="For a server on HTTP, create a token with that scope, source or table.",
        )
    if arguments.surface:
        check_surface(arguments.surface)
    if arguments.http:
        check_address(arguments.http, arguments.surface)
        if arguments.token_env is not None and not _VARIABLE.fullmatch(arguments.token_env):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "--token-env needs the name of an environment variable.",
                hint="Put the token into the variable, and name the variable here.",
            )
        return http_entry(client, arguments.http, arguments.token_env)
    extras = extras_to_name(load_for_query(arguments))
    words = [*client_command(extras), "serve" if arguments.stdio else "bridge"]
    if arguments.surface:
        words += ["--surface", arguments.surface]
    if arguments.bridge_scope:
        words += ["--scope", arguments.bridge_scope]
    words += [word for name in arguments.source for word in ("--source", name)]
    words += [word for name in arguments.table for word in ("--table", name)]
    # A client does not have the environment of this shell, so the entry names the paths.
    for option, path in (("config", config_path(arguments)), ("state", chosen_state(arguments))):
        if path:
            inline = is_inline(path)
            words += [f"--{option}", path if inline else str(expand(path).absolute())]
    if url := chosen_state_url(arguments):
        words += ["--state", url]
    if _is_shared(client, arguments) and client.form.passed_variables:
        _check_variables(arguments.env)
        return local_entry(client, words, {}, arguments.env)
    return local_entry(client, words, _environment(client, arguments))


def _is_shared(client: Client, arguments: argparse.Namespace) -> bool:
    """Whether others may read the entry, too."""
    return arguments.link or (not arguments.all and (arguments.scope or client.scope) == "project")


def _environment(client: Client, arguments: argparse.Namespace) -> dict[str, str]:
    """The variables of `--env`, as the entry gives them to the program.

    A file of one user gets the values, because a client that is started from the desktop has none
    of them; a file of a project, which others read, gets references.
    Raises: TidegateError ARGUMENT_INVALID.
    """
    _check_variables(arguments.env)
    given: dict[str, str] = {}
    reference = client.form.reference
    shared = _is_shared(client, arguments)
    if shared and arguments.env and reference is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{client.title} cannot refer to a variable in the settings of a project.",
            hint="Leave out --scope project, so that the value stays in your own settings.",
        )
    for name in arguments.env:
        value = os.environ.get(name)
        if value is None and not shared:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The variable `{name}` is not set.",
                hint="Set it for this command: its value goes into the entry.",
            )
        given[name] = reference % name if shared and reference else value or ""
    return given


def _check_variables(names: list[str]) -> None:
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "--env takes the name of a variable.",
                hint="Its value is taken from the environment of this command.",
            )


def _note_variables(arguments: argparse.Namespace) -> None:
    """Name the variables that sources take passwords from and that the entry does not pass."""
    try:
        app = App.open(load_for_query(arguments))
    except TidegateError:
        return  # what the entry starts reports it

    async def names(app: App) -> dict[str, str]:
        return {
            name: source.name
            for source in app.connections.sources()
            for text in (source.url, *dict(source.options).values())
            for name in variables_of(text)
        }

    for name, source in sorted(with_app(app, names).items()):
        if name not in arguments.env:
            print_status(
                f"note: the source {source} needs the variable {name}, which a client that is "
                f"started from the desktop does not have: add --env {name}, or keep the password "
                f"with `tidegate source update {source} --ask-password`"
            )


def check_address(url: str, surface: str | None) -> None:
    """Raises: TidegateError ARGUMENT_INVALID, CONFIG_INVALID if no surface can be at the URL."""
    if "://" not in url:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{url[:80]}` is not a URL.",
            hint="Use a form such as http://127.0.0.1:8765/mcp.",
        )
    check_private_url(url, "--http")
    if surface:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "--surface cannot be combined with --http.",
            hint=f"Name the surface in the URL: let it end in /mcp/{surface}.",
        )
    path = parse_http_url(url).path.rstrip("/")
    if not path:
        print_status(f"note: the path of a server is {url.rstrip('/')}/mcp or /mcp/SURFACE")
    named = re.search(r"/mcp/([^/]+)$", path)
    if named:
        check_surface(named[1])
