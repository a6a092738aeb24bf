"""Finds out whether a change that has run was about every row of its table, before it is committed.

The text says which tables it may touch (`Judgement.touches`), the rows say the rest: as many rows
as the change is about, and one more, are counted in its transaction. So it costs no more than the
change itself, and nothing where that was about one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tidegate.errors import ERRORS, Code, TidegateError
from tidegate.model.decisions import Permit
from tidegate.model.statements import TouchedTable

MOST_COUNTED = 10_000
"""Rows that are counted before an upsert or a MERGE. Where a table has more, one that writes as
many rows as the table has afterwards is taken for a change of all of them."""


class WholeChange:
    """Compares the rows that one statement touches with those of its tables."""

    def __init__(self, touches: Sequence[TouchedTable], how: Literal["confirm", "deny"]) -> None:
        self._touches = touches
        self._how: Literal["confirm", "deny"] = how
        self._mixed = [table for table in touches if table.text and _needs_before(table)]
        self._before: dict[TouchedTable, int] = {}
        self.nested = any(table.nested for table in touches)

    @property
    def counts_before(self) -> list[str]:
        """Queries that must be asked before the statement; each gives one number."""
        return [
            _count(table, 1 if _is_told_after(table) else MOST_COUNTED) for table in self._mixed
        ]

    def begin(self, counts: Sequence[int]) -> None:
        """Take the answers."""
        self._before = dict(zip(self._mixed, counts, strict=True))

    def counts_after(self, own: int) -> list[str]:
        """Queries that must be asked when the statement is about `own` rows; none if it is about
        one and removes no others. Raises: TidegateError POLICY_CONFIRM, POLICY_DENIED."""
        if own < 2 and not (own and any(table.replaces for table in self._touches)):
            return []
        if not all(table.text for table in self._touches):
            raise self._refusal("")
        return [_count(table, own) for table in self._touches]

    def end(self, own: int, counts: Sequence[int]) -> None:
        """Take the answers. Raises: TidegateError POLICY_CONFIRM, POLICY_DENIED if the change was
        about every row."""
        for table, after in zip(self._touches, counts, strict=False):
            if _is_whole(table, own, self._before.get(table, 0), after):
                raise self._refusal(table.text)

    def refusal_of_open(self, keeping: str) -> TidegateError:
        """The error for what its text leaves open and no ROLLBACK would take back. `keeping`: the
        table, with its storage engine."""
        return self._error(
            "The statement may change every row: it compares no column with a constant, and"
            f" {keeping} does not roll back, so that its rows cannot be compared"
        )

    def _refusal(self, name: str) -> TidegateError:
        what = f"every row of {name}" if name else "rows of a table that cannot be named to count"
        return self._error(f"The statement changes {what}, whatever its condition")

    def _error(self, finding: str) -> TidegateError:
        code = Code.POLICY_CONFIRM if self._how == "confirm" else Code.POLICY_DENIED
        needs = (
            "it needs a confirmation"
            if self._how == "confirm"
            else "the source does not admit changes of all rows"
        )
        return TidegateError(
            code,
            f"{finding}: {needs}. Nothing was changed.",
            hint=ERRORS[code].hint,
            details={"rule": "rows.every"},
        )


def whole_change_of(permit: Permit | None) -> WholeChange | None:
    """What is compared for the change of a permit; None if nothing is."""
    if permit is None or not permit.whole_changes or permit.judgement is None:
        return None
    return WholeChange(permit.judgement.touches, permit.whole_changes)


def _is_mixed(table: TouchedTable) -> bool:
    """Whether the rows that are there afterwards do not tell what became of those before."""
    return table.inserts or (table.updates and table.deletes)


def _is_told_after(table: TouchedTable) -> bool:
    """Whether it is known how many rows were written: if there are no more afterwards, none of
    those before was left as it was. Two that were there are enough to lose."""
    return table.replaces and (table.most > 0 or not table.inserts)


def _needs_before(table: TouchedTable) -> bool:
    return _is_mixed(table) or table.replaces


def _count(table: TouchedTable, most: int) -> str:
    return f"SELECT count(*) FROM (SELECT 1 FROM {table.text} LIMIT {most + 1}) AS counted_rows"


def _is_whole(table: TouchedTable, own: int, before: int, after: int) -> bool:
    """Whether no row stayed as it was. `after` is right up to `own`, which counts at least the rows
    that were updated or added."""
    if _is_told_after(table):
        return before > 1 and after <= (table.most or own)
    if not _is_mixed(table):
        return after == 0 if table.deletes else after <= own
    if before < 2 or after > own:
        return False
    if before > MOST_COUNTED:
        return True
    if table.updates and table.deletes:
        return own >= before
    gone = own - (after - before)  # of an upsert: updated; of what only deletes: deleted, twice
    return gone >= (2 * before if table.deletes else before)
