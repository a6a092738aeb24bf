"""What engines share that try a change and roll it back: the questions that show its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.sql.outline import Outline
from tidegate.statements import Rehearsal

MOST_TOUCHED = 10_000
"""A change of more rows is not tried: it would hold them, and leave as many dead."""
MOST_COLUMNS = 32
MOST_CHARS = 200
LOCK_WAIT_MS = 200

TOO_MANY = Rehearsal(reason=f"it is about more than {MOST_TOUCHED:,} rows.")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def counting(outline: Outline) -> str:
    """Counts the rows that the statement is about, but no more than may be touched and one."""
    inner = f"SELECT 1 FROM {outline.target}\n{_where(outline)} LIMIT {MOST_TOUCHED + 1}"
    return f"SELECT count(*) FROM ({inner}) AS touched"


def sampling(outline: Outline, shown: Sequence[str], key: Sequence[str], rows: int) -> str:
    """Reads some of these rows: the expressions that are shown, then those of the key."""
    columns = ", ".join([*shown, *key])
    return f"SELECT {columns} FROM {outline.target}\n{_where(outline)} LIMIT {rows}"


def _where(outline: Outline) -> str:
    return f"WHERE ({outline.where}\n)" if outline.where else ""


def rehearsed(
    affected: int,
    columns: Sequence[str],
    before: Sequence[Sequence[Any]],
    after: Sequence[Sequence[Any]] | None,
) -> Rehearsal:
    """The rehearsal from rows that end with their keys; `after` None: they would be deleted."""
    width = len(columns)
    names = tuple(columns)
    if after is None:
        rows = tuple([_shown(row[:width]) for row in before])
        return Rehearsal(affected, names, rows, (None,) * len(rows))
    found = {tuple(row[width:]): row for row in after}
    pairs = [(row, found[tuple(row[width:])]) for row in before if tuple(row[width:]) in found]
    return Rehearsal(
        affected,
        names,
        tuple([_shown(old[:width]) for old, _ in pairs]),
        tuple([_shown(new[:width]) for _, new in pairs]),
        "" if len(pairs) == len(before) else "rows whose key changes are not shown.",
    )


def _shown(row: Sequence[Any]) -> tuple[str | None, ...]:
    return tuple([None if value is None else str(value)[:MOST_CHARS] for value in row])
