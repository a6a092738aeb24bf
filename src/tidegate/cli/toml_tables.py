"""Editing a table of a TOML text in place: all other bytes stay unchanged.

A text is split at the headers of its tables. A table is put at the end, or where it was, and is cut
out with what is in it; the comments after its last line stay, since they are about what follows.
`tomllib` reads the text before and after: a change of anything else is refused. Decision 93 says
why this is not left to a library.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, cast

from tidegate.cli.jsonc import Uneditable, Unreadable

_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|\#[^\n]*|[\[\]{}]|\n|[^\s\"'#\[\]{}]+|[^\S\n]+",
    re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LINE = re.compile(r"line (\d+)")


class Section(NamedTuple):
    """A table of the text: from its header to the end of its last line, and to the next header."""

    path: tuple[str, ...]
    begin: int
    last: int
    end: int


def read(text: str) -> dict[str, Any]:
    """The values of a text. Raises: Unreadable."""
    try:
        # A fraction stays as it is written, so that texts compare: nan differs from itself.
        return tomllib.loads(text, parse_float=str)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = _LINE.search(str(error))
        raise Unreadable(line[0] if line else "its end") from None


def put(text: str, path: tuple[str, ...], value: Mapping[str, Any]) -> str:
    """The text with the table `value` at `path`, in place of one that is there. Raises:
    Unreadable."""
    before = read(text)
    break_ = "\r\n" if "\r\n" in text else "\n"
    lines = "".join(f"{line}{break_}" for line in _lines(path, value))
    there = _value_at(before, path)
    if there is not None:
        begin, _ = _ranges(text, path)[0]
        changed = text[:begin] + lines + _cut(text, path)[begin:]
    else:
        ended = text if not text or text.endswith("\n") else text + break_
        changed = ended + (break_ if ended else "") + lines
    return _checked(changed, before, path, dict(value))


def take(text: str, path: tuple[str, ...]) -> str:
    """The text without the table at `path`, which must exist. Raises: Unreadable."""
    before = read(text)
    begin, end = _ranges(text, path)[0]
    changed = _cut(text, path)
    after = text[end:]
    if not after.strip(" \t") or re.match(r"[ \t]*\r?\n", after):
        # The empty line above it goes, too: another one follows, or nothing.
        changed = re.sub(r"(\A|\n)[ \t]*\r?\n\Z", r"\1", changed[:begin]) + changed[begin:]
    return _checked(changed, before, path, None)


def _checked(
    changed: str, before: dict[str, Any], path: tuple[str, ...], value: dict[str, Any] | None
) -> str:
    """The changed text, if nothing else in it means anything else than before."""
    expected = _without(before, path)
    try:
        holder = read(changed)
    except Unreadable:
        holder = {}
    if value is not None and _value_at(holder, path) != value:
        raise Uneditable(f"`{'.'.join(path[:-1])}` has no header to which one could be added")
    if _without(holder, path) != expected:
        raise Uneditable(f"`{'.'.join(path)}` is in one piece with others")
    return changed


def _without(values: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """The values except those at `path`, and except tables on the way that hold nothing else."""
    first, rest = path[0], path[1:]
    kept = {name: value for name, value in values.items() if name != first}
    if rest and isinstance(values.get(first), dict) and (inner := _without(values[first], rest)):
        kept[first] = inner
    elif rest and first in values and not isinstance(values[first], dict):
        kept[first] = values[first]
    return kept


def _value_at(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    at: Any = values
    for name in path:
        if not isinstance(at, Mapping):
            return None
        at = at.get(name)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return at  # pyright: ignore[reportUnknownVariableType]


def _cut(text: str, path: tuple[str, ...]) -> str:
    for begin, end in reversed(_ranges(text, path)):
        text = text[:begin] + text[end:]
    return text


def _ranges(text: str, path: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where the table and those in it are; what is between two of them is in it."""
    found: list[tuple[int, int]] = []
    follows = False
    for section in _sections(text):
        if section.path[: len(path)] != path:
            follows = False
            continue
        begin = found.pop()[0] if follows else section.begin
        found.append((begin, section.last))
        follows = True
    if not found:
        raise Uneditable(f"`{path[-1]}` has no header of its own")
    return found


def _sections(text: str) -> Iterator[Section]:
    """The tables that have a header, in their order."""
    starts = [*_headers(text), len(text)]
    for begin, end in pairwise(starts):
        first = text[begin:end].split("\n", 1)[0].rstrip("\r")
        last = begin
        for at, piece in _pieces(text[begin:end]):
            if piece.strip() and not piece.startswith("#"):
                last = begin + at + len(piece)
        line = text.find("\n", last, end)
        yield Section(_path_of(first), begin, end if line < 0 else line + 1, end)


def _path_of(header: str) -> tuple[str, ...]:
    names: list[str] = []
    at: Any = read(header)
    while isinstance(at, dict) and at:
        ((name, at),) = at.items()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        names.append(str(name))  # pyright: ignore[reportUnknownArgumentType]
    return tuple(names)


def _headers(text: str) -> Iterator[int]:
    """The beginnings of the lines that are headers: not in an array or a text."""
    depth, line, fresh = 0, 0, True
    for at, piece in _pieces(text):
        if piece == "\n":
            line, fresh = at + 1, True
            continue
        if fresh and depth == 0 and piece == "[":
            yield line
        if piece in ("[", "{"):
            depth += 1
        elif piece in ("]", "}"):
            depth -= 1
        fresh = fresh and not piece.strip()


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    for found in _PIECE.finditer(text):
        yield found.start(), found[0]


def _lines(path: tuple[str, ...], value: Mapping[str, Any]) -> Iterator[str]:
    """A table as lines, with the tables in it after its own values."""
    yield f"[{'.'.join(map(_key, path))}]"
    inner = {
        name: cast("Mapping[str, Any]", each)
        for name, each in value.items()
        if isinstance(each, Mapping)
    }
    for name, each in value.items():
        if name not in inner:
            yield f"{_key(name)} = {_literal(each)}"
    for name, table in inner.items():
        yield ""
        yield from _lines((*path, name), table)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _literal(name)


def _literal(value: Any) -> str:
    """A text, a number, a truth value or an array of them. JSON's escapes are TOML's, too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
