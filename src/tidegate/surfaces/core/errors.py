"""Shows errors so that the next step is plain: `code: message. hint`."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.protocol.model import ToolResult
from tidegate.surfaces.confirmation import PHRASE
from tidegate.surfaces.hints import Guide
from tidegate.surfaces.tool_context import ToolContext

_MESSAGES = {
    Code.CONFIRM_NEEDLESS: "The statement needs no confirmation",
    Code.SQL_MULTIPLE: "The text holds several statements",
}
GUIDE = Guide(
    tables="Find it with search.",
    columns="See its columns with describe.",
    sources="See sources.",
    codes={
        Code.POLICY_CONFIRM: (
            f'Send it again with confirm: "{PHRASE}"; a person must also approve it.'
        ),
        Code.CONFIRM_NEEDLESS: "Send it without confirm.",
        Code.SQL_MULTIPLE: "Send the others in `also`.",
        Code.LIMIT_TIME: "Narrow the statement.",
        Code.RESULT_GONE: "Run the query again.",
    },
)


def render_error(error: TidegateError, context: ToolContext) -> ToolResult:
    """The error as text for the model."""
    return ToolResult(body=error_text(error).encode(), structured=False, is_error=True)


def error_text(error: TidegateError, guide: Guide = GUIDE) -> str:
    """The error's code, what happened, what to do now on the surface of `guide`."""
    hint = guide.hint(error)
    message = _MESSAGES.get(error.code, error.message).rstrip(". ")
    advice = "" if message.endswith(hint.rstrip(".")) else hint
    return f"{error.code.value}: {message}{_place(error)}. {advice}".rstrip()


def _place(error: TidegateError) -> str:
    """What the database says of the kind and the place of the error."""
    parts = [f"SQLSTATE {error.details['sqlstate']}"] if "sqlstate" in error.details else []
    parts += [f"at character {error.details['position']}"] if "position" in error.details else []
    return f" ({', '.join(parts)})" if parts and error.code is Code.SQL_FAILED else ""
