"""Files of results keep every value of DuckDB's types: compared with DuckDB's own cast to text."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import duckdb

from support.command_line import Ended
from support.duckdb_types import Oracle, is_same, make_types

Run = Callable[..., Ended]


def test_csv_json_and_parquet_hold_what_duckdb_writes(run: Run, tmp_path: Path) -> None:
    url = make_types(tmp_path / "types.duckdb")
    assert run("source", "add", "types", url).status == 0
    csv.field_size_limit(10**7)
    oracle = Oracle(url)
    wrong = []
    try:
        leaves = {
            name: [oracle.leaves(name, row) for row in (1, 2, 3)]
            for name in oracle.columns
            if not any(
                word in name for word in ("array", "list", "struct", "map", "union", "tuple")
            )
            and not name.startswith("deep_")
        }
        for ending in ("csv", "json", "parquet"):
            path = tmp_path / f"types.{ending}"
            ended = run("query", "types", "SELECT * FROM types", "--output", str(path))
            assert ended.status == 0, ended.err
            if ending == "csv":
                with path.open(newline="") as file:
                    rows = list(csv.DictReader(file))
            elif ending == "json":
                rows = json.loads(path.read_text())
            else:
                with duckdb.connect() as reader:
                    reader.execute("SET TimeZone = 'UTC'")
                    shown = ", ".join(
                        f"base64({name}) AS {name}"
                        if name == "blob"
                        else f"CAST({name} AS VARCHAR) AS {name}"
                        for name in leaves
                    )
                    found = reader.execute(f"SELECT {shown} FROM '{path}'")
                    names = [entry[0] for entry in found.description]
                    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
            for name, wanted in leaves.items():
                for number in (0, 1, 2):
                    given = rows[number][name]
                    if ending == "csv" and given == "":
                        given = None
                    if name == "bool" and given is not None and ending != "json":
                        given = given == "true"
                    if not is_same(wanted[number][0], given):
                        wrong.append((ending, name, wanted[number], given))
    finally:
        oracle.close()
    assert wrong == []


def test_a_number_that_no_column_of_parquet_holds_stays_text_and_is_named(
    run: Run, tmp_path: Path
) -> None:
    assert run("source", "add", "memory", "duckdb://").status == 0
    path = tmp_path / "large.parquet"
    text = "SELECT 340282366920938463463374607431768211455::UHUGEINT AS a, 5::UHUGEINT AS b"
    ended = run("query", "memory", text, "--output", str(path))
    assert ended.status == 0, ended.err
    assert "a" in ended.err
    assert duckdb.sql(f"FROM '{path}'").fetchall() == [(str(2**128 - 1), 5)]


def test_statements_of_a_result_make_the_same_rows_again(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "nested.duckdb"
    values = {
        "listed": "MAP {[1, 2]: {'x': 1}}",
        "struct_key": "MAP {{'k': 1}: 5}",
        "map_key": "MAP {MAP {1: 2}: [DATE '2020-01-01']}",
        "plain_key": "MAP {'key': [1], 'value': [2]}",
        "label_key": "MAP {'x,y'::ENUM('x,y', 'z('): 1}",
        "label": "{'a': 'x,y'::ENUM('x,y', 'z(')}",
        "pair": "row(1, 'x')",
        "single": "row([1.50::DECIMAL(3, 2)])",
        "ancient": "TIMESTAMP '0044-03-15 (BC) 01:02:03'",
        "ancients": "[DATE '0044-03-15 (BC)', NULL]",
    }
    made = "CREATE TABLE rows AS SELECT " + ", ".join(f"{v} AS {k}" for k, v in values.items())
    with duckdb.connect(str(path)) as database:
        database.execute(made)
    assert run("source", "add", "nested", f"duckdb:///{path}").status == 0
    script = tmp_path / "rows.sql"
    ended = run("query", "nested", "SELECT * FROM rows", "--output", str(script))
    assert ended.status == 0, ended.err
    with duckdb.connect() as database:
        database.execute(made)
        shown = "SELECT " + ", ".join(f"CAST({name} AS VARCHAR)" for name in values) + " FROM rows"
        expected = database.execute(shown).fetchall()
        database.execute("DELETE FROM rows")
        database.execute(script.read_text())
        assert database.execute(shown).fetchall() == expected
