"""What engines share that try a change and roll it back: the questions that show its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tidegate.model.statements import DryRun
from tidegate.sql.dml_parser import DmlStatement, Part

MOST_TOUCHED = 10_000
"""A change of more rows is not tried: it would hold them, and leave as many dead."""
MOST_COLUMNS = 32
MOST_CHARS = 200
LOCK_WAIT_MS = 200

TOO_MANY = DryRun(reason=f"it is about more than {MOST_TOUCHED:,} rows.")

REKEYED = "rows whose key changes are not shown."
"""Rows before and after are paired by key: after a key has changed, the row that has it now can be
another one."""

UNREAD = DryRun(reason="the query that its rows come from does more than read.")


def counting(outline: DmlStatement) -> Part:
    """Counts the rows that the statement is about, but no more than may be touched and one; empty
    for VALUES, of which a text holds few."""
    if outline.verb == "insert":
        if not outline.query.text:
            return Part()
        inner = f"SELECT 1 FROM (\n{outline.query.text}\n) AS found LIMIT {MOST_TOUCHED + 1}"
        params = outline.query.params
    else:
        inner = f"SELECT 1 FROM {outline.target}\n{_where(outline)} LIMIT {MOST_TOUCHED + 1}"
        params = outline.where.params
    return Part(f"SELECT count(*) FROM ({inner}) AS touched", params)


def sampling(outline: DmlStatement, shown: Sequence[str], key: Sequence[str], rows: int) -> Part:
    """Reads some of these rows: the expressions that are shown, then those of the key."""
    columns = ", ".join([*shown, *key])
    text = f"SELECT {columns} FROM {outline.target}\n{_where(outline)} LIMIT {rows}"
    return Part(text, outline.where.params)


def returning(outline: DmlStatement, shown: Sequence[str]) -> str:
    """The change as one that shows the rows that it has made: the expressions that are shown."""
    return f"{outline.body}\nRETURNING {', '.join(shown)}"


def taken(part: Part, params: Sequence[Any] | None) -> list[Any]:
    """The parameters that a part of the statement takes."""
    return [params[place] for place in part.params] if params else []


def unsupported(outline: DmlStatement, params: Sequence[Any] | None) -> DryRun | None:
    """Why a statement is not tried with these parameters; None if they are as many as it has."""
    if outline.parameters == len(params or ()):
        return None
    return DryRun(reason=f"it has {outline.parameters} placeholders for its parameters.")


def rekeys(outline: DmlStatement, key: Iterable[str]) -> bool:
    """Whether an UPDATE sets a column of the key."""
    return not outline.assigned.isdisjoint(name.lower() for name in key)


def _where(outline: DmlStatement) -> str:
    return f"WHERE ({outline.where.text}\n)" if outline.where.text else ""


def added(affected: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> DryRun:
    """The dry run of an INSERT from some of the rows that it adds."""
    after = tuple([_shown(row) for row in rows])
    return DryRun(affected, tuple(columns), (None,) * len(after), after)


def dry_run_of(
    affected: int,
    columns: Sequence[str],
    before: Sequence[Sequence[Any]],
    after: Sequence[Sequence[Any]] | None,
) -> DryRun:
    """The dry run from rows that end with their keys; `after` None: they would be deleted."""
    width = len(columns)
    names = tuple(columns)
    if after is None:
        rows = tuple([_shown(row[:width]) for row in before])
        return DryRun(affected, names, rows, (None,) * len(rows))
    found = {tuple(row[width:]): row for row in after}
    pairs = [(row, found[tuple(row[width:])]) for row in before if tuple(row[width:]) in found]
    return DryRun(
        affected,
        names,
        tuple([_shown(old[:width]) for old, _ in pairs]),
        tuple([_shown(new[:width]) for _, new in pairs]),
        "" if len(pairs) == len(before) else REKEYED,
    )


def _shown(row: Sequence[Any]) -> tuple[str | None, ...]:
    return tuple([None if value is None else str(value)[:MOST_CHARS] for value in row])
