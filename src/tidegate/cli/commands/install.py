"""`tidegate install`: write, show or remove the entry for Tidegate in a client's settings."""

from __future__ import annotations

import argparse
import json
import os
import re
from typing import Any, cast

from tidegate.app import App
from tidegate.cli.allowlist import given, refuse_unknown
from tidegate.cli.client_settings_file import ClientSettingsFile
from tidegate.cli.jsonc import Text, Unreadable, put, take
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import chosen_state, config_path, load_for_query
from tidegate.cli.supported_clients import CLIENTS, Client, http_entry, local_entry, settings_file
from tidegate.cli.terminal import print_status, show
from tidegate.config.addresses import check_private_url, parse_http_url
from tidegate.config.installation import client_command
from tidegate.config.loading import is_inline
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.secrets import variables_of
from tidegate.surfaces.registry import check_surface

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def run(arguments: argparse.Namespace) -> int:
    """Write, show or remove the entry; returns 0 also if nothing had to be changed."""
    client = CLIENTS[arguments.client]
    if not _NAME.fullmatch(arguments.name):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{arguments.name[:80]}` cannot name an entry in a client's settings.",
            hint="Use letters, digits, `_` and `-`, beginning with a letter.",
        )
    path = settings_file(client, arguments.scope or client.scope)
    if arguments.remove:
        _remove(ClientSettingsFile(path), client, arguments.name)
        return 0
    entry = _entry(client, arguments)
    if not arguments.allow_unknown and (arguments.source or arguments.table):
        _refuse_unknown(arguments)
    if arguments.print:
        print_status(f"tidegate: for {path}")
        show(json.dumps({client.key: {arguments.name: entry}}, indent=2, ensure_ascii=False))
        return 0
    write_entry(ClientSettingsFile(path), client, arguments.name, entry, arguments.force)
    if not arguments.http:
        _note_variables(arguments)
    if arguments.http:
        print_status(
            f"tidegate: the client reads the token from the variable {arguments.token_env}"
        )
    return 0


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
        if not _VARIABLE.fullmatch(arguments.token_env):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "--token-env needs the name of an environment variable.",
                hint="Put the token into the variable, and name the variable here.",
            )
        return http_entry(client, arguments.http, arguments.token_env)
    words = [*client_command(), "serve" if arguments.stdio else "bridge"]
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
    return local_entry(client, words, _environment(client, arguments))


def _environment(client: Client, arguments: argparse.Namespace) -> dict[str, str]:
    """The variables of `--env`, as the entry gives them to the program.

    A file of one user gets the values, because a client that is started from the desktop has none
    of them; a file of a project, which others read, gets references.
    Raises: TidegateError ARGUMENT_INVALID.
    """
    given: dict[str, str] = {}
    shared = (arguments.scope or client.scope) == "project" and client.variable is not None
    for name in arguments.env:
        if not _VARIABLE.fullmatch(name):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "--env takes the name of a variable.",
                hint="Its value is taken from the environment of this command.",
            )
        value = os.environ.get(name)
        if value is None and not shared:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The variable `{name}` is not set.",
                hint="Set it for this command: its value goes into the entry.",
            )
        given[name] = client.variable % name if shared and client.variable else value or ""
    return given


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


def write_entry(
    file: ClientSettingsFile, client: Client, name: str, entry: dict[str, Any], force: bool
) -> None:
    """Write the entry to the file. Raises: TidegateError ARGUMENT_INVALID if another one is there,
    CLIENT_FILE; then nothing was changed."""
    there = find_entry(file, client, name)
    if there == entry:
        show(f"{client.name}: {file.path} already has the entry {name}")
        return
    if there is not None and not force:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{file.path}` has another entry `{name}`; nothing was changed.",
            hint="Use another --name, or --force to replace it.",
        )
    text = file.text if file.text.strip() else "{}\n"
    try:
        changed = put(text, (client.key, name), entry)
        whole = Text(changed)
        read: dict[str, Any] = whole.value(whole.begin)
    except Unreadable as error:
        raise _refuse(file, error) from None
    if read[client.key][name] != entry:
        raise _refuse(file, Unreadable("its entries"))
    file.replace(changed)
    show(f"{client.name}: wrote the entry {name} to {file.path}")


def _remove(file: ClientSettingsFile, client: Client, name: str) -> None:
    if find_entry(file, client, name) is None:
        show(f"{client.name}: {file.path} has no entry {name}")
        return
    try:
        changed = take(file.text, (client.key, name))
    except Unreadable as error:
        raise _refuse(file, error) from None
    file.replace(changed)
    show(f'{client.name}: removed entry "{name}" from {file.path}')


def find_entry(file: ClientSettingsFile, client: Client, name: str) -> Any:
    """The entry of that name, None if there is none. Raises: TidegateError CLIENT_FILE."""
    return entries_of(file, client).get(name)


def entries_of(file: ClientSettingsFile, client: Client) -> dict[str, Any]:
    """The entries of a client's settings by name. Raises: TidegateError CLIENT_FILE."""
    if not file.text.strip():
        return {}
    try:
        whole = Text(file.text)
    except Unreadable as error:
        raise _refuse(file, error) from None
    settings = whole.value(whole.begin)
    if not isinstance(settings, dict):
        raise _refuse(file, Unreadable("its start"))
    entries = cast(dict[str, Any], settings).get(client.key, {})
    if not isinstance(entries, dict):
        raise _refuse(file, Unreadable(f"`{client.key}`"))
    return cast(dict[str, Any], entries)


def _refuse(file: ClientSettingsFile, error: Unreadable) -> TidegateError:
    return TidegateError(
        Code.CLIENT_FILE,
        f"The settings file `{file.path}` cannot be parsed at {error}; nothing was changed.",
        hint="Correct it, or use --print and add the entry by hand.",
    )
