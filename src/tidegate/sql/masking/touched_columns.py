"""Finds the masked columns that a query touches: by their names, by a star, or by a whole row.

For the note on a result. It says rather too much than too little, and decides nothing: what a
query may see is settled by the rewriting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidegate.model.data_rules import Show
from tidegate.model.schema import Table
from tidegate.sql.lex import NAME, NUMBER, PARAM, STRING, WORD, Token
from tidegate.sql.masking.parsed_statement import ParsedStatement, TableReference

Touched = tuple[tuple[str, str], ...]
"""Masked columns, each as its table's name and its own."""

_BEFORE_STAR = frozenset({"SELECT", "DISTINCT", "ALL", "RETURNING", "SET", "INSERT", "BY"})
"""Words after which `*` means columns: after any other name it multiplies."""
_OPERANDS = frozenset({STRING, NUMBER, PARAM, NAME, WORD})
_PIVOTS = frozenset({"PIVOT", "PIVOT_WIDER", "UNPIVOT", "PIVOT_LONGER"})
_EVERYTHING = _PIVOTS | {"NATURAL", "COLUMNS", "SUMMARIZE", "DESCRIBE"}
"""Words by which all columns of a table are meant without a star."""


def touched_columns(
    parsed: ParsedStatement, tables: Sequence[tuple[TableReference, Table, Mapping[str, Show]]]
) -> Iterator[tuple[str, str]]:
    """The masked columns among those that the statement names. `tables` are those that it names,
    with the masks of each."""
    masked = [each for each in tables if each[2]]
    if not masked:
        return
    tokens = parsed.tokens
    called = {_called(reference): table for reference, table, _ in tables}
    whole = wants_all_columns(parsed)
    for reference, table, masks in masked:
        own = {_called(reference), table.name.lower()}
        other = called.keys() - own
        all_of_it = whole or _means_table(tokens, reference, own, other)
        lowered = {name.lower(): name for name in masks}
        named = masks if all_of_it else _named(tokens, lowered, other)
        yield from [(table.name, name) for name in named]


def wants_all_columns(parsed: ParsedStatement) -> bool:
    """Whether columns are meant by no name: by a word such as NATURAL, or by a query without a
    list of columns (DuckDB's `FROM t`)."""
    keys = [token.key for token in parsed.tokens]
    selects = sum(type(node).__name__ == "Select" for node in parsed.tree.walk())
    return not _EVERYTHING.isdisjoint(keys) or selects > keys.count("SELECT")


def stars(tokens: list[Token]) -> Iterator[int]:
    """The numbers of the tokens `*` that mean columns, except that of `count(*)`."""
    for number, token in enumerate(tokens):
        if token.key != "*" or not number:
            continue
        before = tokens[number - 1]
        if before.key == "(" and tokens[number + 1 : number + 2]:
            if tokens[number - 2].key == "COUNT" and tokens[number + 1].key == ")":
                continue
            yield number
        elif before.key in _BEFORE_STAR or not (
            before.kind in _OPERANDS or before.key in (")", "]")
        ):
            yield number


def _means_table(
    tokens: list[Token], reference: TableReference, own: set[str], other: set[str]
) -> bool:
    """Whether a star or a row of the table itself is read."""
    if reference.first and tokens[reference.first - 1].key == "TABLE":
        return True
    for number in stars(tokens):
        if tokens[number - 1].key != "." or tokens[number - 2].text.lower() not in other:
            return True
    return any(
        token.kind in (WORD, NAME)
        and token.text.lower() in own
        and not reference.first <= number <= reference.last
        and _key(tokens, number + 1) != "."
        and _key(tokens, number - 1) not in (".", "AS")
        and number != reference.last + 1
        for number, token in enumerate(tokens)
    )


def _named(tokens: list[Token], lowered: Mapping[str, str], other: set[str]) -> list[str]:
    found: dict[str, None] = {}
    for number, token in enumerate(tokens):
        name = lowered.get(token.text.lower()) if token.kind in (WORD, NAME) else None
        if name is None or _key(tokens, number - 1) == "AS":
            continue
        if _key(tokens, number - 1) == "." and tokens[number - 2].text.lower() in other:
            continue
        found[name] = None
    return list(found)


def _called(reference: TableReference) -> str:
    return str(reference.node.alias or reference.parts[-1].text).lower()


def _key(tokens: list[Token], number: int) -> str:
    return tokens[number].key if 0 <= number < len(tokens) else ""
