"""Budgets in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from functools import partial
from typing import Any, cast

from msgspec import structs

from tidegate.model.budgets import Budget
from tidegate.store.budgets import SHARE, Taken
from tidegate.store.held_rows import Touched
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import StateConnection
from tidegate.store.sqlite.rights import RightsConnection

_FIELDS = tuple(name for name in Budget.__struct_fields__ if name != "window")
_COLUMNS = ", ".join((*_FIELDS, "span"))
_MARKS = ", ".join(f":{name}" for name in (*_FIELDS, "span"))
_SAME = "id = :id AND amount = :was"


def _slice(left: str) -> str:
    """The units that a write gives, of those that are left."""
    return (
        f"CASE WHEN {left} <= :need THEN {left} WHEN ({left}) / {SHARE} > :need"
        f" THEN ({left}) / {SHARE} ELSE :need END"
    )


_LEFT = "excluded.amount - budget_use.taken"
TAKE = (
    "INSERT INTO budget_use (budget, began, amount, taken, granted)"
    f" SELECT id, :began, amount, {_slice('amount')}, {_slice('amount')}"
    " FROM budgets WHERE id = :id AND amount > 0"
    " ON CONFLICT (budget, began) DO UPDATE SET amount = excluded.amount,"
    f" taken = budget_use.taken + ({_slice(_LEFT)}), granted = {_slice(_LEFT)}"
    f" WHERE {_LEFT} > 0 RETURNING granted, taken, amount"
)


class SqliteBudgetStore:
    """`api.BudgetStore` in the state file. Use goes by `usage`, which does not sync each write: a
    power cut may forget the last moments of it."""

    def __init__(self, rights: RightsConnection, usage: StateConnection, seals: Seals) -> None:
        self._rights = rights
        self._seals = seals
        self._usage = usage
        self.generation = partial(rights.versions.known.of, "budgets")

    def list(self) -> tuple[Budget, ...]:
        with self._rights.reading() as connection:
            rows = self._seals.select(
                connection,
                "budgets",
                _COLUMNS,
                "ORDER BY token, owner, source, measure, span",
                is_whole=True,
            )
            return tuple(map(_budget, rows))

    def add(self, budget: Budget) -> bool:
        with (
            self._rights.changing(uses_reserve=False) as connection,
            self._seals.changing(connection) as held,
        ):
            connection.execute(
                f"INSERT INTO budgets ({_COLUMNS}) VALUES ({_MARKS}) ON CONFLICT DO NOTHING",
                _values(budget),
            )
            is_new = connection.changes() > 0
            if is_new:
                held.add("budgets", budget.id)
            return is_new

    def change(self, budget: Budget, was: Budget) -> bool:
        with (
            self._rights.changing() as connection,
            self._seals.changing(connection, _touched(was)),
        ):
            connection.execute(
                "UPDATE budgets SET amount = :amount, changed_at = :changed_at,"
                f" changed_by = :changed_by WHERE {_SAME}",
                {**_values(budget), "was": was.amount},
            )
            return connection.changes() > 0

    def remove(self, was: Budget) -> bool:
        with (
            self._rights.changing() as connection,
            self._seals.changing(connection, _touched(was)),
        ):
            connection.execute(
                f"DELETE FROM budgets WHERE {_SAME}", {"id": was.id, "was": was.amount}
            )
            removed = connection.changes() > 0
            if removed:
                connection.execute("DELETE FROM budget_use WHERE budget = ?", (was.id,))
            return removed

    def take(self, id: str, began: int, need: int) -> Taken | None:
        with self._usage.changing() as connection:
            given = {"id": id, "began": began, "need": need}
            row = cast("tuple[int, int, int] | None", connection.execute(TAKE, given).fetchone())
            if row is None:
                return None
            taken = Taken(*row)
            if taken.granted == taken.taken:  # the first of this window
                connection.execute(
                    "DELETE FROM budget_use WHERE budget = :id AND began < :began", given
                )
            return taken

    def give_back(self, id: str, began: int, units: int) -> None:
        with self._usage.changing() as connection:
            connection.execute(
                "UPDATE budget_use SET taken = taken - ? WHERE budget = ? AND began = ?",
                (units, id, began),
            )

    def taken(self, began: int) -> dict[tuple[str, int], int]:
        with self._usage.reading() as connection:
            rows = connection.execute(
                "SELECT budget, began, taken FROM budget_use WHERE began >= ?", (began,)
            )
            return {(row[0], row[1]): row[2] for row in cast("list[tuple[str, int, int]]", rows)}


def _touched(was: Budget) -> Touched:
    return Touched("budgets", "id = ?", (was.id,))


def _budget(row: tuple[Any, ...]) -> Budget:
    fields = dict(zip((*_FIELDS, "window"), row, strict=True))
    return Budget(**fields)


def _values(budget: Budget) -> dict[str, Any]:
    values = structs.asdict(budget)
    values["span"] = values.pop("window")
    return values
