"""The contract of `HistoryStore`."""

import msgspec
import pytest

from tidegate.model.replies import HistoryEntry


def entries(state, *words, sources=None, since=None, until=None, limit=100):
    found = state.history.search(words, sources=sources, since=since, until=until, limit=limit)
    return [entry.text for entry in found]


def test_history_is_narrowed_to_one_actor(state):
    state.history.add(
        [HistoryEntry(text=f"SELECT {n}", source="s", at=n, actor=f"a{n % 2}") for n in range(4)]
    )
    found = state.history.search(
        ["select"], sources=None, since=None, until=None, limit=9, actor="a1"
    )
    assert [entry.text for entry in found] == ["SELECT 3", "SELECT 1"]


def test_history_is_shared_and_newest_first(state, other):
    state.history.add([HistoryEntry(text=f"SELECT {n}", source="s", at=1.0) for n in range(3)])
    other.history.add([HistoryEntry(text="SELECT 'old'", source="s", at=0.5)])
    state.history.add([])
    expected = ["SELECT 2", "SELECT 1", "SELECT 0", "SELECT 'old'"]
    assert entries(state) == entries(other) == expected
    assert entries(state, limit=2) == expected[:2]


def test_words_are_prefixes_and_all_must_be_there(state):
    state.history.add(
        [
            HistoryEntry(text="SELECT Größe FROM customers", source="s", at=1.0),
            HistoryEntry(text="SELECT size FROM customers", source="s", at=2.0),
        ]
    )
    assert entries(state, "cust", "gro") == ["SELECT Größe FROM customers"]
    assert entries(state, "cust") == ["SELECT size FROM customers", "SELECT Größe FROM customers"]
    assert entries(state, "omers") == []
    assert entries(state, "customers OR nothing") == []


@pytest.mark.parametrize(
    "word", ['"', '""', '"select', "select*", "(select", "{select}", "+", "😀"]
)
def test_words_hold_no_operators(state, word):
    state.history.add([HistoryEntry(text="SELECT 1", source="s", at=1.0)])
    assert entries(state, word) == ["SELECT 1"]


def test_history_is_narrowed_by_source_and_by_times_inclusively(state):
    state.history.add(
        [HistoryEntry(text=f"SELECT {n}", source="ab"[n % 2], at=float(n)) for n in range(6)]
    )
    assert entries(state, sources=["a"]) == ["SELECT 4", "SELECT 2", "SELECT 0"]
    assert entries(state, sources=["a", "b"], since=2.0, until=3.0) == ["SELECT 3", "SELECT 2"]
    assert entries(state, sources=()) == []


def test_trimming_keeps_the_newest_and_forgets_their_words(state):
    state.history.add([HistoryEntry(text=f"word{n}", source="s", at=float(n)) for n in range(10)])
    assert state.history.trim(5, 7.0) == 7
    assert entries(state) == ["word9", "word8", "word7"]
    assert entries(state, "word1") == []
    assert state.history.trim(5, 7.0) == 0


@pytest.mark.parametrize("count", [63, 64, 65, 200])
def test_every_entry_of_a_large_group_is_kept_in_order_and_as_it_was(state, count):
    group = [
        HistoryEntry(
            text=f'SELECT {n} AS "Größe\\"\u0000',
            source="s",
            at=float(n),
            actor="a",
            surface="core",
            tool="query",
            database="d",
            dialect="sqlite",
            elapsed_ms=n / 3,
            row_count=n,
            success=n % 2 == 0,
            error="" if n % 2 == 0 else "no such table",
        )
        for n in range(count)
    ]
    state.history.add(group)
    found = state.history.search((), sources=None, since=None, until=None, limit=1_000)
    assert [msgspec.structs.replace(entry, id=0) for entry in found] == group[::-1]
    assert [entry.id for entry in found] == sorted((entry.id for entry in found), reverse=True)
