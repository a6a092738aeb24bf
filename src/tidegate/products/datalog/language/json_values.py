"""JSON values for EDN values and back: what the tools take and what they show. Pure.

A string that begins with a colon is a keyword. What JSON has no form for is an object with one key:
`~str ~i64 ~map ~set ~date ~uuid ~bytes ~bigdec ~bigint ~edn`. Source: Datalevin's `json_convert`,
with two differences: an integer of JSON is always a long, and text in a place that takes text is
text, whatever it begins with (`plain_text`).
"""

from __future__ import annotations

import math
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.language.instants import format_instant, parse_instant
from tidegate.products.datalog.language.ordering import in_order
from tidegate.products.datalog.language.reader import MOST_DEPTH, read
from tidegate.products.datalog.language.values import (
    LONG_MAX,
    LONG_MIN,
    BigInteger,
    Character,
    Instant,
    Keyword,
    List,
    Map,
    Set,
    Symbol,
    Value,
    Vector,
    identity,
    integer,
)
from tidegate.products.datalog.language.writer import write

SAFE_INTEGER = 2**53 - 1
"""The greatest integer that every reader of JSON reads exactly."""

TAGS = frozenset(
    {"~str", "~i64", "~map", "~set", "~date", "~uuid", "~bytes", "~bigdec", "~bigint", "~edn"}
)
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,4000}(\.[0-9]{0,4000})?([eE][-+]?[0-9]{1,4})?")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def decode(given: Any, *, depth: int = MOST_DEPTH) -> Value:
    """The EDN value of a decoded JSON value.

    Raises: TidegateError ARGUMENT_INVALID for a tag that is unknown or does not fit, DATALOG_*
    for EDN that cannot be read.
    """
    if depth < 0:
        raise TidegateError(Code.DATALOG_TOO_DEEP, "The value is nested too deeply")
    match given:
        case None | bool() | float():
            return given
        case int():
            return integer(given)
        case str():
            return _keyword(given) if given.startswith(":") and len(given) > 1 else given
        case Mapping():
            return _object(cast("Mapping[str, Any]", given), depth)
        case _:
            items = cast("Sequence[Any]", given)
            return Vector(tuple(decode(each, depth=depth - 1) for each in items))


def _keyword(text: str) -> Value:
    try:
        value = read(text)
    except TidegateError:
        value = None
    if isinstance(value, Keyword):
        return value
    raise _invalid(f'{text[:60]!r} is no keyword; write text as {{"~str": …}}')


def _object(given: Mapping[str, Any], depth: int) -> Value:
    if len(given) == 1:
        ((tag, content),) = given.items()
        if tag.startswith("~"):
            return _tagged(tag, content, depth)
    return _map(
        tuple((decode(name), decode(each, depth=depth - 1)) for name, each in given.items())
    )


def _map(pairs: tuple[tuple[Value, Value], ...]) -> Map:
    if len({identity(key) for key, _ in pairs}) < len(pairs):
        raise _invalid("A map names a key twice")
    return Map(pairs)


def _tagged(tag: str, content: Any, depth: int) -> Value:
    match tag, content:
        case "~str", str():
            return content
        case "~i64", str() if _INTEGER.fullmatch(content):
            number = int(content)
            if LONG_MIN <= number <= LONG_MAX:
                return number
        case "~i64", int() if not isinstance(content, bool) and LONG_MIN <= content <= LONG_MAX:
            return content
        case "~bigint", str() if _INTEGER.fullmatch(content):
            return BigInteger(int(content))
        case "~bigdec", str() if _DECIMAL.fullmatch(content):
            return Decimal(content)
        case "~uuid", str() if _UUID.fullmatch(content):
            return UUID(content)
        case "~date", str():
            milliseconds = parse_instant(content)
            if milliseconds is not None:
                return Instant(milliseconds)
        case "~date", int() if not isinstance(content, bool) and LONG_MIN <= content <= LONG_MAX:
            return Instant(content)
        case "~bytes", str():
            try:
                return b64decode(content, validate=True)
            except (Base64Error, ValueError):
                pass
        case "~edn", str():
            return read(content)
        case "~set", list():
            items = tuple(decode(each, depth=depth - 1) for each in cast("list[Any]", content))
            if len(set(map(identity, items))) == len(items):
                return Set(items)
        case "~map", list():
            return _map(tuple(_pair(each, depth) for each in cast("list[Any]", content)))
        case _:
            pass
    if tag in TAGS:
        raise _invalid(f"The content of {tag} does not fit it")
    raise _invalid(f"{tag[:40]!r} is no tag; there are {', '.join(sorted(TAGS))}")


