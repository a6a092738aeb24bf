"""The supported MCP clients: the location of their settings and the form of an entry.

Sources: code.claude.com/docs/en/mcp, modelcontextprotocol.io/quickstart/user,
cursor.com/docs/mcp, code.visualstudio.com/docs/copilot/reference/mcp-configuration.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.paths import home_directory


class Client(NamedTuple):
    """A supported client. `key` is the object of entries in its file; `variable` is the form of a
    reference to an environment variable, None if its settings cannot name a server on HTTP."""

    name: str
    key: str
    scope: str
    variable: str | None


CLIENTS = {
    client.name: client
    for client in (
        Client("claude-code", "mcpServers", "user", "${%s}"),
        Client("claude-desktop", "mcpServers", "user", None),
        Client("cursor", "mcpServers", "user", "${env:%s}"),
        Client("vscode", "servers", "project", "${env:%s}"),
    )
}


def settings_file(client: Client, scope: str) -> Path:
    """The client's settings file. Raises: TidegateError ARGUMENT_INVALID."""
    project, home = Path.cwd(), home_directory()
    places = {
        ("claude-code", "user"): Path(os.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json",
        ("claude-code", "project"): project / ".mcp.json",
        ("claude-desktop", "user"): _of_applications("Claude") / "claude_desktop_config.json",
        ("cursor", "user"): home / ".cursor" / "mcp.json",
        ("cursor", "project"): project / ".cursor" / "mcp.json",
        ("vscode", "user"): _of_applications("Code") / "User" / "mcp.json",
        ("vscode", "project"): project / ".vscode" / "mcp.json",
    }
    place = places.get((client.name, scope))
    if place is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{client.name} has no settings per project.",
            hint="Leave out --scope project.",
        )
    return place


def local_entry(
    client: Client, command: list[str], environment: Mapping[str, str]
) -> dict[str, Any]:
    """An entry for a server that the client starts, with these variables."""
    entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
    if environment:
        entry["env"] = dict(environment)
    return entry if client.name == "claude-desktop" else {"type": "stdio", **entry}


def http_entry(client: Client, url: str, variable: str) -> dict[str, Any]:
    """An entry for a running server, with a reference to a token in the environment.

    Raises: TidegateError ARGUMENT_INVALID if the client does not support that.
    """
    if client.variable is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{client.name} cannot use a server on HTTP.",
            hint="Leave out --http: the bridge connects it to a server on this machine.",
        )
    headers = {"Authorization": f"Bearer {client.variable % variable}"}
    kind = {} if client.name == "cursor" else {"type": "http"}
    return {**kind, "url": url, "headers": headers}


def _of_applications(name: str) -> Path:
    """The directory of an application's user settings on this system."""
    if sys.platform == "darwin":
        return home_directory() / "Library" / "Application Support" / name
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home_directory() / "AppData" / "Roaming") / name
    return Path(os.environ.get("XDG_CONFIG_HOME") or home_directory() / ".config") / name
