"""Maps exceptions of DuckDB to coded errors, without paths of this machine."""

from __future__ import annotations

import re

import duckdb

from tidegate.engines.common.errors import shortened
from tidegate.errors import EQUIVALENT_SQLSTATE, Code, TidegateError

_PATH = re.compile(r"(?<![\w.])(?:/[^\s/'\"]+){2,}/?")
_HOLDER = re.compile(r"\(PID (\d+)\)")
_SUGGESTION = re.compile(r"^(Did you mean|Candidate bindings:).*", re.MULTILINE)

_READ_ONLY = ("attached in read-only mode", "launched in read-only mode")

_KINDS: tuple[tuple[type[Exception], Code, str, str | None], ...] = (
    (
        duckdb.InterruptException,
        Code.CALL_CANCELLED,
        "The statement was interrupted.",
        None,
    ),
    (
        duckdb.OutOfMemoryException,
        Code.LIMIT_BYTES,
        "The statement needs more memory than it may have.",
        "Read less at once: filter, aggregate earlier, or sort less.",
    ),
    (
        duckdb.PermissionException,
        Code.POLICY_DENIED,
        "DuckDB reaches no files and no network from here.",
        "Use the tables of this database.",
    ),
    (
        duckdb.FatalException,
        Code.SOURCE_UNREACHABLE,
        "DuckDB gave up on the database; it is opened again for the next statement.",
        None,
    ),
)


_STATES: tuple[tuple[type[Exception], str, str], ...] = (
    (duckdb.ConstraintException, "NOT NULL constraint", "23502"),
    (duckdb.ConstraintException, "oreign key constraint", "23503"),
    (duckdb.ConstraintException, "CHECK constraint", "23514"),
    (duckdb.ConstraintException, "uplicate key", "23505"),
    (duckdb.ConstraintException, "", "23000"),
    (duckdb.ParserException, "", "42601"),
    (duckdb.CatalogException, "Column with name", "42701"),
    (duckdb.CatalogException, "already exists", "42P07"),
    (duckdb.CatalogException, "Table with name", "42P01"),
    (duckdb.CatalogException, "Function with name", "42883"),
    (duckdb.BinderException, "does not have a column", "42703"),
    (duckdb.BinderException, "not found in FROM clause", "42703"),
    (duckdb.BinderException, "Referenced update column", "42703"),
    (duckdb.BinderException, "does not exist on left side", "42703"),
    (duckdb.BinderException, "does not exist on right side", "42703"),
    (duckdb.BinderException, "duplicate alias", "42712"),
    (duckdb.BinderException, "mbiguous", "42702"),
    (duckdb.BinderException, "Referenced table", "42P01"),
    (duckdb.BinderException, "Duplicate column name", "42701"),
    (duckdb.BinderException, "must appear in the GROUP BY clause", "42803"),
    (duckdb.BinderException, "cannot contain aggregates", "42803"),
    (duckdb.BinderException, "aggregate function calls cannot be nested", "42803"),
    (duckdb.BinderException, "No function matches", "42883"),
    (duckdb.BinderException, "columns but", "42601"),
    (duckdb.BinderException, "Column name/value mismatch", "42601"),
    (duckdb.BinderException, "same number of result", "42601"),
    (duckdb.BinderException, "Subquery returns", "42601"),
    (duckdb.BinderException, "term out of range", "42P10"),
    (duckdb.InvalidInputException, "More than one row returned by a subquery", "21000"),
    (duckdb.ConversionException, "field value out of range", "22008"),
    (duckdb.ConversionException, "invalid date field format", "22007"),
    (duckdb.ConversionException, "invalid timestamp field format", "22007"),
    (duckdb.ConversionException, "Could not cast value", "22003"),
    (duckdb.ConversionException, "out of range", "22003"),
    (duckdb.ConversionException, "", "22P02"),
    (duckdb.OutOfRangeException, "", "22003"),
)
"""The SQLSTATE that PostgreSQL has for the same: a kind of error, and a part of its message."""


def translate(error: Exception) -> TidegateError:
    """The coded error for what DuckDB raised. Raises it again if it is not DuckDB's."""
    if isinstance(error, TidegateError):
        return error
    if isinstance(error, duckdb.IOException):
        return _file_error(shortened(str(error)))
    for kind, code, message, hint in _KINDS:
        if isinstance(error, kind):
            return TidegateError(code, message, hint=hint, details={"duckdb": kind.__name__})
    if isinstance(error, duckdb.Error):
        return _statement_error(error)
    if isinstance(error, UnicodeError):
        return TidegateError(Code.SQL_UNREADABLE, "The statement or a value is not valid Unicode.")
    raise error


