"""Names the tables whose rows a change may touch, and how, so that an engine can tell by their rows
whether it was about all of them. `whole_tables.py` says what the text alone tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.model.statements import TouchedTable
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.whole_tables import joins_of


def touched_tables(
    change: Any, names: dict[str, str], dialect: Dialect, *, replaces: bool
) -> Iterator[TouchedTable]:
    """The tables of which an INSERT, UPDATE, DELETE or MERGE may touch rows that are there.
    `names` maps placeholders back to the names that they replace; `replaces`: the statement is a
    REPLACE, which its tree does not show."""
    kind = type(change).__name__
    inserts, updates, deletes = _acts(change, kind, replaces)
    if not (updates or deletes):
        return
    nested = change.parent is not None
    for table in _targets(change, kind):
        named = type(table).__name__ == "Table" and type(table.this).__name__ == "Identifier"
        text = _text(table, names, dialect) if named else ""
        yield TouchedTable(text, updates, deletes, inserts, nested)


def _acts(change: Any, kind: str, replaces: bool) -> tuple[bool, bool, bool]:
    """Whether it inserts, updates and deletes rows."""
    if kind == "Insert":
        query = change.expression
        if type(query).__name__ == "Values" and len(query.expressions) < 2:
            return True, False, False  # about one row
        conflict = change.args.get("conflict")
        action = "" if conflict is None else str(conflict.args.get("action")).upper()
        upserts = conflict is not None and action != "DO NOTHING"
        replaces = replaces or "REPLACE" in str(change.args.get("alternative")).upper()
        return True, upserts or replaces, False
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


def _targets(change: Any, kind: str) -> list[Any]:
    target = change.this
    target = target.this if type(target).__name__ == "Schema" else target
    if kind not in ("Update", "Delete"):
        return [target]
    around = {_alias(table): table for table in _tables_of(change)}
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


def _tables_of(change: Any) -> Iterator[Any]:
    """The tables of a change, those behind the target first: in MySQL they say what it names."""
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
