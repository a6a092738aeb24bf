"""Functions that StackQL adds to SQLite, with the meanings of its documentation.

Each gives NULL for a NULL. Patterns are those of Python's `re`, within what `sql.patterns` lets a
caller's pattern cost.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

from tidegate.errors import Code, TidegateError
from tidegate.sql.patterns import PatternFault, compile_pattern

MOST_CHARS: Final = 65_536
"""Of a text that a pattern is matched with."""
_MOST_REPLACED: Final = 16_777_216
_SINGLE: Final = frozenset({"Version", "Id", "Sid", "Effect"})
"""Elements of a policy that hold one text. All others hold sets, also of one member alone."""


def split_part(text: Any, separator: Any, number: Any) -> str | None:
    """Part `number` of a text, from 1 on, or from its end where it is negative; empty if there is
    no such part."""
    if text is None or separator is None or number is None:
        return None
    parts = str(text).split(str(separator)) if str(separator) else [str(text)]
    if not isinstance(number, (int, float)):
        raise _wrong("split_part takes the number of a part")
    at = int(number)
    if at == 0:
        raise _wrong("split_part counts parts from 1")
    at = at - 1 if at > 0 else len(parts) + at
    return parts[at] if 0 <= at < len(parts) else ""


def string(value: Any) -> str | None:
    """A value as text. In a change, the field of a body whose value it is holds that text."""
    return None if value is None else str(value)


def regexp_like(text: Any, pattern: Any) -> int | None:
    """1 if the pattern is found in the text, else 0."""
    if text is None or pattern is None:
        return None
    searched = _bounded(text)
    return int(_pattern(pattern, searched).search(searched) is not None)


def regexp(pattern: Any, text: Any) -> int | None:
    """What SQLite calls for `text REGEXP pattern`."""
    return regexp_like(text, pattern)


def regexp_substr(text: Any, pattern: Any) -> str | None:
    """The first match of the pattern; NULL if there is none."""
    if text is None or pattern is None:
        return None
    searched = _bounded(text)
    found = _pattern(pattern, searched).search(searched)
    return None if found is None else found[0]


def regexp_replace(text: Any, pattern: Any, replacement: Any) -> str | None:
    """The text with the replacement for each match; `\\1` is the first group."""
    if text is None or pattern is None or replacement is None:
        return None
    searched, written = _bounded(text), _bounded(replacement)
    found = _pattern(pattern, searched)
    most = len(written) + written.count("\\") * len(searched)
    if most * sum(1 for _ in found.finditer(searched)) > _MOST_REPLACED:
        raise _wrong(f"what is replaced may come to more than {_MOST_REPLACED:,} characters")
    try:
        return found.sub(written, searched)
    except (re.error, IndexError) as error:
        raise _wrong(f"the replacement cannot be read: {error}") from None


def json_equal(first: Any, second: Any) -> int | None:
    """1 if two JSON texts have the same value, whatever the order of names; 0 if not."""
    if first is None or second is None:
        return None
    return int(_read(first) == _read(second))


def aws_policy_equal(first: Any, second: Any) -> int | None:
    """1 if two policies of AWS say the same: the order of statements and of members does not
    count, nor whether a single one is in a list."""
    if first is None or second is None:
        return None
    return int(_canonical(_read(first)) == _canonical(_read(second)))


FUNCTIONS: Final = (
    ("split_part", split_part, 3),
    ("string", string, 1),
    ("regexp_like", regexp_like, 2),
    ("regexp", regexp, 2),
    ("regexp_substr", regexp_substr, 2),
    ("regexp_replace", regexp_replace, 3),
    ("json_equal", json_equal, 2),
    ("aws_policy_equal", aws_policy_equal, 2),
)
"""Name, function, number of arguments."""


def _pattern(pattern: Any, text: str) -> re.Pattern[str]:
    try:
        return compile_pattern(str(pattern), len(text))
    except PatternFault as fault:
        raise _wrong(f"the pattern is not used: {fault}") from None


def _bounded(text: Any) -> str:
    whole = str(text)
    if len(whole) > MOST_CHARS:
        raise _wrong(f"a text of more than {MOST_CHARS} characters is matched with no pattern")
    return whole


def _read(text: Any) -> Any:
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        return str(text)


def _canonical(value: Any, name: str = "") -> Any:
    """A policy in one form. IAM reads each list as a set, and a condition's values as texts."""
    if isinstance(value, dict) and name != "Statement":
        entries = cast("dict[str, Any]", value)
        return {key: _canonical(each, key) for key, each in entries.items()}
    if not name or name in _SINGLE:
        return cast("Any", value)
    members: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    found: list[Any] = [
        _canonical(each) if isinstance(each, dict) else _policy_text(each) for each in members
    ]
    return sorted({_sort_key(each) for each in found})


def _policy_text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (bool, int, float)) else value


def _wrong(problem: str) -> TidegateError:
    return TidegateError(Code.SQL_FAILED, f"{problem[0].upper()}{problem[1:]}.")


def _sort_key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
