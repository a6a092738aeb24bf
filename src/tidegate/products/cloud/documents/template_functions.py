"""The functions of Go templates, and how values of theirs count, print and compare.

Sources: Go's package text/template, "Functions"; the functions that StackQL adds for documents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Final, cast
from urllib.parse import quote_plus

from tidegate.products.cloud.documents.xml_text import text_at, texts_at
from tidegate.sql.patterns import compile_pattern


class TemplateError(Exception):
    """A template cannot be read, or not rendered for this input."""


def is_true(value: Any) -> bool:
    """Go's truth: not false, zero, nil, or empty."""
    return bool(value)


def kind_of(value: Any) -> str:
    """The kind of a value as Go's package reflect names it, for values decoded from JSON."""
    if value is None:
        return "invalid"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "float64"
    if isinstance(value, Mapping):
        return "map"
    return "slice" if isinstance(value, list) else "func"


def member(value: Any, name: str) -> Any:
    if value is None or isinstance(value, dict):
        return None if value is None else cast("dict[str, Any]", value).get(name)
    raise TemplateError(f"a {kind_of(value)} has no field `{name[:60]}`")


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, dict):
            value = cast("dict[Any, Any]", value).get(key)
        elif isinstance(value, list) and isinstance(key, int) and key >= 0:
            value = cast("list[Any]", value)[key]
        elif value is None:
            raise TemplateError(f"there is nothing to take `{str(key)[:60]}` of")
        else:
            raise TemplateError(f"a {kind_of(value)} has no index `{str(key)[:60]}`")
    return value


def _slice(value: Any, *bounds: Any) -> Any:
    if not isinstance(value, (str, list)):
        raise TypeError(f"a {kind_of(value)} cannot be cut")
    whole = cast("list[Any]", value)
    first, last = [*bounds, *(0, len(whole))[len(bounds) :]][:2]
    if len(bounds) > 2 or not 0 <= first <= last <= len(whole):
        raise IndexError("its bounds are out of range")
    return whole[first:last]


def _safe_index(value: Any, key: Any) -> Any:
    """What a map has by a name, or nothing, whatever it is."""
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def _escaped(value: Any) -> str:
    return escape(printed(value))


def _quoted(value: Any) -> str:
    return quote_plus(printed(value))


def _titled(value: Any) -> str:
    return _WORD_START.sub(lambda match: match[0].upper(), printed(value))


def _to_int(value: Any) -> int:
    """A number as a whole one, of a text the digits that it begins with; else 0."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, str):
        digits = _DIGITS.match(value)
        return 0 if digits is None else int(digits[0])
    return int(value) if isinstance(value, (int, float)) else 0


def _to_bool(value: Any) -> bool:
    return value is True or value == "true"


def _next_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"a {kind_of(value)} has no successor")
    return value + 1


def _type_of(value: Any) -> str:
    kind = kind_of(value)
    return {
        "map": "map[string]interface {}", "slice": "[]interface {}", "invalid": "<nil>",
    }.get(kind, kind)  # fmt: skip


def _first_match(text: Any, pattern: Any) -> str:
    return _groups(text, pattern)[0]


def _groups(text: Any, pattern: Any) -> list[str]:
    """The groups of the first match. Raises: ValueError if there is none."""
    if not isinstance(text, str) or not isinstance(pattern, str):
        raise TypeError("it takes a text and a pattern")
    # Go writes `(?<name>…)` where Python has `(?P<name>…)`.
    found = compile_pattern(_NAMED_GROUP.sub("(?P<", pattern), len(text)).search(text)
    if found is None or not found.re.groups:
        raise ValueError(f"nothing in the text fits {pattern[:80]!r}")
    return [each or "" for each in found.groups()]


def printed(value: Any) -> str:
    """What an action writes for a value: text as it is, all else as JSON."""
    if value is None:
        return "<no value>"
    return value if isinstance(value, str) else to_json(value)


def to_json(value: Any) -> str:
    """A value as compact JSON. Raises: ValueError for a number that JSON has not."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _equals(first: Any, *others: Any) -> bool:
    if not others:
        raise TypeError("it needs two values")
    return any(kind_of(first) == kind_of(each) and first == each for each in others)


