"""Errors and warnings as the protocol's fields have them. Pure.

Source: PostgreSQL documentation, "Error and Notice Message Fields".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.errors import EQUIVALENT_SQLSTATE, ERROR_DETAIL, Code, TidegateError
from tidegate.model.notices import DatabaseNotice
from tidegate.model.results import SkippedCall, Truncation, UpstreamUse
from tidegate.products.pgwire import messages
from tidegate.results.notes import pages_note, partial_note
from tidegate.surfaces.confirmation import PHRASE

_NAMED = {
    "schema_name": "s",
    "table_name": "t",
    "column_name": "c",
    "datatype_name": "d",
    "constraint_name": "n",
}
"""The fields for what an error is about, by its name in the details."""
_OF_A_PROVIDER = ("http_status", "retryable")
"""What the detail of an error says of a provider's reply, in this order."""
_HOW_TO_CONFIRM = (
    f"Send SET tidegate.confirm = '{PHRASE}' before it, as a text of its own: it confirms the next"
    " statement. A person must approve that as well."
)


def refused(sqlstate: str, message: str, hint: str | None = None) -> TidegateError:
    """The error for what a client may not ask of its session."""
    return TidegateError(Code.ARGUMENT_INVALID, message, hint=hint, details={"sqlstate": sqlstate})


def not_emulated(sqlstate: str, message: str) -> TidegateError:
    """The error for a query on PostgreSQL's catalogs that their emulation cannot answer."""
    return TidegateError(
        Code.UNSUPPORTED,
        message[:500],
        hint="Ask the source itself in its own dialect.",
        details={"sqlstate": sqlstate},
    )


def session_ended(reason: str) -> TidegateError:
    """The error of a session that is ended from here."""
    return TidegateError(
        Code.CALL_CANCELLED,
        f"The session was ended: {reason}.",
        details={"sqlstate": "57P01"},
    )


def warning(sqlstate: str, text: str) -> bytes:
    """A NoticeResponse of the severity WARNING."""
    return messages.notice({"S": "WARNING", "V": "WARNING", "C": sqlstate, "M": text})


def source_notice(noted: DatabaseNotice) -> bytes:
    """What the source noted while it ran a statement."""
    fields = {"S": noted.severity, "V": noted.severity, "C": noted.sqlstate, "M": noted.message}
    if noted.detail:
        fields["D"] = noted.detail
    if noted.hint:
        fields["H"] = noted.hint
    return messages.notice(fields)


def truncation_notice(cut: Truncation, upstream: UpstreamUse | None) -> bytes:
    """The warning that a result was cut. Its detail says the same for programs, as JSON, and what
    was sent to providers for it."""
    detail = msgspec.structs.asdict(cut) | _used(upstream)
    note = f"The result was cut at {cut.limit} {cut.kind}: {cut.returned} were returned."
    if cut.kind == "pages":
        note = f"The result is {pages_note(cut)}."
    fields = {"S": "WARNING", "V": "WARNING", "C": "01004", "M": note}
    return messages.notice(fields | {"D": msgspec.json.encode(detail).decode()})


def partial_notice(skipped: Sequence[SkippedCall]) -> bytes:
    """The warning that a result lacks what some accounts were denied; its detail is JSON."""
    fields = {"S": "WARNING", "V": "WARNING", "C": "01000", "M": f"{partial_note(skipped)}."}
    return messages.notice(fields | {"D": msgspec.json.encode(skipped).decode()})


def kept_notice(upstream: UpstreamUse) -> bytes:
    """The note that some of a result was kept from an earlier statement. Its detail says how old
    that is, and what was sent, as JSON."""
    fields = {
        "S": "NOTICE",
        "V": "NOTICE",
        "C": "00000",
        "M": f"{upstream.hits} lists were kept from earlier statements, the oldest for"
        f" {upstream.age_s:.0f} seconds.",
        "D": msgspec.json.encode(_used(upstream)).decode(),
    }
    return messages.notice(fields)


def _used(upstream: UpstreamUse | None) -> dict[str, Any]:
    if upstream is None:
        return {}
    used: dict[str, Any] = {"calls": upstream.calls, "pages": upstream.pages}
    return used | ({"hits": upstream.hits, "age_s": upstream.age_s} if upstream.hits else {})


def error_fields(
    error: TidegateError, severity: str = "ERROR", *, note: str = ""
) -> dict[str, str]:
    """The fields of an ErrorResponse: SQLSTATE from the database or from the table of codes. `note`
    follows the message."""
    state = error.details.get(EQUIVALENT_SQLSTATE) or error.details.get("sqlstate")
    fields = {
        "S": severity,
        "V": severity,
        "C": state if isinstance(state, str) and len(state) == 5 else error.mapping.sqlstate,
        "M": f"{_message(error)} {note}".rstrip(),
        "D": _detail(error),
    }
    for name, letter in _NAMED.items():
        value = error.details.get(name)
        if isinstance(value, str):
            fields[letter] = value
    if error.code is Code.POLICY_CONFIRM:
        fields["H"] = _HOW_TO_CONFIRM
    elif error.hint:
        fields["H"] = error.hint
    position = error.details.get("position")
    if isinstance(position, int) and position > 0:
        fields["P"] = str(position)
    return fields


def _detail(error: TidegateError) -> str:
    """`CODE, call ID, {"http_status": 403, "retryable": false}`: our code, and where they are known
    the id of the call, what a provider answered and how long to wait; on lines before it what the
    database says."""
    text = error.code.value + (f", call {error.call_id}" if error.call_id else "")
    reply = {name: error.details[name] for name in _OF_A_PROVIDER if name in error.details}
    if error.retry_after_s is not None:
        reply["retry_after_s"] = error.retry_after_s
    text = f"{text}, {msgspec.json.encode(reply).decode()}" if reply else text
    said = _said(error)
    return f"{said}\n{text}" if said else text


def _message(error: TidegateError) -> str:
    said = _said(error)
    return error.message.removesuffix(f": {said}") if said else error.message


def _said(error: TidegateError) -> str:
    """What the database says in addition to its message, as a field of its own."""
    said = error.details.get(ERROR_DETAIL)
    return said if isinstance(said, str) and error.message.endswith(f": {said}") else ""
