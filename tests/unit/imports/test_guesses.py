"""How a file is read is guessed from the file, and nothing that was written is lost by a guess."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidegate.imports.column_types import Extent, type_of
from tidegate.imports.delimited import DelimitedRecords
from tidegate.imports.guesses import (
    Guess,
    columns_of,
    guess_kind,
    guess_text,
    names_of,
    read_columns,
)
from tidegate.imports.model import Reading, Record, Unreadable


class Held:
    """A file with this content."""

    def __init__(self, content: bytes, name: str = "rows.csv") -> None:
        self.name = name
        self._descriptor, path = tempfile.mkstemp()
        Path(path).unlink()
        os.write(self._descriptor, content)

    def fileno(self) -> int:
        return self._descriptor

    def guess(self) -> Guess:
        return guess_text(self, self.name)

    def records(self, **changes: Any) -> list[Record]:
        reading = self.guess().reading
        fields = {name: getattr(reading, name) for name in reading.__struct_fields__}
        return list(DelimitedRecords(self, Reading(**{**fields, **changes})))

    def kinds(self) -> list[str]:
        reading = self.guess().reading
        rows = self.records()[1 if reading.header else 0 :]
        return [guess_kind(values, reading) for values in columns_of(rows)]

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.fixture
def held() -> Iterator[Any]:
    made: list[Held] = []

    def make(content: bytes | str, name: str = "rows.csv") -> Held:
        given = content.encode() if isinstance(content, str) else content
        made.append(Held(given, name))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_european_file_is_read_as_it_was_meant(held: Any) -> None:
    found = held("nr;amount;day;word;n\n007;1.234,50;31/12/2024;Å;1\n008;2,5;01/02/2024;x;NULL\n")
    reading = found.guess().reading
    assert (reading.delimiter, reading.header, reading.decimal) == (";", True, ",")
    assert reading.dates == "dmy" and found.guess().is_order_sure
    assert found.kinds() == ["text", "decimal", "date", "text", "integer"]
    assert found.records()[2].values == ["008", "2,5", "01/02/2024", "x", None]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("007", "text"), ("0", "integer"), ("-5", "integer"), ("+5", "text"), ("0.5", "decimal"),
        ("00.5", "text"), ("12345678901234567890", "decimal"), ("1e5", "float"), ("1,5", "text"),
        ("1,234.50", "decimal"), ("true", "boolean"), ("yes", "text"), ("2024-02-29", "date"),
        ("2023-02-29", "text"), ("31.12.2024", "date"), ("2024-02-29 10:00", "timestamp"),
        ("2024-02-29T10:00:00.5Z", "timestamp_tz"), ("10:30", "time"), ("25:00", "text"),
        ("-0", "text"), ("", "text"), (" 5", "text"), ("NaN", "text"), ("1_000", "text"),
        ("٣", "text"),
    ],
)  # fmt: skip
def test_a_text_is_of_the_narrowest_kind_that_keeps_it(text: str, kind: str) -> None:
    found = guess_kind([text, None], Reading())
    assert found == ("decimal" if text == "12345678901234567890" else kind)


def test_one_value_that_is_none_makes_a_column_text() -> None:
    assert guess_kind([*["1"] * 500, "x"], Reading()) == "text"
    assert guess_kind(["1", "2.5"], Reading()) == "decimal"
    assert guess_kind([None, None], Reading()) == "text"


@pytest.mark.parametrize(
    ("days", "order", "is_sure"),
    [
        ("01/02/2024\n13/02/2024", "dmy", True),
        ("01/02/2024\n01/13/2024", "mdy", True),
        ("01/02/2024\n02/03/2024", "dmy", False),
        ("2024-01-02\n2024-03-04", "ymd", True),
    ],
)
def test_the_order_of_day_and_month_is_sure_where_a_date_tells(
    held: Any, days: str, order: str, *, is_sure: bool
) -> None:
    guess = held(f"day,x\n{days}\n".replace("\n", ",1\n").replace("x,1", "x")).guess()
    assert (guess.reading.dates, guess.is_order_sure) == (order, is_sure)


@pytest.mark.parametrize(
    ("content", "encoding", "note"),
    [
        ("a,é\n1,2\n".encode(), "utf-8", ""),
        ("a,é\n1,2\n".encode("utf-8-sig"), "utf-8", ""),
        ("a,é\n1,2\n".encode("utf-16"), "utf-16", ""),
        ("a,b\n1,é\n".encode("cp1252"), "cp1252", "Line 2"),
    ],
)
def test_the_encoding_is_told_by_its_bytes(
    held: Any, content: bytes, encoding: str, note: str
) -> None:
    found = held(content)
    assert found.guess().reading.encoding == encoding
    assert found.guess().note.startswith(note)
    assert found.records()[0].values[0] == "a"
    assert "é" in "".join(str(record.values) for record in found.records())


def test_bytes_that_do_not_decode_are_named_by_their_line(held: Any) -> None:
    found = held(b"a,b\n1,2\n3,\xff\xfe\n\xc3\xa9,5\n")
    assert [record.undecoded for record in found.records(encoding="utf-8")] == [(), (), (1,), ()]
    assert [record.line for record in found.records(encoding="utf-8") if record.undecoded] == [3]
    assert [r.undecoded for r in held(b"a,b\n1,\x81\n").records(encoding="cp1252")] == [(), (1,)]
    with pytest.raises(Unreadable, match="UTF-16 with a mark"):
        held("a,b".encode("utf-16-le")).guess()


def test_an_empty_text_and_null_are_told_apart_by_quotes(held: Any) -> None:
    found = held('a,b,c\n"",,x\n"NULL",NULL,"a ""q"", b"\n').records(nulls=("", "NULL"))
    assert [record.values for record in found[1:]] == [
        ["", None, "x"],
        ["NULL", None, 'a "q", b'],
    ]


def test_a_record_over_several_lines_has_the_line_where_it_begins(held: Any) -> None:
    found = held('a,b\n"one\ntwo\nthree",1\n\n4,5\n6\n"open,7\n').records()
    assert [record.line for record in found] == [1, 2, 6, 7, 8]
    assert "does not end" in found[-1].problem


def test_spaces_beside_delimiters_are_left_out_where_all_have_one(held: Any) -> None:
    found = held('a, b, c\n1, x , "  y"\n')
    assert found.guess().reading.trims
    assert found.records()[1].values == ["1", "x", "  y"]
    assert not held("a,b\n1, x\n2,y\n").guess().reading.trims


@pytest.mark.parametrize(
    ("content", "header"),
    [("1,2\n3,4\n", False), ("a,b\n3,4\n", True), ("a,a\n1,2\n", False), ("a,\n1,2\n", False)],
)
def test_the_first_line_is_a_header_if_it_could_be_nothing_else(
    held: Any, content: str, *, header: bool
) -> None:
    assert held(content).guess().reading.header is header


def test_names_of_columns_differ() -> None:
    assert names_of(["a", " A ", None, "a"], 5) == ["a", "A_2", "column3", "a_3", "column5"]


@pytest.mark.parametrize(
    ("values", "dialect", "type"),
    [
        (["1.5"], "sqlite", "NUMERIC"),
        (["1.2345678901234567"], "sqlite", "TEXT"),
        (["1.25"], "duckdb", "decimal(38,2)"),
        (["1.25"], "postgres", "numeric"),
    ],
)
def test_a_decimal_column_keeps_all_digits(values: list[str], dialect: str, type: str) -> None:
    assert type_of("decimal", Extent().with_texts(values), dialect) == type


@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [
        ("1", "007", "text"),
        ("1", "+5", "text"),
        ("1", "2.50", "decimal"),
        ("1", "1e3", "float"),
        ("1234567890.1234567", "1e3", "text"),
        ("1e3", "1e400", "text"),
        ("2024-01-02", "2024-01-02 03:04", "timestamp"),
        ("2024-01-02 03:04", "2024-01-02 03:04Z", "timestamp_tz"),
        ("true", "yes", "text"),
    ],
)
def test_a_column_is_what_all_of_its_values_are(first: str, later: str, kind: str) -> None:
    records = [Record(line, [first]) for line in range(1, 5_000)] + [Record(5_000, [later])]
    (column,) = read_columns(records, Reading(), [guess_kind([first], Reading())], are_guessed=True)
    assert column.kind == kind
    assert type_of(column.kind, column.extent, "duckdb") == {
        "text": "VARCHAR", "decimal": "decimal(38,2)", "float": "DOUBLE",
        "timestamp": "TIMESTAMP", "timestamp_tz": "TIMESTAMP WITH TIME ZONE",
    }[kind]  # fmt: skip


SNIFFED = {
    "BIGINT": "integer", "DOUBLE": "decimal", "VARCHAR": "text", "BOOLEAN": "boolean",
    "DATE": "date", "TIME": "time", "TIMESTAMP": "timestamp",
}  # fmt: skip
FILES = (
    "a,b,c\n1,x,2.5\n2,y,3.5\n",
    "a;b;c\n1;true;2024-01-02\n2;false;2024-02-03\n",
    "a\tb\n10:00:00\t2024-01-02 03:04:05\n11:30:00\t2025-01-02 03:04:05\n",
    'name|note\nada|"a|b"\nbo|c\n',
    "day,word\n31/12/2024,x\n30/11/2024,y\n",
    "1,2\n3,4\n",
)


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("content", FILES)
def test_duckdb_guesses_the_same(held: Any, content: str, tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "rows.csv"
    path.write_text(content)
    with duckdb.connect() as connection:
        delimiter, header, columns = connection.execute(
            "SELECT Delimiter, HasHeader, Columns FROM sniff_csv(?)", [str(path)]
        ).fetchall()[0]
        rows = connection.execute("SELECT * FROM read_csv(?, all_varchar = true)", [str(path)])
        values = [list(row) for row in rows.fetchall()]
    found = held(content)
    reading = found.guess().reading
    assert (reading.delimiter, reading.header) == (delimiter, header)
    assert found.kinds() == [SNIFFED[each["type"]] for each in columns]
    assert [each.values for each in found.records()][1 if header else 0 :] == values
