"""`tidegate judge` says what a statement would do, and runs nothing."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.command_line import tidegate


def judged(*words: str, state: Path, stdin: str = "") -> list[dict[str, object]]:
    ended = tidegate("judge", *words, state=state, stdin=stdin)
    assert (ended.status, ended.err) == (0, "")
    return [json.loads(line) for line in ended.out.splitlines()]


@pytest.mark.parametrize(
    ("sql", "effect", "verdict"),
    [
        ("SELECT 'drop table'", "read", "allow"),
        ("DELETE FROM t WHERE id = 1", "write", "deny"),
        ("DROP TABLE t", "destructive", "deny"),
        ("SELECT load_extension('x')", "unknown", "deny"),
        ("SELECT 1; SELECT 2", "unknown", "deny"),
        ("nonsense", "unknown", "deny"),
    ],
)
def test_one_statement_is_judged_by_its_dialect(
    tmp_path: Path, sql: str, effect: str, verdict: str
) -> None:
    (opinion,) = judged("--dialect", "sqlite", sql, state=tmp_path)
    assert (opinion["effect"], opinion["verdict"]) == (effect, verdict)
    assert list(opinion) == [
        "effect", "verdict", "code", "rule", "tables", "functions", "reason", "hint",
    ]  # fmt: skip
    assert verdict == "allow" or (opinion["code"] and opinion["rule"] and opinion["hint"])


def test_a_wider_scope_allows_more_and_a_change_of_every_row_needs_a_confirmation(
    tmp_path: Path,
) -> None:
    words = ("--dialect", "postgres", "--scope", "readWrite")
    assert judged(*words, "DELETE FROM t WHERE id = 1", state=tmp_path)[0]["verdict"] == "allow"
    assert judged(*words, "DELETE FROM t", state=tmp_path)[0]["verdict"] == "confirm"


def test_lines_are_answered_line_by_line(tmp_path: Path) -> None:
    lines = [
        {"dialect": "postgres", "sql": "SELECT pg_read_file('a')"},
        {"dialect": "mysql", "sql": "SELECT 1 /*!50000 INTO OUTFILE '/tmp/x' */"},
        {"sql": "SELECT 1"},
    ]
    opinions = judged("-", state=tmp_path, stdin="\n".join(map(json.dumps, lines)))
    assert [opinion["verdict"] for opinion in opinions] == ["deny", "deny", "allow"]


def test_half_of_a_surrogate_pair_does_not_end_the_input(tmp_path: Path) -> None:
    lines = '{"sql":"SELECT \\ud800"}\n{"sql":"SELECT 1"}\n'
    broken, plain = judged("-", state=tmp_path, stdin=lines)
    assert (broken["verdict"], broken["code"]) == ("deny", "sql.unreadable")
    assert plain["verdict"] == "allow"


def test_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    ended = tidegate("judge", "-", state=tmp_path, stdin='{"sql":"SELECT 1"}\n{"sq": 1}\n')
    assert ended.status == 2
    assert "Line 2" in ended.err


def test_a_source_is_judged_with_its_databases_own_opinion(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE t(id)")
    tidegate("source", "add", "a", f"sqlite:///{tmp_path}/a.db", state=tmp_path / "state")
    (opinion,) = judged("a", "SELECT * FROM t", state=tmp_path / "state")
    assert (opinion["verdict"], opinion["tables"]) == ("allow", ["t"])
    (refused,) = judged("a", "DROP TABLE t", state=tmp_path / "state")
    assert refused["verdict"] == "deny"
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
