"""Reads CREATE, ALTER and DROP: what kind of object, and whether anything is lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.effects import Grammar, study
from tidegate.sql.lex import Token
from tidegate.sql.opinion import Opinion, Refusal
from tidegate.sql.parse import parse
from tidegate.sql.phrases import look
from tidegate.sql.places import defined
from tidegate.sql.plain import plain
from tidegate.sql.sentence import Reading, unlisted
from tidegate.statements import Effect

_MODIFIERS = words("""
    CONCURRENTLY EXISTS FULLTEXT GLOBAL IF IGNORE LOCAL MATERIALIZED NOT ONLINE OR PERSISTENT
    RECURSIVE REPLACE SPATIAL TEMP TEMPORARY UNIQUE UNLOGGED
    """)
_DATA = words("TABLE VIEW INDEX SEQUENCE SCHEMA TYPE DOMAIN")
_GOVERNING = words("""
    ACCESS EXTENSION FOREIGN FUNCTION GROUP LANGUAGE LOGFILE OPERATOR OWNED POLICY PROCEDURE
    PUBLICATION ROLE RULE SECRET SERVER SUBSCRIPTION TABLESPACE TRIGGER USER
    """)
_GUARDS = words("OWNER SECURITY TRIGGER RULE REPLICA POLICY TABLESPACE ENCRYPTION")


def create(tokens: list[Token], dialect: Dialect) -> Reading:
    """CREATE: of data structures a write, of a table in place of another one destructive, of
    anything that runs code or grants a right administration."""
    keys = list(_words(tokens))
    subject = next((key for key in keys if key not in _MODIFIERS), "")
    if subject in ("ALGORITHM", "SQL") and dialect.name == "mysql":
        subject = _view(keys) or subject
    if subject == "VIRTUAL" and not dialect.modules.isdisjoint(_module(keys)):
        name = next((token.text for token in tokens[3:] if token.key not in _MODIFIERS), "")
        opinion = Opinion(Effect.WRITE, "create", "Creates a virtual table")
        return Reading([opinion], {name: None}, returns_rows=False)
    if subject not in _DATA:
        return _administers("create", subject)
    if subject == "TABLE" and "REPLACE" in keys[: keys.index(subject)]:
        return _defines(tokens, dialect, Effect.DESTRUCTIVE, "create.replace", "Replaces a table")
    return _defines(tokens, dialect, Effect.WRITE, "create", f"Creates a {subject.lower()}")


def alter(tokens: list[Token], dialect: Dialect) -> Reading:
    """ALTER: a write, destructive where it drops something, administration where it changes who
    may do what."""
    keys = list(_words(tokens))
    subject = next((key for key in keys if key not in _MODIFIERS), "")
    if subject not in _DATA or not _GUARDS.isdisjoint(keys):
        return _administers("alter", subject)
    if "DROP" in keys:
        return _defines(tokens, dialect, Effect.DESTRUCTIVE, "alter.drop", "ALTER ... DROP")
    return _defines(tokens, dialect, Effect.WRITE, "alter", f"Alters a {subject.lower()}")


def drop(tokens: list[Token], dialect: Dialect) -> Reading:
    """DROP: destructive, administration where it drops code or rights."""
    subject = next((key for key in _words(tokens) if key not in _MODIFIERS), "")
    if subject in _GOVERNING:
        return _administers("drop", subject)
    return _defines(tokens, dialect, Effect.DESTRUCTIVE, "drop", f"Drops a {subject.lower()}")


def _view(keys: list[str]) -> str:
    """VIEW, if words that say how MariaDB makes one lead to it; whose rights it has is not one."""
    rest = [key for key in keys if key not in _MODIFIERS]
    if rest[:2] == ["ALGORITHM", "="]:
        rest = rest[3:]
    if rest[:3] == ["SQL", "SECURITY", "INVOKER"]:
        rest = rest[3:]
    return "VIEW" if rest[:1] == ["VIEW"] else ""


def _module(keys: list[str]) -> list[str]:
    """The name of the module of SQLite's virtual table, which follows the first USING."""
    return keys[keys.index("USING") + 1 :][:1] if "USING" in keys else []


def _words(tokens: list[Token]) -> Iterator[str]:
    """The keywords after the first, without what follows a dot."""
    return (token.key for before, token in pairwise(tokens) if token.key and before.key != ".")


def _administers(form: str, subject: str) -> Reading:
    what = f"{form.upper()} {subject}".strip()
    opinion = Opinion(
        Effect.ADMIN, f"{form}.{subject.lower() or 'unlisted'}", f"{what} administers the database"
    )
    return Reading([opinion], returns_rows=False)


def _defines(
    tokens: list[Token], dialect: Dialect, effect: Effect, rule: str, reason: str
) -> Reading:
    """A definition, with what it calls: the parser need not know every clause of it, but every
    name with a bracket must be on the list or declared."""
    words = look(tokens, dialect, reading=False)
    grammar = Grammar([], {}, {}, False)
    try:
        text, names = plain(tokens, dialect)
        grammar = study(parse(text, dialect.parser, len(tokens)), names, dialect)
    except Refusal:
        pass
    # What a view calls is called when it is read.
    is_view = any(token.key == "VIEW" for token in tokens)
    changing: frozenset[str] = frozenset() if is_view else dialect.changing_functions
    found = unlisted(words, grammar, changing, defined(tokens, dialect))
    placed = {opinion.rule for opinion in found if opinion.effect is Effect.WRITE}
    found += [
        opinion
        for opinion in grammar.opinions
        if opinion.rule.startswith(_HARMFUL) and opinion.rule not in placed
    ]
    opinions = [Opinion(effect, rule, reason), *words.opinions, *found]
    return Reading(opinions, grammar.tables, words.functions, returns_rows=False)


_HARMFUL = ("function.", "table.")
