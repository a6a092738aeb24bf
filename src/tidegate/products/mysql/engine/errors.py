"""Maps failures of MySQL and MariaDB to coded errors, without paths, hosts or users."""

from __future__ import annotations

import re
from typing import Any

from tidegate.engines.common.errors import ACCOUNT, DATABASE, LOGIN, shortened
from tidegate.errors import EQUIVALENT_SQLSTATE, Code, TidegateError

_CODES: dict[int, Code] = {
    1040: Code.SOURCE_BUSY,
    1053: Code.SOURCE_UNREACHABLE,
    1065: Code.SQL_EMPTY,
    1153: Code.SQL_TOO_LONG,
    1203: Code.SOURCE_BUSY,
    1205: Code.SOURCE_BUSY,
    1210: Code.ARGUMENT_INVALID,
    1213: Code.SOURCE_BUSY,
    1226: Code.SOURCE_BUSY,
    1290: Code.POLICY_READ_ONLY,
    1317: Code.CALL_CANCELLED,
    1436: Code.SQL_TOO_DEEP,
    1792: Code.POLICY_READ_ONLY,
    1836: Code.POLICY_READ_ONLY,
    1927: Code.SOURCE_UNREACHABLE,
    1969: Code.LIMIT_TIME,
    3024: Code.LIMIT_TIME,
    4031: Code.SOURCE_UNREACHABLE,
}
"""By the server's error number; what is not here is SQL_FAILED."""

_HINTS = {
    1044: "Ask the operator: the account of this source may not use that database.",
    1046: "Write the database's name before the table's: database.table.",
    1049: "List the databases, then use a name from there.",
    1052: "Write the table's name before the column.",
    1054: "Describe the table to see its columns.",
    1142: "Ask the operator: the account of this source may not do that.",
    1143: "Ask the operator: the account of this source may not do that.",
    1146: "Search or list the tables, then use a name from there.",
    1227: "Ask the operator: the account of this source may not do that.",
    1305: "Check the function's name and its arguments.",
    1370: "Ask the operator: the account of this source may not do that.",
    1064: "Correct the syntax; placeholders are `?`.",
}

_STATES = {
    1048: "23502", 1364: "23502", 1062: "23505", 1451: "23503", 1452: "23503", 3819: "23514",
    4025: "23514", 1052: "42702", 1054: "42703", 1064: "42601", 1146: "42P01", 1305: "42883",
    1050: "42P07", 1055: "42803", 1060: "42701", 1061: "42P07", 1066: "42712", 1072: "42703",
    1110: "42701", 1111: "42803", 1136: "42601", 1140: "42803", 1222: "42601", 1241: "42601",
    1582: "42883", 4002: "42P10",
}  # fmt: skip
"""The SQLSTATE that PostgreSQL has for the same."""

_OUT_OF_RANGE = 1690
"""Quotes an expression of the text that ran, with the values of its parameters: where a column is
hashed, the key is one of them."""
_RANGE_KIND = re.compile(r"[A-Z]+( UNSIGNED)?\b")

_PATH = re.compile(r"(?<![\w.])(?:/[^\s/'\"`]+){2,}/?|\.{1,2}(?:/[^\s/'\"`]+)+")
_ACCOUNT = re.compile(r"'[^']*'@'[^']*'")


class ServerError(TidegateError):
    """What the server answered instead of a result, with its error number."""

    def __init__(self, number: int, state: str, message: str) -> None:
        super().__init__(
            _CODES.get(number, Code.SQL_FAILED),
            _out_of_range(message) if number == _OUT_OF_RANGE else clean(message),
            hint=_HINTS.get(number),
            details={
                "mysql": number,
                "sqlstate": state,
                **({EQUIVALENT_SQLSTATE: _STATES[number]} if number in _STATES else {}),
            },
        )
        self.number = number
        self.answer = message


def unreachable(message: str, number: int = 0) -> TidegateError:
    """The coded error of a connection that could not be made."""
    hint = None
    code = Code.SOURCE_UNREACHABLE
    if number in (1045, 1698):
        message = f"The server refused the login of the source's account: {message}"
        hint = "Check the user and the password that the source's URL refers to."
    elif number == 1044:
        message = f"The server refused the source's account the database: {message}"
        hint = "Grant the account a right on the database, or name another one in the URL."
    elif number == 1049:
        hint = "Check the database's name in the source's URL."
    elif number in (1040, 1203, 1226):
        code, hint = Code.SOURCE_BUSY, "The server has no free connection; retry in a moment."
    details: dict[str, Any] = {"mysql": number} if number else {}
    causes = {1045: ACCOUNT, 1698: ACCOUNT, 1044: LOGIN, 1049: DATABASE}
    if number in causes:
        details["cause"] = causes[number]
    return TidegateError(code, clean(message), hint=hint, details=details)


def asks_for_clear_password() -> TidegateError:
    """The error for a server that is not proved to be the right one, and wants to read the
    password."""
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        "The server asks for the password in the clear, which is sent by verified TLS or a Unix"
        " socket alone.",
        hint="Write `tls=verify` into the source's URL, and `tls_ca` if the authority is your own.",
    )


def _out_of_range(message: str) -> str:
    kind = _RANGE_KIND.match(message)
    return f"{kind[0] if kind else 'A'} value is out of range."


def clean(message: str) -> str:
    """The message without paths of the server and without the account's name and host."""
    return _ACCOUNT.sub("the account", _PATH.sub("<path>", shortened(message)))
