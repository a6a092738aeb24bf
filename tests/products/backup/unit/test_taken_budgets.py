"""A budget that was made or lowered since a backup is there when the backup is restored."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tidegate.budgets.budgets import described
from tidegate.model.budgets import Budget
from tidegate.products.backup.taken_rights import ServerEventLine, take_away
from tidegate.store.sqlite.state import SqliteState

KEPT = Budget("bud_1", "rows", "day", 2_500, token="agent", source="shop")


@pytest.fixture
def state(tmp_path: Path) -> Generator[SqliteState]:
    state = SqliteState(tmp_path / "state.db")
    assert state.budgets.add(KEPT)
    yield state
    state.close()


def changed(budget: Budget, name: str = "budget.changed") -> ServerEventLine:
    return ServerEventLine(name, described(budget))


def of(amount: int, id: str = "bud_1", source: str = "shop") -> Budget:
    return Budget(id, "rows", "day", amount, token="agent", source=source)


def test_a_lowered_budget_stays_lowered(state: SqliteState) -> None:
    said = take_away([changed(of(1_200))], state, 7.0)
    assert said == ["the budget for the token agent on shop is 1,200 rows a day again"]
    assert [each.amount for each in state.budgets.list()] == [1_200]


def test_one_that_was_made_since_is_made_again(state: SqliteState) -> None:
    made = Budget("bud_2", "seconds", "hour", 1_000_000, owner="ana")
    assert len(take_away([changed(made)], state, 7.0)) == 1
    (found,) = (each for each in state.budgets.list() if each.owner)
    assert (found.measure, found.window, found.amount) == ("seconds", "hour", 1_000_000)


@pytest.mark.parametrize(
    "events",
    [
        [changed(of(9_000))],
        [changed(of(10)), changed(of(9_000))],
        [changed(of(10)), changed(of(10), "budget.removed")],
        [changed(of(10, "bud_9", "b")), changed(of(10, "bud_9", "b"), "budget.removed")],
    ],
)
def test_what_gave_more_does_not_come_back(
    state: SqliteState, events: list[ServerEventLine]
) -> None:
    assert take_away(events, state, 7.0) == []
    assert state.budgets.list() == (KEPT,)


def test_a_source_has_the_name_that_it_has_in_the_backup(state: SqliteState) -> None:
    renamed = ServerEventLine("source.renamed", {"source": "shop", "to": "store"})
    take_away([renamed, changed(of(10, source="store"))], state, 7.0)
    assert [(each.source, each.amount) for each in state.budgets.list()] == [("shop", 10)]
