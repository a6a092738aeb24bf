"""Whatever the value: a database reads the literal, and Python the CSV, as the value it was."""

from __future__ import annotations

import csv
import io
import sqlite3

import duckdb
from hypothesis import given
from hypothesis import strategies as some

from tidegate.model.results import Column
from tidegate.results.formats import CsvWriter
from tidegate.sql.quoting import identifier, literal

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
TEXT = some.text(some.characters(exclude_categories=["Cs"]))
INTEGERS = some.integers(-(2**63), 2**63 - 1)
FLOATS = some.floats(allow_nan=False)

sqlite = sqlite3.connect(":memory:")
duck = duckdb.connect(":memory:")


@given(TEXT | some.binary() | INTEGERS | FLOATS | some.none())
def test_sqlite_reads_a_literal_as_its_value(value: object) -> None:
    read = sqlite.execute(f"SELECT {literal(value, 'sqlite')}").fetchone()[0]
    assert (type(read), read) == (type(value), value)


@given(TEXT | some.binary() | INTEGERS)
def test_duckdb_reads_a_literal_as_its_value(value: object) -> None:
    row = duck.execute(f"SELECT {literal(value, 'duckdb')}").fetchone()
    assert row is not None
    assert row[0] == value


@given(TEXT.filter(lambda name: name != "" and "\0" not in name))
def test_sqlite_reads_a_quoted_name_as_the_name(name: str) -> None:
    reported = sqlite.execute(f"SELECT 1 AS {identifier(name, 'sqlite')}").description
    assert reported[0][0] == name


@given(some.lists(some.tuples(TEXT, TEXT), min_size=1))
def test_python_reads_csv_as_it_was_but_for_formulas(rows: list[tuple[str, str]]) -> None:
    chunks: list[bytes] = []
    writer = CsvWriter(chunks.append)
    writer.begin((Column("a", ""), Column("b", "")))
    writer.write(rows)
    writer.end()
    text = b"".join(chunks).decode()
    read = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert len(read) == len(rows)
    for was, now in zip(rows, read, strict=True):
        for before, after in zip(was, now, strict=True):
            assert after in (before, f"'{before}")
            if before.startswith(FORMULA):
                assert after == f"'{before}" or before.lstrip("+-").replace(".", "").isalnum()