_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_CSV_FILE = re.compile(r"^  file = (.+)$", re.MULTILINE)
_CSV_COLUMN = re.compile(r'^Error when converting column "(.*?)"\. ', re.MULTILINE)
_CSV_TYPE = re.compile(r"^Column .* is being converted as type (.+)$", re.MULTILINE)
_CSV_REASONS = (
    ("Invalid unicode", "is not UTF-8 text; save the file as UTF-8"),
    ("unterminated quote", "has a quote that does not end"),
    ("Expected Number of Columns", "has another number of columns"),
    ("Maximum line size", "is too long"),
)
_FILE_FAULT = re.compile(
    r"(?:[A-Z][A-Za-z ]* Error: )*((?s:.+) cannot be read: .+|Malformed JSON in file .+)"
)


def file_fault(text: str) -> str | None:
    """Why a file of a folder cannot be read, without any of its values, which may be hidden from
    the caller; None if the error is of something else."""
    line = _CSV_LINE.search(text)
    if line is None:
        found = _FILE_FAULT.match(text)
        return found[1].strip().rstrip(".") if found else None
    column, kind, file = (each.search(text) for each in (_CSV_COLUMN, _CSV_TYPE, _CSV_FILE))
    if column and kind:
        reason = f"has in the column {column[1]} what is not {kind[1]}"
    else:
        reason = next(
            (meaning for word, meaning in _CSV_REASONS if word in text), "is not like the others"
        )
    name = file[1] if file else "the file"
    return f"{_PATH.sub('<path>', name)} cannot be read: line {line[1]} {reason}"


def writes(error: Exception) -> bool:
    """Whether DuckDB refused to write where it may only read."""
    text = shortened(str(error))
    return any(word in text for word in _READ_ONLY)


def _file_error(text: str) -> TidegateError:
    if "lock" in text:
        holder = _HOLDER.search(text)
        who = f"process {holder[1]}" if holder else "another process"
        return TidegateError(
            Code.SOURCE_BUSY,
            f"The database file is held by {who}.",
            hint="DuckDB lets one process write a file or several read it. Retry, or end that one.",
        )
    if "does not exist" in text or "No such file" in text:
        return TidegateError(Code.SOURCE_UNREACHABLE, "The database file was removed.")
    if "not a valid DuckDB" in text:
        return TidegateError(
            Code.SOURCE_URL,
            "The file is not a DuckDB database.",
            hint="Correct the source's URL: it must name a file that DuckDB wrote.",
        )
    if "No space left" in text:
        return TidegateError(
            Code.SOURCE_UNREACHABLE,
            "The disk is full; nothing was changed.",
            hint="Free some space, then retry.",
        )
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        "Reading or writing the database file failed.",
        hint="Check the file, the rights on it, and the version of DuckDB that wrote it.",
        details={"duckdb": _PATH.sub("<path>", text.splitlines()[0])[:300]},
    )


def _statement_error(error: duckdb.Error) -> TidegateError:
    text = shortened(str(error))
    details = {"duckdb": type(error).__name__}
    sqlstate = next(
        (state for kind, part, state in _STATES if isinstance(error, kind) and part in text), None
    )
    if sqlstate is not None:
        details[EQUIVALENT_SQLSTATE] = sqlstate
    fault = file_fault(text)
    if fault is not None:
        what, _, command = fault.partition(". Run: ")
        hint = f"Run: {command}" if command else "Correct the file."
        hint = f"The other tables can be read. {hint}"
        return TidegateError(Code.SQL_FAILED, f"{what}.", hint=hint, details=details)
    if writes(error):
        return TidegateError(
            Code.POLICY_READ_ONLY, "DuckDB refused the statement: it would write.", details=details
        )
    if isinstance(error, duckdb.TransactionException) and "onflict" in text:
        return TidegateError(
            Code.SOURCE_BUSY, "Another statement changed the same rows.", details=details
        )
    if "alues were not provided" in text or "excess parameters" in text.lower():
        return TidegateError(
            Code.ARGUMENT_INVALID, "The parameters do not match the placeholders.", details=details
        )
    head, _, _ = text.partition("\n\nLINE ")
    head, _, _ = head.partition("\n\t")  # every form of a function, one a line
    suggestion = _SUGGESTION.search(head)
    hint = suggestion[0] if suggestion else _hint(error)
    message = _PATH.sub("<path>", _SUGGESTION.sub("", head).strip())
    return TidegateError(Code.SQL_FAILED, message or "DuckDB failed.", hint=hint, details=details)


def _hint(error: duckdb.Error) -> str | None:
    if isinstance(error, duckdb.CatalogException):
        return "Search or list the tables, then use a name from there."
    if isinstance(error, duckdb.BinderException):
        return "Describe the table to see its columns and their types."
    return None
