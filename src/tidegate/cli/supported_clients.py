"""The supported MCP clients, as a table: where each keeps its settings, and the form of an entry.

A client is added here and nowhere else: `install`, `setup`, `doctor`, the completion of a shell and
the reference read this table.

Sources: code.claude.com/docs/en/mcp, modelcontextprotocol.io/quickstart/user, cursor.com/docs/mcp,
code.visualstudio.com/docs/agents/reference/mcp-configuration, docs.windsurf.com,
zed.dev/docs/ai/mcp, jetbrains.com/help/junie, opencode.ai/docs/mcp-servers. The entries of Codex,
Gemini CLI, Copilot CLI, Claude Code and opencode are read back by the programs themselves
(`./dev clients`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.paths import home_directory

Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = ("user", "project")


class Place(NamedTuple):
    """A settings file. `folder` begins with `~`, with `.` for the project, or with a word of
    `_BASES`; the environment variable `variable` replaces it if it is set. Where one of `others` is
    there and `file` is not, the client reads that."""

    folder: str
    file: str
    variable: str = ""
    others: tuple[str, ...] = ()

    def find_folder(self) -> Path:
        """The folder on this machine. Raises: TidegateError without a home directory."""
        given = os.environ.get(self.variable) if self.variable else None
        if given:
            return Path(given)
        base, _, rest = self.folder.partition("/")
        return _BASES[base]() / rest

    def find_file(self) -> Path:
        """The file on this machine, whether it is there or not. Raises: TidegateError."""
        folder = self.find_folder()
        there = [name for name in (self.file, *self.others) if (folder / name).exists()]
        return folder / (there[0] if there else self.file)


class Form(NamedTuple):
    """The fields of an entry. `local` and `remote` are those that every entry for a program, or for
    an address, has in addition.

    `address` names the field of the address, None if the client only starts programs. `reference`
    is how a variable of the environment is referred to, None if it cannot be. `token_variable`
    names the field that takes the name of the token's variable, in place of a header, and
    `passed_variables` the field of the names of variables that are handed to the program.
    `one_command`: the command and its words are one array.
    """

    reference: str | None = None
    address: str | None = "url"
    environment: str = "env"
    local: Mapping[str, Any] = {}
    remote: Mapping[str, Any] = {}
    one_command: bool = False
    token_variable: str = ""
    passed_variables: str = ""


class Client(NamedTuple):
    """A supported client. `key` leads to the entries in its file; where the file has an object at
    `newer_key`, they are there. `sign` is a folder that exists where the client is used, if that of
    the file says nothing. `then` is what a person does once the entry is written. `link` is the
    form of a link that adds an entry when it is opened, empty if the client knows none."""

    name: str
    title: str
    user: Place
    project: Place | None
    form: Form
    then: str
    key: tuple[str, ...] = ("mcpServers",)
    newer_key: tuple[str, ...] = ()
    sign: str = ""
    scope: Scope = "user"
    link: str = ""

    def find_key(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """The path of the entries in these settings."""
        at: Any = settings
        for name in self.newer_key:
            at = at.get(name) if isinstance(at, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return self.newer_key if self.newer_key and isinstance(at, dict) else self.key

    def is_here(self) -> bool:
        """Whether its settings file or folder exists. Raises: TidegateError, OSError."""
        place = Place(self.sign, "", self.user.variable) if self.sign else self.user
        return place.find_folder().is_dir() or self.user.find_file().is_file()


def _stdio(reference: str | None, **fields: Any) -> Form:
    return Form(reference, local={"type": "stdio"}, **fields)


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            Place("~", ".claude.json", "CLAUDE_CONFIG_DIR"),
            Place(".", ".mcp.json"),
            _stdio("${%s}", remote={"type": "http"}),
            "Start `claude` again",
            sign="~/.claude",
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            Place("{applications}/Claude", "claude_desktop_config.json"),
            None,
            Form(address=None),
            "Quit Claude Desktop and start it again",
        ),
        Client(
            "cursor",
            "Cursor",
            Place("~/.cursor", "mcp.json"),
            Place("./.cursor", "mcp.json"),
            _stdio("${env:%s}"),
            "Start Cursor again, or switch `tidegate` on under Settings, Tools & MCP",
            link="cursor://anysphere.cursor-deeplink/mcp/install?name={name}&config={base64}",
        ),
        Client(
            "vscode",
            "VS Code",
            Place("{applications}/Code/User", "mcp.json"),
            Place("./.vscode", "mcp.json"),
            _stdio("${env:%s}", remote={"type": "http"}),
            "In VS Code run `MCP: List Servers` and start `tidegate`",
            key=("servers",),
            scope="project",
            link="vscode:mcp/install?{json}",
        ),
        Client(
            "codex",
            "Codex",
            Place("~/.codex", "config.toml", "CODEX_HOME"),
            Place("./.codex", "config.toml"),
            Form(token_variable="bearer_token_env_var", passed_variables="env_vars"),  # noqa: S106 - a field's name
            "Start `codex` again",
            key=("mcp_servers",),
        ),
        Client(
            "gemini",
            "Gemini CLI",
            Place("~/.gemini", "settings.json"),
            Place("./.gemini", "settings.json"),
            Form("${%s}", address="httpUrl"),
            "Start `gemini` again, in a folder that it trusts",
        ),
        Client(
            "copilot",
            "Copilot CLI",
            Place("~/.copilot", "mcp-config.json", "COPILOT_HOME"),
            # It reads `.mcp.json` too, whose entries are Claude Code's and lack `tools`.
            Place("./.github", "mcp.json"),
            Form(
                "${%s}",
                local={"type": "local", "tools": ["*"]},
                remote={"type": "http", "tools": ["*"]},
            ),
            "Start `copilot` again",
        ),
        Client(
            "windsurf",
            "Windsurf",
            Place("~/.codeium/windsurf", "mcp_config.json"),
            None,
            Form("${env:%s}", address="serverUrl"),
            "Refresh the list under Windsurf Settings, Cascade, MCP servers",
        ),
        Client(
            "zed",
            "Zed",
            Place("{linux-config}/zed", "settings.json"),
            None,
            Form(),
            "Open Zed's Agent Panel, whose settings list `tidegate`",
            key=("context_servers",),
        ),
        Client(
            "junie",
            "Junie",
            Place("~/.junie/mcp", "mcp.json"),
            Place("./.junie/mcp", "mcp.json"),
            Form(address=None),
            "Switch `tidegate` on under Settings, Tools, Junie, MCP Settings",
            sign="~/.junie",
        ),
        Client(
            "opencode",
            "opencode",
            Place("{config}/opencode", "opencode.json", others=("opencode.jsonc",)),
            Place(".", "opencode.json", others=("opencode.jsonc",)),
            Form(
                "{env:%s}",
                environment="environment",
                local={"type": "local"},
                remote={"type": "remote"},
                one_command=True,
            ),
            "Start `opencode` again",
            key=("mcp",),
            newer_key=("mcp", "servers"),
        ),
    )
}

OTHER = Client(
    "other",
    "another client",
    Place(".", "mcp.json"),
    None,
    _stdio(None, remote={"type": "http"}),
    "",
)
"""The form that most other clients read: shown, and never written."""


def settings_file(client: Client, scope: str) -> Path:
    """The client's settings file. Raises: TidegateError ARGUMENT_INVALID."""
    if scope == "user":
        return client.user.find_file()
    if client.project is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{client.name} has no settings per project.",
            hint="Leave out --scope project.",
        )
    return client.project.find_file()


def find_clients() -> list[Client]:
    """The clients that this account uses on this machine: their file or its folder is there."""
    found: list[Client] = []
    for client in CLIENTS.values():
        try:
            if client.is_here():
                found.append(client)
        except (TidegateError, OSError):  # no home directory, or one that must not be looked into
            continue
    return found


def _applications() -> Path:
    """The directory of applications' user settings on this system."""
    if sys.platform == "darwin":
        return home_directory() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home_directory() / "AppData" / "Roaming")
    return _config()


def _config() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or home_directory() / ".config")


def _linux_config() -> Path:
    return _config() if sys.platform == "linux" else home_directory() / ".config"


_BASES = {
    "~": home_directory,
    ".": Path.cwd,
    "{applications}": _applications,
    "{config}": _config,
    "{linux-config}": _linux_config,
}
