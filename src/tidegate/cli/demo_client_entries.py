"""The configuration that the demo prints for each client. Pure.

Claude Desktop starts local servers itself and accepts no token for remote ones, so its entry runs
`tidegate serve` on the same state.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """The text for one client, and where to paste it."""

    client: str
    place: str
    text: str


def entries(url: str, token: str, command: str, state: str) -> list[Entry]:
    """The entries for a server at `url`; `command` is the absolute path of `tidegate`."""
    bearer = {"Authorization": f"Bearer {token}"}
    stdio = {"command": command, "args": ["serve", "--surface", "core", "--state", state]}
    return [
        Entry(
            "Claude Code",
            "in a terminal",
            f"claude mcp add --transport http shop {url} \\\n"
            f'  --header "Authorization: Bearer {token}"',
        ),
        Entry(
            "Claude Desktop",
            "claude_desktop_config.json, under Settings, Developer, Edit Config",
            _json({"mcpServers": {"shop": stdio}}),
        ),
        Entry(
            "Cursor",
            "~/.cursor/mcp.json",
            _json({"mcpServers": {"shop": {"url": url, "headers": bearer}}}),
        ),
        Entry(
            "VS Code",
            ".vscode/mcp.json",
            _json({"servers": {"shop": {"type": "http", "url": url, "headers": bearer}}}),
        ),
        Entry("curl", "in a terminal", _curl(url, token)),
    ]


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2)


def _curl(url: str, token: str) -> str:
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "query",
            "arguments": {"sql": "SELECT count(*) FROM orders"},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
    return (
        f"curl -s {url} \\\n"
        f"  -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\\n"
        "  -H 'Accept: application/json, text/event-stream' \\\n"
        "  -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' "
        "-H 'Mcp-Name: query' \\\n"
        f"  -d '{json.dumps(body)}'"
    )
