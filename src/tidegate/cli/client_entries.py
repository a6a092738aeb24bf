"""Entries for Tidegate in the form of each client: made, and read back.

Reads the environment, and looks for `npx` on the PATH; no file.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from tidegate.cli.supported_clients import CLIENTS, Client
from tidegate.errors import Code, TidegateError

MCP_REMOTE = "mcp-remote@0.15.1"
"""The program (MIT) that signs in at a server for clients that only start programs. Its version is
fixed, since it is downloaded and run."""
_SYSTEM_PATH = "/usr/bin:/bin"
_REFERENCE = re.compile(r"\$?\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")

Entry = dict[str, Any]


def local_entry(
    client: Client,
    command: list[str],
    environment: Mapping[str, str],
    passed: Iterable[str] = (),
) -> Entry:
    """An entry for a server that the client starts, with these variables and, in the form of its
    own, those of its environment whose names are `passed`."""
    form = client.form
    started: Entry = (
        {"command": list(command)}
        if form.one_command
        else {"command": command[0], "args": command[1:]}
    )
    # `type` comes first, where a reader expects it.
    kind = {name: value for name, value in form.local.items() if name == "type"}
    entry = {**kind, **started, **form.local}
    if passed:
        entry[form.passed_variables] = list(passed)
    if environment:
        entry[form.environment] = dict(environment)
    return entry


def http_entry(client: Client, url: str, variable: str | None) -> Entry:
    """An entry for a running server, with a reference to a token in the environment, or without
    one: then the client signs in.

    Raises: TidegateError ARGUMENT_INVALID if the client does not support that, CLIENT_FILE if what
    it needs for it is not installed.
    """
    form = client.form
    if variable is None:
        if form.address is None:
            return local_entry(client, *_remote_program(client, url))
        kind = {name: value for name, value in form.remote.items() if name == "type"}
        return {**kind, form.address: url, **form.remote}
    if form.token_variable:
        return {**http_entry(client, url, None), form.token_variable: variable}
    if form.address is None or form.reference is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{client.title} cannot take a token from a variable.",
            hint="Leave out --token-env: it signs in at the server, in a browser.",
        )
    headers = {"Authorization": f"Bearer {form.reference % variable}"}
    return {**http_entry(client, url, None), "headers": headers}


def _remote_program(client: Client, url: str) -> tuple[list[str], dict[str, str]]:
    """The command that signs in for a client, and its variables: `npx` is a script for the `node`
    beside it, which a client that is started from the desktop does not have on its PATH.

    Raises: TidegateError CLIENT_FILE if `npx` is not found.
    """
    found = shutil.which("npx")
    if found is None:
        raise TidegateError(
            Code.CLIENT_FILE,
            f"{client.title} only starts programs, and `npx`, which would start mcp-remote to sign "
            "in for it, is not found",
            hint="Install Node.js, or leave out --http: the bridge connects the client to a server "
            "on this machine.",
        )
    npx = Path(found).absolute()
    words = [str(npx), "-y", MCP_REMOTE, url]
    host = re.match(r"http://(\[[^]]*\]|[^/:]*)", url, re.IGNORECASE)
    if host and host[1].lower() not in ("localhost", "127.0.0.1"):
        words.append("--allow-http")  # the address was checked to be a trusted one
    folder = str(npx.parent)
    standard = folder in _SYSTEM_PATH.split(":")
    return words, {"PATH": _SYSTEM_PATH if standard else f"{folder}:{_SYSTEM_PATH}"}


def link_of(client: Client, name: str, entry: Entry) -> str:
    """A link that has the client ask its person, and add the entry, when it is opened.

    Raises: TidegateError ARGUMENT_INVALID if the client knows no such links.
    """
    if not client.link:
        able = ", ".join(each.name for each in CLIENTS.values() if each.link)
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{client.title} knows no links that add an entry.",
            hint=f"Leave out --link, or name one of {able}.",
        )
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    named = json.dumps({"name": name, **entry}, ensure_ascii=False, separators=(",", ":"))
    return client.link.format(
        name=quote(name, safe=""),
        base64=quote(base64.b64encode(text.encode()).decode(), safe=""),
        json=quote(named, safe=""),
    )


def words_of(client: Client, entry: Mapping[str, Any]) -> list[str]:
    """The command that an entry starts, with its words; empty for one with an address."""
    command, words = entry.get("command"), entry.get("args", [])
    if client.form.one_command and isinstance(command, list):
        return list(map(str, cast("list[Any]", command)))
    if not isinstance(command, str) or not isinstance(words, list):
        return []
    return [command, *map(str, cast("list[Any]", words))]


def variables_of(client: Client, entry: Mapping[str, Any]) -> dict[str, str]:
    """The variables of what an entry starts, with those of this process filled in."""
    given = entry.get(client.form.environment, {})
    names: Any = entry.get(client.form.passed_variables, ())
    passed = cast("list[Any]", names) if isinstance(names, list) else []
    variables = {name: os.environ[name] for name in map(str, passed) if name in os.environ}
    if isinstance(given, dict):
        for name, value in cast("dict[Any, Any]", given).items():
            variables[str(name)] = _REFERENCE.sub(_fill, str(value))
    return variables


def _fill(found: re.Match[str]) -> str:
    return os.environ.get(found[1] or found[2], "")


def address_of(client: Client, entry: Mapping[str, Any]) -> str:
    """The server's address in an entry, that of one for mcp-remote too; empty if it has none."""
    words = words_of(client, entry)
    for word, after in pairwise(words):
        if word.partition("@")[0] == "mcp-remote":
            return after
    return "" if words else str(entry.get(client.form.address or "url", ""))


def token_variables_of(client: Client, entry: Mapping[str, Any]) -> list[str]:
    """The variables from which the token for an address is taken."""
    named = entry.get(client.form.token_variable) if client.form.token_variable else None
    headers = entry.get("headers", {})
    texts = cast("dict[Any, Any]", headers).values() if isinstance(headers, dict) else ()
    found = [each[1] or each[2] for text in texts for each in _REFERENCE.finditer(str(text))]
    return [named, *found] if isinstance(named, str) else found
