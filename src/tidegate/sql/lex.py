"""Splits a text into tokens as its database would. Decides what is a string, a name, a comment;
says nothing about meaning.

What is not a token of the dialect is refused. One expression does the
work, see `token_regex.py`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tidegate.errors import Code
from tidegate.sql.dialects.model import LexicalRules, words
from tidegate.sql.finding import Refusal
from tidegate.sql.token_regex import token_regex

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


_HIDDEN = re.compile(
    "[\u0085\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180e\u2000-\u200f\u2028\u2029"
    "\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_LEADING = re.compile("[\u0085\u00a0\u1680\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff \t\r\n\f]*+")
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_HINT = re.compile(
    r"/\*\+(?:(?!SET_VAR|RESOURCE|QB_NAME)[\w\s(),.])*+\*/", re.IGNORECASE | re.ASCII
)
_AS_WRITTEN = frozenset({NUMBER, PARAM})
_NAMING = frozenset({"quotes", "backtick", "bracket"})
_CONTINUING = frozenset({"string", "escape", "escaped", "prefixed"})
_MARKS = words("( ) [ ] { } . , ; : :: := =>")
_SIGNS_NEED_ONE_OF = frozenset("~!@#%^&|`?")


def lex(text: str, lexical_rules: LexicalRules) -> list[Token]:
    """The tokens of a text, comments left out. Raises: Refusal for what cannot be read."""
    position = 0
    if not text.isascii():
        turning = _TURNING.search(text)
        if turning is not None:
            raise _hidden(turning)
        position = _leading(text)
    tokens: list[Token] = []
    match = token_regex(lexical_rules).match
    escaped = False
    while True:
        found = match(text, position)
        if found is None:
            raise _unreadable(text, position)
        kind = found.lastgroup or "end"
        position = found.end()
        if kind == "end":
            return tokens
        raw, at = found[kind], found.start(kind)
        if kind == WORD:
            tokens.append(_word(raw, at))
        elif kind == OP or kind == "qualified":
            _add_operator(tokens, raw, at, lexical_rules)
        elif kind in _AS_WRITTEN:
            tokens.append(Token(kind, "", raw, at))
        elif kind == "comment":
            _check_line_ends(raw, lexical_rules)
            continue
        elif kind == "block":
            position = skip_comment(text, at, lexical_rules)
            continue
        elif kind == "slashes":
            raise Refusal(
                Code.SQL_UNREADABLE,
                "text.slash_comment",
                f"The // at character {at + 1} is read differently by databases",
                "Begin a comment with --, and put a space between two signs of division.",
            )
        elif kind == "dollar":
            closing = text.find(raw, position)
            if closing < 0:
                raise _unterminated("dollar-quoted string", at)
            tokens.append(Token(STRING, "", text[position:closing], at))
            position = closing + len(raw)
        else:
            if escaped and kind in _CONTINUING:
                raise _continued()
            tokens.append(_quoted(raw, at, kind, lexical_rules))
        escaped = kind == "escape"


def _word(raw: str, at: int) -> Token:
    if raw.isascii():
        return Token(WORD, raw.upper(), raw, at)
    hidden = _HIDDEN.search(raw)
    if hidden is not None:
        raise _hidden(hidden, at)
    # No keyword: `upper` would make ASCII of letters that databases leave alone.
    return Token(WORD, "", raw, at)


def _quoted(raw: str, at: int, kind: str, lexical_rules: LexicalRules) -> Token:
    if kind in _NAMING:
        return _name(raw, at, lexical_rules)
    if kind == "unicode":
        raise Refusal(
            Code.SQL_UNREADABLE,
            "text.unicode_escape",
            "Names with Unicode escapes (U&) are not read",
            "Write the characters themselves.",
        )
    return _string(raw, at, kind, lexical_rules)


def _add_operator(tokens: list[Token], raw: str, at: int, lexical_rules: LexicalRules) -> None:
    if raw in _MARKS or raw in lexical_rules.operators:
        tokens.append(Token(OP, raw, raw, at))
        return
    head = raw
    if lexical_rules.operator_runs and _SIGNS_NEED_ONE_OF.isdisjoint(raw):
        # PostgreSQL gives trailing signs back, unless the operator holds one of these.
        head = raw.rstrip("+-") or raw[0]
    if head not in lexical_rules.operators:
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


def _name(raw: str, at: int, lexical_rules: LexicalRules) -> Token:
    quote = raw[-1]
    content = raw[1:-1].replace(quote * 2, quote)
    if quote == '"' and lexical_rules.double_quoted == "string":
        if lexical_rules.backslashes == "ambiguous":
            _check_backslashes(content, quote)
        return Token(STRING, "", content, at)
    hidden = None if content.isascii() else _HIDDEN.search(content)
    if hidden is not None:
        raise _hidden(hidden, at + 1)
    if not content:
        raise Refusal(Code.SQL_UNREADABLE, "text.empty_name", f"Empty name at character {at + 1}")
    return Token(NAME, "", content, at)


def _string(raw: str, at: int, kind: str, lexical_rules: LexicalRules) -> Token:
    content = raw[raw.index("'") + 1 : -1]
    if kind == "escaped":
        # UESCAPE may make an escape of any character, so whatever it says is no plain text.
        return Token(STRING, "", f"\\{content}", at)
    if "\\" in content:
        if kind == "escape":
            # Nor is this: what is read again, such as the code of a routine, would be other text.
            return Token(STRING, "", f"\\{content}", at)
        if lexical_rules.backslashes == "ambiguous":
            _check_backslashes(content, "'")
        if lexical_rules.backslashes == "escape":
            # What the escapes mean does not matter, only that it is no plain text.
            return Token(STRING, "", content.replace("\\", "\\\\"), at)
    return Token(STRING, "", content.replace("''", "'"), at)


def _check_backslashes(content: str, quote: str) -> None:
    if content.endswith("\\") or f"\\{quote}" in content:
        raise Refusal(
            Code.SQL_UNREADABLE,
            "text.backslash",
            "A backslash before a quote is read differently by databases",
            "Double the quote, and put no backslash before it.",
        )


def skip_comment(text: str, at: int, lexical_rules: LexicalRules) -> int:
    """The position after the block comment that starts at `at`."""
    opening = text[at + 2 : at + 4]
    if opening[:1] == "+" and lexical_rules.comments == "ambiguous":
        closing = text.find("*/", at)
        if _HINT.fullmatch(text, at, closing + 2 if closing > 0 else len(text)):
            return closing + 2
    if (
        lexical_rules.executable_comments
        and (opening[:1] in "!+" or opening in ("M!", "m!"))
        and opening
    ):
        raise Refusal(
            Code.SQL_UNREADABLE,
            "text.executable_comment",
            "Comments that the database executes (/*! */, /*M! */, /*+ */) are not read",
            "Write plain SQL without it.",
        )
    if lexical_rules.comments == "flat":
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
        if depth > 1 and lexical_rules.comments == "ambiguous":
            raise Refusal(
                Code.SQL_UNREADABLE,
                "text.nested_comment",
                "A comment inside a comment is read differently by databases",
                "Leave the inner comment out.",
            )
    raise _unterminated("comment", at)


def _check_line_ends(comment: str, lexical_rules: LexicalRules) -> None:
    if lexical_rules.comments == "ambiguous" and comment.rstrip("\r").endswith("\\"):
        raise Refusal(
            Code.SQL_UNREADABLE,
            "text.line_end",
            "A comment ends with a backslash, after which Spark reads the next line as a comment",
            "Leave the backslash or the comment out.",
        )
    if "\r" in comment.rstrip("\r"):
        raise Refusal(
            Code.SQL_UNREADABLE,
            "text.line_end",
            "A comment holds a bare carriage return, which databases read differently",
            "End lines with a line feed, or leave the comment out.",
        )


def _continued() -> Refusal:
    return Refusal(
        Code.SQL_UNREADABLE,
        "text.continued_string",
        "A string directly after an escape string would continue it",
        "Join the strings with ||.",
    )


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
