"""Editing JSON with comments and trailing commas in place: all other bytes stay unchanged.

The parser keeps the position of every value. It refuses a text that it cannot parse completely,
so that no such file is changed.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_BLANK = re.compile(r"(?:[ \t\r\n]|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_REST = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)(?=\r?\n)")
"""A comment on the rest of a line, which belongs to what comes before it."""

_MOST_DEEP = 200


class Unreadable(ValueError):
    """The text is not JSON with comments. The message names the line."""


class Uneditable(Unreadable):
    """The text is understood, but the entry cannot be changed in it alone. The message says why."""


class Member(NamedTuple):
    """A member of an object, with the positions of its name, of the beginning and end of its
    value, and of the comma after it."""

    name: str
    begin: int
    value: int
    end: int
    comma: int | None


class Object(NamedTuple):
    """An object in the text, from its `{` to after its `}`, with its members."""

    begin: int
    end: int
    members: tuple[Member, ...]

    def find(self, name: str) -> Member | None:
        """The member of that name."""
        return next((member for member in self.members if member.name == name), None)


class Text:
    """A parsed JSON text, with its objects by position. Raises: Unreadable."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._objects: dict[int, Object] = {}
        self.begin = self._skip(0)
        end = self._skip(self._read(self.begin, 0)[1])
        if end != len(text):
            raise self._fault(end)

    def object_at(self, begin: int) -> Object | None:
        """The object that begins there."""
        return self._objects.get(begin)

    def value(self, begin: int) -> Any:
        """The value that begins there."""
        return self._read(begin, 0)[0]

    def _read(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > _MOST_DEEP:
            raise self._fault(at)
        start = self.text[at : at + 1]
        if start == "{":
            return self._read_object(at, depth)
        if start == "[":
            return self._read_array(at, depth)
        if start == '"':
            return self._read_string(at)
        word = _WORD.match(self.text, at)
        if word is None:
            raise self._fault(at)
        return json.loads(word[0]), word.end()

    def _read_string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self.text, at)
        if found is None:
            raise self._fault(at)
        return json.loads(found[0]), found.end()

    def _read_array(self, at: int, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        at = self._skip(at + 1)
        while not self.text.startswith("]", at):
            value, at = self._read(at, depth + 1)
            values.append(value)
            at = self._skip(at)
            if self.text.startswith(",", at):
                at = self._skip(at + 1)
            elif not self.text.startswith("]", at):
                raise self._fault(at)
        return values, at + 1

    def _read_object(self, begin: int, depth: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        members: list[Member] = []
        at = self._skip(begin + 1)
        while not self.text.startswith("}", at):
            name, start = at, self._read_string(at)
            at = self._skip(start[1])
            if not self.text.startswith(":", at) or start[0] in values:
                raise self._fault(at)  # a duplicate name; parsers differ on it
            at = self._skip(at + 1)
            value, end = self._read(at, depth + 1)
            values[start[0]] = value
            next_ = self._skip(end)
            comma = next_ if self.text.startswith(",", next_) else None
            members.append(Member(start[0], name, at, end, comma))
            at = next_ if comma is None else self._skip(comma + 1)
            if comma is None and not self.text.startswith("}", at):
                raise self._fault(at)
        self._objects[begin] = Object(begin, at + 1, tuple(members))
        return values, at + 1

    def _skip(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        return at if found is None else found.end()

    def _fault(self, at: int) -> Unreadable:
        return Unreadable(f"line {self.text.count(chr(10), 0, at) + 1}")


def read(text: str) -> Any:
    """The value of a text. Raises: Unreadable."""
    whole = Text(text)
    return whole.value(whole.begin)


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with `value` at `path`; missing objects are created. Raises: Unreadable."""
    parsed = Text(text)
    here = parsed.object_at(parsed.begin)
    unit, break_ = _style(text)
    for depth, name in enumerate(path):
        if here is None:
            raise Unreadable(f"`{path[depth - 1]}`, which is no object" if depth else "its start")
        member, rest = here.find(name), path[depth + 1 :]
        if member is None or not rest:
            for outer in reversed(rest):
                value = {outer: value}
            lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
            shown = (break_ + unit * (depth + 1)).join(lines)
            if member is not None:
                return text[: member.value] + shown + text[member.end :]
            return _add(text, here, f"{json.dumps(name)}: {shown}", depth, unit, break_)
        here = parsed.object_at(member.value)
    raise Unreadable("its start")


def take(text: str, path: tuple[str, ...]) -> str:
    """The text without the member at `path`, which must exist. Raises: Unreadable."""
    parsed = Text(text)
    here = parsed.object_at(parsed.begin)
    for name in path[:-1]:
        holder = here.find(name) if here is not None else None
        here = parsed.object_at(holder.value) if holder is not None else None
    member = here.find(path[-1]) if here is not None else None
    if here is None or member is None:
        raise Unreadable("its start")
    at = here.members.index(member)
    begin, end = member.begin, member.end if member.comma is None else member.comma + 1
    line = text.rfind("\n", 0, begin) + 1
    blank = re.compile(r"[ \t]*(?:\r?\n|(?=\}))").match(text, end)
    if not text[line:begin].strip() and blank is not None:
        begin, end = line, blank.end()
    before = text[:begin]
    if member.comma is None and at > 0:
        comma = here.members[at - 1].comma
        before = text[:comma] + text[(comma or 0) + 1 : begin]
    taken = before + text[end:]
    if len(here.members) == 1 and not text[here.begin + 1 : member.begin].strip():
        inside = text[end : here.end - 1]
        taken = text[: here.begin + 1] + (inside if inside.strip() else "") + text[here.end - 1 :]
    Text(taken)
    return taken


def _add(text: str, here: Object, member: str, depth: int, unit: str, break_: str) -> str:
    """The text with one more member at the end of an object."""
    inner, outer = break_ + unit * (depth + 1), break_ + unit * depth
    if not here.members:
        inside = text[here.begin + 1 : here.end - 1]
        if inside.strip():  # comments stay, above the new member
            return text[: here.end - 1].rstrip() + inner + member + outer + text[here.end - 1 :]
        return text[: here.begin + 1] + inner + member + outer + text[here.end - 1 :]
    last = here.members[-1]
    end, comma = (last.end, ",") if last.comma is None else (last.comma + 1, "")
    rest = _REST.match(text, end)
    after = end if rest is None else rest.end()
    trailing = "" if comma else ","
    return text[:end] + comma + text[end:after] + inner + member + trailing + text[after:]


def _style(text: str) -> tuple[str, str]:
    """The indent and the line break that the text uses."""
    indent = re.search(r"^\s*\{\s*?\r?\n([ \t]+)\S", text)
    return (indent[1] if indent else "  "), ("\r\n" if "\r\n" in text else "\n")
