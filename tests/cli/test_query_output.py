"""`tidegate query` and `export` write files, and take parameters and statements from elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from support.command_line import Ended, environment

Run = Callable[..., Ended]

TOWNS = "SELECT id, name, people FROM towns ORDER BY id"


def test_rows_come_as_csv_json_and_json_lines_on_standard_output(run: Run, towns: Path):
    ended = run("query", "towns", TOWNS, "--format", "csv")
    assert ended.out == "id,name,people\n1,Köln,1084831\n2,京都,\n3,Львів,717273\n"
    assert ended.err.startswith("3 rows in ")
    rows = run("query", "towns", TOWNS, "--format", "json").json
    assert rows[1] == {"id": 2, "name": "京都", "people": None}
    lines = run("query", "towns", TOWNS, "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_the_ending_of_the_output_names_its_format(run: Run, towns: Path, tmp_path: Path):
    for ending in ("csv", "json", "jsonl", "parquet"):
        path = tmp_path / f"rows.{ending}"
        ended = run("query", "towns", TOWNS, "--output", str(path))
        assert (ended.status, ended.out) == (0, "")
        assert f"3 rows written to {path}" in ended.err
        assert duckdb.sql(f"FROM '{path}'").fetchall()[1] == (2, "京都", None)
        assert path.stat().st_mode & 0o777 == 0o600
    refused = run("query", "towns", TOWNS, "--output", str(tmp_path / "rows.txt"))
    assert (refused.status, "--format" in refused.err) == (2, True)


def test_parquet_keeps_types_and_a_column_of_mixed_values_is_text(
    run: Run, towns: Path, tmp_path: Path
):
    path = tmp_path / "typed.parquet"
    ended = run(
        "query",
        "towns",
        "SELECT 1 AS a, 2.5 AS b, x'00ff' AS c, NULL AS d, 9223372036854775807 AS e"
        " UNION ALL SELECT 2, 3, x'', 'x', 1",
        "--output",
        str(path),
    )
    assert ended.status == 0, ended.err
    found = duckdb.sql(f"FROM '{path}'")
    assert [str(kind) for kind in found.types] == ["BIGINT", "DOUBLE", "BLOB", "VARCHAR", "BIGINT"]
    assert found.fetchall() == [
        (1, 2.5, b"\x00\xff", None, 2**63 - 1),
        (2, 3.0, b"", "x", 1),
    ]


def test_an_error_names_the_file_that_was_asked_for(run: Run, towns: Path, tmp_path: Path):
    path = tmp_path / "absent" / "rows.csv"
    ended = run("query", "towns", TOWNS, "--output", str(path))
    assert (ended.status, f"`{path}`: No such file" in ended.err) == (74, True), ended.err


def test_a_file_that_is_there_is_replaced_only_on_request(run: Run, towns: Path, tmp_path: Path):
    path = tmp_path / "rows.csv"
    path.write_text("mine")
    refused = run("query", "towns", TOWNS, "--output", str(path))
    assert (refused.status, path.read_text()) == (2, "mine")
    assert run("query", "towns", TOWNS, "--output", str(path), "--overwrite").status == 0
    assert path.read_text().startswith("id,name")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_statement_that_fails_leaves_no_file(run: Run, towns: Path, tmp_path: Path, ending: str):
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / f"rows.{ending}"
    for text in ("SELECT * FROM nowhere", "DELETE FROM towns", "SELECT abs(-9223372036854775808)"):
        assert run("query", "towns", text, "--output", str(path)).status != 0
    assert list(folder.iterdir()) == []
    assert run("query", "towns", TOWNS, "--output", f"{folder}/none/rows.csv").status == 74


def test_a_file_gets_every_row_and_a_limit_is_said(run: Run, towns: Path, tmp_path: Path):
    many = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000) SELECT i FROM n"
    )
    path = tmp_path / "many.csv"
    assert run("query", "towns", many, "--output", str(path)).status == 0
    assert len(path.read_text().splitlines()) == 3001
    ended = run("query", "towns", many, "--format", "csv", "--rows", "10")
    assert len(ended.out.splitlines()) == 11
    assert "cut at 10 rows" in ended.err


def test_values_of_placeholders_follow_the_statement(run: Run, towns: Path):
    for words in (
        ("SELECT name FROM towns WHERE id = ? AND people > ?", "3", "-5"),
        ("SELECT name FROM towns WHERE id = ? AND people > ?", "3", "--", "-5"),
    ):
        found = run("query", "towns", "--json", *words).json
        assert found["rows"] == [["Львів"]]
    typed = run(
        *("query", "towns", "SELECT typeof(?), typeof(?), typeof(?), typeof(?), typeof(?)"),
        *("7", '"7"', "x y", "null", "1.5", "--json"),
    ).json
    assert typed["rows"] == [["integer", "text", "text", "null", "real"]]


def test_parameters_are_given_by_name(run: Run, towns: Path):
    text = "SELECT name FROM towns WHERE id = :id OR name = :name ORDER BY id"
    found = run("query", "towns", text, "--param", "id=1", "--param", "name=京都", "--json").json
    assert found["rows"] == [["Köln"], ["京都"]]
    hostile = run(
        "query", "towns", text, "--param", "id=0", "--param", "name=' OR 1=1 --", "--json"
    )
    assert hostile.json["rows"] == []
    for wrong in (("--param", "id"), ("--param", "nosuch=1"), ("--param", "id=1", "5")):
        refused = run("query", "towns", text, *wrong)
        assert refused.status == 2, refused.out
        assert refused.err.count("\n") == 1


def test_a_statement_is_read_from_a_file(run: Run, towns: Path, tmp_path: Path):
    (tmp_path / "q.sql").write_text("SELECT name\nFROM towns -- towns\nWHERE id = ?\n")
    file = ("--file", str(tmp_path / "q.sql"))
    assert run("query", "towns", *file, "2", "--json").json["rows"] == [["京都"]]
    assert run("query", "towns", "2", *file, "--json").json["rows"] == [["京都"]]
    assert run("query", "towns", "--file", "-", "--json", stdin="SELECT 5").json["rows"] == [[5]]
    assert run("query", "towns", "--file", str(tmp_path / "none.sql")).status == 74
    missing = run("query", "towns")
    assert (missing.status, "--file" in missing.err) == (2, True)


def test_export_writes_tables_into_any_directory(run: Run, towns: Path, tmp_path: Path):
    folder = tmp_path / "out"
    folder.mkdir()
    ended = run("export", "towns", "--directory", str(folder))
    assert ended.status == 0, ended.err
    assert sorted(path.name for path in folder.iterdir()) == ["towns.csv", "visits.csv"]
    assert run("export", "towns", "visits", "--directory", str(folder)).status == 2
    again = ("--directory", str(folder), "--format", "parquet", "VISITED")
    assert run("export", "towns", *again).status == 0
    assert duckdb.sql(f"SELECT count(*) FROM '{folder}/visited.parquet'").fetchall() == [(2,)]
    assert run("export", "towns", "nowhere", "--directory", str(folder)).status == 66
    assert run("export", "towns", "--directory", str(folder / "none")).status == 2


def test_what_is_exported_is_masked_and_on_record(run: Run, database: Path, tmp_path: Path):
    added = run("source", "add", "towns", f"sqlite:///{database}", "--mask", "towns.name")
    assert added.status == 0, added.err
    assert run("export", "towns", "towns", "--directory", str(tmp_path)).status == 0
    assert "Köln" not in (tmp_path / "towns.csv").read_text()
    records = run("audit", "tail", "--source", "towns", "--json").out.splitlines()
    assert [each["tool"] for each in map(json.loads, records) if "statement" in each][
        -1
    ] == "export"


@pytest.mark.parametrize("command", ["explain", "judge"])
def test_explain_and_judge_take_the_order_of_query(
    run: Run, towns: Path, tmp_path: Path, command: str
):
    given = run(command, "towns", "SELECT 1")
    assert (given.status, given.err) == (0, "")
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert run(command, "towns", "--file", str(tmp_path / "q.sql")).out == given.out
    assert run(command, "towns", "-", stdin="SELECT 1").status in (0, 2)
    assert run(command, "towns", "SELECT 1", "more").status == 2
    assert "There is no option --source" in run(command, "--source", "towns", "SELECT 1").err


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_terminal_shows_what_its_encoding_lacks_as_escapes(
    towns: Path, state: Path, encoding: str
) -> None:
    words = ["query", "towns", "SELECT 'caf\u00e9' AS \"\u2603\", '\U0001f600' AS \"\u00fc\""]
    done = subprocess.run(
        [sys.executable, "-m", "tidegate", *words], capture_output=True, check=False,
        env={**environment(state), "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    shown = done.stdout.decode(encoding)
    assert done.returncode == 0, done.stderr
    for character in "\u00e9\u2603\U0001f600\u00fc":
        assert character.encode(encoding, "backslashreplace").decode(encoding) in shown
    csv = subprocess.run(
        [sys.executable, "-m", "tidegate", *words, "--format", "csv"], capture_output=True,
        env={**environment(state), "PYTHONIOENCODING": encoding}, check=True,
    )  # fmt: skip
    assert "caf\u00e9" in csv.stdout.decode("utf-8")
