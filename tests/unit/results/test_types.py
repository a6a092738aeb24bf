"""The one JSON rendering of every type, alone, in long columns, and as text."""

import datetime
import json
from decimal import Decimal
from enum import IntEnum
from uuid import UUID

import pytest

from tidegate.results.json_values import COLUMNWISE_ROWS, encode_rows

SAFE = 2**53 - 1
UTC = datetime.UTC


class Level(IntEnum):
    HIGH = 3


RENDERINGS = [
    (None, None, None),
    (True, True, "true"),
    (False, False, "false"),
    (0, 0, "0"),
    (-42, -42, "-42"),
    (Level.HIGH, 3, "3"),
    (SAFE, SAFE, str(SAFE)),
    (-SAFE, -SAFE, str(-SAFE)),
    (SAFE + 1, str(SAFE + 1), str(SAFE + 1)),
    (-SAFE - 1, str(-SAFE - 1), str(-SAFE - 1)),
    (2**63, str(2**63), str(2**63)),
    (10**40, str(10**40), str(10**40)),
    (1.5, 1.5, "1.5"),
    (-0.0, -0.0, "-0.0"),
    (1e300, 1e300, "1e+300"),
    (float("nan"), "NaN", "NaN"),
    (float("inf"), "Infinity", "Infinity"),
    (float("-inf"), "-Infinity", "-Infinity"),
    (Decimal("12.50"), "12.50", "12.50"),
    (Decimal("1E+3"), "1E+3", "1E+3"),
    (Decimal("NaN"), "NaN", "NaN"),
    ("", "", ""),
    ("naïve – 海 🌊", "naïve – 海 🌊", "naïve – 海 🌊"),
    ('quote " and \\ and \n', 'quote " and \\ and \n', 'quote " and \\ and \n'),
    ("a lone \ud800 one", "a lone � one", "a lone � one"),
    (b"", "", ""),
    (b"\x00\xff", "AP8=", "AP8="),
    (bytearray(b"\x00\xff"), "AP8=", "AP8="),
    (memoryview(b"\x00\xff"), "AP8=", "AP8="),
    (datetime.date(2024, 2, 29), "2024-02-29", "2024-02-29"),
    (datetime.time(13, 30, 0, 5), "13:30:00.000005", "13:30:00.000005"),
    (datetime.datetime(1, 1, 1), "0001-01-01T00:00:00", "0001-01-01T00:00:00"),
    (datetime.datetime(2024, 2, 29, tzinfo=UTC), "2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
    (datetime.timedelta(days=1, seconds=2), "P1DT2S", "P1DT2S"),
    (UUID(int=1), str(UUID(int=1)), str(UUID(int=1))),
    ([1, [2**60, None]], [1, [str(2**60), None]], f'[1,["{2**60}",null]]'),
    ((1, b"a"), [1, "YQ=="], '[1,"YQ=="]'),
    ({"a": float("nan"), 1: Decimal("2.0")}, {"a": "NaN", "1": "2.0"}, '{"a":"NaN","1":"2.0"}'),
    (["\ud800", {"\ud801": 1}], ["�", {"�": 1}], '["�",{"�":1}]'),
    ([Decimal("sNaN")], ["sNaN"], '["sNaN"]'),
    (Decimal("1E+400"), "1E+400", "1E+400"),
    (10**400, str(10**400), str(10**400)),
    (complex(1, 2), "(1+2j)", "(1+2j)"),
    (..., "Ellipsis", "Ellipsis"),
]


def written(rows, **options):
    return json.loads(encode_rows(rows, **options))


NAMES = [f"{place}-{type(value).__name__}" for place, (value, _, _) in enumerate(RENDERINGS)]


@pytest.mark.parametrize(("value", "as_json", "_"), RENDERINGS, ids=NAMES)
def test_a_value_is_written_as_the_table_says(value, as_json, _):
    (((found,),)) = written([[value]])
    assert found == as_json
    assert type(found) is type(as_json)


@pytest.mark.parametrize(("value", "as_json", "_"), RENDERINGS, ids=NAMES)
def test_a_value_is_written_the_same_in_a_long_column(value, as_json, _):
    for beside in (1, 1.5, "text", None, True, b"x", -1):
        for place in (0, 7, 99):
            column = [beside] * 100
            column[place] = value
            found = written([[cell] for cell in column])
            assert found[place] == [as_json]
            assert type(found[place][0]) is type(as_json)
            assert found[50] == ["eA==" if beside == b"x" else beside]


@pytest.mark.parametrize(("value", "_", "as_text"), RENDERINGS, ids=NAMES)
@pytest.mark.parametrize("count", [1, COLUMNWISE_ROWS])
def test_a_text_cell_is_a_string_or_null(value, _, as_text, count):
    found = written([[value]] * count, as_text=True)
    assert len(found) == count
    assert found[0] == found[-1] == [as_text]


def test_a_column_of_large_and_small_integers_keeps_the_small_as_numbers():
    values = [*range(20), 2**53, -(2**53), 2**62, -(2**62)]
    found = [cell for (cell,) in written([[value] for value in values])]
    assert found == [value if abs(value) <= SAFE else str(value) for value in values]


def test_integers_whose_top_bytes_look_small_are_not_overlooked():
    for value in (2**55, 2**56 - 1, 2**53 + 1, -(2**55), -(2**56) + 1):
        rows = [[number] for number in range(COLUMNWISE_ROWS)] + [[value]]
        assert written(rows)[-1] == [str(value)]


def test_a_column_of_integers_and_doubles_loses_no_digit():
    values = [1, 2.5, 2**53 + 1, 2**70, None, True] * 4
    found = [cell for (cell,) in written([[value] for value in values])]
    assert found[:6] == [1, 2.5, str(2**53 + 1), str(2**70), None, True]


def test_rows_without_columns_are_empty_arrays():
    assert encode_rows([()] * 20) == b"[" + b",".join([b"[]"] * 20) + b"]"
