"""Shows errors as the document says: the refusal of a database, a rule or a provider is a tool
result; errors of the protocol, a database that is not ready and unknown names are JSON-RPC errors.

With production detail the caller gets the code, the SQLSTATE and a correlation id. The audit log
has the message under the same id.
"""

from __future__ import annotations

import logging
import uuid

from tidegate.engines.common.errors import ANSWERED
from tidegate.errors import Code, TidegateError
from tidegate.products.pgedge.surface.error_codes import ErrorCodes
from tidegate.protocol.model import INVALID_PARAMS, RpcError, ToolResult
from tidegate.surfaces.api import ErrorRenderer
from tidegate.surfaces.core.errors import error_text
from tidegate.surfaces.hints import Guide
from tidegate.surfaces.tool_context import ToolContext

logger = logging.getLogger("tidegate.products.pgedge.surface")

GUIDE = Guide(
    tables="See the tables with get_schema_info.",
    columns="See its columns with get_schema_info and its table_name.",
    sources="Leave `source` out, or ask the operator for the names that this token may use.",
    codes={
        Code.POLICY_CONFIRM: "Send a statement that only reads.",
        Code.LIMIT_TIME: "Narrow the statement.",
        Code.QUESTION_UNANSWERABLE: ("Ask for what the tables hold; get_schema_info shows them."),
    },
)


def is_not_ready(error: TidegateError) -> bool:
    """Whether a database cannot be reached yet. One that has answered, and refused the login or has
    no such database, is as ready as it will be."""
    return error.code is Code.SOURCE_UNREACHABLE and error.details.get("cause") not in ANSWERED


_SHOWN = frozenset(
    {
        Code.ARGUMENT_INVALID,
        Code.APPROVAL_NEEDED,
        Code.APPROVAL_DECLINED,
        Code.CALL_CANCELLED,
        Code.SQL_EMPTY,
        Code.SQL_TOO_LONG,
        Code.LIMIT_TIME,
        Code.LIMIT_BYTES,
        Code.LIMIT_BUDGET,
        Code.LIMIT_RATE,
        Code.MODEL_LIMIT,
        Code.RESULT_GONE,
        Code.QUESTION_EMPTY,
        Code.QUESTION_TOO_LONG,
        Code.ANSWER_UNKNOWN,
    }
)
"""Errors whose text is ours and shows nothing of the database: shown in production, too."""


class Detail:
    """How much of an error a caller sees."""

    def __init__(self, setting: str, *, loopback: bool) -> None:
        self._setting = setting
        self._loopback = loopback

    def is_full(self, context: ToolContext) -> bool:
        """Whether the caller sees all that the database says."""
        if self._setting != "auto":
            return self._setting == "development"
        return self._loopback or not context.context.address


def error_renderer(codes: ErrorCodes, detail: Detail) -> ErrorRenderer:
    """Renders every TidegateError for callers of this surface."""

    def render(error: TidegateError, context: ToolContext) -> ToolResult:
        if "parameter" in error.details and codes.is_document(context.context):
            raise RpcError(
                INVALID_PARAMS, f"Invalid params: {error.message}", {"code": error.code.value}
            )
        if is_not_ready(error) and codes.is_document(context.context) and not _begun(context):
            shown = error.message if detail.is_full(context) else _correlated(error)
            raise codes.not_ready(error.code.value, shown)
        text = shown_text(error, context, detail)
        return ToolResult(body=text.encode(), structured=False, is_error=True)

    return render


def _begun(context: ToolContext) -> bool:
    """Whether a part of the result has left, so that its text has to say what happened."""
    stream = context.context.text_stream()
    return stream is not None and stream.started


def shown_text(error: TidegateError, context: ToolContext, detail: Detail) -> str:
    """The error as text for this caller."""
    if detail.is_full(context) or error.code in _SHOWN:
        return error_text(error, GUIDE)
    return f"{error.code.value}: {_general(error)}"


def shown_message(error: TidegateError, context: ToolContext, detail: Detail) -> str:
    """The message of a JSON-RPC error, which has the code beside it."""
    if detail.is_full(context) or error.code in _SHOWN:
        return error.message
    return _general(error)


def _general(error: TidegateError) -> str:
    state = error.details.get("sqlstate")
    place = f" (SQLSTATE {state})" if state else ""
    area = error.code.value.partition(".")[0]
    text = _GENERAL.get(error.code) or _OF_AREA.get(area, "The call failed")
    wait_s = error.retry_after_s
    when = f" Retry in {wait_s:,.0f} s." if wait_s is not None else ""
    if area == "sql" and state is None:
        text = error.message.rstrip(".")  # our own judgement of the caller's own text
    return f"{text}{place}.{_step(error)}{when} {_correlated(error)}"


def _step(error: TidegateError) -> str:
    """What the caller can do, after a blank: by the kind of the mistake, with the names that are
    like a wrong one. They are of the catalog that the caller sees."""
    state = str(error.details.get("sqlstate") or "")
    said = _OF_STATE.get(state) or _OF_CLASS.get(state[:2]) or GUIDE.codes.get(error.code, "")
    hint = error.hint or ""
    near = hint if hint.startswith("Nearest: ") else ""
    return "".join([f" {each}" for each in (said, near) if each])


_GENERAL = {
    Code.SOURCE_UNKNOWN: "There is no such database for this caller",
    Code.TABLE_UNKNOWN: "There is no such table for this caller",
    Code.SOURCE_URL: "The URL of the database cannot be used",
    Code.SOURCE_BUSY: "The database is busy; retry in a moment",
    Code.QUESTION_UNANSWERABLE: "The database does not hold what the question asks for",
    Code.QUESTION_COSTLY: "The statement for the question would cost too much",
}
_OF_STATE = {
    "42703": "It names a column that is not there: see the columns with get_schema_info.",
    "42P01": "It names a table that is not there: see the tables with get_schema_info.",
    "42702": "A column of that name is in several tables: say of which.",
    "42803": "A column is neither grouped nor in an aggregate.",
    "42601": "Its syntax is wrong.",
    "42883": "No function or operator takes arguments of these types: cast them.",
    "42804": "Types of values do not fit each other: cast them.",
    "42P10": "ORDER BY or DISTINCT names a column that is not selected.",
    "42501": "The account of this source may not read that.",
    "22P02": "A text cannot be converted to the type that it is compared with or cast to.",
    "22012": "It divides by zero: use NULLIF.",
    "57014": "It took too long: narrow it.",
}
"""What a caller can do about an error of the database, which shows no name and no value of it."""
_OF_CLASS = {
    "22": "A value does not fit its type or its function.",
    "42": "A name or a type in it is wrong: see tables and columns with get_schema_info.",
}
_OF_AREA = {
    "sql": "The statement failed",
    "policy": "The call is not permitted",
    "source": "The database cannot be used now",
    "question": "No usable statement was written for the question",
    "provider": "The model could not be asked",
    "embedding": "The vectors cannot be compared",
}
"""What production says of an error: by its code, else by the area of its code."""


def _correlated(error: TidegateError) -> str:
    """The id under which the operator finds the error: in the audit log, or in the server's."""
    id = error.call_id
    if not id:
        id = uuid.uuid4().hex
        logger.warning("%s: %s", error.code.value, error.message, extra={"call": id})
    return f"Correlation id: {id}"
