"""Other ways to write the same statement: blanks, comments and letters' case between its tokens,
for tests that what is written differently is not judged more mildly."""

from __future__ import annotations

import random

from tidegate.sql.dialects import find
from tidegate.sql.lex import WORD, lex

_BLANKS = (" ", "\n", "\t", "  ", "\r\n", "\f")
_COMMENTS = ("/**/", "/* x */", "/* ; */", "/* ' */", "-- x\n", "-- ;\n", "/* DROP TABLE t */")


def mutate(text: str, dialect: str, rng: random.Random) -> str:
    """The statement with its tokens set apart again. Raises: Refusal if it has no tokens."""
    tokens = lex(text, find(dialect).lexical_rules)
    if not tokens:
        return text
    ends = [*(token.at for token in tokens[1:]), len(text)]
    parts = [rng.choice(("", *_BLANKS, *_COMMENTS))]
    for token, end in zip(tokens, ends, strict=True):
        parts.append(_written(text[token.at : end], token.kind, token.text, rng))
        parts.append(rng.choice((*_BLANKS, *_COMMENTS)))
    return "".join(parts)


def _written(piece: str, kind: str, text: str, rng: random.Random) -> str:
    """One token without what followed it; bare words in any case."""
    if kind != WORD:
        return _trimmed(piece)
    if not text.isascii():
        return text
    return rng.choice((text, text.upper(), text.lower(), text.swapcase()))


def _trimmed(piece: str) -> str:
    """The token at the start of a piece; the blanks and comments after it may stay, as they end
    before the next token."""
    return f"{piece}\n"
