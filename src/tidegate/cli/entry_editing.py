"""The entries in a client's settings file: found, written and removed, and all else left as it is.

A file that is not understood whole is not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from tidegate.cli import jsonc, toml_tables
from tidegate.cli.client_settings_file import ClientSettingsFile
from tidegate.cli.jsonc import Uneditable, Unreadable
from tidegate.cli.requirement_extras import keep_extras
from tidegate.cli.supported_clients import Client
from tidegate.cli.terminal import show
from tidegate.errors import Code, TidegateError


class Syntax(NamedTuple):
    """How files of one kind are read and edited; `empty` is a file without settings."""

    read: Callable[[str], Any]
    put: Callable[[str, tuple[str, ...], dict[str, Any]], str]
    take: Callable[[str, tuple[str, ...]], str]
    empty: str


_JSON = Syntax(jsonc.read, jsonc.put, jsonc.take, "{}\n")
_TOML = Syntax(toml_tables.read, toml_tables.put, toml_tables.take, "")


def write_entry(
    file: ClientSettingsFile, client: Client, name: str, entry: dict[str, Any], force: bool
) -> None:
    """Write the entry to the file. One that differs in extras alone is replaced, and keeps them.

    Raises: TidegateError ARGUMENT_INVALID if another one is there,
    CLIENT_FILE; then nothing was changed."""
    entry = entry_to_write(file, client, name, entry, force)
    if find_entry(file, client, name) == entry:
        show(f"{client.name}: {file.path} already has the entry {name}")
        return
    syntax = _syntax_of(client)
    text = file.text if file.text.strip() else syntax.empty
    try:
        key = client.find_key(syntax.read(text))
        changed = syntax.put(text, (*key, name), entry)
        if _entries_at(syntax.read(changed), key).get(name) != entry:
            raise Unreadable("its entries")
    except Unreadable as error:
        raise _refuse(file, error) from None
    file.replace(changed)
    show(f"{client.name}: wrote the entry {name} to {file.path}")


def entry_to_write(
    file: ClientSettingsFile, client: Client, name: str, entry: dict[str, Any], force: bool
) -> dict[str, Any]:
    """The entry, with the extras of the one that is there, if the two differ in nothing else.

    Raises: TidegateError ARGUMENT_INVALID if another one is there, CLIENT_FILE."""
    there = find_entry(file, client, name)
    kept = keep_extras(there, entry)
    if there is not None and kept is None and there != entry and not force:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{file.path}` has another entry `{name}`; nothing was changed.",
            hint="Use another --name, or --force to replace it.",
        )
    return entry if kept is None else kept


def remove_entry(file: ClientSettingsFile, client: Client, name: str) -> None:
    """Remove the entry, if it is there. Raises: TidegateError CLIENT_FILE; then nothing was
    changed."""
    if find_entry(file, client, name) is None:
        show(f"{client.name}: {file.path} has no entry {name}")
        return
    syntax = _syntax_of(client)
    try:
        changed = syntax.take(file.text, (*client.find_key(syntax.read(file.text)), name))
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
        settings = _syntax_of(client).read(file.text)
        if not isinstance(settings, dict):
            raise Unreadable("its start")
        known = cast("dict[str, Any]", settings)
        return _entries_at(known, client.find_key(known))
    except Unreadable as error:
        raise _refuse(file, error) from None


def show_entry(client: Client, name: str, entry: dict[str, Any]) -> str:
    """A file with the entry and nothing else."""
    syntax = _syntax_of(client)
    return syntax.put(syntax.empty, (*client.key, name), entry).rstrip()


def _entries_at(settings: dict[str, Any], key: tuple[str, ...]) -> dict[str, Any]:
    at = settings
    for name in key:
        inner = at.get(name, {})
        if not isinstance(inner, dict):
            raise Unreadable(f"`{name}`")
        at = cast("dict[str, Any]", inner)
    return at


def _syntax_of(client: Client) -> Syntax:
    """By the file's name at the client: a symbolic link may lead to any name."""
    return _TOML if client.user.file.endswith(".toml") else _JSON


def _refuse(file: ClientSettingsFile, error: Unreadable) -> TidegateError:
    if isinstance(error, Uneditable):
        return TidegateError(
            Code.CLIENT_FILE,
            f"In the settings file `{file.path}` the entry cannot be changed alone, since {error}; "
            "nothing was changed.",
            hint="Change it by hand: --print shows the entry.",
        )
    return TidegateError(
        Code.CLIENT_FILE,
        f"The settings file `{file.path}` cannot be parsed at {error}; nothing was changed.",
        hint="Correct it, or use --print and add the entry by hand.",
    )
