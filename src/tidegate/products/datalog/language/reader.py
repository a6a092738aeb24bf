"""Reads EDN, one value in a text, as `clojure.edn/read-string` does, and never more than that.

Source: the EDN format (edn-format) and Clojure's `EdnReader`. What Clojure's reader refuses is
refused; so are metadata (`^`), ratios, tags other than `#inst` and `#uuid`, and what follows the
value. Nesting and size are bounded.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache
from uuid import UUID

from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.language.instants import parse_instant
from tidegate.products.datalog.language.values import (
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

MOST_CHARACTERS = 102_400
MOST_DEPTH = 64
MOST_REMEMBERED = 4_000
"""Characters of a text whose value is kept for the next time."""

_BLANK = re.compile(r"(?:[\s,]+|;[^\n]*)+")
_TOKEN = re.compile(r"""[^\s,"()\[\]{};\\^@~`]+""")
_INTEGER = re.compile(
    r"([-+]?)(?:(0)|([1-9][0-9]*)|0[xX]([0-9A-Fa-f]+)|0([0-7]+)|([1-9][0-9]?)[rR]([0-9A-Za-z]+))"
    r"(N?)"
)
_FLOAT = re.compile(r"([-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,4})?)(M?)")
_WRONG_OCTAL = re.compile(r"[-+]?0[0-9]+")
_NAME = re.compile(r"[A-Za-z0-9.*+!\-_?$%&=<>#:'|\u0080-\U0010ffff]+")
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "b": "\b", "f": "\f", "\\": "\\", '"': '"'}
_CHARACTERS = {
    "newline": "\n", "space": " ", "tab": "\t", "backspace": "\b", "formfeed": "\f", "return": "\r",
}  # fmt: skip
_CLOSING = {"(": ")", "[": "]", "{": "}", "#{": "}"}
_OPENING = re.compile(r"#\{|[(\[{]")
_OCTAL = re.compile(r"[0-7]{1,3}")
_SYMBOLS: dict[str, Value] = {"nil": None, "true": True, "false": False}
_NUMBERS: dict[str, Value] = {"Inf": math.inf, "-Inf": -math.inf, "NaN": math.nan}


def read(text: str, *, most_characters: int = MOST_CHARACTERS, depth: int = MOST_DEPTH) -> Value:
    """The one value in `text`.

    Raises: TidegateError DATALOG_UNREADABLE, DATALOG_TOO_LONG or DATALOG_TOO_DEEP, with `line` and
    `column` (from 1) and the `position` (characters before it) in its details.
    """
    if len(text) > most_characters:
        raise TidegateError(
            Code.DATALOG_TOO_LONG,
            f"The EDN text has {len(text)} characters; at most {most_characters} are read",
        )
    return _remembered(text, depth) if len(text) <= MOST_REMEMBERED else _read(text, depth)


def _read(text: str, depth: int) -> Value:
    reader = _Reader(text, depth)
    value = reader.value()
    reader.expect_end()
    return value


