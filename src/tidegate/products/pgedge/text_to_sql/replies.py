"""Reads a model's reply: a statement, or why there is none. Pure.

A model is asked for one JSON object, and often answers with a fenced block, or with the statement
alone; all three are read. A statement is taken out as it is: nothing inside it is changed, neither
comments nor semicolons nor line breaks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from tidegate.search.shorthand import printable
from tidegate.sql.dialects import DIALECTS

_DECODER = json.JSONDecoder(strict=False)  # models write line breaks into strings
_FENCE = re.compile(
    r"^[ \t]*+(?P<mark>`{3,}+|~{3,}+)[ \t]*+(?P<word>[\w+#.-]*+)[^\n]*+\n(?P<body>.*?)"
    r"(?:^[ \t]*+(?P=mark)[`~]*+[ \t]*+$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_THOUGHT = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_SQL_WORDS = frozenset({"sql", *DIALECTS})
_START = re.compile(r"(?im)^[ \t(]*(?:select|with|values|table)\b")
MOST_CHARS = 100_000
"""Characters of a reply that is read; the client's model may send any text."""
_MOST_OBJECTS = 50
_MOST_ASSUMPTIONS, _LONGEST = 8, 300


class Written(msgspec.Struct, frozen=True):
    """A statement, and what the model assumed for it."""

    sql: str
    assumptions: tuple[str, ...] = ()


class Unanswerable(msgspec.Struct, frozen=True):
    """The schema cannot answer the question."""

    reason: str


class Readings(msgspec.Struct, frozen=True):
    """The question can be read in several ways, which lead to different statements."""

    readings: tuple[str, ...]


class NoStatement(msgspec.Struct, frozen=True):
    """The reply has no statement, or several. `reason` is for the model."""

    reason: str


Reply = Written | Unanswerable | Readings | NoStatement


def read_reply(text: str, is_readable: Callable[[str], bool]) -> Reply:
    """What a model has answered. `is_readable` says whether a text can be read as a statement."""
    if len(text) > MOST_CHARS:
        return NoStatement(f"The reply has more than {MOST_CHARS:,} characters.")
    text = _THOUGHT.sub("", text).strip()
    if not text:
        return NoStatement("The reply is empty.")
    for found in (_in_json(text), _in_fences(text), _alone(text, is_readable)):
        if found is not None:
            return found
    return NoStatement("The reply has no SQL statement.")


def _in_json(text: str) -> Reply | None:
    """The reply in the first JSON object that is one, at the start of a line or of a fence."""
    for number, found in enumerate(re.finditer(r"(?m)^[ \t]*\{", text)):
        if number >= _MOST_OBJECTS:
            break
        try:
            value, _ = _DECODER.raw_decode(text, found.end() - 1)
        except (ValueError, RecursionError):
            continue
        reply = _of_object(cast("dict[str, Any]", value))
        if reply is not None:
            return reply
    return None


def _of_object(value: dict[str, Any]) -> Reply | None:
    sql = value.get("sql")
    if isinstance(sql, str) and sql.strip():
        return Written(sql.strip(), _texts(value.get("assumptions")))
    reason = value.get("unanswerable")
    if isinstance(reason, str) and reason.strip():
        return Unanswerable(_short(reason))
    readings = _texts(value.get("readings"))
    if len(readings) > 1:
        return Readings(readings)
    return NoStatement("The JSON object has no statement in `sql`.") if "sql" in value else None


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return ()
    texts = [each for each in cast("list[object]", value) if isinstance(each, str) and each.strip()]
    return tuple([_short(text) for text in texts[:_MOST_ASSUMPTIONS]])


def _short(text: str) -> str:
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= _LONGEST else flat[:_LONGEST] + "…"


def _in_fences(text: str) -> Reply | None:
    fences = [(found["word"].lower(), found["body"].strip()) for found in _FENCE.finditer(text)]
    named = [body for word, body in fences if word in _SQL_WORDS and body]
    bodies = named or [body for word, body in fences if not word and body]
    different = list(dict.fromkeys(bodies))
    if len(different) > 1:
        return NoStatement(f"The reply has {len(different)} statements; send exactly one.")
    return Written(different[0]) if different else None


def _alone(text: str, is_readable: Callable[[str], bool]) -> Reply | None:
    """The statement of a reply that is one, or that has one between its paragraphs."""
    if is_readable(text):
        return Written(text)
    start = _START.search(text)
    if start is None:
        return None
    rest = text[start.start() :].strip()
    if is_readable(rest):
        return Written(rest)
    paragraph = re.split(r"\n[ \t]*\n", rest, maxsplit=1)[0].strip()
    if is_readable(paragraph):
        return Written(paragraph)
    # It cannot be read, but it is no prose: the database's error is of more use to the model.
    return Written(rest) if start.start() == 0 else None
