"""The kind of a column is read from the name of its type."""

import pytest

from tidegate.results.column_kinds import read_type


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("INTEGER", ("integer", None, None)),
        ("bigint unsigned", ("integer", None, None)),
        ("numeric(10,2)", ("decimal", 10, 2)),
        ("decimal(12,0) unsigned", ("decimal", 12, 0)),
        ("VARCHAR(80)", ("text", 80, None)),
        ("character varying(80)", ("text", 80, None)),
        ('"char"', ("text", None, None)),
        ("double precision", ("float", None, None)),
        ("varbinary(16)", ("bytes", 16, None)),
        ("timestamp(3) with time zone", ("timestamp_tz", None, None)),
        ("TIMESTAMP WITH TIME ZONE", ("timestamp_tz", None, None)),
        ("timestamp without time zone", ("timestamp", None, None)),
        ("time with time zone", ("time_tz", None, None)),
        ("datetime(6)", ("timestamp", None, None)),
        ("integer[]", ("array", None, None)),
        ("STRUCT(a INTEGER, b VARCHAR(3))", ("struct", None, None)),
        ("DECIMAL(10,2)[3]", ("array", None, None)),
        ("ENUM('a', 'b)')", ("text", None, None)),
        ("uuid", ("uuid", None, None)),
        ("jsonb", ("json", None, None)),
        ("geometry", ("other", None, None)),
        ("", ("other", None, None)),
        ("(((", ("other", None, None)),
    ],
)
def test_the_kind_is_read_from_the_name_of_the_type(name, expected):
    assert read_type(name) == expected
