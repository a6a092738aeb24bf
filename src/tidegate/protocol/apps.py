"""MCP Apps, revision 2026-01-26: pages that a client shows beside the results of tools.

A client declares the extension in every revision, in `initialize` or with each request. One that
does not gets nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

EXTENSION = "io.modelcontextprotocol/ui"
MIME_TYPE = "text/html;profile=mcp-app"
SHOWING: Mapping[str, Any] = {"extensions": {EXTENSION: {"mimeTypes": [MIME_TYPE]}}}
"""The capabilities of a client that shows pages."""


def shows_apps(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client with these capabilities shows pages."""
    extensions = capabilities.get("extensions")
    if not isinstance(extensions, dict):
        return False
    declared = cast("dict[str, Any]", extensions).get(EXTENSION)
    if not isinstance(declared, dict):
        return False
    types = cast("dict[str, Any]", declared).get("mimeTypes")
    return isinstance(types, list) and MIME_TYPE in types
