"""Reads a query or a change: the opinion of its words joined with that of its tree."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.errors import Code
from tidegate.sql.arguments import plainer
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.effects import Grammar, study
from tidegate.sql.growth import can_grow, overgrown
from tidegate.sql.lex import Token
from tidegate.sql.opinion import Opinion, Refusal
from tidegate.sql.parse import parse
from tidegate.sql.phrases import Words, function_refused, look
from tidegate.sql.places import inserted
from tidegate.sql.plain import plain
from tidegate.sql.respell import respell, shorten
from tidegate.statements import Effect

_ROOTS = frozenset(
    {"Select", "Union", "Intersect", "Except", "Values", "Subquery", "Table", "Pivot"}
    | {"Insert", "Update", "Delete", "Merge"}
)
_SEQUENCES = frozenset({"nextval", "setval"})
_ROWS = frozenset({"Insert", "Update", "Delete", "Merge"})


class Reading:
    """What a statement was found to do."""

    __slots__ = ("functions", "opinions", "returns_rows", "tables", "unqualified")

    def __init__(
        self,
        opinions: list[Opinion],
        tables: dict[str, None] | None = None,
        functions: dict[str, None] | None = None,
        *,
        unqualified: bool = False,
        returns_rows: bool = True,
    ) -> None:
        self.opinions = opinions
        self.tables = tables or {}
        self.functions = functions or {}
        self.unqualified = unqualified
        self.returns_rows = returns_rows


def sentence(tokens: list[Token], dialect: Dialect, *, reading: bool) -> Reading:
    """Read the tokens of a query (`reading`) or a change. Raises: Refusal."""
    words = look(tokens, dialect, reading=reading)
    parser = dialect.parser
    if parser == "mysql" and tokens[0].key == "VALUES":
        # Of the parser's dialects this one alone does not know VALUES as a statement.
        parser = ""
        tokens = [token for token in tokens if token.key != "ROW"]
    shorter = plainer(shorten(tokens), dialect.worded)
    text, names = plain(respell(shorter, dialect), dialect)
    tree = parse(text, parser, len(tokens))
    kind = type(tree).__name__
    if kind not in _ROOTS:
        raise Refusal(
            Code.SQL_UNKNOWN, "root.node", f"The parser takes the statement for {kind}, not a read"
        )
    grammar = study(tree, names, dialect)
    if can_grow(tokens):
        grammar.opinions.extend(overgrown(tree, names))
    changes = any(opinion.effect is Effect.WRITE for opinion in grammar.opinions)
    places = inserted(tokens) if changes else None
    found = unlisted(words, grammar, dialect.changing_functions, places)
    returns_rows = kind not in _ROWS or any(token.key == "RETURNING" for token in tokens)
    return Reading(
        [*words.opinions, *found, *grammar.opinions],
        grammar.tables,
        words.functions,
        unqualified=grammar.unqualified,
        returns_rows=returns_rows,
    )


def unlisted(
    words: Words, grammar: Grammar, changing: Collection[str], places: Collection[int] | None
) -> list[Opinion]:
    """Opinions on the names with a bracket that are neither listed nor declared in the tree.

    `places` are the brackets before which a change has no call, None in what changes nothing:
    there what moves a sequence is a write, and any other function that is `changing` refused. In
    a change a call of one adds a write: an EXPLAIN does away with the opinion on the change itself.
    """
    found: list[Opinion] = []
    for name, at in words.unlisted.items():
        placed = 0 if places is None else sum(index in places for index in at)
        if len(at) <= grammar.declared.get(name.lower(), 0):
            continue
        if len(at) <= placed:
            found.append(Opinion(Effect.WRITE, f"function.{name}", f"Defines or fills {name}"))
        elif name in changing and (places is not None or name in _SEQUENCES):
            found.append(Opinion(Effect.WRITE, f"function.{name}", f"Calls {name}, which changes"))
        else:
            found.append(function_refused(name))
    return found
