"""Decides what is said, by every engine alike, of a statement that was ended or a line that broke.
What one database says in its own words is in its own `faults.py`."""

from __future__ import annotations

from tidegate.errors import Code, GateError


def stopped(cause: str, timeout_s: float | None = None) -> GateError:
    """The error of a statement that was told to end: `time`, `space`, `closed`, or the caller's
    reason."""
    if cause == "time":
        after = f" after {timeout_s:g} s" if timeout_s is not None else ""
        return GateError(Code.LIMIT_TIME, f"The statement was stopped{after}.")
    if cause == "space":
        return GateError(
            Code.LIMIT_BYTES,
            "The statement needs too much temporary space.",
            hint="Sort, group or join fewer rows at once.",
        )
    if cause == "closed":
        return GateError(
            Code.SOURCE_NOT_CONNECTED, "The source was closed while the statement ran."
        )
    return GateError(Code.CALL_CANCELLED, "The call was cancelled.")


def closed() -> GateError:
    """The error of a source that gives out nothing any more."""
    return GateError(Code.SOURCE_NOT_CONNECTED, "The source is closed.")


def lost(writing: bool = False) -> GateError:
    """The error of a connection that broke while it was used."""
    hint = (
        "Check what was changed before you retry: the server may have gone on."
        if writing
        else "Retry; the gate connects anew."
    )
    return GateError(
        Code.SOURCE_UNREACHABLE, "The connection to the server was lost meanwhile.", hint=hint
    )


def too_large(most_bytes: int) -> GateError:
    """The error of rows that a server sends and that would not fit into our memory."""
    return GateError(
        Code.LIMIT_BYTES,
        f"A value is too large: of one row, at most {most_bytes // 2**20} MiB are taken in.",
        hint="Select a part of it, like left(column, 1000), or its length.",
    )
