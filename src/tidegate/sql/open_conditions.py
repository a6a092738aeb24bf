"""Finds out whether a change may be about every row of its table, for all that its text tells:
whether nothing in it compares a column of that table with a constant.

It counts where no rows can be compared (`engines/common/whole_changes.py`): there `name LIKE '%'`
and `id IN (SELECT id FROM t)` are asked about, and `id = 7` is not.
"""

from __future__ import annotations

from typing import Any

from tidegate.sql.dialects.model import words
from tidegate.sql.touched_tables import acts_of, rows_at_most, tables_of, targets_of
from tidegate.sql.whole_tables import joins_of, unbounded_whens

_COMPARED = frozenset({"EQ", "NullSafeEQ", "LT", "LTE", "GT", "GTE"})
_EXACT = frozenset({"EQ", "NullSafeEQ", "In"})
_SAME_VALUE = frozenset({"Lower", "Upper", "Trim"})
"""Functions of a column that leave few values the same."""
_NOT_CONSTANT = words("""
    Column Star Table Select Union Intersect Except All And Between DPipe EQ Exists GT GTE Glob
    ILike In Is LT LTE Like NEQ Not NullSafeEQ NullSafeNEQ Or RegexpLike SimilarTo Xor
    """)
"""What reads rows, and conditions: `id = 7 IS NOT NULL` may be bound otherwise than parsed."""
_CALLED = words(
    "current_date current_time current_timestamp current_user level localtime localtimestamp now"
    " rownum session_user sysdate systimestamp system_user today uid user"
)
"""What looks like a column and is the same, or counts, whatever a row holds."""


def is_open(change: Any, names: dict[str, str], *, replaces: bool) -> bool:
    """Whether the text of an INSERT, UPDATE, DELETE or MERGE leaves it open. `names` maps
    placeholders back to the names that they replace; `replaces`: as for
    `touched_tables`."""
    kind = type(change).__name__
    _, updates, deletes = acts_of(change, kind, replaces)
    if not (updates or deletes):
        return False
    if kind == "Insert":
        return rows_at_most(change) is None
    if kind == "Merge":
        return _merges_openly(change, names)
    joins = list(joins_of(change))
    if _limit(change) == 1 and not joins:
        return False
    where = change.args.get("where")
    conditions = [] if where is None else [where.this]
    conditions += [join.args["on"] for join in joins if join.args.get("on") and not _outer(join)]
    tables = list(tables_of(change))
    alone = len(tables) == 1 and not (change.args.get("from_") or change.args.get("from"))
    for target in targets_of(change, kind):
        columns = _Columns(target, names, alone=alone)
        if not any(columns.restrict(condition) for condition in conditions):
            return True
    return False


def _merges_openly(change: Any, names: dict[str, str]) -> bool:
    columns = _Columns(change.this, names, alone=False)
    on = change.args.get("on")
    met = hasattr(on, "args") and columns.restrict(on)
    return any(
        not (met and when.args.get("matched")) for when in unbounded_whens(change, columns.restrict)
    )


def _outer(join: Any) -> bool:
    return bool(join.args.get("side"))


def _limit(change: Any) -> int | None:
    limit = change.args.get("limit")
    number = str(getattr(getattr(limit, "expression", None), "this", ""))
    return int(number) if number.isdigit() else None


class _Columns:
    """The columns of one table. `alone`: the condition has no other table's, so that a column
    without a table is of this one."""

    def __init__(self, table: Any, names: dict[str, str], *, alone: bool) -> None:
        self._names = names
        self._alone = alone
        self._called = {self._name(table.alias_or_name)} if hasattr(table, "alias_or_name") else ()

    def restrict(self, node: Any) -> bool:
        """Whether a condition holds only where a column compares with a constant."""
        kind = type(node).__name__
        if kind == "Paren":
            return self.restrict(node.this)
        if kind == "And":
            return self.restrict(node.this) or self.restrict(node.expression)
        if kind == "Or":
            return self.restrict(node.this) and self.restrict(node.expression)
        if kind in _COMPARED:
            sides = (node.this, node.expression), (node.expression, node.this)
            return any(self._is_column(one, kind) and _is_constant(two) for one, two in sides)
        if kind == "Between":
            bounds = (node.args.get("low"), node.args.get("high"))
            return self._is_column(node.this, kind) and all(map(_is_constant, bounds))
        if kind == "In":
            listed = node.expressions
            others = [node.args.get(name) for name in ("query", "unnest", "field")]
            return (
                bool(listed)
                and not any(others)
                and self._is_column(node.this, kind)
                and all(map(_is_constant, listed))
            )
        return False

    def _is_column(self, node: Any, compared: str) -> bool:
        kind = type(node).__name__
        if kind == "Paren":
            return self._is_column(node.this, compared)
        if kind == "Tuple":
            return any(self._is_column(each, compared) for each in node.expressions)
        if kind in _SAME_VALUE and compared in _EXACT:
            return self._is_column(node.this, compared)
        if kind != "Column" or type(node.this).__name__ != "Identifier":
            return False
        table = node.args.get("table")
        if table is not None:
            return self._name(table.name) in self._called
        return self._alone and (bool(node.this.args.get("quoted")) or not _is_call(node))

    def _name(self, name: str) -> str:
        return self._names.get(name, name).lower()


def _is_call(column: Any) -> bool:
    return len(column.parts) == 1 and column.name.lower() in _CALLED


def _is_constant(node: Any) -> bool:
    """Whether a value is the same for all rows: it names no column and reads no table."""
    if not hasattr(node, "walk"):
        return False
    for each in node.walk():
        kind = type(each).__name__
        if kind == "Anonymous" and each.name.upper() == "ALL":
            return False  # compares with each of an array, which may be empty
        quoted = kind == "Column" and getattr(each.this, "args", {}).get("quoted")
        if kind in _NOT_CONSTANT and not (kind == "Column" and not quoted and _is_call(each)):
            return False
    return True
