"""Files that were made to do harm take no more room than others, and end with a reason."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import TidegateError
from tidegate.imports import extraction
from tidegate.imports.delimited import MOST_LINE
from tidegate.imports.extraction import write_rows
from tidegate.imports.guesses import SAMPLE_ROWS
from tidegate.imports.model import MOST_COLUMNS, Reading, Record, Unreadable
from tidegate.imports.open_file import OpenFile
from tidegate.imports.parsing import parse_number
from tidegate.imports.row_parts import ExtractedRecords
from tidegate.model.editing import EditColumn
from tidegate.products.console.edit_cells import Cell, value_of
from tidegate.products.console.import_files import HeldFile, remove_leftovers
from tidegate.products.console.result_quota import ResultQuota


def held(directory: Path, content: bytes) -> HeldFile:
    """A file that was sent whole."""
    file = HeldFile(ResultQuota(directory), "rows.csv", len(content))
    for at in range(0, len(content), 1_000_000):
        file.add(at, content[at : at + 1_000_000])
    return file


def extracted(path: Path) -> ExtractedRecords:
    """The rows of a Parquet file, as the process of its own writes them."""
    out = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it closes itself
    write_rows("parquet", path, "", out)
    return ExtractedRecords(OpenFile(out))


def test_a_record_is_as_wide_as_a_table_may_be(tmp_path: Path) -> None:
    file = held(tmp_path, b"a,b\n" + b"," * MOST_COLUMNS + b"\n1,2\n")
    found = file.sample(Reading())
    assert [len(record.values) for record in found] == [2, 0]
    assert f"{MOST_COLUMNS:,} values" in found[1].problem


@pytest.mark.parametrize("fields", [{"delimiter": each} for each in '"\r\n'] + [
    {"delimiter": " ", "trims": True}])  # fmt: skip
def test_what_ends_values_otherwise_is_no_delimiter(tmp_path: Path, fields: Any) -> None:
    with pytest.raises(Unreadable, match="delimited"):
        held(tmp_path, b"a b\n1 2\n").sample(Reading(**fields))


def test_a_record_of_many_lines_ends_where_a_line_does(tmp_path: Path) -> None:
    file = held(tmp_path, b'"\n",' * (MOST_LINE // 4 + 9))
    with pytest.raises(Unreadable, match="a record has over"):
        list(file.records(Reading()))


def test_guesses_are_made_of_what_fits_into_memory(tmp_path: Path) -> None:
    wide = b",".join([b"ab"] * MOST_COLUMNS) + b"\n"
    assert len(held(tmp_path, wide * 1_000).sample(Reading())) < 1_000
    assert len(held(tmp_path, b"a,b\n" * 20_000).sample(Reading())) == SAMPLE_ROWS


def test_a_file_that_is_let_go_is_read_to_its_end_and_no_other(tmp_path: Path) -> None:
    file = held(tmp_path, b"mine,1\n" * 100_000)
    records = iter(file.records(Reading()))
    found: list[Record] = [next(records)]
    file.close()
    others: list[Any] = []
    for _ in range(8):  # each new file gets the lowest number that is free
        others.append(tempfile.TemporaryFile(dir=tmp_path, buffering=0))  # noqa: SIM115 - below
        others[-1].write(b"theirs,2\n" * 100_000)
    found += records
    for other in others:
        other.close()
    assert len(found) == 100_000
    assert {record.values[0] for record in found} == {"mine"}


@pytest.mark.parametrize("decimal", [".", ","])
def test_digits_that_are_no_number_are_read_once(decimal: str) -> None:
    text = "1" * 131_000 + "x"
    with pytest.raises(ValueError, match="a number"):
        parse_number(text, decimal)
    for editor in ("decimal", "float"):
        with pytest.raises(TidegateError):
            value_of(Cell(text=text), EditColumn("c", editor, editor))


def test_copies_that_a_killed_server_left_are_removed(tmp_path: Path) -> None:
    for name, age in (("import-old", 3_600), ("import-new", 1), ("other", 3_600)):
        (tmp_path / name).touch()
        at = time.time() - age
        os.utime(tmp_path / name, (at, at))
    remove_leftovers(tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {"import-new", "other"}


@pytest.mark.needs("duckdb")
def test_a_value_that_is_in_each_row_is_written_so_often_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    path = tmp_path / "p.parquet"
    rows = "SELECT repeat('x', 1000) AS a FROM range(5000)"
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    assert len(list(extracted(path))) == 5_000
    monkeypatch.setattr(extraction, "MOST_WRITTEN", 1_000_000)
    with pytest.raises(Unreadable, match="its rows take more than"):
        extracted(path)


@pytest.mark.needs("duckdb")
def test_a_file_that_is_damaged_after_its_first_rows_has_none(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "p.parquet"
    rows = "SELECT range || 'a' AS a, 'b' AS b, 'c' AS c, 'd' AS d, 'e' AS e FROM range(10000)"
    options = "FORMAT parquet, ROW_GROUP_SIZE 2048, COMPRESSION uncompressed"
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}' ({options})")
    whole = path.read_bytes()
    at = len(whole) * 2 // 3
    path.write_bytes(whole[:at] + b"\xff" * 4_000 + whole[at + 4_000 :])
    with pytest.raises(Unreadable):
        list(extracted(path))
