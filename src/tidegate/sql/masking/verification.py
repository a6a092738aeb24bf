"""Verifies a rewritten statement by other means than those that wrote it: its tokens, and the
judge. The derived tables are ours; the rest of the text must name nothing that is hidden.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.errors import masking_refused
from tidegate.model.statements import Effect
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge_uncached
from tidegate.sql.lex import NAME, WORD, Token, lex

BLANK = "tidegate_blank_"
"""Names the derived tables in the text that is checked."""

_OPENS = frozenset({"FROM", "JOIN", "TABLE", "INTO", "UPDATE", "PIVOT", "UNPIVOT", "SUMMARIZE",
                    "DESCRIBE", "DESC", "LATERAL", "ONLY", "STRAIGHT_JOIN"})  # fmt: skip
_CLOSES = frozenset({"SELECT", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "FETCH",
                     "WINDOW", "QUALIFY", "UNION", "EXCEPT", "INTERSECT", "VALUES", "SET",
                     "RETURNING"})  # fmt: skip
_WITH_FROM = frozenset({"EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM"})


def check(skeleton: str, dialect: Dialect, hidden: frozenset[str], ctes: frozenset[str]) -> None:
    """Raises: TidegateError POLICY_MASKED if the statement, with its derived tables blanked, names
    a hidden table where a table can be, or does more than read. CTEs' names are left to the
    tree.
    """
    judgement = judge_uncached(skeleton, dialect.name)
    if judgement.effect is not Effect.READ:
        raise _leaky("the rewritten statement is not known to read")
    whole = [name.lower() for name in judgement.tables]
    named = {*whole, *[name.rpartition(".")[2] for name in whole]}  # a name may hold a dot
    if named & hidden:
        raise _leaky(f"`{sorted(named & hidden)[0]}` is still named")
    try:
        tokens = lex(skeleton, dialect.lexical_rules)
    except Refusal:
        raise _leaky("it cannot be read again") from None
    for number in table_names(tokens, dialect):
        name = tokens[number].text
        if name.lower() in hidden - ctes:
            raise _leaky(f"`{name}` is where a table can be")


def table_names(tokens: list[Token], dialect: Dialect) -> Iterator[int]:
    """The number of the last token of every name that is where a table can be: too many rather
    than too few."""
    listing = [False]
    calls = [False]
    for number, token in enumerate(tokens):
        before = tokens[number - 1].key if number else ""
        if token.key == "(":
            listing.append(before in _OPENS or (listing[-1] and before in (",", "(")))
            calls.append(before in _WITH_FROM)
        elif token.key == ")":
            if len(listing) > 1:
                listing.pop()
                calls.pop()
        elif token.key in _OPENS:
            listing[-1] = not _opens_nothing(tokens, number, calls[-1])
        elif token.key in _CLOSES:
            listing[-1] = calls[-1] = False
        elif token.kind in (WORD, NAME):
            opened = before in _OPENS and not _opens_nothing(tokens, number - 1, calls[-1])
            if (
                opened
                or (listing[-1] and before in (",", "("))
                or (dialect.in_reads_tables and before == "IN")
            ):
                yield _last(tokens, number)


def _opens_nothing(tokens: list[Token], number: int, in_call: bool) -> bool:
    """Whether the word has another meaning: EXTRACT(YEAR FROM x), IS DISTINCT FROM x, and ON
    DUPLICATE KEY UPDATE x."""
    key = tokens[number].key
    before = tokens[number - 1].key if number else ""
    if key == "FROM":
        earlier = tokens[number - 2].key if number > 1 else ""
        return in_call or (before == "DISTINCT" and earlier in ("IS", "NOT"))
    return key == "UPDATE" and before == "KEY"


def _last(tokens: list[Token], number: int) -> int:
    while number + 2 < len(tokens) and tokens[number + 1].key == ".":
        number += 2
    return number


def _leaky(reason: str) -> Exception:
    return masking_refused(
        f"Some of this source is hidden from this caller, and {reason}",
        "masking.check",
        "Rewrite it as a simpler SELECT.",
    )
