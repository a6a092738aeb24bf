"""`export_data`: what is written, and that a database and the usual readers take it back."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import msgspec
import pytest

from contract.surfaces.engine_shops import EngineShop
from support.surface_client import READER, WRITER, Peer
from support.surface_gateway import SHOP_ID
from tidegate.config.model import Config, LimitSettings
from tidegate.model.sources import Mask

AWKWARD = ("", "NULL", "it's", 'say "so"', "back\\slash\\", "a,b;c", "two\nlines\r\nhere", "x\ty",
           "naïve – 海 🌊", "'; DROP TABLE void; --", "$1 ? %s", "E'\\'", "-- no comment",
           "{\"a\": [1]}", "\\N", "`tick`", "\\'")  # fmt: skip

COLUMNS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "sqlite": (
        ("INTEGER", ("0", "9223372036854775807", "-9223372036854775808")),
        ("REAL", ("1.5", "-0.1", "1e300", "9e999", "-9e999")),
        ("TEXT", ("'x'", "''", "CAST(x'610062' AS TEXT)")),
        ("BLOB", ("x'00ff27'", "x''")),
        ("NUMERIC", ("12.5", "'12,5'")),
        ("", ("1", "'1'", "1.0", "x'31'")),
    ),
    "duckdb": (
        ("BOOLEAN", ("true", "false")),
        ("TINYINT", ("-128",)),
        ("HUGEINT", ("-170141183460469231731687303715884105728",)),
        ("UBIGINT", ("18446744073709551615",)),
        ("DOUBLE", ("1.5", "'nan'", "'inf'", "'-inf'", "1e300")),
        ("FLOAT", ("0.1", "3.4028235e38")),
        ("DECIMAL(18,3)", ("12.500", "-0.001")),
        ("VARCHAR", ("'x'", "'a' || chr(0) || 'b'")),
        ("BLOB", ("'\\x00\\xff'::BLOB", "''::BLOB")),
        ("DATE", ("'2026-01-02'", "'infinity'", "'0044-03-15 (BC)'")),
        ("TIME", ("'03:04:05.000006'",)),
        ("TIMETZ", ("'03:04:05+00'", "'03:04:05+05:30'")),
        ("TIMESTAMP", ("'2026-01-02 03:04:05.6'", "'-infinity'")),
        ("TIMESTAMP_NS", ("'2026-01-02 03:04:05.123456789'",)),
        ("TIMESTAMPTZ", ("'2026-01-02 03:04:05.6+02'",)),
        ("INTERVAL", ("INTERVAL '1 year 2 months -3 days 04:05:06.5'", "INTERVAL '0 days'",
                      "INTERVAL '-1 year -2 hours'", "INTERVAL '-500 milliseconds'")),
        ("UUID", ("'9f1f0c3e-2e3d-4b14-9c3a-1d2f4ad1f6f1'",)),
        ("BIT", ("'0101'",)),
        ("ENUM('a', 'b''c')", ("'b''c'",)),
        ("INTEGER[]", ("[1, NULL, 3]", "[]")),
        ("VARCHAR[][]", ("[['it''s', 'b\\'], NULL]",)),
        ("INTERVAL[]", ("[INTERVAL '1 month 2 days']",)),
        ("DATE[2]", ("['2026-01-02', NULL]",)),
        ("STRUCT(\"a b\" INTEGER, c STRUCT(d DATE, e INTERVAL))",
         ("{'a b': 1, 'c': {'d': '2026-01-02', 'e': INTERVAL '1 day'}}",)),
        ("MAP(VARCHAR, INTEGER)", ("MAP {'it''s': 1, '': NULL}", "MAP {}")),
        ("STRUCT(m MAP(INTEGER, STRUCT(x INTEGER)))[]", ("[{'m': MAP {1: {'x': 2}}}]",)),
    ),
    "postgres": (
        ("boolean", ("true", "false")),
        ("bigint", ("-9223372036854775808",)),
        ("double precision", ("1.5", "'NaN'", "'-Infinity'", "1e300")),
        ("real", ("0.1",)),
        ("numeric", ("12.500", "-0.001", "'NaN'", "123456789012345678901234567890.5")),
        ("money", ("'-12.50'",)),
        ("text", ("'x'",)),
        ("char(5)", ("'ab'",)),
        ("bytea", ("'\\x00ff27'", "''")),
        ("date", ("'2026-01-02'", "'infinity'", "'0044-03-15 BC'")),
        ("time", ("'03:04:05.000006'",)),
        ("timetz", ("'03:04:05+00'", "'03:04:05+05:30'")),
        ("timestamp", ("'2026-01-02 03:04:05.6'", "'-infinity'", "'0044-03-15 01:00:00 BC'")),
        ("timestamptz", ("'2026-01-02 03:04:05.6+02'",)),
        ("interval", ("'1 year 2 mons -3 days 04:05:06.5'", "'0'", "'-1 year -2 hours'",
                      "'-0.5 seconds'")),
        ("uuid", ("'9f1f0c3e-2e3d-4b14-9c3a-1d2f4ad1f6f1'",)),
        ("json", ("'{\"a\":  [1, \"it''s \\\\ \"]}'", "'null'")),
        ("jsonb", ("'{\"b\": 1.50}'", "'\"x\"'")),
        ("inet", ("'10.0.0.1/8'",)),
        ("bit(4)", ("'0101'",)),
        ("int4range", ("'[1,5)'",)),
        ("point", ("'(1,2)'",)),
        ("tsvector", ("'a:1 b''c:2'",)),
        ("integer[]", ("'{1,NULL,3}'", "'{}'", "'{{1,2},{3,4}}'")),
        ("text[]", ("ARRAY['it''s', 'b\\', 'say \"so\"', '', 'NULL', NULL, 'a,{b}']",)),
        ("bytea[]", ("ARRAY['\\x00ff'::bytea, ''::bytea]",)),
        ("date[]", ("'{2026-01-02}'",)),
        ("interval[]", ("ARRAY['-1 year'::interval, '1 day 00:00:01']",)),
        ("jsonb[]", ("ARRAY['{\"a\": \"b\\\\c\"}'::jsonb]",)),
        ("boolean[]", ("'{t,f,NULL}'",)),
        ("double precision[]", ("'{1.5,NaN,-Infinity}'",)),
        ("numeric[]", ("'{1.50}'",)),
    ),
    "mysql": (
        ("TINYINT(1)", ("0", "-128")),
        ("BIGINT UNSIGNED", ("18446744073709551615",)),
        ("DOUBLE", ("1.5", "1e300")),
        ("DECIMAL(30,3)", ("12.500", "-0.001", "123456789012345678901234567.125")),
        ("TEXT", ("'x'", "'a\\0b'")),
        ("VARCHAR(20) CHARACTER SET latin1", ("'é\\\\'",)),
        ("BLOB", ("x'00ff27'", "x''")),
        ("BINARY(3)", ("x'00ff27'",)),
        ("BIT(9)", ("b'100000001'",)),
        ("DATE", ("'2026-01-02'",)),
        ("TIME(6)", ("'03:04:05.000006'", "'-25:00:01.5'", "'838:59:59'", "'-00:00:01'")),
        ("DATETIME(6)", ("'2026-01-02 03:04:05.6'",)),
        ("TIMESTAMP(6) NULL", ("'2026-01-02 03:04:05.6'",)),
        ("YEAR", ("2026",)),
        ("ENUM('a', 'b''c')", ("'b''c'",)),
        ("SET('a', 'b')", ("'a,b'", "''")),
        ("JSON", ("'{\"a\": \"it''s\"}'",)),
        ("POINT", ("ST_GeomFromText('POINT(1 2.5)')",)),
        ("UUID", ("'9f1f0c3e-2e3d-4b14-9c3a-1d2f4ad1f6f1'",)),
        ("INET6", ("'::1'",)),
    ),
}  # fmt: skip


def quoted(name: str, dialect: str) -> str:
    mark = "`" if dialect == "mysql" else '"'
    return mark + name.replace(mark, mark * 2) + mark


def text_literal(text: str, dialect: str) -> str:
    if dialect == "mysql":
        return f"CONVERT(x'{text.encode().hex()}' USING utf8mb4)"
    return "'" + text.replace("'", "''") + "'"


def fill(engine_shop: EngineShop, table: str, columns: list[str], rows: list[list[str]]) -> None:
    names = ", ".join(f"c{place} {kind}" for place, kind in enumerate(columns))
    given = ", ".join(f"({number}, {', '.join(row)})" for number, row in enumerate(rows))
    engine_shop.script(f"CREATE TABLE {table} (id INTEGER, {names})")
    engine_shop.script(f"INSERT INTO {table} VALUES {given}")


def contents(engine_shop: EngineShop, table: str) -> list[str]:
    shown = f"{table}::text" if engine_shop.dialect == "postgres" else "*"
    return [repr(row) for row in engine_shop.look(f"SELECT {shown} FROM {table} ORDER BY id")]


def replayed(engine_shop: EngineShop, table: str) -> None:
    """Export the table as SQL, empty it, run what was exported, and find the same rows."""
    before = contents(engine_shop, table)
    assert before
    exported = engine_shop.result("export_data", format="sql", tables=[table])
    assert exported["row_count"] == len(before)
    engine_shop.script(f"DELETE FROM {table}")
    engine_shop.script(exported["data"])
    assert contents(engine_shop, table) == before


def test_exported_rows_of_every_type_go_back_into_their_table(engine_shop: EngineShop) -> None:
    kinds = [kind for kind, _ in COLUMNS[engine_shop.dialect]]
    engine_shop.script(
        "CREATE TABLE typed (id INTEGER, "
        + ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))
        + ")"
    )
    number = 0
    for place, (_, values) in enumerate(COLUMNS[engine_shop.dialect]):
        for value in values:
            engine_shop.script(f"INSERT INTO typed (id, c{place}) VALUES ({number}, {value})")
            number += 1
    replayed(engine_shop, "typed")


def test_exported_text_goes_back_whatever_is_in_it(engine_shop: EngineShop) -> None:
    kind = "VARCHAR(60)"
    rows = [[text_literal(text, engine_shop.dialect)] for text in AWKWARD]
    fill(engine_shop, "awkward", [kind], rows)
    replayed(engine_shop, "awkward")


def test_exported_names_are_quoted_for_the_database(engine_shop: EngineShop) -> None:
    names = ["select", "a b", 'quo"te', "tick`", "semi;colon", "größe", "it's"]
    shown = ", ".join(f"{quoted(name, engine_shop.dialect)} INTEGER" for name in names)
    engine_shop.script(f"CREATE TABLE odd (id INTEGER, {shown})")
    engine_shop.script(f"INSERT INTO odd VALUES ({', '.join(map(str, range(len(names) + 1)))})")
    replayed(engine_shop, "odd")


@pytest.mark.parametrize("table", ["order", "Ünder"])
def test_a_table_of_a_reserved_or_foreign_name_is_exported_by_a_query_or_by_name(
    engine_shop: EngineShop, table: str
) -> None:
    place = quoted(table, engine_shop.dialect)
    engine_shop.script(f"CREATE TABLE {place} (id INTEGER)")
    engine_shop.script(f"INSERT INTO {place} VALUES (1)")
    if table.isascii():
        exported = engine_shop.result("export_data", format="sql", tables=[table])
        engine_shop.script(f"DELETE FROM {place}")
        engine_shop.script(exported["data"])
        assert engine_shop.count(place) == 1
    else:
        error = engine_shop.error("export_data", format="csv", tables=[table])
        assert error["code"] == -32602
        assert error["data"]["hint"] == "Export a table of another name by a query."
        exported = engine_shop.result("export_data", format="csv", query=f"SELECT * FROM {place}")
        assert exported["data"] == "id\r\n1\r\n"


def test_what_a_table_makes_itself_is_left_to_it(engine_shop: EngineShop) -> None:
    made = "GENERATED ALWAYS AS (id * 2)" + ("" if engine_shop.dialect == "duckdb" else " STORED")
    key = "INTEGER GENERATED ALWAYS AS IDENTITY" if engine_shop.dialect == "postgres" else "INTEGER"
    engine_shop.script(f"CREATE TABLE made (id INTEGER, twice INTEGER {made}, k {key})")
    values = "(id) VALUES (4)" if engine_shop.dialect == "postgres" else "(id, k) VALUES (4, 1)"
    engine_shop.script(f"INSERT INTO made {values}")
    replayed(engine_shop, "made")


def test_python_reads_the_csv(engine_shop: EngineShop) -> None:
    rows = [[text_literal(text, engine_shop.dialect)] for text in AWKWARD]
    fill(engine_shop, "awkward", ["VARCHAR(60)"], rows)
    exported = engine_shop.result(
        "export_data", format="csv", query="SELECT id, c0 FROM awkward ORDER BY id"
    )
    read = list(csv.reader(io.StringIO(exported["data"], newline="")))
    assert read[0] == ["id", "c0"]
    guarded = [f"'{text}" if text.startswith("-") else text for text in AWKWARD]
    assert [row[1] for row in read[1:]] == guarded
    assert exported["data"].endswith("\r\n")


def test_null_and_the_empty_text_differ_in_csv(engine_shop: EngineShop) -> None:
    exported = engine_shop.result(
        "export_data", format="csv", query="SELECT NULL AS a, '' AS b, 0 AS c"
    )
    assert exported["data"] == 'a,b,c\r\n,"",0\r\n'


def test_a_spreadsheet_takes_no_text_for_a_formula_and_numbers_stay(
    engine_shop: EngineShop,
) -> None:
    exported = engine_shop.result(
        "export_data",
        format="csv",
        query="SELECT '=1+1' AS a, '+x' AS b, '-y' AS c, '@z' AS d, -5 AS e,"
        " CAST(-1.50 AS DECIMAL(5, 2)) AS f, 'a=b' AS g",
    )
    row = exported["data"].splitlines()[1].split(",")
    assert row[:5] == ["'=1+1", "'+x", "'-y", "'@z", "-5"]
    assert float(row[5]) == -1.5
    assert row[6] == "a=b"


def test_json_is_valid_also_of_columns_of_one_name(engine_shop: EngineShop) -> None:
    exported = engine_shop.result(
        "export_data", format="json", query="SELECT 1 AS a, 'it''s' AS a, NULL AS b"
    )
    assert json.loads(exported["data"]) == [{"a": 1, "a_2": "it's", "b": None}]
    empty = engine_shop.result("export_data", format="json", tables=["void"])
    assert json.loads(empty["data"]) == []


def test_several_tables_inline_are_several_exports_in_their_order(engine_shop: EngineShop) -> None:
    shown = engine_shop.result("export_data", format="csv", tables=["orders", "customers", "void"])
    assert list(shown) == ["exports"]
    assert [list(one) for one in shown["exports"]] == [["label", "format", "row_count", "data"]] * 3
    assert [(one["label"], one["row_count"]) for one in shown["exports"]] == [
        ("orders", 3), ("customers", 3), ("void", 0),
    ]  # fmt: skip
    assert shown["exports"][2]["data"] == "id,name\r\n"


def test_one_export_has_the_documents_keys(engine_shop: EngineShop) -> None:
    shown = engine_shop.result("export_data", READER, format="csv", tables=["customers"])
    assert list(shown) == ["label", "format", "row_count", "data"]
    assert (shown["label"], shown["format"], shown["row_count"]) == ("customers", "csv", 3)


def test_a_table_is_named_with_its_schema(engine_shop: EngineShop) -> None:
    name = f"{engine_shop.schema}.customers"
    shown = engine_shop.result("export_data", format="csv", tables=[name])
    assert (shown["label"], shown["row_count"]) == (name, 3)
    if engine_shop.elsewhere is not None:
        other = engine_shop.result(
            "export_data", format="csv", tables=[f"{engine_shop.elsewhere}.customers"]
        )
        assert other["data"] == "id,nickname\r\n7,the other one\r\n"


@pytest.mark.parametrize(("rows", "cut"), [(2, True), (3, False), (-1, True)])
def test_rows_left_out_are_reported(engine_shop: EngineShop, rows: int, cut: bool) -> None:
    shown = engine_shop.result("export_data", format="csv", tables=["customers"], max_rows=rows)
    assert shown["row_count"] == max(1, rows)
    assert shown.get("is_truncated", False) is cut


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Parameter query or tables must be given, and not both"),
        (
            {"query": "SELECT 1", "tables": ["orders"]},
            "Parameter query or tables must be given, and not both",
        ),
        ({"tables": []}, "Parameter tables must name 1 to 50 tables"),
        ({"tables": ["orders"] * 51}, "Parameter tables must name 1 to 50 tables"),
        ({"tables": ["orders; DROP TABLE void"]},
         "Parameter tables must hold names of letters, digits, _ and . only"),
        ({"tables": ["orders\n"]},
         "Parameter tables must hold names of letters, digits, _ and . only"),
        ({"tables": ["nope"]}, "Table not found: nope"),
        ({"tables": ["nope.orders"]}, "Schema not found: nope"),
        ({"query": "SELECT 1", "format": "xml"}, "Missing required parameter: format"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_named(
    engine_shop: EngineShop, arguments: dict[str, Any], words: str
) -> None:
    error = engine_shop.error("export_data", **({"format": "csv"} | arguments))
    assert (error["code"], error["message"]) == (-32602, f"Invalid params: {words}")
    assert engine_shop.count("orders") == 3


WRITES = (
    "DELETE FROM orders",
    "DELETE FROM orders WHERE id = 1",
    "UPDATE orders SET total = 0 WHERE id = 1",
    "INSERT INTO void VALUES (9, 'x')",
    "DROP TABLE orders",
    "SELECT 1; DELETE FROM orders",
    "EXPLAIN ANALYZE DELETE FROM orders",
    "WITH gone AS (SELECT 1) DELETE FROM orders",
)


@pytest.mark.parametrize("query", WRITES)
@pytest.mark.parametrize("actor", [READER, WRITER], ids=["reader", "writer"])
def test_nothing_is_written_through_an_export(
    engine_shop: EngineShop, query: str, actor: Any
) -> None:
    error = engine_shop.error("export_data", actor, format="csv", query=query)
    assert error["code"] in (-32007, -32602)
    assert engine_shop.count("orders") == 3
    assert engine_shop.count("void") == 0
    assert engine_shop.look("SELECT total FROM orders WHERE id = 1")[0][0] != 0


def test_an_export_is_on_record(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> list[str]:
        arguments = {"connection_id": SHOP_ID, "format": "csv", "tables": ["orders"]}
        await peer.result("export_data", **arguments)
        found = await peer.result("search_query_history", query="orders")
        return [entry["query"] for entry in found["structuredContent"]["entries"]]

    (query,) = engine_shop.converse(talk)
    assert query.startswith("SELECT * FROM ")
    assert "orders" in query
    lines = [
        msgspec.json.decode(line)
        for path in sorted((engine_shop.directory / "audit").rglob("*.jsonl"))
        for line in path.read_bytes().splitlines()
    ]
    assert any("export_data" in json.dumps(line) for line in lines)


@pytest.mark.parametrize("format", ["csv", "json", "sql"])
def test_what_is_masked_is_masked_in_an_export(engine_shop: EngineShop, format: str) -> None:
    gate = engine_shop.gate(masks=(Mask(f"{engine_shop.schema}.customers.email"),))
    arguments = {"connection_id": SHOP_ID, "format": format, "tables": ["customers"]}
    shown = engine_shop.converse(lambda peer: peer.result("export_data", **arguments), gate=gate)
    data = shown["structuredContent"]["data"]
    assert "example.org" not in data
    assert "Ada Lovelace" in data


def test_an_export_too_large_for_an_answer_says_what_to_do(engine_shop: EngineShop) -> None:
    config = Config(limits=LimitSettings(max_bytes=1_000))
    query = "SELECT a.full_name FROM customers a, customers b, customers c, customers d"
    error = engine_shop.converse(
        lambda peer: peer.error("export_data", connection_id=SHOP_ID, format="csv", query=query),
        config=config,
    )
    assert error["code"] == -32005
    assert "output_path" in error["data"]["hint"]


def test_the_limit_of_an_answer_holds_for_all_its_tables_together(engine_shop: EngineShop) -> None:
    config = Config(limits=LimitSettings(max_bytes=1_024))
    error = engine_shop.converse(
        lambda peer: peer.error(
            "export_data", connection_id=SHOP_ID, format="csv", tables=["customers"] * 20
        ),
        config=config,
    )
    assert error["code"] == -32005


@pytest.mark.parametrize(
    ("tables", "limiter"), [(["orders"], [0.0, 0.2, 0.8, 1.0]), (["orders", "customers"], [])]
)
def test_progress_never_goes_back(
    engine_shop: EngineShop, tables: list[str], limiter: list[float]
) -> None:
    async def talk(peer: Peer) -> list[float]:
        await peer.request(
            "tools/call",
            name="export_data",
            arguments={"connection_id": SHOP_ID, "format": "csv", "tables": tables},
            _meta={"progressToken": "t"},
        )
        return [note["params"]["progress"] for note in peer.notes.messages]

    assert engine_shop.converse(talk) == limiter
