"""Writes a condition on one column as SQL, from a value that is data. Pure."""

from __future__ import annotations

from typing import Any, Literal

from tidegate.sql.dialects import find
from tidegate.sql.quoting import literal

Operator = Literal[
    "equals",
    "not_equals",
    "less_than",
    "less_or_equal",
    "greater_than",
    "greater_or_equal",
    "between",
    "contains",
    "starts_with",
    "ends_with",
    "is_null",
    "is_not_null",
]
_COMPARISONS = {
    "equals": "=",
    "not_equals": "<>",
    "less_than": "<",
    "less_or_equal": "<=",
    "greater_than": ">",
    "greater_or_equal": ">=",
}
_PATTERNS = {"contains": "%{}%", "starts_with": "{}%", "ends_with": "%{}"}
_ESCAPE = "!"  # a backslash would depend on the server's settings


def condition(
    name: str,
    operator: Operator,
    value: Any,
    dialect: str,
    *,
    second: Any = None,
    exactly: bool = False,
    folded: bool = False,
) -> str:
    """The condition on a column, whose name is quoted already. `second` is the upper end of
    `between`. Texts are compared by the column's own rules, or `exactly`, or `folded`: without
    regard to case. What a text contains is searched for with regard to case unless it is
    `folded`."""
    if operator in ("is_null", "is_not_null"):
        return f"{name} IS {'NOT ' if operator == 'is_not_null' else ''}NULL"
    if operator == "between":
        return f"{name} BETWEEN {literal(value, dialect)} AND {literal(second, dialect)}"
    if operator in _COMPARISONS:
        left, right = _sides(name, literal(value, dialect), dialect, exactly, folded)
        return f"{left} {_COMPARISONS[operator]} {right}"
    rules = find(dialect)
    if rules.globs and not folded:
        return f"{name} GLOB {literal(_glob(operator, str(value)), dialect)}"
    escaped = str(value)
    for special in (_ESCAPE, "%", "_"):
        escaped = escaped.replace(special, _ESCAPE + special)
    pattern = literal(_PATTERNS[operator].format(escaped), dialect)
    text = f"CAST({name} AS {rules.text_type})"
    left, right = _sides(text, pattern, dialect, not folded, folded)
    return f"{left} LIKE {right} ESCAPE '{_ESCAPE}'"


def _glob(operator: Operator, value: str) -> str:
    """SQLite's LIKE takes no notice of case; its GLOB does."""
    escaped = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in value)
    return _PATTERNS[operator].replace("%", "*").format(escaped)


def _sides(left: str, right: str, dialect: str, exactly: bool, folded: bool) -> tuple[str, str]:
    """Both sides of a comparison, with or without regard to case whatever the database's habit."""
    if folded:
        return f"LOWER({left})", f"LOWER({right})"
    return left, f"{right}{find(dialect).exact_collation}" if exactly else right
