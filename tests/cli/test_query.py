"""`tidegate query`: a person's statement passes the same gate as an agent's."""

from __future__ import annotations

import os
import pty
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.command_line import Ended, environment, tidegate

Run = Callable[..., Ended]
Contents = Callable[[], list[tuple[object, ...]]]


def test_a_result_is_a_table(run: Run, towns: Path) -> None:
    ended = run("query", "towns", "SELECT name, people FROM towns ORDER BY id")
    assert ended.status == 0
    assert ended.out.splitlines() == [
        "name    people",
        "-----  -------",
        "Köln   1084831",
        "京都      NULL",
        "Львів   717273",
    ]
    assert ended.err.startswith("3 rows in ")


def test_a_result_is_json_when_asked(run: Run, towns: Path) -> None:
    result = run("query", "towns", "SELECT name, people FROM towns ORDER BY id", "--json").json
    assert [column["name"] for column in result["columns"]] == ["name", "people"]
    assert result["rows"] == [["Köln", 1084831], ["京都", None], ["Львів", 717273]]
    assert (result["row_count"], result["truncations"]) == (3, [])


def test_a_statement_is_read_from_stdin(run: Run, towns: Path) -> None:
    ended = run("query", "towns", "-", "--json", stdin="SELECT count(*) FROM visits\n")
    assert ended.json["rows"] == [[3]]


def test_a_cut_is_said(run: Run, towns: Path) -> None:
    ended = run("query", "towns", "SELECT * FROM towns", "--rows", "2")
    assert len(ended.out.splitlines()) == 4
    assert "cut at 2 rows" in ended.err


def test_as_many_rows_as_asked_for_are_no_cut(run: Run, towns: Path) -> None:
    ended = run("query", "towns", "SELECT * FROM towns", "--rows", "3")
    assert "cut" not in ended.err


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM towns",
        "UPDATE towns SET name = ''",
        "INSERT INTO towns VALUES (4, 'x', 1)",
        "DROP TABLE towns",
        "WITH gone AS (SELECT 1) DELETE FROM towns",
        "SELECT 1; DELETE FROM towns",
        "PRAGMA writable_schema = 1",
        "ATTACH 'other.db' AS other",
    ],
)
def test_a_write_is_refused_and_changes_nothing(
    run: Run, towns: Path, contents: Contents, sql: str
) -> None:
    before = contents()
    ended = run("query", "towns", sql)
    assert ended.out == ""
    assert ended.status in (2, 77)
    assert ended.err.startswith("tidegate: ") and ended.err.count("\n") == 1
    assert contents() == before


def test_a_source_that_may_be_written_is_still_only_read_from_here(
    run: Run, database: Path, contents: Contents
) -> None:
    run("source", "add", "open", f"sqlite:///{database}", "--allow-writes")
    before = contents()
    assert run("query", "open", "DELETE FROM towns").status == 77
    assert contents() == before


def test_an_unknown_source_suggests_the_nearest(run: Run, towns: Path) -> None:
    ended = run("query", "town", "SELECT 1")
    assert (ended.status, ended.out) == (66, "")
    assert "'towns'" in ended.err


def test_what_the_database_refuses_is_one_line(run: Run, towns: Path) -> None:
    ended = run("query", "towns", "SELECT nmae FROM towns")
    assert (ended.status, ended.out) == (65, "")
    assert "nmae" in ended.err and ended.err.count("\n") == 1


def test_a_reader_that_goes_away_is_no_fault(towns: Path, state: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tidegate", "query", "towns", "SELECT 1", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(state),
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_colors_are_for_terminals_only(run: Run, towns: Path, state: Path) -> None:
    sql = "SELECT NULL AS nil"
    assert "\x1b" not in run("query", "towns", sql).out
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as screen:
        env = {**environment(state), "TERM": "xterm"}
        env.pop("NO_COLOR", None)
        ended = subprocess.run(
            [sys.executable, "-m", "tidegate", "query", "towns", sql],
            stdout=theirs, stderr=subprocess.PIPE, env=env, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        seen = screen.read(4096)
        os.close(theirs)
    assert b"\x1b[1mnil" in seen


def test_on_a_source_that_may_be_written_it_still_only_reads_and_explain_knows_it(
    run: Run, towns: Path, contents: Contents
) -> None:
    before = contents()
    assert run("source", "update", "towns", "--access", "write").status == 0
    ended = run("query", "towns", "DELETE FROM towns WHERE id = 1")
    assert (ended.status, ended.out) == (77, "")
    assert "`tidegate query` only reads. Make the change with a client" in ended.err
    reported = run("explain", "towns", "--json", "DELETE FROM towns WHERE id = 1").json
    assert (reported["caller"]["scope"], reported["verdict"]) == ("readOnly", "deny")
    assert contents() == before


def test_the_bound_on_values_follows_the_pattern_whatever_similar_text_ran_before(
    tmp_path: Path,
) -> None:
    """SQLite cannot be stopped while it searches one value for a long pattern."""
    with closing(sqlite3.connect(tmp_path / "big.db")) as made, made:
        made.execute("CREATE TABLE b (v TEXT)")
        made.execute("INSERT INTO b VALUES (?)", ("a" * 3_000_000,))
    state = tmp_path / "state"
    url = f"sqlite:///{tmp_path}/big.db"
    assert tidegate("source", "add", "big", url, state=state).status == 0
    short, long = (f"SELECT count(*) FROM b WHERE v LIKE '%{word}'" for word in ("x", "a" * 200))
    assert tidegate("query", "big", short, state=state).status == 0
    refused = tidegate("query", "big", long, state=state)
    assert refused.status != 0 and "1800000 bytes" in refused.err
