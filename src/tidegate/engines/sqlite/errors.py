"""Maps exceptions of SQLite to coded errors, without paths of this machine."""

from __future__ import annotations

import re
from typing import Any

import apsw

from tidegate.engines.common.errors import shortened
from tidegate.engines.sqlite.apsw_types import Failure, failure_of
from tidegate.errors import EQUIVALENT_SQLSTATE, Code, TidegateError

_CODES: dict[int, Code] = {
    apsw.SQLITE_AUTH: Code.POLICY_READ_ONLY,
    apsw.SQLITE_READONLY: Code.POLICY_READ_ONLY,
    apsw.SQLITE_BUSY: Code.SOURCE_BUSY,
    apsw.SQLITE_LOCKED: Code.SOURCE_BUSY,
    apsw.SQLITE_TOOBIG: Code.LIMIT_BYTES,
    apsw.SQLITE_NOMEM: Code.LIMIT_BYTES,
    apsw.SQLITE_FULL: Code.SOURCE_UNREACHABLE,
    apsw.SQLITE_IOERR: Code.SOURCE_UNREACHABLE,
    apsw.SQLITE_CORRUPT: Code.SOURCE_UNREACHABLE,
    apsw.SQLITE_NOTADB: Code.SOURCE_URL,
    apsw.SQLITE_CANTOPEN: Code.SOURCE_UNREACHABLE,
    apsw.SQLITE_PERM: Code.SOURCE_UNREACHABLE,
    apsw.SQLITE_PROTOCOL: Code.SOURCE_BUSY,
}

_MESSAGES: dict[int, tuple[str, str | None]] = {
    apsw.SQLITE_BUSY: ("The database is locked by another writer.", None),
    apsw.SQLITE_LOCKED: ("The table is locked by another statement.", None),
    apsw.SQLITE_NOMEM: ("SQLite ran out of memory.", None),
    apsw.SQLITE_FULL: (
        "The disk or the database is full; nothing was changed.",
        "Free some space, then retry.",
    ),
    apsw.SQLITE_IOERR: (
        "Reading or writing the database file failed.",
        "Check the disk that holds the database.",
    ),
    apsw.SQLITE_CORRUPT: (
        "The database file is damaged.",
        "Restore it from a backup; PRAGMA integrity_check tells what is wrong.",
    ),
    apsw.SQLITE_NOTADB: (
        "The file is not a SQLite database, or it is encrypted.",
        "Correct the source's URL: it must name a file that SQLite wrote.",
    ),
    apsw.SQLITE_CANTOPEN: (
        "SQLite cannot open the database file.",
        "Check that this process may read the file and its folder.",
    ),
    apsw.SQLITE_PERM: (
        "The operating system refuses access to the database file.",
        "Check the rights on the file.",
    ),
}

_INTERRUPTED = frozenset(
    {
        apsw.SQLITE_READONLY_ROLLBACK,
        apsw.SQLITE_READONLY_RECOVERY,
        apsw.SQLITE_READONLY_CANTINIT,
        apsw.SQLITE_READONLY_CANTLOCK,
        apsw.SQLITE_READONLY_DIRECTORY,
    }
)
"""A change was cut off by a crash, and a connection that only reads cannot undo it."""

_HINTS = (
    (re.compile(r"^no such table"), "Search or list the tables, then use a name from there."),
    (
        re.compile(r'^no such column: ".*" - should this be a string literal', re.DOTALL),
        "Write a text in single quotes, 'text': double quotes are around names.",
    ),
    (re.compile(r"^no such column"), "Describe the table to see its columns."),
    (re.compile(r"^no such function"), "Use a function that SQLite has."),
    (re.compile(r"^ambiguous column"), "Write the table's name before the column."),
    (re.compile(r'^unrecognized token: ":"'), "Write CAST(value AS type) in place of value::type."),
)

_STATES = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: "23505",
    apsw.SQLITE_CONSTRAINT_PRIMARYKEY: "23505",
    apsw.SQLITE_CONSTRAINT_ROWID: "23505",
    apsw.SQLITE_CONSTRAINT_NOTNULL: "23502",
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: "23503",
    apsw.SQLITE_CONSTRAINT_CHECK: "23514",
}
_STATES_OF_MESSAGES = (
    (re.compile(r"^no such table"), "42P01"),
    (re.compile(r"^(no such column|table .+ has no column|cannot join using column)"), "42703"),
    (re.compile(r"^(no such function|wrong number of arguments to function)"), "42883"),
    (re.compile(r"^ambiguous column"), "42702"),
    (re.compile(r"^duplicate column name"), "42701"),
    (re.compile(r"^(there is already a|(table|view|index|trigger) .+ already exists$)"), "42P07"),
    (re.compile(r"^misuse of aggregate"), "42803"),
    (re.compile(r"^\d+(st|nd|rd|th) (ORDER|GROUP) BY term out of range"), "42P10"),
    (re.compile(r"^table .+ has \d+ values for \d+ columns$"), "42P10"),
    (
        re.compile(
            r"^(\d+ values for \d+ columns|table .+ has \d+ columns but \d+ values were supplied"
            r"|SELECTs to the left and right of .+ do not have the same number"
            r"|sub-select returns \d+ columns|all VALUES must have the same number)"
        ),
        "42601",
    ),
    (re.compile(r"syntax error|^incomplete input|^unrecognized token"), "42601"),
)
"""The SQLSTATE that PostgreSQL has for the same, by SQLite's extended code or its message."""

