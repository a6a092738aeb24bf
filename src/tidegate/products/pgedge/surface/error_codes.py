"""Which error codes a caller gets: those of the document, or those of the standard.

The document describes MCP 2024-11-05 with error codes of its own, of which -32002 means something
else in the standard. They are used where that revision was negotiated on stdio, and on the path
`/mcp/v1`, which speaks nothing else.
"""

from __future__ import annotations

from typing import Literal, NoReturn

from tidegate.protocol.model import INVALID_PARAMS, RESOURCE_NOT_FOUND, Context, RpcError

Variant = Literal["standard", "document"]
"""What an endpoint serves: each revision as the standard says, or the document's alone."""

REVISION = "2024-11-05"
NOT_READY = -32001
TOOL_NOT_FOUND = -32002
NO_RESOURCE = -32003


class ErrorCodes:
    """The errors of one endpoint for a database that is not ready and for unknown names."""

    def __init__(self, variant: Variant) -> None:
        self._only_document = variant == "document"

    def is_document(self, context: Context) -> bool:
        """Whether this caller gets the document's codes."""
        on_stdio = not context.address
        return self._only_document or (on_stdio and context.revision == REVISION)

    def not_ready(self, code: str, reason: str) -> RpcError:
        """The document's error while the database cannot be reached."""
        return RpcError(NOT_READY, "Database not ready", {"code": code, "reason": reason})

    def refuse_tool(self, name: str, context: Context) -> NoReturn:
        """Refuse a tool that does not exist. Raises: RpcError."""
        if self.is_document(context):
            raise RpcError(TOOL_NOT_FOUND, "Tool not found", {"name": name[:200]})
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:200]}")

    def unknown_resource(self, uri: str, context: Context) -> RpcError:
        """The error for a resource that does not exist."""
        code = NO_RESOURCE if self.is_document(context) else RESOURCE_NOT_FOUND
        return RpcError(code, "Resource not found", {"uri": uri[:200]})
