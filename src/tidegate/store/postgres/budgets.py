"""Budgets in PostgreSQL."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import structs

from tidegate.model.budgets import Budget
from tidegate.store.budgets import SHARE, Taken
from tidegate.store.held_rows import Touched
from tidegate.store.postgres.database import Database
from tidegate.store.versions import Versions

_FIELDS = tuple(name for name in Budget.__struct_fields__ if name != "window")
_COLUMNS = ", ".join((*_FIELDS, "span"))
_MARKS = ", ".join(f"%({name})s" for name in (*_FIELDS, "span"))
_CHANGED = ("amount", "changed_at", "changed_by")
_SAME = "id = %(id)s AND amount = %(was)s"


def _slice(left: str) -> str:
    """The units that a write gives, of those that are left."""
    return (
        f"CASE WHEN {left} <= %(need)s THEN {left} WHEN ({left}) / {SHARE} > %(need)s"
        f" THEN ({left}) / {SHARE} ELSE %(need)s END"
    )


_LEFT = "excluded.amount - budget_use.taken"
TAKE = (
    "INSERT INTO tidegate.budget_use (budget, began, amount, taken, granted)"
    f" SELECT id, %(began)s, amount, {_slice('amount')}, {_slice('amount')}"
    " FROM tidegate.budgets WHERE id = %(id)s AND amount > 0"
    " ON CONFLICT (budget, began) DO UPDATE SET amount = excluded.amount,"
    f" taken = budget_use.taken + ({_slice(_LEFT)}), granted = {_slice(_LEFT)}"
    f" WHERE {_LEFT} > 0 RETURNING granted, taken, amount"
)


class PostgresBudgetStore:
    """`api.BudgetStore` in PostgreSQL."""

    def __init__(self, database: Database, versions: Versions) -> None:
        self._database = database
        self.generation = partial(versions.of, "budgets")

    def list(self) -> tuple[Budget, ...]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(
                connection,
                "budgets",
                _COLUMNS,
                "ORDER BY token, owner, source, measure, span",
                is_whole=True,
            )
            return tuple(map(_budget, rows))

    def add(self, budget: Budget) -> bool:
        with (
            self._database.changing("rights") as connection,
            self._database.seals.changing(connection) as held,
        ):
            is_new = connection.change(
                f"INSERT INTO tidegate.budgets ({_COLUMNS}) VALUES ({_MARKS})"
                " ON CONFLICT DO NOTHING",
                _values(budget),
            )
            if is_new:
                held.add("budgets", budget.id, _values(budget))
            return is_new > 0

    def change(self, budget: Budget, was: Budget) -> bool:
        with (
            self._database.changing("rights") as connection,
            self._database.seals.changing(connection, _touched(was, budget)) as held,
        ):
            changed = connection.change(
                "UPDATE tidegate.budgets SET amount = %(amount)s, changed_at = %(changed_at)s,"
                f" changed_by = %(changed_by)s WHERE {_SAME}",
                {**_values(budget), "was": was.amount},
            )
            if changed:
                held.expect("budgets", was.id)
            return changed > 0

    def remove(self, was: Budget) -> bool:
        with (
            self._database.changing("rights") as connection,
            self._database.seals.changing(connection, _touched(was)),
        ):
            removed = connection.change(
                f"DELETE FROM tidegate.budgets WHERE {_SAME}", {"id": was.id, "was": was.amount}
            )
            if removed:
                connection.ask("DELETE FROM tidegate.budget_use WHERE budget = %s", (was.id,))
            return removed > 0

    def take(self, id: str, began: int, need: int) -> Taken | None:
        with self._database.changing(settles=False) as connection:
            given = {"id": id, "began": began, "need": need}
            row = connection.row(TAKE, given)
            if row is None:
                return None
            taken = Taken(*row)
            if taken.granted == taken.taken:  # the first of this window
                connection.ask(
                    "DELETE FROM tidegate.budget_use WHERE budget = %(id)s AND began < %(began)s",
                    given,
                )
            return taken

    def give_back(self, id: str, began: int, units: int) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask(
                "UPDATE tidegate.budget_use SET taken = taken - %s"
                " WHERE budget = %s AND began = %s",
                (units, id, began),
            )

    def taken(self, began: int) -> dict[tuple[str, int], int]:
        with self._database.reading() as connection:
            rows = connection.ask(
                "SELECT budget, began, taken FROM tidegate.budget_use WHERE began >= %s", (began,)
            )
            return {(row[0], row[1]): row[2] for row in rows}


def _touched(was: Budget, now: Budget | None = None) -> Touched:
    sets = {} if now is None else {name: getattr(now, name) for name in _CHANGED}
    return Touched("budgets", "id = %s", (was.id,), sets)


def _budget(row: tuple[Any, ...]) -> Budget:
    return Budget(**dict(zip((*_FIELDS, "window"), row, strict=True)))


def _values(budget: Budget) -> dict[str, Any]:
    values = structs.asdict(budget)
    values["span"] = values.pop("window")
    return values