_PATH = re.compile(r"(?<![\w.])(?:/[^\s/'\"]+){2,}/?")


def is_quoted_text(error: apsw.Error) -> bool:
    """Whether SQLite takes a name in double quotes, which nothing has, for a text meant so."""
    return "should this be a string literal" in str(error)


def translate(
    error: Exception,
    *,
    refused: str | None = None,
    max_value_bytes: int | None = None,
    text: str | None = None,
) -> TidegateError:
    """The coded error for what SQLite, or the binding of values, raised.

    `refused` is what the authorizer refused last, `max_value_bytes` the limit that held, `text`
    what was prepared.
    """
    if isinstance(error, TidegateError):
        return error
    if isinstance(error, apsw.Error):
        return _sqlite_error(error, refused, max_value_bytes, text)
    if isinstance(error, UnicodeDecodeError):
        return TidegateError(
            Code.SQL_FAILED,
            "A text value is not valid UTF-8.",
            hint="Select it with CAST(column AS BLOB).",
        )
    if isinstance(error, UnicodeEncodeError):
        return TidegateError(
            Code.SQL_UNREADABLE, "The statement or a value holds a lone surrogate."
        )
    if isinstance(error, OverflowError):
        return TidegateError(
            Code.ARGUMENT_INVALID, "A parameter is an integer of more than 64 bits."
        )
    if isinstance(error, TypeError):
        return TidegateError(
            Code.ARGUMENT_INVALID,
            "A parameter has a type that SQLite does not know.",
            hint="Send null, true, false, numbers or text.",
        )
    if isinstance(error, ValueError):
        return TidegateError(Code.SQL_UNREADABLE, "The statement holds a NUL character.")
    if isinstance(error, MemoryError):
        return TidegateError(Code.LIMIT_BYTES, "There is no memory left for the result.")
    raise error


def _sqlite_error(
    error: apsw.Error, refused: str | None, max_value_bytes: int | None, text: str | None
) -> TidegateError:
    if isinstance(error, apsw.BindingsError):
        return TidegateError(Code.ARGUMENT_INVALID, "The parameters do not match the placeholders.")
    failure = failure_of(error)
    result = failure.result
    details: dict[str, Any] = {"sqlite": _name(failure)}
    if failure.extended in _INTERRUPTED:
        return TidegateError(
            Code.SOURCE_UNREACHABLE,
            "A change of the database was cut off, and must be undone before it can be read.",
            hint="Open the database once with a program that may write to it.",
            details=details,
        )
    code = Code.POLICY_READ_ONLY if refused else _CODES.get(result, Code.SQL_FAILED)
    if code is Code.POLICY_READ_ONLY:
        what = f": {refused}" if refused else ""
        return TidegateError(code, f"SQLite refused the statement{what}.", details=details)
    if result == apsw.SQLITE_TOOBIG and max_value_bytes is not None:
        return TidegateError(
            code,
            f"A value is larger than {max_value_bytes} bytes, the most this statement may handle.",
            hint="Leave that value out, or use fewer text functions at once.",
            details=details,
        )
    known = _MESSAGES.get(result)
    if known is not None:
        return TidegateError(code, known[0], hint=known[1], details=details)
    message = _PATH.sub("<path>", shortened(str(error))) or "SQLite failed."
    sqlstate = _sqlstate(failure, message)
    if sqlstate is not None:
        details[EQUIVALENT_SQLSTATE] = sqlstate
    if failure.offset >= 0 and text is not None:
        before = text.encode("utf-8", "replace")[: failure.offset]
        details["position"] = len(before.decode("utf-8", "replace")) + 1
    hint = next((hint for pattern, hint in _HINTS if pattern.search(message)), None)
    return TidegateError(code, message, hint=hint, details=details)


def _sqlstate(failure: Failure, message: str) -> str | None:
    if failure.result == apsw.SQLITE_CONSTRAINT:
        return _STATES.get(failure.extended, "23000")
    return next((state for found, state in _STATES_OF_MESSAGES if found.search(message)), None)


def _name(failure: Failure) -> str:
    names = apsw.mapping_extended_result_codes, apsw.mapping_result_codes
    return str(names[0].get(failure.extended) or names[1].get(failure.result) or "apsw")