def _differs(first: Any, second: Any) -> bool:
    return not _equals(first, second)


def _negated(value: Any) -> bool:
    return not is_true(value)


def _compare(decide: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(first: Any, second: Any) -> bool:
        if kind_of(first) != kind_of(second) or kind_of(first) not in ("float64", "string"):
            raise TypeError(f"a {kind_of(first)} and a {kind_of(second)} have no order")
        return decide(first, second)

    return compare


_DIGITS: Final = re.compile(r"\s*[-+]?\d{1,40}")
_NAMED_GROUP: Final = re.compile(r"\(\?<(?=\w)")
_WORD_START: Final = re.compile(r"(?<![^\W_])[^\W\d_]")
_FORMAT: Final = re.compile(r"%(?:%|[-+# 0]*\d{0,4}(?:\.\d{1,4})?([a-zA-Z]))")


def _printf(template: Any, *values: Any) -> str:
    if not isinstance(template, str):
        raise TypeError("the format is no text")
    waiting = list(values)

    def write(match: re.Match[str]) -> str:
        verb = match[1]
        if verb is None:
            return "%"
        if not waiting:
            return f"%!{verb}(MISSING)"
        value = waiting.pop(0)
        if verb == "q":
            return to_json(value if isinstance(value, str) else printed(value))
        if verb == "T":
            return _type_of(value)
        if verb in "sv":
            return printed(value)
        if verb in "dfgeE" and kind_of(value) == "float64":
            return match[0].replace("v", "g") % value
        if verb == "t" and isinstance(value, bool):
            return to_json(value)
        raise ValueError(f"%{verb} does not fit a {kind_of(value)}")

    text = _FORMAT.sub(write, template)
    if waiting:
        raise ValueError("there are more values than the format has places")
    return text


def _parsed_map(text: Any) -> dict[str, Any]:
    if not isinstance(text, str):
        raise TypeError("it is no text")
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError("it is no JSON object")
    return cast("dict[str, Any]", value)


def _joined(*values: Any) -> str:
    """Operands with a blank between two of which neither is a text."""
    parts: list[str] = []
    for at, value in enumerate(values):
        plain = not isinstance(value, str) and at and not isinstance(values[at - 1], str)
        parts.append(f" {printed(value)}" if plain else printed(value))
    return "".join(parts)


def _separator(text: Any) -> Callable[[], str]:
    """A function that gives nothing the first time, and `text` from then on."""
    waiting = [""]

    def separate() -> str:
        return waiting.pop() if waiting else str(text)

    return separate


def _call(function: Any, *arguments: Any) -> Any:
    if not callable(function):
        raise TypeError("it is no function")
    return function(*arguments)


CONSTANTS: Final[dict[str, Any]] = {"true": True, "false": False, "nil": None}
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "call": _call,
    "eq": _equals,
    "ne": _differs,
    "lt": _compare(lambda first, second: first < second),
    "le": _compare(lambda first, second: first <= second),
    "gt": _compare(lambda first, second: first > second),
    "ge": _compare(lambda first, second: first >= second),
    "index": _index,
    "jsonMapFromString": _parsed_map,
    "kindOf": kind_of,
    "len": len,
    "not": _negated,
    "getRegexpAllMatches": _groups,
    "getRegexpFirstMatch": _first_match,
    "getXPath": text_at,
    "getXPathAllOuter": texts_at,
    "html": _escaped,
    "plus1": _next_number,
    "print": _joined,
    "printf": _printf,
    "println": lambda *values: f"{' '.join(map(printed, values))}\n",
    "safeIndex": _safe_index,
    "separator": _separator,
    "slice": _slice,
    "title": _titled,
    "toBool": _to_bool,
    "toInt": _to_int,
    "toJson": to_json,
    "urlquery": _quoted,
}
