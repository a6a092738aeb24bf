"""Maps what a JDBC driver says to coded errors. The SQLSTATE decides: its first two characters are
the same for all databases (ISO 9075-2, clause 24)."""

from __future__ import annotations

import re
from typing import Any

from tidegate.engines.common.errors import ACCOUNT, DRIVER, PROCESS, RIGHT_OR_NAME, shortened
from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.engine.jvm.process import JvmFault
from tidegate.secrets.redaction import mask_shapes

_BY_STATE: dict[str, Code] = {
    "57014": Code.CALL_CANCELLED,
    "25006": Code.POLICY_READ_ONLY,
    "25502": Code.POLICY_READ_ONLY,  # Derby
    "25503": Code.POLICY_READ_ONLY,
    "25505": Code.POLICY_READ_ONLY,
    "40001": Code.SOURCE_BUSY,
    "40P01": Code.SOURCE_BUSY,
    "40XL1": Code.SOURCE_BUSY,
    "55P03": Code.SOURCE_BUSY,
    "53300": Code.SOURCE_BUSY,
    "HYT00": Code.LIMIT_TIME,
    "HY008": Code.CALL_CANCELLED,
}
_LOST = frozenset(
    {"08000", "08001", "08003", "08004", "08006", "08007", "08S01"}
    | {"57P01", "57P02", "90067", "90121"}
)
"""PostgreSQL and H2 have states of their own for it."""
_RIGHT_OR_NAME = frozenset({("hsqldb", -5501)})
SESSION = "session"
"""`details["cause"]` where the database has ended its session, or is not there any more."""
_BY_NUMBER: dict[tuple[str, int], Code] = {
    ("h2", 90097): Code.POLICY_READ_ONLY,
    ("h2", 57014): Code.CALL_CANCELLED,
    ("h2", 50200): Code.SOURCE_BUSY,
    ("sqlite", 8): Code.POLICY_READ_ONLY,
    ("sqlite", 5): Code.SOURCE_BUSY,
    ("sqlite", 9): Code.CALL_CANCELLED,
    ("mariadb", 1792): Code.POLICY_READ_ONLY,
    ("mariadb", 1317): Code.CALL_CANCELLED,
    ("mariadb", 1969): Code.LIMIT_TIME,
}
FILE_IN_USE = "file in use"
"""`details["cause"]` where another process has the file of a database open."""
LOCK_S = 10.0
"""How long HSQLDB respects the lock file of a process that says nothing any more."""
_HSQLDB_LOCKED = -451
_FILE_IN_USE = frozenset({_HSQLDB_LOCKED, 90020})
"""HSQLDB's and H2's numbers for that."""
_OTHER_DERBY = "Another instance of Derby"
"""Derby has it in the message of a cause."""
_ECHO = re.compile(r"; SQL statement:\n.*?(?= \[\d+-\d+\]|\Z)", re.DOTALL)
"""The whole statement, which H2 repeats in its messages."""
_TRACE = re.compile(r"\n\s*at [\w.$]+\(.*|\A(?:[\w.]+Exception: )+", re.DOTALL)
"""Java's words about where a failure was found, which some drivers put into their messages."""
_STATED = re.compile(r"SQLSTATE: ([0-9A-Z]{5})\b")
_READ_ONLY = re.compile(r"(?i)read[- ]only|readonly")
_LOGIN = re.compile(r"(?i)authentication|password")
"""Derby, and pgjdbc without a password, have the state 08004 for a login that is refused."""
_AROUND = re.compile(r"\A(?:ERROR|FATAL|PANIC): |\n +(?:Hint|Position|Where|Location|File): [^\n]*")
"""What pgjdbc writes around the words of the server."""
_SAID = re.compile(r"\n +Hint: ([^\n]+)")
"""The server's own hint, as pgjdbc writes it."""
_PATH = re.compile(r"(?<![\w.])(?:/[^\s/'\"`;]+){2,}/?")


