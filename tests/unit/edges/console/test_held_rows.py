"""The rows of a result are held within bounds, and read as they came."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tidegate.edges.console.cells import MOST_SHOWN
from tidegate.edges.console.held_rows import HeldRows
from tidegate.model.results import Column

COLUMNS = (
    Column("n", "integer", "integer"),
    Column("t", "text", "text"),
    Column("b", "blob", "bytes"),
)


Hold = Callable[..., HeldRows]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Hold]:
    """Holds rows in these chunks."""
    made: list[HeldRows] = []

    def hold(*chunks: list[tuple[Any, ...]], **options: Any) -> HeldRows:
        rows = HeldRows(tmp_path, **options)
        made.append(rows)
        rows.begin(COLUMNS)
        for chunk in chunks:
            rows.write(chunk)
        return rows

    yield hold
    for rows in made:
        rows.close()


def test_rows_are_read_by_their_place_over_the_bounds_of_chunks(held: Hold) -> None:
    rows = held([(n, f"t{n}", None) for n in range(5)], [(n, None, b"") for n in (5, 6)])
    assert rows.count == 7
    assert json.loads(rows.page(3, 3)) == [
        ["3", "t3", None],
        ["4", "t4", None],
        ["5", None, {"binary": 0, "text": ""}],
    ]
    assert rows.page(7, 10) == b"[]"
    assert json.loads(rows.page(6, 10)) == [["6", None, {"binary": 0, "text": ""}]]


def test_long_cells_are_cut_and_kept_whole(held: Hold) -> None:
    long, raw = "é😀" * MOST_SHOWN, bytes(range(256)) * 20
    rows = held([(1, "short", b"\0"), (2, long, raw), (3, long, None)])
    page = json.loads(rows.page(0, 3))
    assert page[0][2] == {"binary": 1, "text": "00"}
    assert page[1][1] == {"text": long[:MOST_SHOWN], "bytes": len(long.encode()), "cut": True}
    assert page[1][2] == {"binary": len(raw), "text": raw[:32].hex()}
    assert rows.cell(1, 1) == (long.encode(), False)
    assert rows.cell(1, 2) == (raw, True)
    assert rows.cell(0, 2) == (b"\0", True)
    assert rows.cell(2, 2) == (None, False)
    assert rows.cell(0, 0) == (b"1", False)
    assert rows.cell(3, 0) is None and rows.cell(0, 3) is None and rows.cell(-1, 0) is None
    assert list(rows.values(2)) == [
        [["1", "short", b"\0"], ["2", long, raw]],
        [["3", long, None]],
    ]


def test_text_that_is_none_and_odd_values_are_shown(held: Hold) -> None:
    rows = held([(Decimal("1.50"), "a\ud800b", b"x"), (2**70, "{", b"y" * 40)])
    page = json.loads(rows.page(0, 2))
    assert page[0][:2] == ["1.50", "a\ufffdb"]
    assert page[1][:2] == [str(2**70), "{"]
    assert rows.cell(1, 2) == (b"y" * 40, True)


def test_no_more_than_the_bound_is_kept_and_it_is_said_once(held: Hold) -> None:
    said: list[bool] = []
    rows = held(on_full=lambda: said.append(True), most_bytes=10_000)
    for n in range(100):
        rows.write([(n, "x" * 1_000, None), (n, "x" * 1_000, None)])
    assert rows.full and said == [True]
    assert rows.file_bytes < 10_000 + 2_000
    assert len(json.loads(rows.page(0, 1_000))) == rows.count < 12


def test_what_is_in_memory_grows_by_a_few_bytes_a_row(held: Hold) -> None:
    rows = held([(n, "x" * 500, None) for n in range(10_000)])
    assert rows.memory_bytes == 8 * 10_000
    assert rows.file_bytes > 5_000_000


def test_the_files_have_no_name_and_are_gone_once_closed(held: Hold, tmp_path: Path) -> None:
    rows = held([(1, "secret", None)])
    assert list(tmp_path.iterdir()) == []
    rows.close()
    assert rows.page(0, 1) == b"[]"
    rows.write([(2, "later", None)])
    assert rows.page(0, 9) == b"[]"


def test_a_result_without_rows_has_none(tmp_path: Path) -> None:
    rows = HeldRows(tmp_path)
    assert (rows.count, rows.page(0, 10), rows.columns) == (0, b"[]", ())
    rows.close()
