"""Puts masks and row filters into a statement, so that the database itself never tells what is
hidden. What cannot be rewritten for certain is refused.

Every name of a table with rules is replaced by a derived table, in the text as it was written: all
the rest of it stays. Conditions, joins and aggregates therefore see what the caller may see.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from tidegate.metadata import Catalog
from tidegate.sql.dialects import find
from tidegate.sql.lex import Token
from tidegate.sql.opinion import Refusal
from tidegate.sql.scan import scan
from tidegate.sql.shield.cover import Cover
from tidegate.sql.shield.model import Shield, masked
from tidegate.sql.shield.names import Names
from tidegate.sql.shield.pattern import LONGEST, Anchor, Pattern, anchored, placed
from tidegate.sql.shield.reading import splice
from tidegate.sql.shield.statement import Covered
from tidegate.sql.shield.terms import FENCES

_SPOKEN = {"postgresql": "postgres", "mariadb": "mysql"}
_NO_KEY = "0" * 32
_SHORTEST = 6


class _Known:
    """A catalogue, by its identity: to look it up costs nothing, and a new one is another."""

    __slots__ = ("catalog",)

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def __hash__(self) -> int:
        return id(self.catalog)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and other.catalog is self.catalog


def rewrite(
    text: str, dialect: str, shield: Shield, catalog: Catalog, key: str, schema: str | None = None
) -> str:
    """The statement as it may run under the shield; the same text if it touches nothing hidden.

    `catalog` is the whole one of the database, `key` makes the hashes ours: letters and digits, 16
    or more. `schema` is where unqualified names are looked for, if not in the catalog's default.
    Raises: GateError POLICY_MASKED.
    """
    return _rewritten(text, _under(dialect, shield, catalog, key, schema))


def rewrite_anew(
    text: str, dialect: str, shield: Shield, catalog: Catalog, key: str, schema: str | None = None
) -> str:
    """What `rewrite` gives, not from what is kept of it or of others of its pattern.

    Raises: GateError POLICY_MASKED, POLICY_TABLE; Refusal for what cannot be read.
    """
    under = _under(dialect, shield, catalog, key, schema)
    return _covered(text, scan(text, find(under.dialect)), under).rewritten()


def _under(dialect: str, shield: Shield, catalog: Catalog, key: str, schema: str | None) -> _Under:
    if len(key) < 16 or not key.isascii() or not key.isalnum():
        raise masked("The key of the hashes is not fit for use", "shield.key")
    dialect = _SPOKEN.get(dialect, dialect)
    if dialect not in FENCES:
        raise masked(f"Masks are not known for {dialect}", "shield.dialect")
    return _Under(dialect, shield, _Known(catalog), key, schema)


def rewrite_explained(
    text: str, dialect: str, shield: Shield, catalog: Catalog, key: str, schema: str | None = None
) -> str:
    """The statement as its plan may be asked for: for who puts EXPLAIN before it later. A plan
    shows expressions, so the hashes in it have no key. Raises: GateError POLICY_MASKED."""
    lead = "EXPLAIN "
    return rewrite(lead + text, dialect, shield, catalog, key, schema).removeprefix(lead)


def veiled(message: str, key: str) -> str:
    """A message of the database's without what it quotes of the key."""
    at = 0
    while at + _SHORTEST <= len(message):
        size = _SHORTEST
        if message[at : at + size] not in key:
            at += 1
            continue
        while at + size < len(message) and message[at : at + size + 1] in key:
            size += 1
        message = f"{message[:at]}***{message[at + size :]}"
        at += 3
    return message


class _Under(NamedTuple):
    """What a statement is rewritten under."""

    dialect: str
    shield: Shield
    known: _Known
    key: str
    schema: str | None


class _Plan(NamedTuple):
    """How one statement was rewritten; `anchors` if others of its pattern are rewritten alike."""

    text: str
    written: str
    anchors: tuple[Anchor, ...] | None


@lru_cache(maxsize=512)
def _rewritten(text: str, under: _Under) -> str:
    try:
        tokens = scan(text, find(under.dialect))
        return _followed(text, tokens, under)
    except Refusal as refusal:
        raise masked(
            "Some of this source is hidden from this caller, and the statement cannot be"
            f" rewritten: {refusal.opinion.reason}",
            refusal.opinion.rule,
        ) from None
    except RecursionError:
        raise masked("The statement nests too deep to be rewritten", "shield.depth") from None


def _followed(text: str, tokens: list[Token], under: _Under) -> str:
    """The statement rewritten like one of its pattern was, else by itself."""
    if len(text) > LONGEST or find(under.dialect).roots.get(tokens[0].key) != "query":
        return _covered(text, tokens, under).rewritten()
    pattern = Pattern(text, tokens)
    plan = _planned(pattern, under)
    if plan.anchors is not None:
        return splice(text, placed(plan.anchors, pattern))
    return plan.written if plan.text == text else _covered(text, tokens, under).rewritten()


@lru_cache(maxsize=512)
def _planned(pattern: Pattern, under: _Under) -> _Plan:
    statement = _covered(pattern.text, pattern.tokens, under)
    written = statement.rewritten()
    edits = statement.edits
    anchors = None if edits is None else anchored(edits, pattern)
    if anchors is not None and splice(pattern.text, placed(anchors, pattern)) != written:
        anchors = None
    return _Plan(pattern.text, written, anchors)


def _covered(text: str, tokens: list[Token], under: _Under) -> Covered:
    dialect = find(under.dialect)
    if dialect.roots.get(tokens[0].key) == "explain":
        under = under._replace(key=_NO_KEY)  # a plan shows expressions
    return Covered(text, tokens, dialect, _cover(under))


@lru_cache(maxsize=32)
def _cover(under: _Under) -> Cover:
    names = Names(under.known.catalog, under.dialect, under.schema)
    return Cover(under.shield, names, under.key)
