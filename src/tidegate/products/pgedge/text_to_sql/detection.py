"""Tells SQL from a question in plain language. Pure, except for what `sql.judge` keeps of texts.

What is neither clearly is taken as SQL where a database could read it: a question that is taken for
SQL fails and says how to ask it, while SQL that is taken for a question would be rewritten.
"""

from __future__ import annotations

import re

from tidegate.errors import Code
from tidegate.model.schema import Catalog
from tidegate.model.statements import Effect, Judgement
from tidegate.products.pgedge.text_to_sql.model import MAX_QUESTION_CHARS
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge
from tidegate.sql.lex import NAME, STRING, WORD, Token, lex

_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*+(\w+)", re.DOTALL)
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")
"""Within a word, as in `don't`. In SQL only a prefix of a literal has a quote right after it."""
_POSSESSIVE = re.compile(r"(?<=[^\W\d_])'(?=\s|$)")
_SYMBOLS = words("* = < > ( ) ; :: <> != <= >= ||")
_SECOND_WORDS = {
    "INSERT": ("INTO",),
    "UPDATE": ("SET",),
    "DELETE": ("FROM",),
    "MERGE": ("INTO",),
}
_ANALYZED = words("VERBOSE TABLE TABLES")
_ASKING = {
    "ANALYZE": _ANALYZED,
    "ANALYSE": _ANALYZED,
    "CHECK": words("TABLE TABLES"),
    "FETCH": words("FROM IN NEXT PRIOR FIRST LAST FORWARD BACKWARD"),
    "GET": words("DIAGNOSTICS"),
}
"""What a statement of more than two words that begins with the key has one of."""
_EXPLAINED = frozenset(
    {"SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "EXECUTE"}
    | {"CREATE", "DECLARE", "REFRESH"}
)
_VALUES = words("""
    CURRENT_USER SESSION_USER CURRENT_ROLE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP LOCALTIME
    LOCALTIMESTAMP CURRENT_CATALOG CURRENT_SCHEMA SYSTEM_USER USER NULL TRUE FALSE
    """)
"""Words that a SELECT without a table can give, and that are no question."""
_FIXED_SHOWS = frozenset({"ALL", "PORT", "SSL", "FSYNC", "TIMEZONE", "DATESTYLE", "INTERVALSTYLE"})
_SHOW_PHRASES = (
    ("TIME", "ZONE"),
    ("SESSION", "AUTHORIZATION"),
    ("TRANSACTION", "ISOLATION", "LEVEL"),
)


def is_sql(text: str, dialect: str = "postgres", catalog: Catalog | None = None) -> bool:
    """Whether to run a text as SQL; otherwise it is a question.

    With the catalog of its source, `select customers` is a question, which asks for a table:
    alone it can be read as a column.
    """
    rules = find(dialect)
    if len(text) > MAX_QUESTION_CHARS:
        # Too long for a question, and not read here: the caller waits on the event loop.
        first = _FIRST_WORD.match(text[:MAX_QUESTION_CHARS])
        return first is not None and first[1].upper() in rules.roots
    try:
        tokens = lex(text, rules.lexical_rules)
    except Refusal:
        prose = _without_apostrophes(text)
        if prose != text:
            return is_sql(prose, dialect, catalog)
        # SQL of another dialect, or prose with its signs: the first word decides.
        first = text.lstrip().split(None, 1)
        if not first or (first[0].upper() == "SHOW" and rules.setting_shows is None):
            return False  # there SHOW takes a name and nothing else
        return first[0].upper() in rules.roots and not text.rstrip().endswith("?")
    while tokens and tokens[-1].key == ";":
        tokens.pop()
    if not tokens:
        # Comments alone: SQL that says nothing.
        return bool(text.strip()) and catalog is not None
    if tokens[0].key not in rules.roots:
        return tokens[0].key == "(" and any(token.key in rules.roots for token in tokens[1:2])
    if tokens[0].key == "SHOW":
        if rules.setting_shows is not None:
            # Where SHOW has many forms the judge reads it.
            return judge(text, dialect).effect is not Effect.UNKNOWN
        return _is_show(tokens[1:])
    has_symbols = any(token.key in _SYMBOLS for token in tokens[1:])
    if not _has_its_word(tokens):
        return has_symbols
    # What two apostrophes enclose reads like a literal.
    has_literal = any(token.kind == STRING for token in tokens[1:])
    prose = _without_apostrophes(text) if has_literal else text
    judgement = judge(text, dialect)
    if judgement.code != Code.SQL_UNREADABLE.value:
        are_words = all(token.kind == WORD for token in tokens[1:])
        reads = rules.roots[tokens[0].key] in ("query", "explain")
        if reads and are_words and judgement.effect is Effect.UNKNOWN:
            return False  # `explain the orders table`: nothing that a database could run
        if catalog is not None and judgement.effect is Effect.READ and are_words:
            return _names_a_value(tokens[1:]) or _names_a_table(judgement, catalog)
        if prose != text and not reads:
            return is_sql(prose, dialect, catalog)
        return not _is_prose(tokens, rules)
    if has_symbols or not has_literal:
        return has_symbols
    return prose == text or is_sql(prose, dialect, catalog)


def _without_apostrophes(text: str) -> str:
    """The text without apostrophes within words, and without one after a word that is the last."""
    text = _APOSTROPHE.sub("", text)
    return _POSSESSIVE.sub("", text) if text.count("'") == 1 else text


def _names_a_value(tokens: list[Token]) -> bool:
    """Whether the words are values that SQL has names for, as in `SELECT current_user AS me`."""
    keys = [token.key for token in tokens]
    if keys[:1] in (["DISTINCT"], ["ALL"]):
        del keys[0]
    if not keys or keys[0] not in _VALUES:
        return False
    return len(keys) == 1 or keys[1] == "AS" or (len(keys) == 2 and "_" in keys[0])


def _names_a_table(judgement: Judgement, catalog: Catalog) -> bool:
    known = {table.name.casefold() for table in catalog.tables}
    named = (name.rpartition(".")[2].strip('"`').casefold() for name in judgement.tables)
    return any(name in known for name in named)


def _has_its_word(tokens: list[Token]) -> bool:
    """Whether a change or an EXPLAIN has the word without which there is none."""
    first = tokens[0].key
    if first == "EXPLAIN":
        return any(token.key in _EXPLAINED for token in tokens[1:])
    wanted = _SECOND_WORDS.get(first)
    return wanted is None or any(token.key in wanted for token in tokens[1:])


def _is_show(words: list[Token]) -> bool:
    """`SHOW` takes the name of a parameter, and those of more than one word are few."""
    keys = tuple(token.key for token in words)
    if len(words) == 1:
        token = words[0]
        named = token.kind == NAME or "_" in token.text
        return named or token.key in _FIXED_SHOWS
    return keys in _SHOW_PHRASES or ("." in keys and len(keys) == 3)


def _is_prose(tokens: list[Token], rules: Dialect) -> bool:
    """Whether it begins with a word that ends no sentence in SQL: `grant me access to sales?`. Or
    with one that asks for something, and goes on as no statement does: `get the sales of May`."""
    plain = all(token.kind == WORD for token in tokens[:-1])
    known = _ASKING.get(tokens[0].key)
    if known is not None:
        return plain and len(tokens) > 2 and all(token.key not in known for token in tokens[1:])
    is_query = rules.roots[tokens[0].key] in ("query", "change", "explain")
    return not is_query and plain and len(tokens) > 3 and tokens[-1].key == "?"
