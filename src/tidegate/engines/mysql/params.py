"""Decides how a parameter travels: typed, in the binary protocol. Nothing is pasted into text."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, cast
from uuid import UUID

import msgspec
from asyncmy import protocol

from tidegate.errors import Code, GateError

_pack = cast("Any", protocol).pack_binary_params


def pack(params: Sequence[Any]) -> bytes:
    """The parameters as the server wants them. Raises: GateError ARGUMENT_INVALID."""
    if not params:
        return b""
    try:
        return _pack(tuple([_plain(value) for value in params]), "utf-8")
    except UnicodeEncodeError:
        raise GateError(Code.ARGUMENT_INVALID, "A parameter holds a lone surrogate.") from None
    except ValueError as error:
        message = "An integer parameter takes more than 64 bits."
        raise GateError(Code.ARGUMENT_INVALID, message, hint="Send it as text.") from error


def check_count(expected: int, params: Sequence[Any] | None) -> None:
    """Raises: GateError ARGUMENT_INVALID unless there is a value for each placeholder."""
    given = 0 if params is None else len(params)
    if given != expected:
        raise GateError(
            Code.ARGUMENT_INVALID,
            f"The statement has {expected} placeholders, and {given} parameters were given.",
            hint="Give as many parameters as there are placeholders (?).",
        )


def encode_statement(text: str) -> bytes:
    """A statement as the server wants it. Raises: GateError SQL_UNREADABLE."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise GateError(Code.SQL_UNREADABLE, "The statement holds a lone surrogate.") from None
    if b"\0" in encoded:
        raise GateError(Code.SQL_UNREADABLE, "The statement holds a NUL character.")
    return encoded


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str, bytes, bytearray, datetime.timedelta)):
        return value
    if isinstance(value, float):
        if isfinite(value):
            return value
        raise GateError(Code.ARGUMENT_INVALID, "MySQL has no infinity and no NaN.")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return value if value.is_finite() else _plain(float(value))
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (Mapping, list, tuple)):
        return msgspec.json.encode(value).decode()
    raise GateError(
        Code.ARGUMENT_INVALID,
        "A parameter has a type that MySQL does not know.",
        hint="Send null, true, false, numbers, text, or objects and lists for JSON.",
    )
