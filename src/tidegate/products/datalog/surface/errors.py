"""Shows errors as the document does: `isError`, and `{"error": TEXT, "code": ":kebab", "details"}`
as structured content and as text. A hint is in `details`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.protocol.model import Context, ToolResult
from tidegate.surfaces.tool_context import ToolContext

WRITES_DISABLED = ":writes-disabled"

_CODES = {
    Code.POLICY_SCOPE: WRITES_DISABLED,
    Code.POLICY_READ_ONLY: WRITES_DISABLED,
    Code.ARGUMENT_INVALID: ":invalid-params",
    Code.SQL_FAILED: ":tool-error",
    Code.INTERNAL: ":tool-error",
    Code.LIMIT_BYTES: ":result-too-large",
    Code.SQL_FUNCTION: ":function-refused",
    Code.DATALOG_FUNCTION: ":function-refused",
    Code.SQL_OUTCOME: ":outcome-unknown",
}
_SHOWN = ("field", "absent", "rule", "position", "line", "column", "function", "seconds_left")
"""What the details of an error say to a caller; all else in them is ours."""


def render_error(error: TidegateError, context: ToolContext) -> ToolResult:
    """The result of a call that was refused or failed."""
    details: dict[str, Any] = {
        name: error.details[name] for name in _SHOWN if error.details.get(name) is not None
    }
    if "parameter" in error.details:
        details["field"] = error.details["parameter"]
    if error.hint:
        details["hint"] = error.hint
    if error.retry_after_s is not None:
        details["retryAfter"] = error.retry_after_s
    return _failed(error.message, code_of(error), details)


def code_of(error: TidegateError) -> str:
    """The code of the document; one of ours where it has none, written as it writes them."""
    named = error.details.get("engine_code")
    if error.details.get("absent") is not None:
        return ":absent"
    if isinstance(named, str) and named.startswith(":"):
        return named
    own = error.code.value.replace(".", "-").replace("_", "-")
    return _CODES.get(error.code, f":{own}")


def unknown_tool(name: str, context: Context) -> ToolResult:
    """The result of a call of a tool that does not exist."""
    return _failed(f"Unknown tool: {name[:200]}", ":unknown-tool", {})


def _failed(message: str, code: str, details: dict[str, Any]) -> ToolResult:
    body: dict[str, Any] = {"error": message, "code": code}
    if details:
        body["details"] = details
    return ToolResult(body=msgspec.json.encode(body), is_error=True)


def invalid(field: str, problem: str, code: str = ":invalid-params") -> TidegateError:
    """The refusal of an argument."""
    return TidegateError(
        Code.ARGUMENT_INVALID, problem, details={"field": field, "engine_code": code}
    )