def _pair(given: Any, depth: int) -> tuple[Value, Value]:
    if not isinstance(given, list) or len(cast("list[Any]", given)) != 2:
        raise _invalid("~map takes pairs of a key and a value")
    key, value = cast("list[Any]", given)
    return decode(key, depth=depth - 1), decode(value, depth=depth - 1)


def encode(value: Value, *, exact: bool = False) -> Any:
    """The JSON value of an EDN value; `decode` gives the value back, except a list, which comes
    back as a vector. With `exact` each long is written as `~i64` and a list as `~edn`.

    Raises: TidegateError DATALOG_UNREADABLE for a list with bytes in it, where `exact`.
    """
    match value:
        case None | bool():
            return value
        case int():
            plain = not exact and -SAFE_INTEGER <= value <= SAFE_INTEGER
            return value if plain else {"~i64": str(value)}
        case float():
            # JSON has no number for these.
            return value if math.isfinite(value) else {"~edn": write(value)}
        case str():
            return {"~str": value} if value.startswith(":") else value
        case Keyword():
            return str(value)
        case Symbol() | Character():
            return {"~edn": write(value)}
        case BigInteger(number):
            return {"~bigint": str(number)}
        case Decimal():
            return {"~bigdec": str(value)}
        case Instant(milliseconds):
            text = format_instant(milliseconds)
            return {"~date": milliseconds if text is None else text}
        case UUID():
            return {"~uuid": str(value)}
        case bytes():
            return {"~bytes": b64encode(value).decode()}
        case Set(items):
            return {"~set": [encode(each, exact=exact) for each in in_order(items)]}
        case List() if exact:
            try:
                return {"~edn": write(value)}
            except ValueError as error:
                raise TidegateError(Code.DATALOG_UNREADABLE, str(error)) from None
        case Vector(items) | List(items):
            return [encode(each, exact=exact) for each in items]
        case Map(pairs):
            return _encode_map(pairs, exact)


def _encode_map(pairs: Sequence[tuple[Value, Value]], exact: bool) -> Any:
    names = [_object_key(key) for key, _ in pairs]
    reserved = len(names) == 1 and names[0] is not None and names[0].startswith("~")
    if reserved or None in names:
        order = in_order(key for key, _ in pairs)
        of = {identity(key): value for key, value in pairs}
        return {
            "~map": [
                [encode(key, exact=exact), encode(of[identity(key)], exact=exact)] for key in order
            ]
        }
    return {
        cast("str", name): encode(value, exact=exact)
        for name, (_, value) in sorted(
            zip(names, pairs, strict=True), key=lambda each: str(each[0])
        )
    }


def _object_key(key: Value) -> str | None:
    """A key as the name of a JSON object's member, which is read back as that key."""
    if isinstance(key, Keyword):
        return str(key)
    return key if isinstance(key, str) and not key.startswith(":") else None


def plain_text(given: Any) -> Any:
    """Text for an argument that takes text: `{"~str": "…"}` as its text, all else as it is."""
    if not isinstance(given, Mapping):
        return given
    fields = cast("Mapping[str, Any]", given)
    wrapped = fields.get("~str") if len(fields) == 1 else None
    return wrapped if isinstance(wrapped, str) else fields


def keyword_name(given: str) -> str:
    """A keyword's name, written as `:eav` or as `eav`."""
    return given.removeprefix(":")


def _invalid(problem: str) -> TidegateError:
    return TidegateError(Code.ARGUMENT_INVALID, problem, details={"problem": "value"})
