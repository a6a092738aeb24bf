"""Shows errors as the document does: `{"error": TEXT}` for what a database, a driver or a rule
says, with the document's phrase before it; a JSON-RPC error for the form of a call and for our own
faults. `code` and `hint` are in addition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from tidegate.engines.common.errors import ACCOUNT, RIGHT_OR_NAME
from tidegate.errors import Code, TidegateError
from tidegate.protocol.model import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Context,
    RpcError,
    ToolResult,
)
from tidegate.surfaces.tool_context import ToolContext

SERVER_ERROR = -32000

_FAULTS = frozenset({Code.INTERNAL, Code.STATE_FAILED, Code.AUDIT_UNAVAILABLE, Code.AUDIT_OUTCOME})
_OWN_LIMITS = frozenset({Code.LIMIT_RATE, Code.SOURCE_BUSY})
_NO_DRIVER = frozenset(
    {
        Code.ENGINE_MISSING,
        Code.DRIVER_REPOSITORY,
        Code.DRIVER_UNRESOLVED,
        Code.DRIVER_UNTRUSTED,
        Code.CONFIG_INVALID,
    }
)
_NO_TABLE = frozenset({"42P01", "42S02", "42S03", "42X05"})
_NO_RIGHT = frozenset({"42501", "42000"})
_DENIED = re.compile(
    r"(?i)\bdenied\b|not authorized|insufficient privilege|does not have .*permission"
)
_REFUSED = re.compile(r"(?i)refused")


def shown_error(error: TidegateError, context: ToolContext) -> Mapping[str, Any]:
    """The fields of a result that is an error. Raises: RpcError for the form of a call, and for
    faults of ours."""
    if "parameter" in error.details:
        raise RpcError(INVALID_PARAMS, "Invalid params", _form(error))
    if error.code in _FAULTS:
        raise RpcError(INTERNAL_ERROR, f"Internal error: {error.message}", error.code.value)
    if error.code in _OWN_LIMITS:
        raise RpcError(SERVER_ERROR, error.message, error.code.value)
    fields: dict[str, Any] = {"error": error_text(error, context.tool)}
    if context.tool == "connect":
        fields["status"] = _status(error)
    fields["code"] = error.code.value
    if error.hint:
        fields["hint"] = error.hint
    if error.retry_after_s is not None:
        fields["retryAfter"] = error.retry_after_s
    return fields


def render_error(error: TidegateError, context: ToolContext) -> ToolResult:
    """The same for a tool of MCP, whose clients show their model the message and not the data."""
    try:
        body = msgspec.json.encode(shown_error(error, context))
    except RpcError as fault:
        if fault.code == INVALID_PARAMS:
            raise RpcError(fault.code, f"{fault.message}: {fault.data}", fault.data) from None
        raise
    return ToolResult(body=body, is_error=True)


def unknown_tool(name: str, context: Context) -> NoReturn:
    """Refuse a tool that does not exist. Raises: RpcError."""
    raise RpcError(METHOD_NOT_FOUND, f"Tool not found: {name[:200]}")


def _form(error: TidegateError) -> str:
    if error.details.get("problem") == "missing":
        return f"Missing required parameter: {error.details['parameter']}"
    return f"{error.message}. {error.hint}"


def error_text(error: TidegateError, tool: str) -> str:
    """The text of an error, with the document's phrase before it."""
    message = error.message
    if error.code is Code.SOURCE_UNKNOWN and tool != "connect":
        is_elsewhere = error.details.get("cause") == "elsewhere"
        # Otherwise its source has ended.
        return f"Invalid connection: {message}" if is_elsewhere else "Invalid connection"
    phrase = _phrase(error, tool)
    if phrase == "Driver not found":
        return message if message.startswith(phrase) else f"{phrase}: {message}"
    if tool == "connect" and error.code in (Code.SOURCE_UNREACHABLE, Code.POLICY_DENIED):
        return ": ".join(filter(None, ("Failed to connect", phrase, message)))
    if not phrase or message.startswith(phrase):
        return message
    return f"{phrase}: {message}"


def _phrase(error: TidegateError, tool: str) -> str:
    """The document's words for an error; empty where it has none."""
    code, state = error.code, str(error.details.get("sqlstate", ""))
    if code is Code.SOURCE_URL:
        return "Invalid URL"
    if code in _NO_DRIVER or error.details.get("rule") == "drivers.download":
        return "Driver not found"
    if code is Code.SOURCE_UNREACHABLE:
        if error.details.get("cause") == ACCOUNT or state.startswith("28"):
            return "Authentication failed"
        return "Connection refused" if _REFUSED.search(error.message) else ""
    if code is Code.TABLE_UNKNOWN or (code is Code.SQL_FAILED and state in _NO_TABLE):
        return "Table not found"
    return "Permission denied" if is_denied(error) and tool != "connect" else ""


def is_denied(error: TidegateError, *, is_there: bool = False) -> bool:
    """Whether the database says that its user lacks a right. `is_there`: what the statement names
    is known to exist."""
    if error.details.get("cause") == RIGHT_OR_NAME:
        return is_there
    state = str(error.details.get("sqlstate", ""))
    if error.code not in (Code.SQL_FAILED, Code.POLICY_DENIED) or not state:
        return False
    return state == "42501" or (state in _NO_RIGHT and bool(_DENIED.search(error.message)))


def _status(error: TidegateError) -> str:
    if error.code in _NO_DRIVER or error.details.get("rule") == "drivers.download":
        return "driver_missing"
    if error.code in (Code.SOURCE_URL, Code.ARGUMENT_INVALID):
        return "invalid_parameters"
    return "connection_failed"