_remembered = lru_cache(256)(_read)
"""Values are frozen, and callers send a query or a set of rules again with other inputs."""


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._at = 0
        self._left = depth

    def value(self) -> Value:
        self._skip()
        text, at = self._text, self._at
        if at >= len(text):
            raise self._fault("The EDN text ends before its value", at)
        opening = _OPENING.match(text, at)
        if opening is not None:
            return self._collection(opening[0])
        character = text[at]
        if character == '"':
            return self._string()
        if character == "\\":
            return self._character()
        if character == "#":
            return self._tagged()
        if character in ")]}":
            raise self._fault(f"Unmatched {character}", at)
        token = self._token()
        if token[0].isdigit() or (token[0] in "+-" and token[1:2].isdigit()):
            return self._number(token, at)
        if token[0] == ":":
            return Keyword(self._name(token[1:], at, "keyword"))
        if token in _SYMBOLS:
            return _SYMBOLS[token]
        return Symbol(self._name(token, at, "symbol"))

    def expect_end(self) -> None:
        self._skip()
        if self._at < len(self._text):
            raise self._fault("There is more after the value", self._at)

    def _skip(self) -> None:
        while True:
            blank = _BLANK.match(self._text, self._at)
            if blank is not None:
                self._at = blank.end()
            if not self._text.startswith("#_", self._at):
                return
            begin = self._at
            self._at += 2
            self._enter(begin)
            self.value()
            self._left += 1

    def _enter(self, at: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise self._fault("The EDN text is nested too deeply", at, Code.DATALOG_TOO_DEEP)

    def _collection(self, opening: str) -> Value:
        begin = self._at
        self._enter(begin)
        self._at += len(opening)
        closing = _CLOSING[opening]
        items: list[Value] = []
        places: list[int] = []
        while True:
            self._skip()
            if self._at >= len(self._text):
                raise self._fault(f"{opening} is not closed", begin)
            if self._text[self._at] == closing:
                self._at += 1
                break
            places.append(self._at)
            items.append(self.value())
        self._left += 1
        if opening == "(":
            return List(tuple(items))
        if opening == "[":
            return Vector(tuple(items))
        if opening == "#{":
            self._check_different(items, places, "A set names an element twice")
            return Set(tuple(items))
        if len(items) % 2:
            raise self._fault("A map has a key without a value", begin)
        self._check_different(items[::2], places[::2], "A map names a key twice")
        return Map(tuple(zip(items[::2], items[1::2], strict=True)))

    def _check_different(self, items: list[Value], places: list[int], fault: str) -> None:
        seen: set[object] = set()
        for item, place in zip(items, places, strict=True):
            same = identity(item)
            if same in seen:
                raise self._fault(fault, place)
            seen.add(same)

    def _string(self) -> str:
        begin = self._at
        parts: list[str] = []
        at = begin + 1
        text = self._text
        while True:
            end = at
            while end < len(text) and text[end] not in '"\\':
                end += 1
            parts.append(text[at:end])
            if end >= len(text):
                raise self._fault("A string is not closed", begin)
            if text[end] == '"':
                self._at = end + 1
                return self._whole("".join(parts), begin)
            escape = text[end + 1 : end + 2]
            if escape in _ESCAPES and escape:
                parts.append(_ESCAPES[escape])
                at = end + 2
            elif escape == "u":
                parts.append(self._hexadecimal(text[end + 2 : end + 6], end))
                at = end + 6
            elif octal := _OCTAL.match(text, end + 1):
                parts.append(self._octal(octal[0], end))
                at = octal.end()
            else:
                raise self._fault(f"A string has the unknown escape \\{escape}", end)

    def _whole(self, text: str, at: int) -> str:
        """The text with its surrogate pairs joined; a lone surrogate is no character."""
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._fault("A string has half of a surrogate pair", at) from None

    def _hexadecimal(self, digits: str, at: int) -> str:
        if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
            raise self._fault("\\u needs four hexadecimal digits", at)
        return chr(int(digits, 16))

    def _octal(self, digits: str, at: int) -> str:
        number = int(digits, 8)
        if number > 0o377:
            raise self._fault("An octal escape is above \\377", at)
        return chr(number)

    def _character(self) -> Character:
        begin = self._at
        self._at += 1
        if self._at >= len(self._text):
            raise self._fault("The EDN text ends after a backslash", begin)
        rest = _TOKEN.match(self._text, self._at + 1)
        token = self._text[self._at] + (rest[0] if rest is not None else "")
        self._at += len(token)
        if len(token) == 1:
            return Character(self._whole(token, begin))
        if token in _CHARACTERS:
            return Character(_CHARACTERS[token])
        if token[0] == "u" and len(token) == 5:
            return Character(self._whole(self._hexadecimal(token[1:], begin), begin))
        if token[0] == "o" and _OCTAL.fullmatch(token, 1):
            return Character(self._octal(token[1:], begin))
        raise self._fault(f"Unknown character \\{token[:20]}", begin)

    def _tagged(self) -> Value:
        begin = self._at
        if self._text.startswith("##", begin):
            self._at += 2
            token = self._token()
            if token not in _NUMBERS:
                raise self._fault(f"Unknown number ##{token[:20]}", begin)
            return _NUMBERS[token]
        self._at += 1
        found = _TOKEN.match(self._text, self._at)
        tag = found[0] if found is not None else ""
        if tag not in ("inst", "uuid"):
            raise self._fault(f"Unknown tag #{tag[:20]}", begin)
        self._at += len(tag)
        self._enter(begin)
        value = self.value()
        self._left += 1
        if not isinstance(value, str):
            raise self._fault(f"#{tag} needs a string", begin)
        if tag == "inst":
            milliseconds = parse_instant(value)
            if milliseconds is None:
                raise self._fault("#inst needs a time such as 2026-01-31T12:00:00.000Z", begin)
            return Instant(milliseconds)
        try:
            if re.fullmatch(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", value):
                return UUID(value)
        except ValueError:
            pass
        raise self._fault("#uuid needs 32 hexadecimal digits in five groups", begin)

    def _token(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._fault(f"Unexpected {self._text[self._at : self._at + 1]!r}", self._at)
        self._at = found.end()
        return found[0]

    def _number(self, token: str, at: int) -> Value:
        if found := _INTEGER.fullmatch(token):
            sign, zero, decimal, hexadecimal, octal, radix, digits, big = found.groups()
            try:
                if zero:
                    number = 0
                elif decimal:
                    number = int(decimal)
                elif hexadecimal:
                    number = int(hexadecimal, 16)
                elif octal:
                    number = int(octal, 8)
                else:
                    number = int(digits, int(radix))
            except ValueError:
                raise self._fault(f"{token[:20]} is no number", at) from None
            if sign == "-":
                number = -number
            return BigInteger(number) if big else integer(number)
        if (found := _FLOAT.fullmatch(token)) and not _WRONG_OCTAL.fullmatch(token):
            return Decimal(found[1]) if found[2] else float(found[1])
        raise self._fault(f"{token[:20]} is no number", at)

    def _name(self, name: str, at: int, what: str) -> str:
        space, slash, rest = name.partition("/")
        fit = _NAME.fullmatch(rest if slash and space else name) is not None
        if slash and space:
            fit = fit and _NAME.fullmatch(space) is not None and not space.endswith(":")
        elif name == "/":
            fit = what == "symbol"
        if not fit or name.endswith(":") or "::" in name or name.startswith((":", "#")):
            raise self._fault(f"{name[:40]!r} is no {what}", at)
        return name

    def _fault(self, fault: str, at: int, code: Code = Code.DATALOG_UNREADABLE) -> TidegateError:
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        return TidegateError(
            code,
            f"{fault} (line {line}, column {column})",
            details={"position": at, "line": line, "column": column},
        )
