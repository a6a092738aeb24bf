"""Pages of Activity over several gates are those of one list of all their lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.audit.activity import MOST_COUNTED
from tidegate.audit.activity_lines import Found, Line
from tidegate.errors import Code, TidegateError
from tidegate.products.console.activity_pages import (
    Cursor,
    LeftOut,
    LinePage,
    Piece,
    add_counts,
    add_facets,
    cut_lines,
    merge_pieces,
    read_cursor,
    write_cursor,
)

Record = list[tuple[int, float, str]]


def line(n: int, statement: str = "") -> Line:
    texts = dict.fromkeys(Line.__struct_fields__, "")
    numbers = {"n": n, "time": float(n), "offset": 0, "seq": 0, "session": 0}
    return Line(**{**texts, "outcome": "ok", "rows": None, "ms": None, **numbers,
                   "statement": statement})  # fmt: skip


def piece_of(record: Record, before: int | None, most: int) -> Piece[str]:
    """A page of one record, as its gate gives it."""
    found = [each for each in record if before is None or each[0] < before]
    page = found[:most]
    return Piece(page, page[-1][0] if len(found) > most else None)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for gate in "abc"[: draw(st.integers(1, 3))]:
        times = sorted(draw(st.lists(st.integers(0, 30), max_size=12)))
        lines = [(n, float(at), f"{gate}{n}") for n, at in enumerate(times, 1)]
        found[gate] = lines[::-1]
    return found


@given(records(), st.integers(1, 7), st.integers(1, 5))
def test_pages_of_several_records_are_those_of_one_sorted_list(
    found: dict[str, Record], limit: int, most: int
) -> None:
    times = {name: at for record in found.values() for _, at, name in record}
    cursor: Cursor = dict.fromkeys(found)
    shown: list[tuple[str, str]] = []
    pages = 0
    while cursor:
        pages += 1
        assert pages < 100
        pieces = {gate: piece_of(found[gate], n, most) for gate, n in cursor.items()}
        merged, rest = merge_pieces(pieces, limit)
        assert len(merged) <= limit and (merged or not rest)
        shown += merged
        text = write_cursor(rest)
        cursor = {} if text is None else read_cursor(text, "a") or {}
        assert cursor == rest
    assert sorted(shown) == sorted((name[0], name) for name in times)
    seen = [times[name] for _, name in shown]
    assert seen == sorted(seen, reverse=True)


def test_a_gate_whose_numbers_are_not_in_the_order_of_time_loses_nothing() -> None:
    pieces = {
        "a": Piece([(3, 5.0, "a3"), (2, 9.0, "a2"), (1, 4.0, "a1")], None),
        "b": Piece([(8, 7.0, "b8")], None),
    }
    merged, rest = merge_pieces(pieces, 9)
    assert [name for _, name in merged] == ["b8", "a3", "a2", "a1"] and rest == {}


@pytest.mark.parametrize("text", ["x", "a.b", "a.-1", "._", "a.1_", "a." + "9" * 20, "a.1__b.2"])
def test_a_place_that_no_page_gave_is_refused(text: str) -> None:
    with pytest.raises(TidegateError) as refused:
        read_cursor(text, "a")
    assert refused.value.code is Code.ARGUMENT_INVALID


def test_a_number_alone_is_a_place_in_the_record_of_this_gate() -> None:
    assert read_cursor("12", "a") == {"a": 12}
    assert read_cursor("a.12_b.", "a") == {"a": 12, "b": None}
    assert read_cursor("", "a") is None


def test_long_statements_make_shorter_pages_that_go_on() -> None:
    lines = tuple(line(n, "x" * 1_000) for n in (9, 7, 5, 3))
    page = LinePage(Found(lines, None), LeftOut(), 1.0)
    cut = cut_lines(page, 3_000)
    assert ([each.n for each in cut.found.lines], cut.found.next) == ([9, 7], 7)
    assert cut_lines(page, 9_000) == page
    alone = cut_lines(page, 10)
    assert ([each.n for each in alone.found.lines], alone.found.next) == ([9], 9)


def test_counts_and_facets_are_those_of_all_records() -> None:
    pages = [
        LinePage(Found((), None, total, False, {"actor_name": [("ada", total), ("bob", 1)]}),
                 LeftOut(left), 1.0)
        for total, left in ((2, 3), (5, 0))
    ]  # fmt: skip
    counts = add_counts(pages)
    assert (counts["total"], counts["more"]) == (7, False)
    assert counts["own"] == {"left_out": 3, "more": False}
    assert add_facets(pages) == {"actor": [("ada", 7), ("bob", 2)]}
    many = [LinePage(Found((), None, MOST_COUNTED), LeftOut(), 1.0)] * 2
    assert (add_counts(many)["total"], add_counts(many)["more"]) == (MOST_COUNTED, True)
