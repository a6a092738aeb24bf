"""A minimal client of MCP over HTTP (revision 2026-07-28) for the demo: one request, one response.

It uses the standard library only, and supports neither streams nor requests of the server.
"""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

from tidegate import __version__
from tidegate.config.addresses import parse_http_url
from tidegate.errors import Code, TidegateError

REVISION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tidegate-demo", "version": __version__},
}


class DemoMcpClient:
    """A client of one endpoint with one token. Not safe to use from several threads."""

    def __init__(self, url: str, token: str, timeout_s: float = 30.0) -> None:
        parts = parse_http_url(url)
        self._path = parts.path
        self._token = token
        self._connection = HTTPConnection(parts.host, parts.tcp_port, timeout=timeout_s)
        self._id = 0

    def tool_names(self) -> list[str]:
        """The names of the listed tools. Raises: TidegateError SOURCE_UNREACHABLE."""
        return [tool["name"] for tool in self._ask("tools/list", {})["tools"]]

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """(text of the answer, whether it is an error). Raises: TidegateError
        SOURCE_UNREACHABLE."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments}, name=tool)
        text = "\n".join(block.get("text", "") for block in result["content"])
        return text, bool(result.get("isError"))

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: str, params: dict[str, Any], name: str | None = None) -> dict[str, Any]:
        self._id += 1
        body = {"jsonrpc": "2.0", "id": self._id, "method": method}
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": method,
        }
        if name is not None:
            headers["Mcp-Name"] = name
        frame = json.dumps({**body, "params": {**params, "_meta": _META}})
        try:
            self._connection.request("POST", self._path, frame, headers)
            answer = json.loads(self._connection.getresponse().read())
        except (OSError, ValueError) as error:
            raise _unexpected(f"{method} was not answered: {error}") from None
        if "result" not in answer:
            raise _unexpected(f"{method} was refused: {answer.get('error', {}).get('message')}")
        result: dict[str, Any] = answer["result"]
        return result


def _unexpected(message: str) -> TidegateError:
    return TidegateError(Code.SOURCE_UNREACHABLE, message, hint="See the server's messages above.")
