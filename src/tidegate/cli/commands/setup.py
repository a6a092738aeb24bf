"""`tidegate setup`: from a database's URL to a client that can ask it, in one command.

Everything is asked and tried first and saved at the end, so a person who stops early has changed
nothing.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.client_entries import local_entry
from tidegate.cli.client_settings_file import ClientSettingsFile
from tidegate.cli.commands.source import save_new
from tidegate.cli.entry_editing import find_entry, write_entry
from tidegate.cli.entry_extras import extras_to_name, note_lacking
from tidegate.cli.local_actor import LocalCaller, ask, with_app
from tidegate.cli.new_source import (
    check_whole,
    free_name,
    save_source,
    source_of,
    url_as_given,
    url_of,
)
from tidegate.cli.requirement_extras import keep_extras
from tidegate.cli.settings import chosen_state, chosen_state_url, config_path, load_for_state
from tidegate.cli.source_check import (
    Tried,
    absolute_file_url,
    can_ask,
    given_password,
    require_success,
    try_source,
)
from tidegate.cli.source_harden import apply_script
from tidegate.cli.supported_clients import CLIENTS, Client, find_clients, settings_file
from tidegate.cli.terminal import ask_line, print_status, show
from tidegate.config.installation import as_typed, client_command, installation
from tidegate.config.loading import is_inline
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings, check_source_name
from tidegate.config.system_keyring import keyring_title
from tidegate.engines.common.account import Risk
from tidegate.engines.registry import ENGINES, account_guide, find
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Connect
from tidegate.model.sources import Source
from tidegate.paths import expand
from tidegate.secrets.url_logins import split_password
from tidegate.sources.kept_passwords import check_place
from tidegate.sources.risks import account_risks
from tidegate.store.passwords import Place

ENTRY = "tidegate"
NO_CLIENT = "none"
EXTRA_KEYRING = "keyring"
_A_FILE = "a file of the state directory that only your account can read"


def run(arguments: argparse.Namespace) -> int:
    """Ask for what the options do not say, try it, save it."""
    config = load_for_state(arguments)
    # A person who has typed the URL here agrees to it.
    add = partial(save_new, arguments=arguments, no_word=arguments.url is None)
    check_place(arguments.keep_in)
    saved = with_app(App.open(config), _saved)
    taken = frozenset(saved)
    if arguments.name is not None and not _is_saved(arguments.name, arguments.url, saved):
        _check_name(arguments.name, taken)
    tried = _reached(config, arguments, saved)
    if isinstance(tried, Source):
        print_status(f"this database is the source {tried.name} already")
        client = _client(arguments)
        if client is not None:
            _entry_writer(arguments, client)()
        _show_next(client, tried.name)
        return 0
    _describe(tried)
    name = arguments.name or _ask_name(tried.settings.name, taken)
    tried = tried._replace(settings=msgspec.structs.replace(tried.settings, name=name))
    if tried.state is not None and not find(tried.settings.url).reads_only:
        change = f"`tidegate source update {name} --access write` and the setting `bridge.scope`"
        print_status(f"it is for reading; {change} admit changes")
    place = _place(arguments, tried)
    client = _client(arguments)
    save_source(config, tried, place, add, client and _entry_writer(arguments, client))
    _offer_reader(config, name, arguments)
    with_app(App.open(config), _note_entries)
    _show_next(client, name)
    return 0


async def _note_entries(app: App) -> None:
    note_lacking(app)


def _entry_writer(arguments: argparse.Namespace, client: Client) -> partial[None]:
    """What writes the client's entry. Raises: TidegateError ARGUMENT_INVALID if another entry must
    not be replaced, CLIENT_FILE."""
    file = ClientSettingsFile(settings_file(client, "user"))
    entry = local_entry(client, _command(arguments), {})  # the new source's extra is here
    force = arguments.force or _may_replace(file, client, entry)
    return partial(write_entry, file, client, ENTRY, entry, force)


def _show_next(client: Client | None, name: str) -> None:
    if client is None:
        written = "`tidegate install CLIENT` writes a client's entry"
        show(as_typed(f"the source {name} is saved; {written}"))
    else:
        show(f"{client.then}, then type: Which tables are in {name}?")


async def _saved(app: App) -> dict[str, Source]:
    return {source.name: source for source in app.state.sources.list()}


def _is_saved(name: str, url: str | None, saved: Mapping[str, Source]) -> bool:
    """Whether the source of this name is the database that is asked for."""
    return (
        url is not None
        and name in saved
        and source_of(url_as_given(url), [saved[name]]) is not None
    )


def _check_name(name: str, taken: frozenset[str]) -> None:
    check_source_name(name)
    if name in taken:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is already a source `{name}`.",
            hint="Use another --name, or write a client's entry with `tidegate install`.",
        )


def _reached(
    config: Config, arguments: argparse.Namespace, saved: Mapping[str, Source]
) -> Tried | Source:
    """The source, once it was reached, or the saved one of the same database, so that a second
    client does not get it under a second name. On a terminal, a wrong answer is asked for again.

    Raises: TidegateError without a terminal, or for a mistake in an option.
    """
    if arguments.url is None and not can_ask():
        raise TidegateError(
            Code.ARGUMENT_INVALID, "There is no terminal to ask on.", hint="Use --url and --client."
        )
    while True:
        try:
            url, password = _address(arguments)
            if password is not None:
                check_whole(url)
            known = source_of(url, saved.values())
            if known is not None and arguments.name in (None, known.name):
                return known
            settings = SourceSettings(arguments.name or free_name(url, saved), url)
            source_from_settings(settings)
            if password is None:
                password = given_password(
                    settings, from_stdin=arguments.password_stdin, asked=False
                )
            tried = try_source(config, settings, "setup", password)
            require_success(
                tried, anyway=None, undone="Nothing was saved.", ways="--password-stdin"
            )
            return tried
        except TidegateError as error:
            if arguments.url is not None or error.code is Code.ENGINE_MISSING:
                raise
            message = error.message.removesuffix(" Nothing was saved.")
            print_status(f"{message}{'' if message.endswith('.') else '.'} {error.hint}")


def _address(arguments: argparse.Namespace) -> tuple[str, str | None]:
    """The URL, and the password that a person typed in it or that its variable holds."""
    if arguments.url is not None:
        return url_as_given(arguments.url), None
    found = list(_found())
    print_status(
        "Which database? A URL such as postgresql://user@host/database, a file, or a folder."
    )
    for number, (text, _) in enumerate(found, 1):
        print_status(f"  {number}  {text}")
    answer = ask_line("Database", "1" if found else "")
    if answer.isdecimal() and 1 <= int(answer) <= len(found):
        answer = found[int(answer) - 1][1]
    url, password = split_password(url_of(answer))
    return absolute_file_url(url), password


def _found() -> Iterator[tuple[str, str]]:
    """Databases that are near: how each is shown, and its URL."""
    given = os.environ.get("DATABASE_URL", "")
    if "://" in given:
        yield f"{split_password(given)[0]} (from DATABASE_URL)", given
    for path in sorted(Path.cwd().iterdir()):
        for scheme, entry in ENGINES.items():
            if entry.files and path.suffix in entry.files.endings and path.is_file():
                yield path.name, f"{scheme}:///{path}"


def _ask_name(proposed: str, taken: frozenset[str]) -> str:
    while can_ask():
        name = ask_line("Name of the source", proposed)
        try:
            _check_name(name, taken)
        except TidegateError as error:
            print_status(f"{error.message} {error.hint}")
            continue
        return name
    return proposed


def _describe(tried: Tried) -> None:
    """Say what was reached."""
    status = tried.state.current if tried.state else None
    if status is None:
        return
    print_status(f"connected: {status.server_version}, database {status.database}")


def _offer_reader(config: Config, name: str, arguments: argparse.Namespace) -> None:
    """Say what the saved source's account could do if the gate were not there, and offer to make
    one that can only read, where the database has accounts. A failure leaves the source as it is.
    """
    try:
        source, risks = with_app(App.open(config), partial(_risks, name=name))
    except TidegateError:
        return  # it was reached a moment ago, and is saved
    harden = f"tidegate source harden {name}"
    found = [risk.could for risk in risks if risk.remedy == harden]
    if not found:
        return
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    print_status(f"note: without the gate this account could do more: {found[0]}{more}")
    guide = account_guide(source)
    if guide is None or not guide.ADMINISTRATOR:
        print_status(f"`{harden}` prints how to have one that can only read")
        return
    print_status(f"`{harden} --apply` makes one that can only read, as an administrator")
    if not can_ask() or ask_line("Make it now? (y/n)", "n").lower() not in ("y", "yes"):
        return
    given: dict[str, Any] = vars(arguments) | {
        "name": name,
        "role": None,
        "schema": [],
        "admin_url": None,
    }
    try:
        apply_script(argparse.Namespace(**given))
    except TidegateError as error:
        print_status(f"{error.message} {error.hint}")
        print_status(f"the source {name} is saved with the account that it has")


async def _risks(app: App, name: str) -> tuple[Source, list[Risk]]:
    source = next(each for each in app.connections.sources() if each.name == name)
    state = await ask(app, "setup", Connect(), name, ConnectionState)
    return source, await account_risks(LocalCaller(app, "setup"), source, state)


def _place(arguments: argparse.Namespace, tried: Tried) -> Place:
    """Where the password is kept: as the options say or, if there is a keyring, as a person says.

    Raises: TidegateError if the input ends.
    """
    if arguments.keep_in is not None or tried.password is None:
        return arguments.keep_in or "file"
    try:
        title = keyring_title() if EXTRA_KEYRING in installation().extras else None
    except TidegateError as error:
        print_status(f"note: {error.message} The password is kept in {_A_FILE}.")
        return "file"
    if title is None or not can_ask():
        print_status(f"the password is kept in {_A_FILE}")
        return "file"
    print_status(f"The password can be kept in the keyring ({title}) or in {_A_FILE}.")
    while True:
        answer = ask_line("Keep it in (keyring, file)", "keyring")
        if answer == "keyring" or answer == "file":
            return answer
        print_status(f"There is no {answer[:40]!r} here. Choose from keyring, file.")


def _client(arguments: argparse.Namespace) -> Client | None:
    """The client whose settings get the entry."""
    if arguments.client is not None:
        return CLIENTS.get(arguments.client)
    if not can_ask():
        return None
    likely = [*find_clients(), *CLIENTS.values()][0]
    known = ", ".join([*CLIENTS, NO_CLIENT])
    while True:
        answer = ask_line(f"Client ({known})", likely.name)
        if answer == NO_CLIENT:
            return None
        if answer in CLIENTS:
            return CLIENTS[answer]
        print_status(f"There is no client {answer[:40]!r}. Choose from {known}.")


def _command(arguments: argparse.Namespace) -> list[str]:
    words = [*client_command(extras_to_name(load_for_state(arguments))), "bridge"]
    for option, path in (("config", config_path(arguments)), ("state", chosen_state(arguments))):
        if path:
            inline = is_inline(path)
            words += [f"--{option}", path if inline else str(expand(path).absolute())]
    if url := chosen_state_url(arguments):
        words += ["--state", url]
    return words


def _may_replace(file: ClientSettingsFile, client: Client, entry: dict[str, Any]) -> bool:
    """Whether a person says to replace another entry of that name. Raises: TidegateError
    ARGUMENT_INVALID if they do not, CLIENT_FILE."""
    there = find_entry(file, client, ENTRY)
    if there is None or keep_extras(there, entry) is not None:
        return False
    if can_ask():
        answer = ask_line(f"{file.path} has another entry `{ENTRY}`. Replace it? (y/n)", "n")
        if answer.lower() in ("y", "yes"):
            return True
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"Another entry `{ENTRY}` is in `{file.path}`; nothing was saved.",
        hint="Use --force to replace it.",
    )
