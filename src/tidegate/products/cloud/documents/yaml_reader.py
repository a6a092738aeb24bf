"""Reads a YAML or JSON document into plain values: dict with text keys, list, and scalars.

Scalars follow the core schema of YAML 1.2.2 (section 10.3.2), as authors of API documents expect:
`on`, `yes` and dates stay text. A tag that is not YAML's own is left out and its value kept, which
is what the registry's other readers do. Events are read one by one: that takes a fifth of the time
of PyYAML's own construction of nodes and values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from tidegate.errors import Code, TidegateError

MOST_BYTES: Final = 64 * 1_048_576
MOST_VALUES: Final = 5_000_000
"""Scalars and containers of a document, those of aliases counted each time."""
_DEEPEST: Final = 200
_LONGEST_NUMBER: Final = 400
_CORE: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_MAY_BE_A_NUMBER: Final = frozenset("0123456789+-.")


def read_yaml(content: bytes, name: str) -> Any:
    """The values of the one document in `content`; `name` is its file, for messages.

    Raises:
        TidegateError: DOCUMENT_INVALID, with the line: not YAML, several documents, a key given
            twice, or more than `MOST_BYTES` or `MOST_VALUES`.
    """
    if len(content) > MOST_BYTES:
        raise refused(name, f"it has {len(content):,} bytes, the most is {MOST_BYTES:,}")
    if content.lstrip()[:1] == b"{":
        # JSON is YAML except surrogate pairs in its escapes, which libyaml refuses. What the
        # reader of JSON refuses gets its reason and line below.
        with suppress(ValueError, RecursionError):
            value = json.loads(content, object_pairs_hook=_unique, parse_constant=_no_number)
            _check_depth(value, _DEEPEST)
            return value
    try:
        events = cast("Iterator[Event]", yaml.parse(content, Loader=yaml.CSafeLoader))  # pyright: ignore[reportUnknownMemberType]
        return _Reader(name, events).document()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = getattr(error, "problem", None) or "it is not UTF-8"
        raise refused(name, str(problem), _line(getattr(error, "problem_mark", None))) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError  # The YAML reader says which, and where.
    return entries


def _no_number(word: str) -> Any:
    raise ValueError(word)


def _check_depth(value: Any, left: int) -> None:
    if left < 0:
        raise ValueError
    inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
    if isinstance(value, (dict, list)):
        for each in inner:
            _check_depth(each, left - 1)


def refused(name: str, problem: str, line: int | None = None) -> TidegateError:
    """The error of a document that cannot be used."""
    where = name if line is None else f"{name}, line {line}"
    return TidegateError(Code.DOCUMENT_INVALID, f"{where}: {problem}.")


def _line(mark: Any) -> int | None:
    return None if mark is None else int(mark.line) + 1


class _Reader:
    """Builds values from events. `_anchored` has a value and its count by the name of an anchor."""

    def __init__(self, name: str, events: Iterator[Event]) -> None:
        self._name = name
        self._events = events
        self._count = 0
        self._anchored: dict[str, tuple[Any, int]] = {}

    def document(self) -> Any:
        value = None
        documents = 0
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refused("it holds several documents", event)
            elif not isinstance(event, (StreamStartEvent, DocumentEndEvent, StreamEndEvent)):
                value = self._value(event, 0)
        return value

    def _value(self, event: Event, depth: int) -> Any:
        self._count += 1
        if self._count > MOST_VALUES:
            raise self._refused(f"it has more than {MOST_VALUES:,} values", event)
        if isinstance(event, ScalarEvent):
            value = self._scalar(event)
            if event.anchor:
                self._anchored[event.anchor] = value, 1
            return value
        if isinstance(event, AliasEvent):
            return self._alias(event)
        if depth == _DEEPEST:
            raise self._refused(f"it is nested deeper than {_DEEPEST} levels", event)
        before = self._count
        if isinstance(event, MappingStartEvent):
            value = self._mapping(depth + 1)
        else:
            value = self._sequence(depth + 1)
        if event.anchor:  # type: ignore[attr-defined]
            # Only now: an alias inside of what it names would have no end.
            self._anchored[event.anchor] = value, self._count - before + 1  # type: ignore[attr-defined]
        return value

    def _alias(self, event: AliasEvent) -> Any:
        known = self._anchored.get(event.anchor)
        if known is None:
            raise self._refused(f"the alias `{event.anchor[:80]}` names nothing before it", event)
        value, count = known
        self._count += count
        return value

    def _sequence(self, depth: int) -> list[Any]:
        items: list[Any] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            items.append(self._value(event, depth))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        merged: list[Any] = []
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            key = self._key(event)
            value = self._value(next(self._events), depth)
            if key == _MERGE and isinstance(event, ScalarEvent) and event.implicit[0]:
                merged.extend(cast("list[Any]", value) if isinstance(value, list) else [value])
            elif key in entries:
                raise self._refused(f"the key `{key[:80]}` is given twice", event)
            else:
                entries[key] = value
        for each in merged:
            if not isinstance(each, dict):
                raise refused(self._name, "a merge key `<<` has a value that is no mapping")
            for key, value in cast("dict[str, Any]", each).items():
                entries.setdefault(key, value)
        return entries

    def _key(self, event: Event) -> str:
        """Keys are text, as in JSON: `200:` and `"200":` are one response."""
        if isinstance(event, AliasEvent):
            key = self._alias(event)
            if isinstance(key, str):
                return key
        elif isinstance(event, ScalarEvent):
            if event.anchor:
                self._anchored[event.anchor] = event.value, 1
            return event.value
        raise self._refused("a key is no text", event)

    def _scalar(self, event: ScalarEvent) -> Any:
        text: str = event.value
        tag = event.tag
        if tag is None and event.implicit[0]:
            return self._plain(text, event)
        if tag is None or not tag.startswith(_CORE) or tag == f"{_CORE}str":
            return text
        value = self._plain(text, event)
        kind = tag.removeprefix(_CORE)
        fits = {
            "null": value is None,
            "bool": isinstance(value, bool),
            "int": isinstance(value, int) and not isinstance(value, bool),
            "float": isinstance(value, (int, float)) and not isinstance(value, bool),
        }
        if not fits.get(kind, True):
            raise self._refused(f"`{text[:80]}` is no {kind}", event)
        return value if kind in fits else text

    def _plain(self, text: str, event: ScalarEvent) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if text[0] not in _MAY_BE_A_NUMBER:
            return text
        if len(text) > _LONGEST_NUMBER:
            return text
        if _INTEGER.fullmatch(text):
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        return float(text) if _FLOAT.fullmatch(text) else text

    def _refused(self, problem: str, event: Event) -> TidegateError:
        return refused(self._name, problem, _line(event.start_mark))
