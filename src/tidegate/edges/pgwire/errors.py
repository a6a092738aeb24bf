"""Errors and warnings as the protocol's fields have them. Pure.

Source: PostgreSQL documentation, "Error and Notice Message Fields".
"""

from __future__ import annotations

from tidegate.edges.pgwire import messages
from tidegate.errors import Code, TidegateError


def refused(sqlstate: str, message: str, hint: str | None = None) -> TidegateError:
    """The error for what a client may not ask of its session."""
    return TidegateError(Code.ARGUMENT_INVALID, message, hint=hint, details={"sqlstate": sqlstate})


def not_emulated(sqlstate: str, message: str) -> TidegateError:
    """The error for a query on PostgreSQL's catalogs that their emulation cannot answer."""
    return TidegateError(
        Code.UNSUPPORTED,
        message[:500],
        hint="Ask the source in its own dialect, or describe its tables by a tool.",
        details={"sqlstate": sqlstate},
    )


def warning(sqlstate: str, text: str) -> bytes:
    """A NoticeResponse of the severity WARNING."""
    return messages.notice({"S": "WARNING", "V": "WARNING", "C": sqlstate, "M": text})


def error_fields(error: TidegateError, severity: str = "ERROR") -> dict[str, str]:
    """The fields of an ErrorResponse: SQLSTATE from the database or from the table of codes."""
    state = error.details.get("sqlstate")
    fields = {
        "S": severity,
        "V": severity,
        "C": state if isinstance(state, str) and len(state) == 5 else error.fate.sqlstate,
        "M": error.message,
        "D": error.code.value + (f", call {error.call_id}" if error.call_id else ""),
    }
    if error.hint:
        fields["H"] = error.hint
    position = error.details.get("position")
    if isinstance(position, int) and position > 0:
        fields["P"] = str(position)
    return fields
