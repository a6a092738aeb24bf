"""The errors that all engines share: of a stopped statement and of a lost connection.
The errors of one database are in the `errors.py` of its engine."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError


def stopped(cause: str, timeout_s: float | None = None) -> TidegateError:
    """The error of a statement that was stopped. `cause` is `time`, `space`, `closed`, or the
    caller's reason."""
    if cause == "time":
        after = f" after {round(timeout_s, 2):g} s" if timeout_s is not None else ""
        return TidegateError(Code.LIMIT_TIME, f"The statement was stopped{after}.")
    if cause == "space":
        return TidegateError(
            Code.LIMIT_BYTES,
            "The statement needs too much temporary space.",
            hint="Sort, group or join fewer rows at once.",
        )
    if cause == "closed":
        return TidegateError(
            Code.SOURCE_NOT_CONNECTED, "The source was closed while the statement ran."
        )
    return TidegateError(Code.CALL_CANCELLED, "The call was cancelled.")


def closed() -> TidegateError:
    """The error of a source that gives out nothing any more."""
    return TidegateError(
        Code.SOURCE_NOT_CONNECTED,
        "The source was closed meanwhile.",
        hint="Send the call again, unless you closed the source.",
    )


def lost(writing: bool = False) -> TidegateError:
    """The error of a connection that broke while it was used."""
    hint = (
        "Check what was changed before you retry: the server may have gone on."
        if writing
        else "Retry; the gate reconnects."
    )
    return TidegateError(
        Code.SOURCE_UNREACHABLE, "The connection to the database server was lost.", hint=hint
    )


def outcome_unknown() -> TidegateError:
    """The error of a change whose connection broke while the server committed it."""
    return TidegateError(
        Code.SQL_OUTCOME,
        "The connection was lost while the server committed the change: it may have taken effect.",
        hint="Look whether the change is there before you send it again.",
    )


ACCOUNT = "account"
"""`details["cause"]` where the server refuses the account or its password, or wants one."""

DRIVER = "driver"
"""`details["cause"]` where the driver does not read the URL."""

RIGHT_OR_NAME = "right or name"
"""`details["cause"]` where a database does not say whether a name is unknown or a right lacking."""

PROCESS = "process"
"""`details["cause"]` where the process that a driver ran in has ended, with all that it held."""

LOGIN = "login"
"""`details["cause"]` where the server refuses the login, and another password would not help."""

DATABASE = "database"
"""`details["cause"]` where the server has no such database."""

ANSWERED = frozenset({ACCOUNT, LOGIN, DATABASE})
"""Causes of a failed connection that waiting does not change: the server has answered."""

MAX_MESSAGE = 2_000
"""Characters of a database's message that are read; a caller can make one of any length."""


def shortened(text: str) -> str:
    """The text, or its beginning if it is longer than `MAX_MESSAGE` characters."""
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}..."


SEVERAL_ROWS = "several rows"
"""`details["cause"]` where rows are too large together that were to come at once."""


def too_large(most_bytes: int, rows: int = 1) -> TidegateError:
    """The error of rows that a server sends and that would not fit into our memory. `rows`: how
    many may have come together."""
    if rows > 1:
        return TidegateError(
            Code.LIMIT_BYTES,
            f"The rows are too large: of {rows} that come together, at most"
            f" {most_bytes // 2**20} MiB are taken in.",
            hint="Select a part of the large values, like left(column, 1000), or their length.",
            details={"cause": SEVERAL_ROWS},
        )
    return TidegateError(
        Code.LIMIT_BYTES,
        f"A value is too large: of one row, at most {most_bytes // 2**20} MiB are taken in.",
        hint="Select a part of it, like left(column, 1000), or its length.",
    )


def folder_is_read_only() -> TidegateError:
    """The error of a statement that would change a folder of files."""
    return TidegateError(
        Code.POLICY_READ_ONLY,
        "A folder of files is only read.",
        hint="Change the files with another program: the next statement sees them.",
    )


def no_values() -> TidegateError:
    """The refusal to plan a statement whose placeholders have no values, by databases that plan for
    values: with NULL in their places the plan would be one that finds nothing."""
    return TidegateError(
        Code.ARGUMENT_INVALID,
        "This database plans a statement for its values, and the placeholders have none.",
        hint="Write typical values in the place of the placeholders.",
    )
