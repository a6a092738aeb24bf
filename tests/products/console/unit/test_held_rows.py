"""The rows of a result are held within bounds, and read as they came."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column, Limits, Truncation
from tidegate.products.console.cells import MOST_SHOWN
from tidegate.products.console.downloads import DraftFile
from tidegate.products.console.result_quota import ResultQuota
from tidegate.products.console.stored_rows import StoredRows
from tidegate.results.row_stream import RowStream, WriterSink

COLUMNS = (
    Column("n", "integer", "integer"),
    Column("t", "text", "text"),
    Column("b", "blob", "bytes"),
)


Hold = Callable[..., StoredRows]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Hold]:
    """Holds rows in these chunks."""
    made: list[StoredRows] = []

    def hold(*chunks: list[tuple[Any, ...]], **options: Any) -> StoredRows:
        space = options.pop("space", None) or ResultQuota(tmp_path)
        rows = StoredRows(space, **options)
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


def test_no_more_than_the_bound_is_kept_and_the_result_says_where_it_is_cut(held: Hold) -> None:
    rows = held(most_bytes=10_000)
    stream = RowStream(COLUMNS, Limits(1_000), WriterSink(rows, lambda: rows.size))
    while wanted := stream.remaining:
        stream.write([(n, "x" * 1_000, None) for n in range(wanted)])
    assert rows.size <= 10_000
    assert len(json.loads(rows.page(0, 1_000))) == rows.count == 9
    assert rows.cut == Truncation("bytes", 10_000, rows.size)
    page = stream.page(affected=0, elapsed_ms=1.0)
    assert (page.row_count, page.truncations, page.size) == (9, (rows.cut,), rows.size)


def grow(rows: StoredRows, megabytes: int) -> None:
    for _ in range(megabytes):
        rows.write([(1, "x" * 1_048_576, None)])


def test_results_that_grow_have_the_same_room_as_those_that_are_over(
    held: Hold, tmp_path: Path
) -> None:
    space = ResultQuota(tmp_path, file_bytes=16 * 1_048_576)
    first, second, third = (held(space=space) for _ in range(3))
    grow(first, 5)
    first.over = True
    grow(second, 5)
    assert not first.gone
    grow(third, 8)
    assert first.gone and third.cut is None  # the oldest that was over made room
    with pytest.raises(TidegateError, match="not held") as refused:
        first.page(0, 1)
    assert refused.value.code is Code.RESULT_GONE
    grow(third, 20)
    assert third.cut is not None and not second.gone  # which still grows
    assert second.size + third.size <= 16 * 1_048_576
    second.close()
    fourth = held(space=space)
    grow(fourth, 5)
    assert fourth.cut is None


def test_memory_is_bounded_while_results_grow(held: Hold, tmp_path: Path) -> None:
    space = ResultQuota(tmp_path, memory_bytes=200_000)
    running = [held(space=space) for _ in range(3)]
    for _ in range(40):
        for rows in running:
            rows.write([(n, None, None) for n in range(500)])
    assert all(rows.cut is not None for rows in running)
    assert 100_000 < sum(8 * rows.count for rows in running) <= 200_000


def test_more_results_than_are_held_let_the_oldest_go(held: Hold, tmp_path: Path) -> None:
    space = ResultQuota(tmp_path, results=2)
    first, second = held(space=space), held(space=space)
    first.over = second.over = True
    third = held(space=space)
    assert (first.gone, second.gone, third.gone) == (True, False, False)


def test_rows_that_are_let_go_while_they_are_read_are_no_shorter_result(held: Hold) -> None:
    rows = held([(n, "y" * 5_000, None) for n in range(100)])
    reading = rows.values(10)
    assert len(next(reading)) == 10
    rows.close()
    with pytest.raises(TidegateError) as refused:
        list(reading)
    assert refused.value.code is Code.RESULT_GONE
    with pytest.raises(TidegateError):
        rows.cell(0, 1)


@contextmanager
def small_disk(most: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_an_error_that_names_the_folder_and_gives_all_room_back(
    held: Hold, tmp_path: Path
) -> None:
    space = ResultQuota(tmp_path, file_bytes=4 * 1_048_576)
    rows = held([(1, "kept", None)], space=space)
    with small_disk(100_000), pytest.raises(TidegateError) as failed:
        grow(rows, 1)
    error = failed.value
    assert error.code is Code.STATE_FAILED
    assert str(tmp_path) in error.message and "`state`" in (error.hint or "")
    assert rows.gone
    other = held(space=space)
    grow(other, 3)
    assert other.cut is None


def test_a_folder_in_which_no_file_can_be_made_is_an_error(tmp_path: Path) -> None:
    for make in (
        lambda: StoredRows(ResultQuota(tmp_path / "none")).begin(COLUMNS),
        lambda: DraftFile(tmp_path / "none"),
    ):
        with pytest.raises(TidegateError) as failed:
            make()
        assert failed.value.code is Code.STATE_FAILED
        assert str(tmp_path / "none") in failed.value.message


def test_a_file_for_a_download_on_a_full_disk_is_an_error(tmp_path: Path) -> None:
    for size in (10_000, 200_000):  # what is kept back until the end, and what is not
        draft = DraftFile(tmp_path)
        with small_disk(5_000), pytest.raises(TidegateError) as failed:
            draft.put(b"x" * size)
            draft.finish()
        draft.close()
        assert failed.value.code is Code.STATE_FAILED and str(tmp_path) in failed.value.message


def test_what_is_in_memory_grows_by_a_few_bytes_a_row(held: Hold, tmp_path: Path) -> None:
    space = ResultQuota(tmp_path, memory_bytes=8 * 10_000)
    rows = held([(n, "x" * 500, None) for n in range(10_000)], space=space)
    assert (rows.count, rows.cut) == (10_000, None)
    rows.write([(1, None, None)])
    assert (rows.count, rows.cut is None) == (10_000, False)
    assert rows.size > 5_000_000


def test_the_files_have_no_name_and_are_gone_once_closed(held: Hold, tmp_path: Path) -> None:
    rows = held([(1, "secret", None)])
    assert list(tmp_path.iterdir()) == []
    rows.close()
    for _ in range(2):
        with pytest.raises(TidegateError):
            rows.page(0, 1)
        rows.write([(2, "later", None)])


def test_a_result_without_rows_has_none(tmp_path: Path) -> None:
    rows = StoredRows(ResultQuota(tmp_path))
    assert (rows.count, rows.page(0, 10), rows.columns) == (0, b"[]", ())
    rows.close()
