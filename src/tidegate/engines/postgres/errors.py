"""Maps failures of PostgreSQL to coded errors, without paths, hosts or users."""

from __future__ import annotations

import re
from typing import Any

from psycopg.pq import DiagnosticField
from psycopg.pq.abc import PGresult

from tidegate.engines.common.errors import ACCOUNT, DATABASE, LOGIN, MAX_MESSAGE, lost, stopped
from tidegate.engines.common.roles import role_refused
from tidegate.errors import ERROR_DETAIL, Code, TidegateError
from tidegate.model.sources import Identity

_CODES: dict[str, Code] = {
    "25006": Code.POLICY_READ_ONLY,
    "08P01": Code.ARGUMENT_INVALID,
    "53300": Code.SOURCE_BUSY,
    "55P03": Code.SOURCE_BUSY,
    "40001": Code.SOURCE_BUSY,
    "40P01": Code.SOURCE_BUSY,
    "54001": Code.SQL_TOO_DEEP,
    "57P01": Code.SOURCE_UNREACHABLE,
    "57P02": Code.SOURCE_UNREACHABLE,
    "57P03": Code.SOURCE_UNREACHABLE,
    "57P05": Code.SOURCE_UNREACHABLE,
    "58030": Code.SOURCE_UNREACHABLE,
}
"""By SQLSTATE; what is not here is SQL_FAILED, and class 08 SOURCE_UNREACHABLE."""

_HINTS = {
    "42P01": "Search or list the tables, then use a name from there.",
    "42703": "Describe the table to see its columns.",
    "42883": "Check the function's name and the types of its arguments; cast with ::type.",
    "42702": "Write the table's name before the column.",
    "42501": "Ask the operator: the account of this source may not do that.",
    "08P01": "Give as many parameters as there are placeholders ($1, $2, ...).",
    "42P18": "Give the placeholder a type, like $1::text.",
    "22021": "Select a text that is not valid as bytes: convert_to(column, 'SQL_ASCII').",
    "25001": "PostgreSQL runs this only outside a transaction, and the gate uses one for it.",
    "2D000": "A procedure that commits runs by CALL alone, and not within another one's block.",
    "53300": "The server has no free connection; retry in a moment.",
}

_PATH = re.compile(r"(?<![\w.])(?:/[^\s/'\"]+){2,}/?")
_SECRET_OPTION = re.compile(r"(?i)(password|user|host|hostaddr)\s*=\s*\S+")
_USER = re.compile(r'(?i)\b(user|role|host) "[^"]*"')

_SERVER = re.compile(r'connection to server ((?:at|on socket) "[^"]*")(?: \([^)]*\))?(, port \d+)?')
_SEVERITY = re.compile(r"^FATAL:\s+")
_NO_LOGIN = re.compile(
    r"authentication failed|no pg_hba\.conf entry|pg_hba\.conf rejects|not permitted to log in"
    r"|\brole \S+ does not exist"
)
"""What the server says where no password would help."""

_NAMES = {
    "schema_name": DiagnosticField.SCHEMA_NAME,
    "table_name": DiagnosticField.TABLE_NAME,
    "column_name": DiagnosticField.COLUMN_NAME,
    "datatype_name": DiagnosticField.DATATYPE_NAME,
    "constraint_name": DiagnosticField.CONSTRAINT_NAME,
}
"""What an error is about, by its name in the details."""

CANCELED = "57014"
_RAISED = frozenset({"exec_stmt_raise", "PLy_output", "pltcl_elog", "throw_tcl_error"})
"""The server's functions by which those of users raise errors, with a SQLSTATE of their choice."""
NO_ROLE_OUTSIDE = "The statement runs outside a transaction, where no caller's role can be taken."

_ROLE_REFUSED = frozenset({"22023", "42501", "42602", "42704"})
"""What is said of a role that is not there, or not granted, and of a variable with a bad name."""


