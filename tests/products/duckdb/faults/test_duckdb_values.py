"""How DuckDB's values come: exact, and as `results/json_values.py` writes them."""

import json

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect
from tidegate.results.json_values import encode_rows
from tidegate.results.page import PageBuilder

VALUES = [
    ("1.50::DECIMAL(10, 2)", '"1.50"'),
    (
        "12345678901234567890123456789012345.678::DECIMAL(38, 3)",
        '"12345678901234567890123456789012345.678"',
    ),
    (
        "170141183460469231731687303715884105727::HUGEINT",
        '"170141183460469231731687303715884105727"',
    ),
    ("18446744073709551615::UBIGINT", '"18446744073709551615"'),
    ("7::HUGEINT", "7"),
    ("1.1::FLOAT", "1.1"),
    ("'nan'::FLOAT", '"NaN"'),
    ("'-inf'::DOUBLE", '"-Infinity"'),
    ("DATE '2020-01-02'", '"2020-01-02"'),
    ("DATE 'infinity'", '"infinity"'),
    ("DATE '9999-12-31'", '"9999-12-31"'),
    ("DATE '0044-03-15 (BC)'", '"0044-03-15 BC"'),
    ("DATE '99999-01-01'", '"99999-01-01"'),
    ("TIMESTAMP '2020-01-02 03:04:05'", '"2020-01-02T03:04:05"'),
    ("TIMESTAMP '2020-01-02 03:04:05.6'", '"2020-01-02T03:04:05.600000"'),
    ("TIMESTAMP '290000-01-01 00:00:00'", '"290000-01-01T00:00:00"'),
    ("TIMESTAMP '-infinity'", '"-infinity"'),
    ("TIMESTAMP_S '2020-01-02 03:04:05'", '"2020-01-02T03:04:05"'),
    ("TIMESTAMP_NS '2020-01-02 03:04:05.123456789'", '"2020-01-02T03:04:05.123456789"'),
    ("TIMESTAMPTZ '2020-01-02 03:04:05+02'", '"2020-01-02T01:04:05Z"'),
    ("TIME '24:00:00'", '"24:00:00"'),
    ("TIME '03:04:05.6'", '"03:04:05.600000"'),
    ("TIMETZ '03:04:05+02'", '"03:04:05+02:00"'),
    ("TIMETZ '03:04:05+00'", '"03:04:05Z"'),
    ("TIMETZ '03:04:05+15:59:59'", '"03:04:05+15:59:59"'),
    ("INTERVAL '14 months'", '"P1Y2M"'),
    ("INTERVAL '1 month 2 days 3.5 seconds'", '"P1M2DT3.5S"'),
    ("INTERVAL '-1 month -2 days'", '"-P1M2D"'),
    ("INTERVAL '1 month -30 hours'", '"P1MT-108000S"'),
    ("INTERVAL '0 days'", '"P0D"'),
    ("'0d3ebb0e-f5f4-4b1c-8e9e-6d6a4b0e1c11'::UUID", '"0d3ebb0e-f5f4-4b1c-8e9e-6d6a4b0e1c11"'),
    ("'\\x00\\xff'::BLOB", '"AP8="'),
    ("'b'::ENUM('a', 'b')", '"b"'),
    ("'10110'::BIT", '"10110"'),
    ("'123456789012345678901234567890'::BIGNUM", '"123456789012345678901234567890"'),
    ("'POINT (1 2)'::GEOMETRY", '"POINT (1 2)"'),
    ("true", "true"),
    ("NULL", "null"),
    ("''", '""'),
    ("[1, NULL, 3]", "[1,null,3]"),
    ("[[DATE 'infinity'], []]", '[["infinity"],[]]'),
    ("[1.1::FLOAT, 'nan'::FLOAT]", '[1.1,"NaN"]'),
    ("[INTERVAL '1 month']::INTERVAL[1]", '["P1M"]'),
    (
        "{'a b': 1, 'c': {'d': TIMESTAMP '2020-01-02 03:04:05'}}",
        '{"a b":1,"c":{"d":"2020-01-02T03:04:05"}}',
    ),
    (
        "{'a': 170141183460469231731687303715884105727::HUGEINT}",
        '{"a":"170141183460469231731687303715884105727"}',
    ),
    ("MAP {DATE '2020-01-02': INTERVAL '1 month'}", '{"2020-01-02":"P1M"}'),
    ("MAP {1: 'x'}", '{"1":"x"}'),
    ("MAP {[1]: DATE '2020-01-02'}", '{"key":[[1]],"value":["2020-01-02"]}'),
    ("row(1, DATE '2020-01-02')", '[1,"2020-01-02"]'),
    ("union_value(d := DATE '2020-01-02')", '"2020-01-02"'),
    ("""'{"a": [1, 2.50]}'::JSON""", '{"a": [1, 2.50]}'),
    ("""'{"a"\n: "x"}'::JSON""", '{"a" : "x"}'),
    ("NULL::JSON", "null"),
    ("['1'::JSON, NULL]", "[1,null]"),
    ("{'j': '[true]'::JSON, 'd': DATE '2020-01-02'}", '{"j":[true],"d":"2020-01-02"}'),
    ("MAP {'1'::JSON: '2'::JSON}", '{"1":2}'),
]


