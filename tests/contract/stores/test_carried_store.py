"""The contract of `CarriedStore`, and the encrypted values on it."""

from __future__ import annotations

import pytest

from tidegate.store.carried import MOST_OF_OWNER, MOST_SWEPT, Carried, CarriedValues

SECRET = "5a" * 32


def put(state, id, *parts, kind="rows", owner="a", ends=200.0, now=100.0):
    state.carried.put(Carried(kind, id, owner, ends), parts, now)


def test_any_process_reads_the_parts_of_a_value_until_it_ends(state, other):
    put(state, "x", b"head", b"\x00one", b"two")
    put(state, "x", b"other", kind="choice")
    assert other.carried.read("rows", "x", 150.0) == ((0, b"head"),)
    assert other.carried.read("rows", "x", 150.0, 1, 9) == ((1, b"\x00one"), (2, b"two"))
    assert other.carried.read("choice", "x", 150.0) == ((0, b"other"),)
    assert other.carried.read("rows", "y", 150.0) == ()
    assert other.carried.read("rows", "x", 200.0, 0, 9) == ()


def test_a_value_takes_the_place_of_the_one_before_and_can_be_removed(state, other):
    put(state, "x", b"1", b"2", b"3")
    put(other, "x", b"4", owner="b", ends=300.0)
    assert state.carried.read("rows", "x", 250.0, 0, 9) == ((0, b"4"),)
    other.carried.remove("rows", "x")
    other.carried.remove("rows", "x")
    assert state.carried.read("rows", "x", 250.0, 0, 9) == ()


def test_what_has_ended_goes_and_so_does_the_first_of_too_many(state):
    put(state, "ended", b"1", b"2", ends=110.0)
    put(state, "of another", b"1", b"2", owner="b")
    for n in range(MOST_OF_OWNER + 1):
        put(state, f"v{n}", b"1", b"2", ends=200.0 + n, now=120.0)
    found = [len(state.carried.read("rows", f"v{n}", 0.0, 0, 9)) for n in range(MOST_OF_OWNER + 1)]
    assert found == [0, *[2] * MOST_OF_OWNER]
    assert state.carried.read("rows", "ended", 0.0, 0, 9) == ()
    assert len(state.carried.read("rows", "of another", 0.0, 0, 9)) == 2
    put(state, f"v{MOST_OF_OWNER}", b"3", ends=900.0)  # one of them again: no other makes room
    assert state.carried.read("rows", "v1", 0.0) == ((0, b"1"),)


def test_a_caller_does_not_wait_for_all_that_others_have_left(state):
    count = MOST_SWEPT // 2 + 1
    for n in range(count):
        put(state, f"v{n:03}", b"1", b"2", owner=f"o{n}", ends=110.0 + n / 1_000)

    def left():
        found = [state.carried.read("rows", f"v{n:03}", 0.0, 0, 9) for n in range(count)]
        return [len(each) for each in found]

    put(state, "x", b"1", now=150.0)
    assert left() == [0] * (count - 1) + [2]
    put(state, "x", b"2", now=150.0)
    assert left() == [0] * count
    assert state.carried.read("rows", "x", 150.0) == ((0, b"2"),)


def values(state, kind="rows", secret=SECRET):
    return CarriedValues(state.carried, kind, lambda: secret, lambda: 100.0)


def test_the_state_shows_nothing_of_a_value_and_no_one_else_makes_one(state, other):
    values(state).put("x", "a", [b"head", b"secret rows"], 10.0)
    (_, sealed), (_, second) = state.carried.read("rows", "x", 100.0, 0, 1)
    assert b"head" not in sealed and b"secret" not in second
    assert values(other).read("x", 0, 9) == [b"head", b"secret rows"]
    assert values(other).read("x", 1, 1) == [b"secret rows"]
    put(state, "moved", sealed, second)
    put(state, "x", second, sealed, kind="choice")
    put(state, "forged", b"head")
    others = values(state, "choice"), values(state, secret="00" * 32)
    assert [each.read("x", 0, 9) for each in others] == [[], []]
    assert [values(state).read(id, 0, 9) for id in ("moved", "forged")] == [[], []]
    values(other).remove("x")
    assert values(state).read("x", 0, 9) == []


@pytest.mark.parametrize("first", [0, 1])
def test_parts_are_read_without_a_gap_or_not_at_all(state, first):
    values(state).put("x", "a", [b"0", b"1"], 10.0)
    assert values(state).read("x", first, 5) == [b"0", b"1"][first:]
    assert values(state).read("x", 2, 5) == []


def test_what_has_ended_goes_though_no_one_puts_anything(state, other):
    count = MOST_SWEPT // 2 + 1
    for n in range(count):
        put(state, f"v{n}", b"1", b"2", owner=f"o{n}", ends=110.0)
    put(state, "x", b"1")
    assert other.carried.sweep(109.0) == 0
    assert other.carried.sweep(110.0) == MOST_SWEPT
    assert [other.carried.sweep(110.0), other.carried.sweep(110.0)] == [2, 0]
    assert state.carried.read("rows", "v0", 0.0, 0, 9) == ()
    assert state.carried.read("rows", "x", 0.0) == ((0, b"1"),)
