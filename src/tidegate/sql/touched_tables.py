"""Names the tables whose rows a change may touch, and how, so that an engine can tell by their rows
whether it was about all of them. `whole_tables.py` says what the text alone tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.model.statements import TouchedTable
from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.whole_tables import joins_of


def touched_tables(
    change: Any, names: dict[str, str], dialect: Dialect, *, replaces: bool
) -> Iterator[TouchedTable]:
    """The tables of which an INSERT, UPDATE, DELETE or MERGE may touch rows that are there.
    `names` maps placeholders back to the names that they replace; `replaces`: the statement is a
    REPLACE, which its tree does not show."""
    kind = type(change).__name__
    inserts, updates, deletes = acts_of(change, kind, replaces)
    if not (updates or deletes):
        return
    nested = change.parent is not None
    replaced = _replaces(change, kind, replaces)
    for table in targets_of(change, kind):
        named = type(table).__name__ == "Table" and type(table.this).__name__ == "Identifier"
        text = _text(table, names, dialect) if named else ""
        most = (rows_at_most(change) or 0) if replaced and inserts else 0
        yield TouchedTable(text, updates, deletes, inserts, nested, replaced, most)


_ONE_ROW = words(
    "Select Literal Alias Identifier Column Placeholder Parameter Null Boolean Neg Paren Add Sub"
    " Mul Cast DataType DataTypeParam"
)
"""What a query is made of that computes one row: a function may give several."""


def acts_of(change: Any, kind: str, replaces: bool) -> tuple[bool, bool, bool]:
    """Whether it inserts, updates and deletes rows."""
    if kind == "Insert":
        conflict = change.args.get("conflict")
        action = "" if conflict is None else str(conflict.args.get("action")).upper()
        # Of one row at most one is updated; what it replaces may be several, one for each key.
        upserts = conflict is not None and action != "DO NOTHING" and rows_at_most(change) != 1
        return True, upserts or _replaces(change, kind, replaces), False
    if kind == "Merge":
        whens = change.args.get("whens")
        acts = [
            type(when.args.get("then")).__name__.upper() + str(when.args.get("then")).upper()
            for when in getattr(whens, "expressions", None) or change.expressions
        ]
        return tuple(  # type: ignore[return-value]
            any(act.startswith((verb, f"VAR{verb}")) for act in acts)
            for verb in ("INSERT", "UPDATE", "DELETE")
        )
    return False, kind == "Update", kind == "Delete"


def _replaces(change: Any, kind: str, replaces: bool) -> bool:
    """Whether rows that are in the way of others are removed, which no number counts."""
    if kind not in ("Insert", "Update"):
        return False
    return replaces or "REPLACE" in str(change.args.get("alternative")).upper()


def rows_at_most(change: Any) -> int | None:
    """How many rows an INSERT writes at most; None if only the database can tell."""
    query = change.expression
    kind = type(query).__name__
    if kind == "Values":
        return len(query.expressions)
    if query is None:  # DEFAULT VALUES
        return 1
    if kind == "Select" and all(type(each).__name__ in _ONE_ROW for each in query.walk()):
        return 1
    return None


def targets_of(change: Any, kind: str) -> list[Any]:
    """The tables of which it changes rows."""
    target = change.this
    target = target.this if type(target).__name__ == "Schema" else target
    if kind not in ("Update", "Delete"):
        return [target]
    around = {_alias(table): table for table in tables_of(change)}
    listed = change.args.get("tables")
    if listed:  # DELETE a, b FROM …
        return [around.get(_alias(table), table) for table in listed]
    if kind == "Delete":
        return [around.get(_alias(target), target)]
    if not list(joins_of(change)):
        return [target]
    owners: dict[str, Any] = {}
    for assignment in change.expressions:
        owner = str(assignment.this.args.get("table") or "").strip("`").lower()
        if owner not in around:  # which table has the column only the catalog knows
            return list(around.values())
        owners[owner] = around[owner]
    return list(owners.values())


def tables_of(change: Any) -> Iterator[Any]:
    """The tables of a change, those after the target first: in MySQL they say what it names."""
    yield change.this
    yield from change.args.get("using") or ()
    for join in joins_of(change):
        yield join.this


def _alias(table: Any) -> str:
    return str(getattr(table, "alias_or_name", "")).lower()  # the parser may leave a flag there


def _text(table: Any, names: dict[str, str], dialect: Dialect) -> str:
    parts = [
        dialect.quote(names.get(part.name) or part.name) if part.args.get("quoted") else part.name
        for part in table.parts
    ]
    return ".".join(parts)
