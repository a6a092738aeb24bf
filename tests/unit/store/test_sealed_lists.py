"""What is under a MAC, and what a gate remembers of lists."""

import pytest

from tidegate.errors import TidegateError
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.held_rows import Held, Touched
from tidegate.store.seal_memory import SealMemory
from tidegate.store.sealed_lists import MEANING, SealedList, SealKeys, part_of, same
from tidegate.store.seen_lists import DOUBT, doubt

KEY = ClusterKey("a key of the gates in tests, long enough")
KEYS = SealKeys(KEY, "life")


def test_no_two_rows_have_one_mac():
    rows = [
        ("ab", "c"), ("a", "bc"), ("abc",), ("abc", None), (None, "abc"), ("abc", ""), (b"abc",),
        ("1",), (1,), (1.0,), (b"1",), (None,), ("",), (b"",), (-1,), ("-1",),
    ]  # fmt: skip
    macs = {KEYS.row("tokens", row) for row in rows} | {KEYS.row("sources", ("abc",))}
    assert len(macs) == len(rows) + 1


def test_both_states_give_a_row_one_mac():
    assert KEYS.row("tokens", (True, False)) == KEYS.row("tokens", (1, 0))
    assert same(True, 1) and not same(1, 1.0) and not same(None, "")
    assert KEYS.row("tokens", ("a\0\ud800",)) != KEYS.row("tokens", ("a\0",))


def test_a_list_is_read_in_its_place_with_its_number_by_its_key_alone():
    made = SealedList(3, {"t1": b"m" * 16})
    kept = KEYS.write("tokens", 1, made)
    assert KEYS.read("tokens", 1, 3, kept) == made
    assert KEYS.read("tokens", 2, 3, kept) is None
    assert KEYS.read("tokens", 1, 4, kept) is None
    assert KEYS.read("sources", 1, 3, kept) is None
    assert SealKeys(KEY, "another life").read("tokens", 1, 3, kept) is None
    assert KEYS.read("tokens", 1, 3, (kept[0] + b"x", kept[1])) is None


def test_rows_are_spread_over_the_parts():
    counts = [0] * 16
    for number in range(1_600):
        counts[part_of(f"t{number}")] += 1
    assert min(counts) > 50


def test_keys_of_different_purposes_differ():
    made = {KEY.derive("a", "b"), KEY.derive("ab"), KEY.derive("a"), KEY.derive("", "ab")}
    assert len(made) == 4
    assert ClusterKey("a key of the gates in tests, long enough\n").derive("a") in made
    with pytest.raises(TidegateError):
        ClusterKey("short")


def test_a_gate_remembers_numbers_over_a_restart(tmp_path):
    path = tmp_path / "seals.json"
    memory = SealMemory(path)
    assert memory.begin(1, "life") and memory.see("tokens", 0, 5) and memory.see("tokens", 1, 1)
    assert not memory.see("tokens", 0, 4)
    memory.close()
    again = SealMemory(path)
    assert not again.see("tokens", 0, 4) and again.see("tokens", 0, 5)
    assert not again.begin(1, "another") and not again.begin(0, "life")
    assert again.begin(2, "another") and again.see("tokens", 0, 1)


def test_a_row_must_hold_what_was_written_and_otherwise_what_it_held():
    columns = MEANING["budgets"]
    row = tuple(range(len(columns)))
    changed = (*row[:6], 99, *row[7:])
    held = Held(is_active=True)
    held.keep(Touched("budgets", "", (), {"amount": 99}), row, b"m")
    assert held.is_as_wanted("budgets", changed)
    assert held.is_as_wanted("budgets", row)  # a condition did not hold
    assert not held.is_as_wanted("budgets", (*row[:6], 98, *row[7:]))
    assert not held.is_as_wanted("budgets", (row[0], 7, *changed[2:]))
    held.expect("budgets", row[0])
    assert not held.is_as_wanted("budgets", row)
    held.add("budgets", "new", dict(zip(columns, ("new", *row[1:]), strict=True)))
    assert held.is_as_wanted("budgets", ("new", *row[1:]))
    held.add("budgets", "unsaid")
    assert not held.is_as_wanted("budgets", ("unsaid", *row[1:]))


def test_rows_that_a_former_server_had_otherwise_are_in_doubt():
    seen = SealedList(7, {"same": b"1", "changed": b"2", "lost": b"3"})
    found = SealedList(6, {"same": b"1", "changed": b"old", "removed": b"4"})
    made = doubt("tokens", seen, found)
    assert made == SealedList(8, {"same": b"1", "changed": DOUBT, "removed": DOUBT})
    assert doubt("tokens", seen, made) is None  # at the next gate that has seen the same
    assert doubt("tokens", seen, found._replace(macs=seen.macs)) is None
    later = SealedList(9, {"changed": b"5"})  # another gate saw more
    assert doubt("tokens", later, made) == SealedList(
        10, {"same": DOUBT, "changed": DOUBT, "removed": DOUBT}
    )


def test_a_budget_that_was_lost_is_in_doubt_and_one_that_is_back_is_not():
    seen = SealedList(7, {"changed": b"2", "lost": b"3"})
    found = SealedList(6, {"changed": b"old", "removed": b"4"})
    assert doubt("budgets", seen, found) == SealedList(
        8, {"changed": DOUBT, "lost": DOUBT, "removed": b"4"}
    )
