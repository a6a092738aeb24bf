"""Shows errors as the document does: the text of a tool error. What the mode refuses is in the
document's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.errors import Code, TidegateError
from tidegate.policy.rules import STATEMENT_RULES
from tidegate.protocol.model import INVALID_PARAMS, Context, RpcError, ToolResult
from tidegate.protocol.model import text as text_block
from tidegate.surfaces.tool_context import ToolContext

_LOOK_ELSEWHERE = (
    "Restart the server in 'full_access' mode if you trust this client, or use an"
    " elicitation-capable client"
)


def error_renderer(mode: str) -> Callable[[TidegateError, ToolContext], ToolResult]:
    """Shows the errors of a server in `mode`."""

    def render(error: TidegateError, context: ToolContext) -> ToolResult:
        text = error_text(error, context.tool, mode, can_ask=context.can_ask)
        return ToolResult(content=[text_block(text)], structured=False, is_error=True)

    return render


def error_text(error: TidegateError, tool: str, mode: str, *, can_ask: bool) -> str:
    """The text of an error. Where the document has words of its own these come first, without our
    hint, unless a question waits: then the hint names the place where a person can answer."""
    refused = f'tool "{tool}" refused: '
    by_mode = error.details.get("rule") == STATEMENT_RULES
    if error.code is Code.APPROVAL_DECLINED:
        return f"{refused}user declined approval" + (f": {error.hint}" if _reason(error) else "")
    if isinstance(error, ApprovalNeeded):
        if error.dismissed:
            return f"{refused}approval prompt was dismissed. {error.hint}"
        if error.problem:
            return f"{refused}{_problem(error)}. {error.hint}"
        if by_mode and not can_ask:
            return (
                f"{refused}server is in '{mode}' mode and the MCP client does not support"
                f" elicitation. {_LOOK_ELSEWHERE}. {error.hint}"
            )
    if by_mode and error.code is Code.POLICY_READ_ONLY:
        return f"{refused}server is in '{mode}' mode"
    status = error.details.get("http_status")
    if status is not None:
        retryable = _json(bool(error.details.get("retryable")))
        about = f'{{"http_status": {int(status)}, "retryable": {retryable}}}'
        text = error.message if error.retry_after_s is None else error.in_full
        return f"upstream http error: {about}: {text}"
    return error.in_full


def unknown_tool(name: str, context: Context) -> NoReturn:
    """Refuses a call of a tool that does not exist, or that is not enabled. Raises: RpcError."""
    raise RpcError(INVALID_PARAMS, f'unknown tool "{name[:200]}"')


def _reason(error: TidegateError) -> bool:
    """Whether the hint is the person's own reason and not the code's."""
    return error.hint != error.mapping.hint


def _problem(error: ApprovalNeeded) -> str:
    action = error.unexpected_action
    if action is not None:
        return f"unexpected elicitation action {_json(action)}"
    return f"elicitation transport error: {error.problem}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
