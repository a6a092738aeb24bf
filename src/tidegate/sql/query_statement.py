"""Reads a query or a change: joins the judgement of its tokens with that of its syntax tree."""

from __future__ import annotations

import itertools
from collections.abc import Collection

import msgspec

from tidegate.errors import Code
from tidegate.model.statements import Administration, Effect, TouchedTable
from tidegate.sql.declared_names import inserted
from tidegate.sql.dialect_shims import apply_shims, shorten
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.expansion_limit import can_grow, exceeds_limit, stays_small
from tidegate.sql.finding import Finding, Refusal
from tidegate.sql.function_syntax import simplify
from tidegate.sql.lex import NUMBER, Token
from tidegate.sql.normalization import is_exact, normalize
from tidegate.sql.own_functions import stand_in
from tidegate.sql.parse import parse
from tidegate.sql.select_grammar import tables_of_select
from tidegate.sql.token_checks import Words, check_tokens, function_refused
from tidegate.sql.tree_checks import Grammar, check_tree, is_restricted

_ROOTS = frozenset(
    {"Select", "Union", "Intersect", "Except", "Values", "Subquery", "Table", "Pivot"}
    | {"Insert", "Update", "Delete", "Merge"}
)
_SEQUENCES = frozenset({"nextval", "setval"})


class StatementEffects(msgspec.Struct, frozen=True):
    """What a statement was found to do. `opinions` are those of all checks, in the order in which
    they were made; `tables` and `functions` what it names, in the order of the text. All else is
    as in `model.statements.Judgement`."""

    opinions: list[Finding]
    tables: dict[str, None] = {}
    functions: dict[str, None] = {}
    unqualified: bool = False
    administration: Administration | None = None
    touches: tuple[TouchedTable, ...] = ()
    open_ended: bool = False
    own: tuple[str, ...] = ()


def read_query_statement(
    tokens: list[Token], dialect: Dialect, *, reading: bool, replaces: bool = False
) -> StatementEffects:
    """Read the tokens of a query (`reading`) or a change; `replaces`: of a REPLACE, spelled as an
    INSERT. Raises: Refusal."""
    words = check_tokens(tokens, dialect, reading=reading)
    if reading and not words.opinions and not words.unlisted and not words.own:
        plain = _plain_select(tokens, words, dialect)
        if plain is not None:
            return plain
    return _by_tree(tokens, words, dialect, replaces=replaces or _replaces(tokens))


def _plain_select(tokens: list[Token], words: Words, dialect: Dialect) -> StatementEffects | None:
    """The reading of a plain query that only reads, without the general parser; else None."""
    if not stays_small(tokens):
        return None
    tables = tables_of_select(tokens, dialect)
    if tables is None or any(is_restricted(parts, dialect) for parts in tables):
        return None
    return StatementEffects([], dict.fromkeys(map(".".join, tables)), words.functions)


def _by_tree(
    tokens: list[Token], words: Words, dialect: Dialect, *, replaces: bool = False
) -> StatementEffects:
    """The reading of a query or a change by the general parser. Raises: Refusal."""
    parser = dialect.parser
    if words.own:
        tokens = stand_in(tokens, list(words.own))
    if not dialect.values_parses and tokens[0].key == "VALUES":
        # The parser's general dialect knows VALUES as a statement.
        parser = ""
        tokens = [token for token in tokens if token.key != "ROW"]
    shorter = simplify(shorten(tokens), dialect.worded)
    text, names = normalize(apply_shims(shorter, dialect), dialect)
    tree = parse(text, parser, len(tokens))
    kind = type(tree).__name__
    if kind not in _ROOTS:
        raise Refusal(
            Code.SQL_UNKNOWN, "root.node", f"The parser takes the statement for {kind}, not a read"
        )
    exact = all(is_exact(token.text) for token in tokens if token.kind == NUMBER)
    grammar = check_tree(tree, names, dialect, exact_numbers=exact, replaces=replaces)
    if can_grow(tokens):
        grammar.opinions.extend(exceeds_limit(tree, names))
    changes = any(finding.effect is Effect.WRITE for finding in grammar.opinions)
    places = inserted(tokens) if changes else None
    found = unlisted(words, grammar, dialect.changing_functions, places)
    return StatementEffects(
        [*words.opinions, *found, *grammar.opinions],
        grammar.tables,
        words.functions,
        unqualified=grammar.unqualified,
        touches=() if grammar.unqualified else grammar.touches,
        open_ended=grammar.open_ended,
        own=tuple(dict.fromkeys(words.own.values())),
    )


def _replaces(tokens: list[Token]) -> bool:
    """Whether REPLACE is a word of the statement, and no function."""
    return any(
        token.key == "REPLACE" and behind.key != "(" for token, behind in itertools.pairwise(tokens)
    )


def unlisted(
    words: Words, grammar: Grammar, changing: Collection[str], places: Collection[int] | None
) -> list[Finding]:
    """Opinions on the names with a bracket that are neither listed nor declared in the tree.

    `places` are the brackets before which a change has no call, None in what changes nothing:
    there what moves a sequence is a write, and any other function that is `changing` refused. In
    a change a call of one adds a write: an EXPLAIN does away with the opinion on the change itself.
    """
    found: list[Finding] = []
    for name, at in words.unlisted.items():
        placed = 0 if places is None else sum(index in places for index in at)
        if len(at) <= grammar.declared.get(name.lower(), 0):
            continue
        if len(at) <= placed:
            found.append(Finding(Effect.WRITE, f"function.{name}", f"Defines or fills {name}"))
        elif name in changing and (places is not None or name in _SEQUENCES):
            found.append(Finding(Effect.WRITE, f"function.{name}", f"Calls {name}, which changes"))
        else:
            found.append(function_refused(name))
    return found
