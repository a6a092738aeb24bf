"""What engines share that keep rows and put them back: exact comparison, and the words for rows."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.model.changes import (
    ChangeImage,
    ChangeRequest,
    Comparison,
    Problem,
    RowConflict,
    RowImage,
    TableImage,
)
from tidegate.model.decisions import Permit
from tidegate.model.requests import EngineRequest

MOST_CONFLICTS = 20
"""Rows that are named; the rest is counted."""
_MOST_KEY_CHARS = 120


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are one and the same to the last bit: 1 and 1.0 are not, NaN and NaN
    are."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    return bool(one == other)


def is_same_row(one: Sequence[Any] | None, other: Sequence[Any] | None) -> bool:
    """Whether two rows hold the same values, or neither is there."""
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and all(map(is_same, one, other))


class RowComparison:
    """Collects how rows differ from what a change left, or from what was there before."""

    def __init__(self) -> None:
        self._conflicts: list[RowConflict] = []
        self._count = 0
        self._as_before = True

    def add(self, table: TableImage, row: RowImage, now: Sequence[Any] | None) -> None:
        """Compare a row with what its key finds now, both as the change left it and as before."""
        problem = problem_of(row.after, now)
        if problem is not None:
            self.conflict(table, row, problem)
        # A row whose key was changed is two rows to the image; each is compared by itself.
        self._as_before = self._as_before and is_same_row(row.before, now)

    def conflict(self, table: TableImage, row: RowImage, problem: Problem) -> None:
        """Note a row that is not as it should be."""
        self._count += 1
        if len(self._conflicts) < MOST_CONFLICTS:
            self._conflicts.append(RowConflict(name_of(table), key_text(table, row), problem))

    @property
    def result(self) -> Comparison:
        return Comparison(tuple(self._conflicts), self._count, self._as_before)


def problem_of(expected: Sequence[Any] | None, now: Sequence[Any] | None) -> Problem | None:
    """How a row differs from the expected one; None if it does not."""
    if is_same_row(expected, now):
        return None
    if now is None:
        return "gone"
    return "exists" if expected is None else "changed"


def name_of(table: TableImage) -> str:
    """The table as it is shown."""
    return f"{table.schema}.{table.table}" if table.schema else table.table


def key_text(table: TableImage, row: RowImage) -> str:
    """The key of a row, such as `id = 3`."""
    parts = [
        f"{table.columns[place].name} = {str(value)[:_MOST_KEY_CHARS]}"
        for place, value in zip(table.key, table.key_of(row), strict=True)
    ]
    return ", ".join(parts)


def image_of(permit: Permit) -> tuple[ChangeRequest, ChangeImage]:
    """The request about a change with its rows. Raises: TidegateError UNSUPPORTED."""
    request: EngineRequest = permit.request
    if isinstance(request, ChangeRequest) and request.image is not None:
        return request, request.image
    raise TidegateError(Code.UNSUPPORTED, "Only a change that is kept can be put back.")


def too_many_rows(limit: int, rows: int | None, followers: bool) -> TidegateError:
    """The refusal of a change that touches more rows than it may; it was rolled back."""
    count = f"{rows:,} rows" if rows is not None else "more rows"
    counted = ", those of triggers and foreign keys among them" if followers else ""
    return TidegateError(
        Code.LIMIT_CHANGES,
        f"The change is about {count}{counted}, and at most {limit:,} may be changed at a time"
        " here. Nothing was changed.",
        details={"limit": limit, "rows": rows},
    )


def check_count(permit: Permit, rows: int, *, followers: bool = False) -> None:
    """Raises: TidegateError LIMIT_CHANGES if the permit's change is about too many rows."""
    limit = permit.max_rows_changed
    if limit is not None and rows > limit:
        raise too_many_rows(limit, rows, followers)
