"""How each type of PostgreSQL comes out in JSON: the one rendering of `results/json_values.py`."""

import json

import pytest

import support.postgres_server as postgres_server
from support.engine_cases import CASES
from tidegate.results.json_values import encode_rows

VALUES = [
    ("NULL::text", "null"),
    ("''", '""'),
    ("true", "true"),
    ("9007199254740991::bigint", "9007199254740991"),
    ("9007199254740992::bigint", '"9007199254740992"'),
    ("(-9223372036854775808)::bigint", '"-9223372036854775808"'),
    ("1.10::numeric", '"1.10"'),
    ("1e-30::numeric", '"0.000000000000000000000000000001"'),
    ("'NaN'::numeric", '"NaN"'),
    ("'-infinity'::float8", '"-Infinity"'),
    ("'NaN'::float4", '"NaN"'),
    ("0.1::float4", "0.1"),
    ("1e308::float8", "1e308"),
    ("date '2026-01-02'", '"2026-01-02"'),
    ("date '12026-01-02'", '"12026-01-02"'),
    ("date '0044-03-15 BC'", '"0044-03-15 BC"'),
    ("date 'infinity'", '"infinity"'),
    ("timestamp '2026-01-02 03:04:05'", '"2026-01-02T03:04:05"'),
    ("timestamp '2026-01-02 03:04:05.6'", '"2026-01-02T03:04:05.600000"'),
    ("timestamp '0044-03-15 01:02:03 BC'", '"0044-03-15 01:02:03 BC"'),
    ("timestamp '-infinity'", '"-infinity"'),
    ("timestamptz '2026-01-02 03:04:05+00'", '"2026-01-02T03:04:05Z"'),
    ("timestamptz '12026-01-02 03:04:05.5+00'", '"12026-01-02T03:04:05.500000Z"'),
    ("time '03:04:05.25'", '"03:04:05.250000"'),
    ("timetz '03:04:05+05:30'", '"03:04:05+05:30"'),
    ("timetz '03:04:05-03'", '"03:04:05-03:00"'),
    ("timetz '03:04:05+00'", '"03:04:05Z"'),
    ("interval '1 day 2 seconds'", '"P1DT2S"'),
    ("interval '1.5 seconds'", '"PT1.5S"'),
    ("interval '-1 day -2 seconds'", '"-P1DT2S"'),
    ("interval '0'", '"P0D"'),
    ("interval '1 year 2 months 3 days 4 hours'", '"P1Y2M3DT14400S"'),
    ("interval '1 month -1 day'", '"P1M-1D"'),
    ("uuid '0190a0a0-0000-7000-8000-00000000000a'", '"0190a0a0-0000-7000-8000-00000000000a"'),
    ("'\\x00ff'::bytea", '"AP8="'),
    ("array[1, NULL, 3]", "[1,null,3]"),
    ("array[[1, 2], [3, 4]]", "[[1,2],[3,4]]"),
    ("'[0:1]={1,2}'::int[]", "[1,2]"),
    ("array['a\"b', 'c\\d', '', 'NULL', 'x,y', '{z}']",
     '["a\\"b","c\\\\d","","NULL","x,y","{z}"]'),
    ("array[]::int[]", "[]"),
    ("array[true, false]", "[true,false]"),
    ("array[timestamp '2026-01-02 03:04:05']", '["2026-01-02T03:04:05"]'),
    ("array[1.50, 2]::numeric[]", '["1.50","2"]'),
    ("array['{\"a\": 1}'::jsonb]", '[{"a": 1}]'),
    ("'{\"a\": [1, 2.50, \"x\"]}'::jsonb", '{"a": [1, 2.50, "x"]}'),
    ("'{\"a\":\n 12345678901234567890}'::json", '{"a":  12345678901234567890}'),
    ("'null'::jsonb", "null"),
    ("int4range(1, 5)", '"[1,5)"'),
    ("point(1, 2)", '"(1,2)"'),
    ("inet '10.0.0.1/8'", '"10.0.0.1/8"'),
    ("b'101'", '"101"'),
    ("row(1, 'x')", '"(1,x)"'),
]  # fmt: skip


@pytest.fixture
def case(tmp_path):
    return CASES["postgres"].prepare(tmp_path)


async def test_every_value_has_its_one_rendering(case):
    async with case.opened() as engine:
        text = "SELECT " + ", ".join(sql for sql, _ in VALUES)
        (row,) = await case.ask(engine, text)
    for value, (sql, wanted) in zip(row, VALUES, strict=True):
        assert encode_rows([[value]]).decode() == f"[[{wanted}]]", sql
        json.loads(encode_rows([[value]], as_text=True))


async def test_whole_columns_come_out_as_single_values_do(case):
    async with case.opened() as engine:
        text = "SELECT " + ", ".join(sql for sql, _ in VALUES)
        rows = await case.ask(engine, f"{text} FROM generate_series(1, 100)")
    assert encode_rows(rows).decode() == encode_rows([rows[0]] * 100).decode()
    wanted = ",".join(wanted for _, wanted in VALUES)
    assert encode_rows(rows[:1]).decode() == f"[[{wanted}]]"


async def test_types_are_named_as_the_database_names_them(case):
    types = [
        *("integer", "bigint", "character varying(10)", "numeric(8,2)", "numeric(5,-2)"),
        *("timestamp(3) with time zone", "time without time zone", "integer[]", "bit(3)"),
        *("double precision", "jsonb", "uuid", "interval day to second(2)", "mood", "mood[]"),
    ]
    server = postgres_server.shared("wheel")
    database = case.url.partition("?")[0].rpartition("/")[2]
    columns = ", ".join(f"c{place} {name}" for place, name in enumerate(types))
    server.ask(
        f"CREATE TYPE mood AS ENUM ('well', 'ill'); CREATE TABLE kinds ({columns})", database
    )
    async with case.opened() as engine:
        cursor = await case.start(engine, "SELECT * FROM kinds")
        await cursor.close()
        assert [column.type for column in cursor.columns] == types
        (row,) = await case.ask(engine, "SELECT 'well'::mood, '{well,NULL}'::mood[]")
    assert row == ("well", ["well", None])
