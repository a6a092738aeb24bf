"""Puts masks and row filters into a statement, so that the database itself never tells what is
hidden. What cannot be rewritten for certain is refused.

Every name of a table with rules is replaced by a derived table, in the text as it was written: all
the rest of it stays. Conditions, joins and aggregates therefore see what the caller may see.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from tidegate.metadata import Catalog
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.forms import explained
from tidegate.sql.judge import judge
from tidegate.sql.lex import NAME, WORD, Token
from tidegate.sql.opinion import Refusal
from tidegate.sql.scan import scan
from tidegate.sql.shield.allowance import barred_beside
from tidegate.sql.shield.check import BLANK, check, table_names
from tidegate.sql.shield.cover import Cover
from tidegate.sql.shield.model import Shield, masked
from tidegate.sql.shield.names import Names
from tidegate.sql.shield.reading import Sentence, splice
from tidegate.sql.shield.scope import cte_names
from tidegate.sql.shield.systems import PRAGMAS, SETTINGS, SHOWS, TRANSACTION
from tidegate.sql.shield.terms import FENCES
from tidegate.statements import Effect

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
    if len(key) < 16 or not key.isascii() or not key.isalnum():
        raise masked("The key of the hashes is not fit for use", "shield.key")
    dialect = _SPOKEN.get(dialect, dialect)
    if dialect not in FENCES:
        raise masked(f"Masks are not known for {dialect}", "shield.dialect")
    return _rewritten(text, dialect, shield, _Known(catalog), key, schema)


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


@lru_cache(maxsize=512)
def _rewritten(
    text: str, dialect: str, shield: Shield, known: _Known, key: str, schema: str | None
) -> str:
    tables = find(dialect)
    try:
        tokens = scan(text, tables)
        return _Statement(text, tokens, tables, shield, known, key, schema).rewritten()
    except Refusal as refusal:
        raise masked(
            "Some of this source is hidden from this caller, and the statement cannot be"
            f" rewritten: {refusal.opinion.reason}",
            refusal.opinion.rule,
        ) from None
    except RecursionError:
        raise masked("The statement nests too deep to be rewritten", "shield.depth") from None


@lru_cache(maxsize=32)
def _cover(shield: Shield, known: _Known, dialect: str, key: str, schema: str | None) -> Cover:
    return Cover(shield, Names(known.catalog, dialect, schema), key)


class _Statement:
    """One statement under one shield."""

    def __init__(
        self,
        text: str,
        tokens: list[Token],
        dialect: Dialect,
        shield: Shield,
        known: _Known,
        key: str,
        schema: str | None,
    ) -> None:
        self._text = text
        self._tokens = tokens
        self._dialect = dialect
        self._form = dialect.roots.get(tokens[0].key)
        if self._form == "explain":
            key = _NO_KEY  # a plan shows expressions
        self._cover = _cover(shield, known, dialect.name, key, schema)

    def rewritten(self) -> str:
        form, tokens = self._form, self._tokens
        judgement = judge(self._text, self._dialect.name)
        allowance = self._cover.allowance
        if allowance is not None:
            allowance.check_calls(judgement)
        teller = self._cover.told_by_functions(judgement)
        if teller is not None:
            raise masked(f"`{teller}` could tell what is masked", f"shield.{teller}")
        if tokens[0].key in TRANSACTION:
            return self._text
        if form == "change" and judgement.effect <= Effect.DESTRUCTIVE:
            return self._change()
        if judgement.effect is not Effect.READ:
            raise _unlisted(judgement.reason)
        if form == "query":
            return self._query(tokens)
        if form == "explain":
            return self._explain()
        if allowance is not None and form in ("pragma", "show") and not self._is_setting():
            raise barred_beside(tokens[0].key)
        if form == "describe":
            inner = tokens[1:]
            if not inner:
                return self._text
            if inner[0].key == "TABLE":
                inner = inner[1:] or inner
            lead = "" if self._dialect.roots.get(inner[0].key) == "query" else "SELECT * FROM "
            return self._query(inner, lead, tokens[1].at)
        if (form == "pragma" and self._is_plain_pragma()) or (form == "show" and self._is_show()):
            return self._text
        raise _unlisted(f"{tokens[0].key} is not known to tell nothing of them")

    def _query(self, tokens: list[Token], lead: str = "", start: int | None = None) -> str:
        """The text with the query that these tokens are rewritten. `lead` is put before it, in
        place of what stands from `start` on."""
        dialect = self._dialect
        if dialect.name == "mysql" and tokens[0].key == "VALUES":
            if any(token.key in ("SELECT", "TABLE", "FROM") for token in tokens):
                raise _unlisted("VALUES holds a query")
            return self._text
        if dialect.name == "sqlite":
            self._refuse_in_table(tokens)
        text = self._text
        shift = 0
        if lead or tokens[0].key == "TABLE":
            # Read as SELECT * FROM a table: its name stands where it stood.
            at = tokens[0].at if start is None else start
            name = tokens[1:] if tokens[0].key == "TABLE" else tokens
            begin = name[0].at
            lead = "SELECT * FROM "
            text = f"{text[:at]}{lead}{text[begin:]}"
            shift = at
            tokens = [token for token in scan(text, dialect) if token.at >= shift]
        sentence = Sentence(text, tokens, dialect)
        edits, covered = self._cover.edits(sentence)
        self._check_allowance(sentence)
        if self._form == "explain" and dialect.name != "sqlite":
            for table in covered:
                if self._cover.is_filtered(table):
                    raise masked(
                        f"The plan of a query on `{table.name}` would tell of rows that are hidden",
                        "shield.explain",
                        "Explain a query on other tables.",
                    )
        skeleton = splice(text, [(*edit[:2], _blanked(*edit)) for edit in edits])
        hidden = self._cover.hidden | {table.name.lower() for table in covered}
        ctes = cte_names(sentence)
        check(skeleton, dialect.name, hidden, ctes)
        if self._cover.allowance is not None:
            self._cover.allowance.check_names(scan(skeleton, dialect), ctes, BLANK)
        if not edits:
            return self._text
        written = splice(text, edits)
        again = judge(written.replace("tidegate_hash(", "hex("), dialect.name)
        if again.effect is not Effect.READ:
            raise _unlisted(f"what came of rewriting is not known to read: {again.reason}")
        return written

    def _explain(self) -> str:
        at, _ = explained(self._tokens, self._dialect)
        inner = self._tokens[at:]
        if self._dialect.roots.get(inner[0].key) == "query":
            return self._query(inner)
        if self._dialect.name == "mysql" and all(
            token.kind in (WORD, NAME) or token.key == "." for token in inner
        ):
            if self._cover.allowance is not None:
                self._check_described(inner)
            return self._text  # DESCRIBE of a table: its columns
        raise _unlisted("only queries are explained")

    def _change(self) -> str:
        """A change as it is, if it neither reads nor writes a table that is covered."""
        if self._dialect.name == "sqlite":
            self._refuse_in_table(self._tokens)
        sentence = Sentence(self._text, self._tokens, self._dialect)
        if type(sentence.tree).__name__ == "Command":  # the tables of REPLACE are not in the tree
            raise _unlisted(f"{self._tokens[0].key} cannot be followed: say it with INSERT")
        _, covered = self._cover.edits(sentence)
        self._check_allowance(sentence)
        if self._cover.allowance is not None:
            self._cover.allowance.check_change(self._tokens)
            self._cover.allowance.check_names(self._tokens, cte_names(sentence))
        named = [table.name for table in covered]
        standing = table_names(self._tokens, self._dialect.name)
        named += [name for name in standing if name.lower() in self._cover.hidden]
        if named:
            raise masked(
                f"`{named[0]}` is masked: a statement that changes data cannot use it",
                f"shield.{named[0]}",
                "Change other tables, or ask the operator.",
            )
        return self._text

    def _check_allowance(self, sentence: Sentence) -> None:
        allowance = self._cover.allowance
        if allowance is None:
            return
        allowance.check_types(sentence)
        if self._form == "explain":
            allowance.check_plan(judge(self._text, self._dialect.name).tables)

    def _check_described(self, tokens: list[Token]) -> None:
        """MySQL's DESCRIBE of a table, and of one of its columns."""
        size = 1
        while tokens[size : size + 1] and tokens[size].key == ".":
            size += 2
        name = self._text[tokens[0].at : tokens[size].at if size < len(tokens) else None]
        text = f"SELECT * FROM {name}"
        self._cover.edits(Sentence(text, scan(text, self._dialect), self._dialect))

    def _is_setting(self) -> bool:
        """Whether a SHOW is of the server's settings."""
        if self._dialect.name == "postgres":
            return True
        return self._dialect.name == "mysql" and any(
            token.key in SETTINGS for token in self._tokens[1:2]
        )

    def _refuse_in_table(self, tokens: list[Token]) -> None:
        """SQLite takes a bare name after IN for a table."""
        for before, token in pairwise(tokens):
            if before.key == "IN" and token.key != "(":
                raise masked(
                    "IN before a name reads a table", "shield.in_table", "Write IN (SELECT ...)."
                )

    def _is_plain_pragma(self) -> bool:
        rest = [token.text.lower() for token in self._tokens[1:]]
        if rest[1:2] == ["."]:
            rest = rest[2:]
        return bool(rest) and rest[0] in PRAGMAS

    def _is_show(self) -> bool:
        allowed = SHOWS.get(self._dialect.name)
        return allowed is None or any(token.key in allowed for token in self._tokens[1:2])


def _blanked(start: int, end: int, piece: str) -> str:
    """What stands for a piece of ours in the text that is checked."""
    if piece.startswith("("):
        body, _, alias = piece.rpartition(")")
        return f"{BLANK}{start}{alias if body else ''}"
    if piece.startswith("SELECT * FROM ("):
        return f"SELECT * FROM {BLANK}{start}"
    return piece if start == end or not piece else f"{BLANK}{start}"


def _unlisted(reason: str) -> Exception:
    return masked(f"Some of this source is hidden from this caller: {reason}", "shield.statement")
