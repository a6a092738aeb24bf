"""Statements and values between the gate and a JDBC driver."""

from __future__ import annotations

import datetime
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column, DriverType
from tidegate.products.jdbc.engine.messages import JdbcColumn, Portion
from tidegate.products.jdbc.engine.texts import first_word, for_jdbc, with_values, without_end
from tidegate.products.jdbc.engine.types import column_of, rows_of


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        ("SELECT $1, $2", (1, 2), ("SELECT ?, ?", (1, 2))),
        ("SELECT $2, $1, $2", (1, 2), ("SELECT ?, ?, ?", (2, 1, 2))),
        ("SELECT '$1', \"$2\", $1 -- $9", (1,), ("SELECT '$1', \"$2\", ? -- $9", (1,))),
        ("SELECT j ? 'a', $1", (1,), ("SELECT j ?? 'a', ?", (1,))),
        ("SELECT j ?| array['a'], $1", (1,), ("SELECT j ??| array['a'], ?", (1,))),
        ("SELECT j ? 'a'", None, ("SELECT j ? 'a'", ())),
    ],
)
def test_numbered_markers_become_those_of_jdbc(text, params, expected):
    assert for_jdbc(text, params, "postgres") == expected


def test_markers_of_other_dialects_stay():
    assert for_jdbc("SELECT ?", (1,), "h2") == ("SELECT ?", (1,))


def test_values_are_literals_where_a_driver_would_write_them_otherwise():
    text = "SELECT '?', `?`, ? -- ?\n, ?, ?"
    assert with_values(text, ("a b", "\\' OR 1 -- ", None), "spark") == (
        "SELECT '?', `?`,  'a b'  -- ?\n,  CAST(X'5c27204f522031202d2d20' AS STRING) ,  NULL "
    )
    with pytest.raises(TidegateError) as caught:
        with_values(text, (1, 2), "spark")
    assert caught.value.code is Code.ARGUMENT_INVALID


@pytest.mark.parametrize("text", ["SELECT $2", "SELECT $0"])
def test_a_marker_without_a_value_is_refused(text):
    with pytest.raises(TidegateError) as caught:
        for_jdbc(text, (1,), "postgres")
    assert caught.value.code is Code.ARGUMENT_INVALID


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT 1;", "SELECT 1"),
        ("SELECT 1 ; -- end", "SELECT 1 "),
        ("SELECT 1;;", "SELECT 1"),
        ("SELECT ';'", "SELECT ';'"),
        ("SELECT 1 -- ;", "SELECT 1 -- ;"),
    ],
)
def test_a_last_semicolon_is_left_out(text, expected):
    assert without_end(text, "h2") == expected


def column(form: str, code: int = 12, type_name: str = "X", precision: int = 0, scale: int = 0):
    return JdbcColumn("c", type_name, code, "java.lang.Object", precision, scale, True, form)


@pytest.mark.parametrize(
    ("form", "sent", "value"),
    [
        ("plain", [1, "x", None, 1.5, True, b"b"], [1, "x", None, 1.5, True, b"b"]),
        ("integer", ["18446744073709551615", None], [2**64 - 1, None]),
        ("decimal", ["1.50", "NaN", None], [Decimal("1.50"), "NaN", None]),
        ("date", ["2020-01-31", None], [datetime.date(2020, 1, 31), None]),
        ("date", ["infinity", "2020-01-31"], ["infinity", datetime.date(2020, 1, 31)]),
        ("time", ["10:00:00", "10:00:01.5"], [datetime.time(10), datetime.time(10, 0, 1, 500_000)]),
        ("timestamp", ["2020-01-31T10:00:00"], [datetime.datetime(2020, 1, 31, 10)]),
        ("timestamp", ["+12020-01-31T10:00"], ["12020-01-31T10:00"]),
        ("date", ["-0043-03-15", "0000-01-01", None], ["0044-03-15 BC", "0001-01-01 BC", None]),
        ("time", ["23:59:59.999999999"], ["23:59:59.999999999"]),
        ("time", ["23:59:59.9999990"], [datetime.time(23, 59, 59, 999_999)]),
        ("timestamp", ["2020-01-31 10:00:00.1234567"], ["2020-01-31T10:00:00.123456700"]),
        ("timestamp_tz", ["2020-01-31T10:00:00.00000001Z"], ["2020-01-31T10:00:00.000000010Z"]),
        (
            "timestamp_tz",
            ["2020-01-31T10:00:00Z"],
            [datetime.datetime(2020, 1, 31, 10, tzinfo=datetime.UTC)],
        ),
        ("uuid", ["00000000-0000-0000-0000-000000000001"], [UUID(int=1)]),
    ],
)
def test_values_are_those_of_their_columns_form(form, sent, value):
    raw = msgspec.Raw(msgspec.msgpack.encode(sent))
    rows = rows_of(Portion([raw], len(sent), True, 0), [column(form)])
    found = [row[0] for row in rows]
    assert [str(each) for each in found] == [str(each) for each in value]
    assert [type(each) for each in found if each != "NaN"] == [
        type(each) for each in value if each != "NaN"
    ] or form == "decimal"


def test_no_rows_are_an_empty_list():
    assert rows_of(Portion([], 0, True, 0), []) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (column("plain", 4, "INTEGER"), Column("c", "integer", "integer")),
        (column("decimal", 3, "DECIMAL", 10, 2), Column("c", "decimal", "decimal", 10, 2)),
        (column("plain", 12, "VARCHAR", 20), Column("c", "varchar", "text", 20)),
        (column("plain", 12, "VARCHAR", 2**31 - 1), Column("c", "varchar", "text")),
        (column("timestamp_tz", 93, "timestamptz"), Column("c", "timestamptz", "timestamp_tz")),
        (column("plain", 1111, "interval"), Column("c", "interval", "interval")),
        (column("plain", 1111, ""), Column("c", "", "other")),
    ],
)
def test_columns_have_a_kind_that_no_database_owns(given, expected):
    found = column_of(given)
    assert structs.replace(found, driver_type=None) == expected
    assert found.driver_type == DriverType(given.code, given.type_name, given.class_name)


@pytest.mark.parametrize(
    "text", ["SELECT 1--'\n ? '", "SELECT ? # x", "SELECT ? /* ' */", "SELECT ? // x"]
)
def test_what_may_begin_a_comment_is_refused_beside_parameters(text):
    with pytest.raises(TidegateError) as caught:
        for_jdbc(text, (1,), "mysql")
    assert caught.value.code is Code.ARGUMENT_INVALID
    assert for_jdbc(text, None, "mysql") == (text, ())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("CALL f(1)", "CALL"),
        (" -- a comment\n call f(1)", "CALL"),
        ('"call" f', ""),
        ("(SELECT 1)", ""),
        ("", ""),
        ("'x", ""),
    ],
)
def test_the_first_word_of_a_statement_is_found(text: str, word: str) -> None:
    assert first_word(text, "hsqldb") == word
