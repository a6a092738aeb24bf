"""Whether a refused call is a result that reports it, or a JSON-RPC error as a document has it.

The documents of two surfaces name JSON-RPC errors for what the protocol since 2025-11-25 wants in
the result of the call, with `isError`. Several frameworks for agents end the run at a JSON-RPC
error, or show their model a sentence of their own in its place, so that it never reads the reason.
A client that shows pages (MCP Apps) gives a page the results of a tool and never its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from tidegate.protocol.apps import shows_apps
from tidegate.protocol.model import Context, RpcError, ToolResult, text

ErrorForm = Literal["auto", "document", "protocol"]

_HIDES_ERRORS = frozenset({"mcp", "mcp-use", "google-adk", "langchain-mcp-adapters"})
"""The names of clients whose model does not read a JSON-RPC error. The first is that of the Python
SDK, which the Agents SDK of OpenAI, google-genai and the adapters of LangChain do not change."""
_BY_PROXY = " (via "
"""What a proxy such as mcp-remote writes after the name of its client."""


def shows_in_results(
    form: ErrorForm, since: str, *, has_page: bool = False
) -> Callable[[Context], bool]:
    """Tells who gets a refusal as a result: all with `protocol`, none with `document`; with
    `auto` callers of the revision `since` or a newer one, and of a client that needs it, as one
    does that shows the page of the surface."""

    def shows(context: Context) -> bool:
        if form != "auto":
            return form == "protocol"
        name = context.client.name.partition(_BY_PROXY)[0]
        if has_page and shows_apps(context.client_capabilities):
            return True
        return context.revision >= since or name in _HIDES_ERRORS

    return shows


def refusal_result(error: RpcError, *, named: bool = False) -> ToolResult:
    """A JSON-RPC error as the result of the call: its words, and what to do. With its code before
    them if it is `named`: a page knows a question by that."""
    parts = [error.message]
    if isinstance(error.data, Mapping):
        if named:
            parts[0] = f"{error.data.get('code')}: {error.message}"
        parts.append(str(error.data.get("hint") or ""))
    elif error.data and error.data not in error.message:
        parts.append(error.data)
    words = [part.rstrip(".") for part in parts if part]
    return ToolResult(content=[text(". ".join(words) + ".")], is_error=True)