@pytest.fixture
def memory(shop):
    shop.source = Source("s1", "shop", "duckdb:///:memory:", "duckdb", "duckdb")
    return shop


async def test_every_type_has_its_one_rendering(memory):
    async with memory.opened() as engine:
        for expression, expected in VALUES:
            rows = await memory.ask(engine, f"SELECT {expression}")
            assert encode_rows(rows).decode() == f"[[{expected}]]", expression


async def test_all_of_them_at_once_keep_their_columns(memory):
    async with memory.opened() as engine:
        everything = ", ".join(expression for expression, _ in VALUES)
        rows = await memory.ask(engine, f"SELECT {everything} FROM range(3) ;; -- the end")
    expected = ",".join(value for _, value in VALUES)
    assert encode_rows(rows).decode() == f"[{','.join([f'[{expected}]'] * 3)}]"


async def test_json_comes_alike_in_a_small_result_in_a_page_and_from_a_change(memory):
    large = "170141183460469231731687303715884105727::HUGEINT"
    text = f"""SELECT i, '{{"a": 1}}'::JSON AS j, {large} FROM range(ROWS) n (i)"""
    async with memory.opened() as engine:
        for count in (2, 3000):
            cursor = await memory.start(
                engine, text.replace("ROWS", str(count)), limits=Limits(max_rows=5000)
            )
            builder = PageBuilder(cursor.columns, Limits(max_rows=5000))
            await cursor.fetch_into(builder)
            await cursor.close()
            rows = json.loads(builder.page().rows)
            assert len(rows) == count and rows[-1][1] == {"a": 1}
        make = "CREATE TABLE notes (id INTEGER, note JSON)"
        await memory.ask(engine, make, effect=Effect.WRITE)
        add = """INSERT INTO notes VALUES (1, '{"a": 1}') RETURNING note, id"""
        rows = await memory.ask(engine, add, effect=Effect.WRITE)
    assert encode_rows(rows).decode() == '[[{"a": 1},1]]'


async def test_asking_for_text_keeps_names_order_and_types(memory):
    async with memory.opened() as engine:
        text = "SELECT i AS a, DATE '2020-01-01' + i::INTEGER AS a FROM range(3000) n (i)"
        cursor = await memory.start(engine, f"{text} ORDER BY i DESC")
        assert [(column.name, column.type) for column in cursor.columns] == [
            ("a", "BIGINT"),
            ("a", "DATE"),
        ]
        assert [tuple(row) for row in await cursor.fetch(2)] == [
            (2999, "2028-03-18"),
            (2998, "2028-03-17"),
        ]
        await cursor.close()


@pytest.mark.parametrize(
    "text",
    [
        "FROM void",
        "TABLE void",
        "VALUES (DATE '2020-01-02')",
        "WITH w AS (SELECT DATE '2020-01-02' AS d) SELECT * FROM w",
        "(SELECT DATE '2020-01-02')",
        "SELECT DATE '2020-01-02' UNION ALL SELECT DATE '2020-01-03' LIMIT 1",
        "SHOW TABLES",
        "DESCRIBE items",
        "SUMMARIZE items",
        "PIVOT items ON name USING count(*)",
        "SELECT * FROM (PIVOT items ON name USING max(DATE '2020-01-02'))",
        "PRAGMA table_info('items')",
        "EXPLAIN (FORMAT JSON) SELECT 1",
        "EXPLAIN ANALYZE SELECT count(*) FROM items",
        "SELECT $1::DATE",
    ],
)
async def test_every_form_of_reading_can_be_asked(shop, text):
    params = ("2020-01-02",) if "$1" in text else None
    async with shop.opened() as engine:
        assert isinstance(await shop.ask(engine, text, params), list)


async def test_a_change_does_not_return_what_would_come_wrong(shop):
    async with shop.opened() as engine:
        text = "INSERT INTO void VALUES (1, 'x') RETURNING INTERVAL '1 month'"
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text, effect=Effect.WRITE)
        assert caught.value.code is Code.SQL_FAILED
        assert "::VARCHAR" in caught.value.hint
        assert await shop.ask(engine, "SELECT * FROM void") == []


@pytest.mark.parametrize(
    ("text", "params"),
    [("SELECT $1", ()), ("SELECT 1", (1,)), ("SELECT $a", (1,)), ("SELECT $1, $3", (1, 2))],
)
async def test_parameters_that_do_not_fit_are_reported(shop, text, params):
    async with shop.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, text, params)
    assert caught.value.code is Code.ARGUMENT_INVALID


@pytest.mark.parametrize("value", [2**70, -(2**100), 1.5, True, None, "x", "naïve 🌊", [1, 2]])
async def test_parameters_keep_their_value(shop, value):
    async with shop.opened() as engine:
        assert await shop.ask(engine, "SELECT $1", (value,)) == [(value,)]


async def test_what_is_not_unicode_is_reported(shop):
    async with shop.opened() as engine:
        for text, params in (
            ("SELECT '\ud800'", None),
            ("SELECT 1\0", None),
            ("SELECT $1", ("\udfff",)),
        ):
            with pytest.raises(TidegateError) as caught:
                await shop.ask(engine, text, params)
            assert caught.value.code is Code.SQL_UNREADABLE
        assert await shop.ask(engine, "SELECT 1") == [(1,)]
