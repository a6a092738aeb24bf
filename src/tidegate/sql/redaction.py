"""Removes what may be a secret from a statement before it is shown or recorded.

Replaced are the inside of string literals, as the dialect's lexer finds them, and the password of a
URL anywhere, which is no SQL. Keywords, names, operators and the rest of comments stay as they will
run. If a statement mentions a password, key or token, all of its literals lose their text, because
any of them can be the secret. In other statements only literals in the form of a secret are
replaced. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tidegate.secrets.redaction import MASK, mask_shapes, mask_url_logins, mentions_secret
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect, LexicalRules
from tidegate.sql.finding import Refusal
from tidegate.sql.lex import skip_comment
from tidegate.sql.token_regex import token_regex

Span = tuple[int, int]

_QUOTED = frozenset({"string", "escape", "escaped", "prefixed"})
_VALUE_FOLLOWS = (("IDENTIFIED", "BY"), ("IDENTIFIED", "BY", "PASSWORD"))


def redact_statement(text: str, dialect: str, *, mentions: bool = False) -> str:
    """The statement without secrets; equal to `text` if there were none. `mentions`: what was cut
    off at its end mentions a secret.

    A part at the end that cannot be read as tokens, such as a literal that was cut, is left out as
    a whole if it may hold a secret. What UTF-8 cannot hold becomes `?`. The work is bounded by the
    length: give it a text cut to the size that is kept.
    """
    # Long texts seldom come twice, and the cache must stay small.
    if len(text) <= 2_048 and not mentions:
        return _cached(text, dialect)
    return _redact(text, dialect, elsewhere=mentions)


def _redact(text: str, dialect: str, *, elsewhere: bool = False) -> str:
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    mentions = elsewhere or mentions_secret(text)
    if not mentions and mask_shapes(text) == text:
        return text
    spans, end = literal_spans(text, find(dialect))
    if mentions and not elsewhere:
        # A comment alone takes no literal away: any caller can write one.
        mentions = mentions_secret(_without_comments(text, find(dialect), end))
    parts: list[str] = []
    at = 0
    for start, stop in spans:
        inner = text[start:stop]
        masked = mask_shapes(inner)
        if mentions and inner:
            masked = MASK
        parts += [mask_url_logins(text[at:start]), masked]
        at = stop
    parts.append(mask_url_logins(text[at:end]))
    tail = text[end:]
    if tail:
        parts.append(MASK if mentions or mentions_secret(tail) else mask_shapes(tail))
    return "".join(parts)


_cached = lru_cache(maxsize=1_024)(_redact)


def without_values(text: str, dialect: str, mark: str, *, numbers: bool) -> str:
    """The statement with `mark` for each string literal, and for each number if `numbers`, and
    without comments. What cannot be read as tokens becomes ` ...`: any part of it may be a value.
    """
    rules = find(dialect).lexical_rules
    values = {*_QUOTED, "dollar", *(["number"] if numbers else [])}
    if rules.double_quoted == "string":
        values.add("quotes")
    parts: list[str] = []
    at = 0
    for kind, start, stop in _tokens(text, rules):
        if kind == "unread":
            return f"{''.join(parts)}{text[at:start].rstrip()} ...".lstrip()
        shown = text[start:stop]
        if kind in ("comment", "block"):
            shown = " "
        elif kind in values:
            shown = mark
        parts += [text[at:start], shown]
        at = stop
    return "".join([*parts, text[at:]])


def literal_spans(text: str, dialect: Dialect) -> tuple[list[Span], int]:
    """The insides of the text's string literals, and where the part that can be read ends."""
    spans: list[Span] = []
    words: list[str] = []
    for kind, start, stop in _tokens(text, dialect.lexical_rules):
        if kind == "unread":
            return spans, start
        raw = text[start:stop]
        if kind == "dollar":
            tag = raw[: raw.index("$", 1) + 1]
            spans.append((start + len(tag), stop - len(tag)))
        elif kind in _QUOTED and _is_account(words, text, stop):
            pass
        elif kind in _QUOTED:
            spans.append((start + raw.index("'") + 1, stop - 1))
        elif kind == "quotes":
            if dialect.lexical_rules.double_quoted == "string" or _is_value(words):
                spans.append((start + 1, stop - 1))
        elif kind == "word":
            if _is_value(words):
                spans.append((start, stop))
            words.append(raw.upper())
            continue
        elif kind not in ("comment", "block"):
            words.append(raw)
            continue
        if kind not in ("comment", "block"):
            words.append("'")
    return spans, len(text)


def _is_account(words: list[str], text: str, stop: int) -> bool:
    """Whether a literal names an account: MySQL's `'name'@'host'`, or the first of CREATE USER."""
    if _is_value(words):
        return False
    if text.startswith("@", stop) and words[:1] and words[0] in _ABOUT_ACCOUNTS:
        return True
    before = [word for word in words if word not in ("IF", "NOT", "EXISTS")]
    return len(before) == 2 and before[0] in _ABOUT_ACCOUNTS and before[1] == "USER"


_ABOUT_ACCOUNTS = frozenset({"ALTER", "CREATE", "DROP", "GRANT", "RENAME", "REVOKE"})


def _is_value(words: list[str]) -> bool:
    """Whether a word or name here is a value: a pragma's key, and the password of CREATE USER."""
    if words[:1] == ["PRAGMA"] and words[-1] == "=":
        return True
    return any(tuple(words[-len(before) :]) == before for before in _VALUE_FOLLOWS)


def _without_comments(text: str, dialect: Dialect, end: int) -> str:
    parts: list[str] = []
    for kind, start, stop in _tokens(text[:end], dialect.lexical_rules):
        if kind not in ("comment", "block"):
            parts.append(text[start:stop])
    return " ".join([*parts, text[end:]])


def _tokens(text: str, rules: LexicalRules) -> Iterator[tuple[str, int, int]]:
    """Kind, start and end of every token and comment; `unread` for a rest that has none."""
    match = token_regex(rules).match
    position = 0
    while True:
        found = match(text, position)
        if found is None:
            yield "unread", position, len(text)
            return
        kind = found.lastgroup or "end"
        if kind == "end":
            return
        start, position = found.start(kind), found.end()
        if kind == "unicode":
            yield "unread", start, len(text)
            return
        if kind == "block":
            try:
                position = skip_comment(text, start, rules)
            except Refusal:
                # Comments that run, nest or have no end: what follows may be anything.
                yield "unread", start, len(text)
                return
        elif kind == "dollar":
            closing = text.find(found[kind], position)
            if closing < 0:
                yield "unread", start, len(text)
                return
            position = closing + len(found[kind])
        yield kind, start, position
