"""Budgets, and what processes take of them."""

from __future__ import annotations

import threading

import pytest
from msgspec import structs

from tidegate.model.budgets import Budget

CALLS = Budget("b1", "calls", "minute", 100, token="agent", changed_at=1.0, changed_by="ann")
ROWS = Budget("b2", "rows", "hour", 5_000, owner="ann", source="shop")
MINUTE, NEXT = 1_700_000_400, 1_700_000_460


def test_budgets_are_listed_by_what_they_are_about(state, other):
    assert state.budgets.list() == ()
    assert state.budgets.add(ROWS) and state.budgets.add(CALLS)
    assert other.budgets.list() == (ROWS, CALLS)


def test_there_is_one_budget_about_the_same(state):
    assert state.budgets.add(CALLS)
    assert not state.budgets.add(structs.replace(CALLS, id="b3", amount=7))
    assert state.budgets.add(structs.replace(CALLS, id="b3", window="hour"))
    assert state.budgets.add(structs.replace(CALLS, id="b4", source="shop"))
    assert len(state.budgets.list()) == 3


def test_every_change_counts_for_other_processes_and_use_does_not(state, other):
    seen = {other.budgets.generation()}
    state.budgets.add(CALLS)
    other.budgets.list()
    changed = structs.replace(CALLS, amount=7, changed_at=2.0, changed_by="ben")
    assert state.budgets.change(changed, CALLS)
    assert state.budgets.list() == (changed,)
    mine = state.budgets.generation()
    state.budgets.take(CALLS.id, MINUTE, 1)
    state.budgets.give_back(CALLS.id, MINUTE, 1)
    assert state.budgets.generation() == mine and mine not in seen


def test_what_was_changed_meanwhile_is_not_changed_or_removed(state, other):
    state.budgets.add(CALLS)
    lower = structs.replace(CALLS, amount=7)
    assert state.budgets.change(lower, CALLS)
    assert not other.budgets.change(structs.replace(CALLS, amount=900), CALLS)
    assert not other.budgets.remove(CALLS)
    assert other.budgets.remove(lower) and not state.budgets.remove(lower)
    assert state.budgets.list() == ()


def test_a_slice_is_a_part_of_what_is_left_and_smaller_near_the_end(state, other):
    state.budgets.add(CALLS)
    granted = []
    while (taken := (state, other)[len(granted) % 2].budgets.take(CALLS.id, MINUTE, 1)) is not None:
        granted.append(taken.granted)
        assert taken.taken == sum(granted) and taken.amount == 100
    assert sum(granted) == 100 and granted == sorted(granted, reverse=True)
    assert granted[0] == 12 and granted[-8:] == [1] * 8


def test_one_gets_what_it_needs_or_what_is_left(state):
    state.budgets.add(CALLS)
    assert state.budgets.take(CALLS.id, MINUTE, 60)[0] == 60
    assert state.budgets.take(CALLS.id, MINUTE, 60)[0] == 40
    assert state.budgets.take(CALLS.id, MINUTE, 60) is None


def test_what_is_given_back_can_be_taken_again(state, other):
    state.budgets.add(CALLS)
    state.budgets.take(CALLS.id, MINUTE, 100)
    other.budgets.give_back(CALLS.id, MINUTE, 30)
    assert state.budgets.taken(0) == {("b1", MINUTE): 70}
    assert state.budgets.take(CALLS.id, MINUTE, 50)[:2] == (30, 100)


def test_each_window_begins_anew_and_the_one_before_is_forgotten(state):
    state.budgets.add(CALLS)
    state.budgets.take(CALLS.id, MINUTE, 100)
    assert state.budgets.take(CALLS.id, NEXT, 100)[0] == 100
    assert state.budgets.taken(0) == {("b1", NEXT): 100}
    assert state.budgets.taken(NEXT + 1) == {}


def test_another_amount_counts_at_the_next_slice(state, other):
    state.budgets.add(CALLS)
    state.budgets.take(CALLS.id, MINUTE, 50)
    lower = structs.replace(CALLS, amount=40)
    other.budgets.change(lower, CALLS)
    assert state.budgets.take(CALLS.id, MINUTE, 1) is None
    other.budgets.change(structs.replace(CALLS, amount=53), lower)
    assert state.budgets.take(CALLS.id, MINUTE, 9)[:] == (3, 53, 53)


def test_nothing_is_taken_of_what_is_not_there_or_was_removed(state):
    assert state.budgets.take("none", MINUTE, 1) is None
    state.budgets.add(structs.replace(CALLS, amount=0))
    assert state.budgets.take(CALLS.id, MINUTE, 1) is None
    assert state.budgets.remove(state.budgets.list()[0])
    state.budgets.add(CALLS)
    state.budgets.take(CALLS.id, MINUTE, 9)
    state.budgets.remove(CALLS)
    assert state.budgets.taken(0) == {}


@pytest.mark.parametrize("need", [1, 7, 64])
def test_takers_at_once_never_get_more_than_there_is(state, open_state, need):
    budget = structs.replace(CALLS, amount=1_000)
    state.budgets.add(budget)
    granted: list[int] = []

    def take_all(mine):
        while (taken := mine.budgets.take(budget.id, MINUTE, need)) is not None:
            granted.append(taken.granted)

    threads = [threading.Thread(target=take_all, args=(open_state(),)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(granted) == 1_000


def test_a_budget_follows_the_source_to_another_name(state):
    from tidegate.model.sources import Source

    was = Source("i1", "shop", "sqlite:///a.db", "sqlite", "sqlite")
    state.sources.add(was)
    state.budgets.add(ROWS)
    state.budgets.add(structs.replace(ROWS, id="left over", source="store", amount=1))
    now = structs.replace(was, id="i2", name="store")
    assert state.sources.rename(was, now, 1.0) is not None
    assert state.budgets.list() == (structs.replace(ROWS, source="store"),)