def translate(fault: JvmFault, product: str) -> TidegateError:
    """The coded error of a statement that failed."""
    if fault.code != "sql":
        return _own(fault)
    state = _state(fault)
    code = (
        _BY_NUMBER.get((product, fault.number))
        or _BY_STATE.get(state)
        or (Code.SOURCE_UNREACHABLE if state in _LOST else None)
        or (
            Code.POLICY_READ_ONLY
            if state[:2] == "25" and _READ_ONLY.search(fault.message)
            else None
        )
        or Code.SQL_FAILED
    )
    details = _details(fault)
    if code is Code.SOURCE_UNREACHABLE:
        details["cause"] = SESSION
    if (product, fault.number) in _RIGHT_OR_NAME:
        details["cause"] = RIGHT_OR_NAME
        hint = "Check the names, and whether the account of this source may use them."
    else:
        said = _SAID.search(fault.message)
        hint = said[1].strip() if said is not None else _hint(state)
    return TidegateError(code, clean(fault.message), hint=hint, details=details)


def unconnected(fault: JvmFault) -> TidegateError:
    """The coded error of a connection that could not be made."""
    if fault.code in ("driver.missing", "driver.url"):
        return _own(fault)
    state = _state(fault)
    details = _details(fault)
    hint = None
    refused = state[:2] == "28" or (state == "08004" and _LOGIN.search(fault.message) is not None)
    if refused:
        details["cause"] = ACCOUNT
        hint = "Check the user and the password of the source."
    message = clean(fault.message)
    if fault.number in _FILE_IN_USE or _OTHER_DERBY in fault.message:
        details["cause"] = FILE_IN_USE
        message = f"Another process has the database's file open: {message}"
        hint = "Close the database there."
        if fault.number == _HSQLDB_LOCKED:
            hint += f" The lock of a process that was killed ends by itself after {LOCK_S:g} s."
    if refused:
        message = f"The database refused the login of the source's user: {message}"
    return TidegateError(Code.SOURCE_UNREACHABLE, message, hint=hint, details=details)


def ended_connecting(error: TidegateError) -> TidegateError:
    """The error of a connection under whose making the Java process ended; any other as it is."""
    if error.code is not Code.SOURCE_UNREACHABLE or error.details.get("cause") != PROCESS:
        return error
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        "The process of the database driver ended while it connected.",
        hint="Connect again. If it ends each time, `tidegate driver doctor` checks for the reason.",
        details={"cause": PROCESS},
    )


def without_account(error: TidegateError, user: str) -> TidegateError:
    """The error without the name of the source's account, which drivers repeat."""
    if user:
        named = rf"(?i)(\buser:? ?['\"]?){re.escape(user)}(?!\w)(['\"]?(?:@'[^']*')?)"
        error.message = re.sub(named, r"\1***\2", error.message)
    return error


def _state(fault: JvmFault) -> str:
    """The SQLSTATE; some drivers have it in the message only."""
    stated = None if fault.state else _STATED.search(fault.message)
    return stated[1] if stated else fault.state or ""


def clean(message: str) -> str:
    """The message without passwords in URLs, and without paths of this machine."""
    plain = _AROUND.sub("", _TRACE.sub("", _ECHO.sub("", message)).strip())
    return _PATH.sub("<path>", mask_shapes(shortened(plain)))


def _own(fault: JvmFault) -> TidegateError:
    if fault.code == "driver.missing":
        return TidegateError(
            Code.ENGINE_MISSING,
            clean(fault.message),
            hint="Correct the source's option `driver`, `driver_path` or `driver_coordinate`.",
        )
    if fault.code == "driver.url":
        return TidegateError(Code.SOURCE_URL, clean(fault.message), details={"cause": DRIVER})
    if fault.code == "limit.bytes":
        return TidegateError(Code.LIMIT_BYTES, fault.message)
    if fault.code == "argument":
        return TidegateError(Code.ARGUMENT_INVALID, fault.message)
    return TidegateError(
        Code.SQL_FAILED, f"The driver failed: {clean(fault.message)}", details={"jdbc": fault.code}
    )


def _details(fault: JvmFault) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if state := _state(fault):
        details["sqlstate"] = state
    if fault.number:
        details["jdbc"] = fault.number
    return details


def _hint(state: str) -> str | None:
    if state == "42501":
        return "Ask the operator: the account of this source may not do that."
    if state[:2] == "42" and state[2:3] in ("P", "S", "0", "Y", "X"):
        return "Check the names and the syntax: describe the table, or search for it."
    return None
