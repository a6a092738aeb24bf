"""Finds out whether a change is about every row of its table, whatever its form: DELETE and UPDATE
without a WHERE that selects rows, joins, MERGE, and a query of a table that writes it over.

`constant_conditions.py` says what a condition tells. What only the rows can tell, such as whether
`stock > 0` holds for all of them, is not found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tidegate.sql.constant_conditions import Truth, selects_rows, truth_of
from tidegate.sql.dialects.model import Dialect

FEW_ROWS = 1_000
"""A change with a LIMIT of no more is not taken for one of every row."""


def changes_every_row(change: Any, dialect: Dialect, *, exact_numbers: bool) -> bool:
    """Whether an INSERT, UPDATE, DELETE or MERGE is about every row of its table, as far as its
    text can tell. `exact_numbers`: each number is in the tree as it was written."""
    kind = type(change).__name__

    def selects(condition: Any) -> bool:
        return truth_of(change, condition, dialect, exact_numbers) is Truth.DEPENDS

    if kind == "Merge":
        return _merges_all(change, selects)
    if kind == "Insert":
        return bool(change.args.get("overwrite")) or _writes_over(change, selects)
    if _is_limited(change):
        return False
    where = change.args.get("where")
    if where is not None:
        if not selects_rows(change, dialect, exact_numbers=exact_numbers):
            return True
        return any(_is_itself(change, other) for other in _others(change)) and _pairs(where.this)
    joins = list(joins_of(change))
    return not any(_restricts(change, join, selects) for join in joins)


def _is_limited(change: Any) -> bool:
    limit = change.args.get("limit")
    number = str(getattr(getattr(limit, "expression", None), "this", ""))
    return number.isdigit() and int(number) <= FEW_ROWS


def joins_of(change: Any) -> Iterator[Any]:
    """The joins of MySQL's UPDATE and DELETE."""
    for table in (change.this, *(change.args.get("using") or ())):
        yield from getattr(table, "args", {}).get("joins") or ()


def _others(change: Any) -> Iterator[Any]:
    """The tables of UPDATE … FROM, DELETE … USING and of joins."""
    source = change.args.get("from_") or change.args.get("from")
    if source is not None:
        yield source.this
    yield from change.args.get("using") or ()
    for join in joins_of(change):
        yield join.this


def _restricts(change: Any, join: Any, selects: Any) -> bool:
    """Whether a join leaves rows out: an inner one, by more than each row's own key."""
    if join.args.get("side") or str(join.args.get("kind") or "").upper() == "CROSS":
        return False
    if join.args.get("using"):
        return not _is_itself(change, join.this)
    on = join.args.get("on")
    if on is None or not selects(on):
        return False
    return not (_is_itself(change, join.this) and _pairs(on))


def _merges_all(change: Any, selects: Any) -> bool:
    on, using = change.args.get("on"), change.args.get("using")
    by_name = not hasattr(on, "args")  # MERGE … USING source USING (columns)
    pairs_itself = _is_itself(change, using) and (by_name or _pairs(on))
    meets_all = pairs_itself or (not by_name and not selects(on))
    return any(
        meets_all if when.args.get("matched") else when.args.get("source")
        for when in unbounded_whens(change, selects)
    )


def unbounded_whens(change: Any, selects: Callable[[Any], bool]) -> Iterator[Any]:
    """The parts of a MERGE that change or remove rows which are there, and whose own condition, if
    they have one, does not select some of them."""
    whens = change.args.get("whens")
    for when in getattr(whens, "expressions", None) or change.expressions:
        acts = when.args.get("then")
        if type(acts).__name__ == "Insert" or str(acts).upper() == "DO NOTHING":
            continue
        condition = when.args.get("condition")
        if condition is None or not selects(condition):
            yield when


def _writes_over(change: Any, selects: Any) -> bool:
    """INSERT … SELECT of its own table that replaces or updates what is there."""
    replaces = (
        change.args.get("conflict") or "REPLACE" in str(change.args.get("alternative")).upper()
    )
    query = change.expression
    if not replaces or type(query).__name__ != "Select" or query.args.get("limit"):
        return False
    source = query.args.get("from_") or query.args.get("from")
    if source is None or query.args.get("joins") or not _is_itself(change, source.this):
        return False
    where = query.args.get("where")
    return where is None or not selects(where.this)


def _target(change: Any) -> Any:
    target = change.this
    return target.this if type(target).__name__ == "Schema" else target


def _is_itself(change: Any, other: Any) -> bool:
    """Whether a FROM item is the table that is changed, or a query of nothing but that."""
    while type(other).__name__ == "Subquery":
        other = other.this
    if type(other).__name__ == "Select":
        source = other.args.get("from_") or other.args.get("from")
        rest = ("where", "joins", "group", "having", "limit", "offset", "with_")
        if source is None or any(other.args.get(name) for name in rest):
            return False
        other = source.this
    target = _target(change)
    if type(other).__name__ != "Table" or type(target).__name__ != "Table":
        return False
    return str(other.name).lower() == str(target.name).lower()


def _pairs(condition: Any) -> bool:
    """Whether a condition is only that a column of both sides is the same: `t.id = u.id`."""
    while type(condition).__name__ == "Paren":
        condition = condition.this
    if type(condition).__name__ not in ("EQ", "NullSafeEQ"):
        return False
    sides = condition.this, condition.expression
    return (
        all(type(side).__name__ == "Column" for side in sides)
        and sides[0].name.lower() == sides[1].name.lower()
    )
