"""Splits a text into tokens as its database would. Decides what is a string, a name, a comment;
says nothing about meaning.

One compiled expression per dialect does the work; every repetition in it is possessive, so a
hostile text costs no more than its length. What is not a token of the dialect is refused.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from tidegate.errors import Code
from tidegate.sql.dialects.model import Lexis, words
from tidegate.sql.opinion import Refusal

WORD, NAME, STRING, NUMBER, PARAM, OP = "word", "name", "string", "number", "param", "op"

LITERALS = frozenset({STRING, NUMBER, PARAM})


class Token(NamedTuple):
    """One token. `key` is what keywords and operators are compared with: a bare word in upper
    case, an operator or bracket itself, empty for anything quoted. `text` is what a name or a
    string holds, or the token as written. `at` is where it starts, in characters.
    """

    kind: str
    key: str
    text: str
    at: int


_IDENT = r"[A-Za-z_\x80-\U0010ffff]"
_CONT = r"[A-Za-z0-9_$\x80-\U0010ffff]"
_HIDDEN = re.compile(
    "[\u0085\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180e\u2000-\u200f\u2028\u2029"
    "\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_LEADING = re.compile("[\u0085\u00a0\u1680\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff \t\r\n\f]*+")
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_OPERATOR_CATALOG = (
    r"(?i:OPERATOR)\s*+\(\s*+(?i:pg_catalog)\s*+\.\s*+(?P<qualified>[^\s()\w]++)\s*+\)"
)
_MARKS = words("( ) [ ] { } . , ; : :: := =>")
_SIGNS_NEED_ONE_OF = frozenset("~!@#%^&|`?")


def lex(text: str, lexis: Lexis) -> list[Token]:
    """The tokens of a text, comments left out. Raises: Refusal for what cannot be read."""
    ascii_only = text.isascii()
    position = 0
    if not ascii_only:
        turning = _TURNING.search(text)
        if turning is not None:
            raise _hidden(turning)
        position = _leading(text)
    tokens: list[Token] = []
    match = _pattern(lexis).match
    end = len(text)
    escaped = False
    while True:
        found = match(text, position)
        if found is None:
            raise _unreadable(text, position)
        kind = found.lastgroup or "end"
        position = found.end()
        if kind == "end":
            return tokens
        if kind == "comment":
            if "\r" in found.group(kind).rstrip("\r"):
                raise Refusal(
                    Code.SQL_UNREADABLE,
                    "text.line_end",
                    "A comment holds a bare carriage return, which databases read differently",
                    "End lines with a line feed, or leave the comment out.",
                )
            continue
        if kind == "block":
            position = _skip_comment(text, found.start(kind), lexis)
            continue
        raw, at = found[kind], found.start(kind)
        if kind == WORD:
            if not ascii_only and not raw.isascii():
                hidden = _HIDDEN.search(raw)
                if hidden is not None:
                    raise _hidden(hidden, at)
                tokens.append(Token(WORD, "", raw, at))
            else:
                tokens.append(Token(WORD, raw.upper(), raw, at))
        elif kind == OP or kind == "qualified":
            _add_operator(tokens, raw, at, lexis)
        elif kind in LITERALS and kind != STRING:
            tokens.append(Token(kind, "", raw, at))
        elif kind == "dollar":
            closing = text.find(raw, position)
            if closing < 0:
                raise _unterminated("dollar-quoted string", at)
            tokens.append(Token(STRING, "", text[position:closing], at))
            position = closing + len(raw)
        elif kind == "quotes" or kind == "backtick" or kind == "bracket":
            tokens.append(_name(raw, at, lexis))
        elif kind == "unicode":
            raise Refusal(
                Code.SQL_UNREADABLE,
                "text.unicode_escape",
                "Names and strings with Unicode escapes (U&) are not read",
                "Write the characters themselves.",
            )
        else:
            if escaped and tokens and tokens[-1].kind == STRING:
                raise Refusal(
                    Code.SQL_UNREADABLE,
                    "text.continued_string",
                    "A string directly after an escape string would continue it",
                    "Join the strings with ||.",
                )
            tokens.append(_string(raw, at, kind, lexis))
            escaped = kind == "escape"
            continue
        escaped = False
        if position >= end:
            return tokens


def _add_operator(tokens: list[Token], raw: str, at: int, lexis: Lexis) -> None:
    if raw in _MARKS or raw in lexis.operators:
        tokens.append(Token(OP, raw, raw, at))
        return
    head = raw
    if lexis.operator_runs and _SIGNS_NEED_ONE_OF.isdisjoint(raw):
        # PostgreSQL gives trailing signs back, unless the operator holds one of these.
        head = raw.rstrip("+-") or raw[0]
    if head not in lexis.operators:
        raise Refusal(
            Code.SQL_UNKNOWN,
            "operator.unlisted",
            f"The operator {raw} at character {at + 1} is not on the list of this dialect",
            "Use one of the database's own operators, or a function.",
        )
    tokens.append(Token(OP, head, head, at))
    tokens.extend(
        Token(OP, sign, sign, at + len(head) + n) for n, sign in enumerate(raw[len(head) :])
    )


def _name(raw: str, at: int, lexis: Lexis) -> Token:
    quote = raw[-1]
    content = raw[1:-1].replace(quote * 2, quote)
    if quote == '"' and lexis.double_quoted == "string":
        return Token(STRING, "", content, at)
    hidden = None if content.isascii() else _HIDDEN.search(content)
    if hidden is not None:
        raise _hidden(hidden, at + 1)
    if not content:
        raise Refusal(Code.SQL_UNREADABLE, "text.empty_name", f"Empty name at character {at + 1}")
    return Token(NAME, "", content, at)


def _string(raw: str, at: int, kind: str, lexis: Lexis) -> Token:
    content = raw[raw.index("'") + 1 : -1]
    if "\\" in content:
        if lexis.backslashes == "ambiguous" and (content[-1] == "\\" or "\\'" in content):
            raise Refusal(
                Code.SQL_UNREADABLE,
                "text.backslash",
                "A backslash before a quote is read differently by databases",
                "Double the quote, and put no backslash before it.",
            )
        if lexis.backslashes == "escape" or kind == "escape":
            # What the escapes stand for does not matter, only that it is no plain text.
            return Token(STRING, "", content.replace("\\", "\\\\"), at)
    return Token(STRING, "", content.replace("''", "'"), at)


def _skip_comment(text: str, at: int, lexis: Lexis) -> int:
    """The position after the block comment that starts at `at`."""
    opening = text[at + 2 : at + 4]
    if lexis.executable_comments and (opening[:1] in "!+" or opening in ("M!", "m!")) and opening:
        raise Refusal(
            Code.SQL_UNREADABLE,
            "text.executable_comment",
            "Comments that the database executes (/*! */, /*M! */, /*+ */) are not read",
            "Write plain SQL without it.",
        )
    if lexis.comments == "flat":
        closing = text.find("*/", at + 2)
        if closing < 0:
            raise _unterminated("comment", at)
        return closing + 2
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, at):
        if edge.group() == "*/":
            depth -= 1
            if depth == 0:
                return edge.end()
            continue
        depth += 1
        if depth > 1 and lexis.comments == "ambiguous":
            raise Refusal(
                Code.SQL_UNREADABLE,
                "text.nested_comment",
                "A comment inside a comment is read differently by databases",
                "Leave the inner comment out.",
            )
    raise _unterminated("comment", at)


def _leading(text: str) -> int:
    """Where the text starts, after what looks like blank."""
    found = _LEADING.match(text)
    return found.end() if found else 0


def _hidden(found: re.Match[str], offset: int = 0) -> Refusal:
    return Refusal(
        Code.SQL_UNREADABLE,
        "text.hidden_character",
        f"Invisible character U+{ord(found.group()):04X} at character {offset + found.start() + 1}",
        "Remove it, or put a plain space.",
    )


def _unterminated(what: str, at: int) -> Refusal:
    return Refusal(
        Code.SQL_UNREADABLE,
        "text.unterminated",
        f"The {what} at character {at + 1} has no end",
        "Close it.",
    )


def _unreadable(text: str, position: int) -> Refusal:
    at = position
    while at < len(text) and text[at] in " \t\r\n\f\v":
        at += 1
    sign = text[at : at + 1]
    if sign and sign in "'\"`[":
        return _unterminated("quotation", at)
    shown = sign if sign.isprintable() else f"U+{ord(sign):04X}" if sign else "the end"
    return Refusal(
        Code.SQL_UNREADABLE,
        "text.character",
        f"Cannot read {shown} at character {at + 1}",
        "Correct the syntax there.",
    )


@cache
def _pattern(lexis: Lexis) -> re.Pattern[str]:
    """The dialect's one expression; the name of the group that matched is the kind."""
    plain = r"'[^']*+(?:''[^']*+)*+'"
    escape = r"'(?:[^'\\]++|\\.|'')*+'"
    quoted = escape if lexis.backslashes == "escape" else plain
    double = (
        r'"(?:[^"\\]++|\\.|"")*+"' if lexis.double_quoted == "string" else r'"[^"]*+(?:""[^"]*+)*+"'
    )
    parts: list[str] = [r"(?P<end>\Z)"]
    dash = r"--(?=[\x00-\x20]|\Z)[^\n]*+" if lexis.dash_comment_needs_space else r"--[^\n]*+"
    hash_mark = r"|#[^\n]*+" if lexis.hash_comments else ""
    parts.append(rf"(?P<comment>{dash}{hash_mark})")
    parts.append(r"(?P<block>/\*)")
    if lexis.escape_strings:
        parts.append(rf"(?P<escape>[eE]{escape})")
        parts.append(r"(?P<unicode>[uU]&['\"])")
    if lexis.string_prefixes:
        parts.append(rf"(?P<prefixed>[{lexis.string_prefixes}]{quoted})")
    number = (
        r"(?:0[xXbBoO][0-9A-Fa-f_]++|(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?+|\.[0-9][0-9_]*+)"
        rf"(?:[eE][+-]?+[0-9]++)?+)(?!{_CONT})"
    )
    parts.append(rf"(?P<number>{number})")
    if lexis.operator_runs:
        parts.append(_OPERATOR_CATALOG)
    parts.append(rf"(?P<word>{_IDENT}{_CONT}*+)")
    if lexis.dollar_strings:
        parts.append(rf"(?P<dollar>\$(?:{_IDENT}[A-Za-z0-9_\x80-\U0010ffff]*+)?+\$)")
    parts.append(rf"(?P<string>{quoted})")
    parts.append(rf"(?P<quotes>{double})")
    if lexis.backticks:
        parts.append(r"(?P<backtick>`[^`]*+(?:``[^`]*+)*+`)")
    if lexis.bracketed_names:
        parts.append(r"(?P<bracket>\[[^\]\[]*+\])")
    if lexis.parameters:
        parts.append(rf"(?P<param>{lexis.parameters})")
    parts.append(rf"(?P<op>{_operators(lexis)})")
    return re.compile(rf"[ \t\n\r\f\v]*+(?:{'|'.join(parts)})", re.DOTALL)


def _operators(lexis: Lexis) -> str:
    marks = "::|:=|=>|[().,;:{}]" if lexis.bracketed_names else r"::|:=|=>|[().,;:{}\[\]]"
    if lexis.operator_runs:
        signs = "".join(re.escape(sign) for sign in "+-*/<>=~!@#%^&|`?")
        return rf"(?:(?!--|/\*)[{signs}])++|{marks}"
    longest = sorted(lexis.operators, key=len, reverse=True)
    return "|".join([*(re.escape(operator) for operator in longest), marks])
