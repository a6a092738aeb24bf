"""What Datalevin says went wrong, as the gate says it."""

from __future__ import annotations

import re

import msgspec

from tidegate.errors import Code, TidegateError


class Fault(msgspec.Struct, frozen=True):
    """An error of the worker. `code` is Datalevin's keyword or one of ours, with its colon."""

    code: str
    message: str
    absent: str | None = None
    field: str | None = None


_CODES = {
    ":absent": Code.POLICY_READ_ONLY,
    ":invalid-request": Code.ARGUMENT_INVALID,
    ":invalid-json-tag": Code.ARGUMENT_INVALID,
    ":unknown-operation": Code.UNSUPPORTED,
    ":function-refused": Code.SQL_FUNCTION,
    ":result-too-large": Code.LIMIT_BYTES,
}

_REFUSED_FUNCTION = re.compile(
    r"Server query cannot call unregistered|Unknown (function|predicate)"
)
_UNREACHABLE = re.compile(
    r"Connection refused|Connection reset|Unable to connect|UnresolvedAddress|Broken pipe"
    r"|Socket channel is closed|connection timed out|Unknown host",
    re.IGNORECASE,
)
_UNAUTHENTICATED = re.compile(r"Authentication failure|authenticat|permission", re.IGNORECASE)


def translate(fault: Fault, place: str, *, is_remote: bool) -> TidegateError:
    """The error for the caller. `place` is the source as people are shown it."""
    details = {"engine_code": fault.code}
    if fault.absent is not None:
        details["absent"] = fault.absent
    if fault.field is not None:
        details["field"] = fault.field
    code = _CODES.get(fault.code, Code.SQL_FAILED)
    message, hint = fault.message, None
    if code is Code.SQL_FAILED and _REFUSED_FUNCTION.search(message):
        code = Code.SQL_FUNCTION
    elif code is Code.SQL_FAILED and is_remote:
        if _UNREACHABLE.search(message):
            code, message = Code.SOURCE_UNREACHABLE, f"{place} cannot be reached: {message}"
        elif _UNAUTHENTICATED.search(message):
            code, message = Code.SOURCE_UNREACHABLE, f"{place} refuses the login: {message}"
            hint = "Check the user and the password in the source's URL."
    if fault.absent is not None:
        hint = "Check the name; a call that only reads makes nothing."
    return TidegateError(code, message, hint=hint, details=details)


def unknown_outcome() -> TidegateError:
    """The error of a change whose worker ended under it."""
    return TidegateError(
        Code.SQL_OUTCOME,
        "The process of Datalevin ended while it made the change: it is made whole or not at all,"
        " and it is unknown which.",
    )


def worker_lost() -> TidegateError:
    """The error of a read whose worker ended under it, twice."""
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        "The process of Datalevin ended while it answered.",
        hint="Retry; the next call starts it again.",
    )


def warming(left_s: float) -> TidegateError:
    """The error of a call that would have to wait for the first start."""
    seconds = max(5, round(left_s))
    return TidegateError(
        Code.SOURCE_WARMING,
        f"Datalevin is being prepared for its first start, which takes about {seconds} s more.",
        hint="Retry then. `tidegate datalog warm-up` prepares it beforehand.",
        retry_after_s=float(seconds),
        details={"seconds_left": seconds},
    )
