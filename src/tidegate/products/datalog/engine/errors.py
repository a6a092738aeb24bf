"""What Datalevin says went wrong, as the gate says it."""

from __future__ import annotations

import re

import msgspec

from tidegate.engines.common.errors import ACCOUNT
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
_UNKNOWN_OUTCOME = re.compile(r"outcome is unknown", re.IGNORECASE)
_UNAUTHENTICATED = re.compile(r"authenticat", re.IGNORECASE)
_FORBIDDEN = re.compile(r"have permission", re.IGNORECASE)


_STORAGE = re.compile(r"LMDB|MDB_|#error|:cause")
_REASONS = (
    (
        re.compile(r"MAP_FULL|mapsize", re.IGNORECASE),
        "is as large as it may become",
        "Open it with a larger `:mapsize` in opts, in megabytes.",
    ),
    (
        re.compile(r"No space left|ENOSPC", re.IGNORECASE),
        "has no room left on its disk",
        "Make room on the disk, then retry.",
    ),
    (
        re.compile(r"Permission denied|EACCES|Read-only file system", re.IGNORECASE),
        "may not be written by the user that Tidegate runs as",
        "Let this user write its files, or open it for reading.",
    ),
    (
        re.compile(r"DBS_FULL|maxdbs|max-dbs", re.IGNORECASE),
        "has as many tables as it was opened for",
        "Open it with a larger `:max-dbs` in opts.",
    ),
    (
        re.compile(r"READERS_FULL", re.IGNORECASE),
        "has as many readers as it was opened for",
        "Open it with a larger `:max-readers` in opts, or end other programs that have it open.",
    ),
    (
        re.compile(r"BAD_VALSIZE|[Kk]ey.*(too large|exceed)|511"),
        "takes no key of more than 511 bytes and no empty one",
        "Use a shorter key.",
    ),
    (
        re.compile(r"CORRUPTED|PAGE_NOTFOUND|MDB_INVALID|BAD_TXN"),
        "has a damaged file",
        "Take a copy from a backup, or `tidegate datalog dump` what can still be read.",
    ),
)
"""What the storage under Datalevin says went wrong, in words, and what to do."""


def _told_of_storage(message: str, place: str) -> tuple[str, str] | None:
    """A text of the storage as what happened and what to do; None for any other text."""
    if _STORAGE.search(message) is None:
        return None
    for pattern, said, hint in _REASONS:
        if pattern.search(message):
            return f"{place} {said}. Nothing was changed.", hint
    cause = re.sub(r"\s*#error\s*\{?|:cause\s*|\bLMDB\b", " ", message).strip(" :{}")
    reason = f": {cause}" if cause else ""
    return (
        f"The files of {place} could not be read or written{reason}. Nothing was changed.",
        "Retry. If it fails again, see whether the disk has room and the files can be written.",
    )


def translate(fault: Fault, place: str, *, is_remote: bool) -> TidegateError:
    """The error for the caller. `place` is the source as people are shown it."""
    details = {"engine_code": fault.code}
    if fault.absent is not None:
        details["absent"] = fault.absent
    if fault.field is not None:
        details["field"] = fault.field
    code = _CODES.get(fault.code, Code.SQL_FAILED)
    message, hint = fault.message, None
    if code is Code.SQL_FAILED:
        code, message, hint = _told_by_text(message, place, is_remote=is_remote)
        if code is not Code.SQL_FAILED:
            del details["engine_code"]  # `:tool-error`, which says less
        if is_remote and code is Code.SOURCE_UNREACHABLE and _UNAUTHENTICATED.search(fault.message):
            details["cause"] = ACCOUNT
    if fault.absent is not None:
        hint = "Check the name; a call that only reads makes nothing."
    return TidegateError(code, message, hint=hint, details=details)


def _told_by_text(message: str, place: str, *, is_remote: bool) -> tuple[Code, str, str | None]:
    """The code, message and hint of an error that Datalevin has no keyword for."""
    if _REFUSED_FUNCTION.search(message):
        return Code.SQL_FUNCTION, message, None
    if "Value out of range for long" in message:
        said = "A fact has a number beyond 64 bits, with which Datalevin compares no other value."
        return Code.SQL_FAILED, said, "Name the attribute of the value that is searched for."
    storage = None if is_remote else _told_of_storage(message, place)
    if storage is not None:
        return Code.SQL_FAILED, *storage
    if not is_remote:
        return Code.SQL_FAILED, message, None
    if _UNKNOWN_OUTCOME.search(message):
        lost = f"{place} was lost while it made the change: it is unknown whether it did."
        return Code.SQL_OUTCOME, lost, None
    if _UNREACHABLE.search(message):
        return Code.SOURCE_UNREACHABLE, f"{place} cannot be reached: {message}", None
    if _UNAUTHENTICATED.search(message):
        hint = "Check the user and the password in the source's URL."
        return Code.SOURCE_UNREACHABLE, f"{place} refuses the login: {message}", hint
    if _FORBIDDEN.search(message):
        return Code.SQL_FAILED, message, "The user in the source's URL may not do that there."
    return Code.SQL_FAILED, message, None


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
