"""`export_data`: what is written, and that a database and the usual readers take it back."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import msgspec
import pytest

from contract.surfaces.engine_shops import EngineShop
from contract.surfaces.typed_tables import contents, make_typed
from support.surface_client import READER, WRITER, Peer
from support.surface_gateway import SHOP_ID
from tidegate.config.model import Config, LimitSettings
from tidegate.model.source_settings import Mask

AWKWARD = ("", "NULL", "it's", 'say "so"', "back\\slash\\", "a,b;c", "two\nlines\r\nhere", "x\ty",
           "naïve – 海 🌊", "'; DROP TABLE void; --", "$1 ? %s", "E'\\'", "-- no comment",
           "{\"a\": [1]}", "\\N", "`tick`", "\\'")  # fmt: skip


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
    make_typed(engine_shop)
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
