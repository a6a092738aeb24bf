"""Decides whether a change may run although columns of its tables are masked: it may if it neither
reads nor writes them. It then runs as it was written.

Every way to a masked column must be closed: its name, a star, a row as a whole, a position, a
default that is computed from it, a trigger, and constraints whose violation would tell of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.errors import TidegateError, masking_refused
from tidegate.model.schema import Table
from tidegate.sql.lex import NAME, STRING, WORD, Token
from tidegate.sql.masking.derived_tables import DerivedTables, NamedTable
from tidegate.sql.masking.parsed_statement import ParsedStatement
from tidegate.sql.masking.rules import mentions
from tidegate.sql.masking.touched_columns import Touched, stars, wants_all_columns
from tidegate.sql.masking.unique_conflicts import compares_masked

_CHANGES = frozenset({"Insert", "Update", "Delete", "Merge"})
_ROWS = frozenset({"excluded", "old", "new"})
"""Names of the row of the changed table."""
_DOTTED_I = "\u0130"
"""Lower case in MySQL is `i`, and in Python two characters: names would not be equal here."""


def change_refused(name: str) -> TidegateError:
    """The refusal of a change that uses a table of which more than columns is hidden."""
    return masking_refused(
        f"`{name}` is masked: a statement that changes data cannot use it",
        f"masking.{name}",
        "Change other tables, or ask the operator.",
    )


def check_change(
    parsed: ParsedStatement, named: Sequence[NamedTable], derived: DerivedTables
) -> Touched:
    """The masked columns of the tables that the change names and does not touch.

    `named` are all the tables that it names. Raises: TidegateError POLICY_MASKED.
    """
    if any(_DOTTED_I in token.text for token in parsed.tokens if token.kind in (WORD, NAME)):
        raise masking_refused(
            "A name has a letter that some servers take for an i", "masking.statement"
        )
    targets: list[NamedTable] = []
    for change in _changes(parsed):
        changed = _targets(change, named)
        for each in changed:
            derived.check_keys(each.table, change, parsed)
        targets += changed
    hidden = [each for each in named if each.stand_in is not None]
    if not hidden:
        return ()
    for each in hidden:
        if each.table.kind != "table" or derived.is_filtered(each.table) or each.doubtful:
            raise change_refused(each.table.name)
        _check_reference(parsed, each)
    _check_names(parsed, hidden, derived)
    for each in hidden:
        if each in targets:
            _check_target(parsed, each, derived)
    return tuple(
        sorted(
            {(each.table.name, name) for each in hidden for name in derived.masks_of(each.table)}
        )
    )


def _targets(change: Any, named: Sequence[NamedTable]) -> list[NamedTable]:
    """The table whose rows are changed; all that are named, where it is not plain which."""
    target = _table_of(change)
    own = [each for each in named if each.reference.node is target]
    several = change.args.get("tables") or getattr(target, "args", {}).get("joins")
    return own if own and not several else list(named)


def _changes(parsed: ParsedStatement) -> Iterator[Any]:
    for node in parsed.tree.walk():
        if type(node).__name__ in _CHANGES:
            yield node


def _table_of(change: Any) -> Any:
    target = change.this
    return target.this if type(target).__name__ == "Schema" else target


def _check_reference(parsed: ParsedStatement, each: NamedTable) -> None:
    """Raises: TidegateError POLICY_MASKED for a table whose columns get other names, or are all
    meant."""
    alias = each.reference.node.args.get("alias")
    renamed = alias is not None and bool(alias.args.get("columns"))
    if renamed or parsed.key(each.reference.first - 1) in ("TABLE", "ONLY"):
        raise change_refused(each.table.name)


def _check_names(
    parsed: ParsedStatement, hidden: Sequence[NamedTable], derived: DerivedTables
) -> None:
    """Raises: TidegateError POLICY_MASKED if the statement could mean a masked column."""
    tokens = parsed.tokens
    masked = {
        name.lower(): f"{each.table.name}.{name}"
        for each in hidden
        for name in derived.masks_of(each.table)
    }
    for number, token in enumerate(tokens):
        if token.kind == STRING and parsed.key(number - 1) == ".":  # SQLite takes it for a name
            raise _whole(hidden)
        column = masked.get(token.text.lower()) if token.kind in (WORD, NAME) else None
        if column is not None:
            raise masking_refused(
                f"`{column}` is masked: a statement that changes data can neither read nor write"
                " it",
                f"masking.{column}",
                "Name the columns that you need, and none that is masked.",
            )
    if wants_all_columns(parsed) or any(True for _ in stars(tokens)) or _is_numbered(tokens):
        raise _whole(hidden)
    if any(map(_leaves_names_out, parsed.tree.walk())):
        raise _whole(hidden)
    _check_rows(parsed, hidden)
    if any(token.key == "DEFAULT" for token in tokens):
        for each in hidden:
            masks = derived.masks_of(each.table)
            for column in each.table.columns:
                if column.default and column.name not in masks and mentions(column.default, masks):
                    raise _whole(hidden)


def _leaves_names_out(node: Any) -> bool:
    """Whether columns are meant by what is no name: by an action of MERGE without a list (DuckDB),
    or by a text in a list of columns (SQLite takes it for a name)."""
    kind = type(node).__name__
    if kind == "When":
        action = node.args.get("then")
        needed = {"Update": "expressions", "Insert": "expression"}.get(type(action).__name__)
        return needed is not None and not action.args.get(needed)
    listed: Any = node.expressions if kind == "Schema" else ()
    if kind == "Join":
        listed = node.args.get("using") or ()
    return any(type(each).__name__ not in ("Identifier", "Column") for each in listed)


def _is_numbered(tokens: Sequence[Token]) -> bool:
    """Whether a column could be meant by its number (DuckDB's `#1`)."""
    return any("#" in token.text for token in tokens if token.kind not in (STRING, NAME))


def _check_rows(parsed: ParsedStatement, hidden: Sequence[NamedTable]) -> None:
    """Raises: TidegateError POLICY_MASKED if a table's name means its row, or is written before
    what is no column of it: PostgreSQL calls a function on the row by `row.function`."""
    tokens = parsed.tokens
    declared: set[int] = set()
    for each in hidden:
        last = each.reference.last
        declared |= {*range(each.reference.first, last + 1)}
        if each.reference.node.alias:
            declared |= {last + 1 + (parsed.key(last + 1) == "AS")}
    for each in hidden:
        columns = {column.name.lower() for column in each.table.columns}
        own = {each.table.name.lower(), str(each.reference.node.alias).lower(), *_ROWS} - {""}
        for number, token in enumerate(tokens):
            name = token.text.lower()
            if number in declared or token.kind not in (WORD, NAME) or name not in own:
                continue
            if parsed.key(number + 1) == ".":
                after = tokens[number + 2].text.lower() if number + 2 < len(tokens) else ""
                means_row = after not in columns
            else:
                means_row = name not in columns and parsed.key(number - 1) not in (".", "AS")
            if means_row:
                raise _whole(hidden)


def _check_target(parsed: ParsedStatement, each: NamedTable, derived: DerivedTables) -> None:
    """Raises: TidegateError POLICY_MASKED for what would write or compare masked columns without
    naming them."""
    table, masks = each.table, derived.masks_of(each.table)
    holders = [table, *derived.parts_of(table)]
    if any(each.may_react for each in holders):
        raise masking_refused(
            f"`{table.name}` is masked, and its triggers or rules could tell what is hidden",
            f"masking.{table.name}",
            "Ask the operator.",
        )
    replaces = any(
        token.key == "REPLACE" and parsed.key(number - 1) == "OR"
        for number, token in enumerate(parsed.tokens)
    )
    for node in _changes(parsed):
        kind = type(node).__name__
        if _table_of(node) is not each.reference.node:
            continue
        given = type(node.this).__name__ == "Schema" or node.args.get("default")
        if kind == "Merge" or (kind == "Insert" and (not given or replaces)):
            raise masking_refused(
                f"`{table.name}` has masked columns, which this would write",
                f"masking.{table.name}",
                "List the columns that you give values for, and none that is masked.",
            )
    assigned, adds = _assigned(parsed)
    if any(compares_masked(each, masks, assigned, adds_rows=adds) for each in holders):
        raise _unique(table)


def _assigned(parsed: ParsedStatement) -> tuple[set[str], bool]:
    """The columns, in lower case, that are set in rows that exist, and whether rows are added."""
    names: set[str] = set()
    adds = False
    for node in _changes(parsed):
        adds = adds or type(node).__name__ in ("Insert", "Merge")
        conflict = node.args.get("conflict")
        lists = [node.args.get("expressions")] if type(node).__name__ == "Update" else []
        if conflict is not None:
            lists.append(conflict.args.get("expressions"))
        for each in [one for some in lists for one in some or ()]:
            target = each.this if type(each).__name__ == "EQ" else each
            found = {
                parsed.part(parsed.number(part)).text.lower()
                for part in target.walk()
                if type(part).__name__ == "Identifier"
            }
            if not found:
                raise masking_refused(
                    "The table or column that the statement changes cannot be determined",
                    "masking.statement",
                )
            names |= found
    return names, adds


def _unique(table: Table) -> TidegateError:
    return masking_refused(
        f"A unique index or constraint of `{table.name}` would compare masked values with what is"
        " written",
        f"masking.{table.name}",
        "Change other columns, or ask the operator.",
    )


def _whole(hidden: Sequence[NamedTable]) -> TidegateError:
    name = hidden[0].table.name
    return masking_refused(
        f"`{name}` has masked columns, and the statement could mean one of them without its name",
        f"masking.{name}",
        "Name the columns that you need, and none that is masked.",
    )