def sqlstate_of(result: PGresult) -> str:
    """The five letters; empty if libpq itself made the error."""
    return (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()


def is_unknown_name(result: PGresult) -> bool:
    """Whether a command failed because of the name that its statement was prepared by."""
    return sqlstate_of(result) in ("26000", "42P05")


def is_stale_plan(result: PGresult) -> bool:
    """Whether a prepared statement was refused, before it ran, because its columns changed."""
    return sqlstate_of(result) == "0A000" and _from(result) == "RevalidateCachedQuery"


def translate(result: PGresult) -> TidegateError:
    """The coded error of a failed result. PostgreSQL reports a statement that ran out of
    time and a cancelled one alike; `RunningStatement.failure` tells them apart."""
    sqlstate = sqlstate_of(result)
    if not sqlstate:
        return lost()
    if sqlstate == CANCELED and _from(result) not in _RAISED:
        return stopped("time")
    if sqlstate == "42601" and _from(result) == "exec_parse_message":
        return TidegateError(
            Code.SQL_MULTIPLE, "The text holds more than one statement.", details=_details(result)
        )
    code = _CODES.get(sqlstate)
    if code is None:
        code = Code.SOURCE_UNREACHABLE if sqlstate.startswith("08") else Code.SQL_FAILED
    message = _field(result, DiagnosticField.MESSAGE_PRIMARY) or "PostgreSQL failed."
    detail = _field(result, DiagnosticField.MESSAGE_DETAIL)
    details = _details(result)
    if detail and code is Code.SQL_FAILED:
        details[ERROR_DETAIL] = clean(detail)
        message = f"{message}: {detail}"
    hint = _field(result, DiagnosticField.MESSAGE_HINT) or _HINTS.get(sqlstate)
    return TidegateError(code, clean(message), hint=hint and clean(hint), details=details)


def failed_outside(result: PGresult) -> TidegateError:
    """The coded error of a statement that ran outside a transaction: nothing undoes it."""
    error = translate(result)
    left = "It ran outside a transaction: check what it has done, such as an invalid index."
    error.hint = f"{left} {error.hint}" if error.code is Code.SQL_FAILED else left
    return error


def rejected(result: PGresult, identity: Identity | None) -> TidegateError:
    """The coded error of a transaction that did not begin as it was to, perhaps since the server
    does not let us be who the caller is."""
    if identity is None or sqlstate_of(result) not in _ROLE_REFUSED:
        return translate(result)
    return role_refused(
        "The database did not let the source's account take the caller's role: "
        + clean(_field(result, DiagnosticField.MESSAGE_PRIMARY)),
        sqlstate=sqlstate_of(result),
    )


def unreachable(message: str) -> TidegateError:
    """The coded error of a connection that could not be made, from libpq's own words."""
    # libpq adds questions to its reasons, on lines of their own that begin with a tab; the server
    # adds details to its own.
    lines = [line for line in message[-MAX_MESSAGE:].splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith(("\t", "DETAIL:", "HINT:"))] or lines
    text = _of_each_server(reasons) or _SEVERITY.sub(
        "", clean(reasons[-1].strip() if reasons else "no answer")
    )
    hint = None
    details: dict[str, Any] = {}
    if "password authentication failed" in text or "no password supplied" in text:
        hint = "Check the user and the password that the source's URL refers to."
        details["cause"] = ACCOUNT
    elif _NO_LOGIN.search(text):
        hint = "Ask who runs the server to let the account of the source's URL log in from here."
        details["cause"] = LOGIN
    elif text.startswith("invalid "):  # libpq does not take what the URL says, and never will
        return TidegateError(Code.SOURCE_URL, f"The URL cannot be used: {text}")
    elif "does not exist" in text:
        hint = "Check the database's and the user's name in the source's URL."
        if text.startswith("database "):
            details["cause"] = DATABASE
    elif "SSL" in text or "certificate" in text:
        hint = "Check sslmode and sslrootcert in the source's URL."
    refused = details.get("cause") in (ACCOUNT, LOGIN)
    failed = "refused the login of the source's account" if refused else "cannot be reached"
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        f"PostgreSQL {failed}: {text}",
        hint=hint,
        details=details,
    )


def _of_each_server(reasons: list[str]) -> str:
    """The reason of each server of a URL that names several, by its place there; empty for one. The
    last may be a standby that rightly refuses, which says nothing of the fault."""
    last: dict[str, str] = {}
    for reason in reasons:
        found = _SERVER.match(reason.strip())
        if found is not None:
            last[found[1] + (found[2] or "")] = _SEVERITY.sub("", clean(reason.strip()))
    if len(last) < 2:
        return ""
    return "; ".join([f"server {place}: {text}" for place, text in enumerate(last.values(), 1)])


def clean(text: str) -> str:
    """A text without paths, hosts and users."""
    text = re.sub(r"^.*\bfailed: (?=\S)", "", text)
    text = _SECRET_OPTION.sub(r"\1=***", text)
    return _USER.sub(r"\1 ***", _PATH.sub("<path>", text))


def _details(result: PGresult) -> dict[str, Any]:
    details: dict[str, Any] = {"sqlstate": sqlstate_of(result)}
    position = _field(result, DiagnosticField.STATEMENT_POSITION)
    if position:
        details["position"] = int(position)
    for name, field in _NAMES.items():
        if value := _field(result, field):
            details[name] = value
    return details


def _from(result: PGresult) -> str:
    return _field(result, DiagnosticField.SOURCE_FUNCTION)


def _field(result: PGresult, field: DiagnosticField) -> str:
    return (result.error_field(field) or b"")[:MAX_MESSAGE].decode(errors="replace")
