"""All rows of a file are checked: they become values, or each fault is named by line and column."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest

from tidegate.imports.checking import Checked, HeldRows, Pair, check_rows
from tidegate.imports.delimited import read_records
from tidegate.imports.model import Reading
from tidegate.imports.open_file import OpenFile
from tidegate.model.editing import EditColumn, Editor


class Lines:
    """Records of a text."""

    names = None

    def __init__(self, text: str, reading: Reading) -> None:
        self._text = text
        self._reading = reading

    def __iter__(self) -> Any:
        return read_records(iter(self._text.splitlines(keepends=True)), self._reading)


def check(text: str, *columns: EditColumn, **fields: Any) -> tuple[Checked, list[Any]]:
    reading = Reading(**fields)
    pairs = [Pair(at, each.name, each, at) for at, each in enumerate(columns)]
    file = OpenFile(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - it closes itself
    held = HeldRows(file, "f.csv", "", pairs)
    found = check_rows(Lines(text, reading), reading, pairs, held, lambda count: None)
    return found, [row for part in held.batches() for row in part]


def column(editor: Editor, name: str = "c", **fields: Any) -> EditColumn:
    return EditColumn(name, editor, editor, **fields)


@pytest.mark.parametrize(
    ("editor", "text", "value", "fields"),
    [
        ("text", "007", "007", {}),
        ("integer", "007", "007", {}),
        ("integer", "1,234", "1234", {}),
        ("decimal", "1.234,50", "1234.50", {"decimal": ","}),
        ("decimal", "1,234.50", "1234.50", {}),
        ("decimal", ",5", ".5", {"decimal": ","}),
        ("float", "1e-5", "1e-5", {}),
        ("boolean", "Yes", "true", {}),
        ("date", "31/12/2024", "2024-12-31", {}),
        ("date", "12/31/2024", "2024-12-31", {"dates": "mdy"}),
        ("date", "2024-12-31", "2024-12-31", {"dates": "mdy"}),
        ("timestamp", "31.12.2024 7:05", "2024-12-31 07:05:00", {}),
        ("timestamp_tz", "2024-12-31T07:05:00Z", "2024-12-31 07:05:00+00:00", {}),
        ("time", "7:05", "07:05:00", {}),
        ("bytes", "\\x00ff", b"\x00\xff", {}),
        # What databases write of their own values.
        ("float", "NaN", "NaN", {}),
        ("decimal", "-Infinity", "-Infinity", {}),
        ("date", "0044-03-15 (BC)", "0044-03-15 (BC)", {}),
        ("date", "0000-00-00", "0000-00-00", {}),
        ("timestamp", "294276-12-31 23:59:59.999999", "294276-12-31 23:59:59.999999", {}),
        ("timestamp_tz", "4713-01-01 00:00:00+00 BC", "4713-01-01 00:00:00+00 BC", {}),
        ("time", "-838:59:59", "-838:59:59", {}),
        ("time", "12:00:00+15:59", "12:00:00+15:59", {}),
    ],
)
def test_a_text_becomes_the_value_of_its_column(
    editor: Editor, text: str, value: Any, fields: dict[str, Any]
) -> None:
    found, rows = check(f'c\n"{text}"\n', column(editor), **fields)
    assert not found.errors and rows == [[value]]


@pytest.mark.parametrize(
    ("editor", "text", "value"),
    [("integer", "5", 5), ("boolean", "true", 1), ("float", "2.5", 2.5), ("decimal", "2.5", "2.5"),
     ("float", "-inf", float("-inf")), ("text", "007", "007"), ("other", "007", "007")],
)  # fmt: skip
def test_a_database_with_classes_gets_numbers_as_numbers(
    editor: Editor, text: str, value: Any
) -> None:
    _, rows = check(f"c\n{text}\n", column(editor, classes=True))
    assert rows == [[value]] and type(rows[0][0]) is type(value)


@pytest.mark.parametrize(
    ("text", "given", "word"),
    [
        ("1.5", column("integer"), "whole number"),
        ("99999999999999999999", column("integer", classes=True), "64 bits"),
        ("x", column("decimal"), "a number"),
        ("1,5", column("decimal"), "a number"),
        ("31/13/2024", column("date"), "there is"),
        ("2024-02-30", column("date"), "there is"),
        ("nan", column("float", classes=True), "a number"),
        ("abcdef", column("text", length=5), "5 characters"),
        ("glad", column("enum", labels=("sad",)), "one of its values"),
        ("", column("text", nullable=False), "takes none"),
    ],
)
def test_what_is_no_value_is_named_by_line_and_column(
    text: str, given: EditColumn, word: str
) -> None:
    found, _ = check(f'd,c\nx,y\nx,"{text}"\n'.replace('""', ""), column("text", "d"), given)
    errors = [each for each in found.errors if each.line == 3]
    assert found.rows is None and errors
    assert errors[0].column == "c" and word in errors[0].message


def test_rows_of_another_width_are_named_and_errors_are_counted() -> None:
    text = "a,b\n" + "1,2\n" * 3 + "1\n" + "1,2,3\n" + "x,1\n" * 300
    found, _ = check(text, column("integer", "a"), column("integer", "b"))
    assert [each.line for each in found.errors[:3]] == [5, 6, 7]
    assert found.error_count == 302 and len(found.errors) == 200 and found.count == 305


def test_the_digest_is_that_of_the_values_and_not_of_the_text() -> None:
    one = check("a;b\n1,5;x\n", column("decimal", "a"), delimiter=";", decimal=",")[0].rows
    other = check("a,b\n1.5,x\n", column("decimal", "a"))[0].rows
    third = check("a,b\n1.50,x\n", column("decimal", "a"))[0].rows
    assert one is not None and other is not None and third is not None
    assert one.digest == other.digest != third.digest


@pytest.mark.parametrize("editor", ["integer", "decimal", "float"])
def test_numbers_are_read_alike_one_by_one_and_together(editor: Editor) -> None:
    whole = ["5", "-7", "0012", "123456789012345678"]
    others = {"integer": "+5", "decimal": "1,234.5", "float": "1e5"}
    for classes in (True, False):
        target = column(editor, classes=classes)
        alone = [check(f"c\n{text}\n", target)[1][0][0] for text in whole]
        for more in ((), (others[editor],)):
            _, rows = check("c\n" + "".join([f'"{each}"\n' for each in (*whole, *more)]), target)
            found = [row[0] for row in rows[: len(whole)]]
            assert found == alone and list(map(type, found)) == list(map(type, alone))
    found, _ = check('c\n"1\n2"\n', column(editor))
    assert found.rows is None


def test_a_long_value_that_is_no_number_is_told_at_once() -> None:
    text = "1" * 120_000
    for editor in ("integer", "decimal", "float"):
        for reading in ({}, {"decimal": ",", "delimiter": ";"}):
            found, _ = check(f"c\n{text}x\n", column(editor), **reading)
            assert found.error_count == 1
