"""Attacks on the records: a full disk, forged lines, and what errors tell of this machine."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from support.attack_target import RUNAWAY, Target, target
from tidegate.audit.verify import verify


@pytest.fixture
def server(tmp_path: Path) -> Generator[Target]:
    with target(tmp_path, "--no-auth") as running:
        yield running


def segment(server: Target) -> Path:
    (path,) = (server.state / "audit").glob("*.jsonl")
    return path


def records(server: Target) -> list[dict[str, Any]]:
    """The lines about calls; the others tell of the server and the log itself."""
    lines = [json.loads(line) for line in segment(server).read_bytes().split(b"\n")[1:-1]]
    return [line for line in lines if "call_id" in line]


@pytest.mark.skipif(sys.platform != "linux", reason="limits another process")
def test_nothing_runs_while_the_records_cannot_be_written(server: Target) -> None:
    assert not server.query("SELECT 1").refused
    process, size = server.server.process.pid, segment(server).stat().st_size
    before = resource.prlimit(process, resource.RLIMIT_FSIZE, (size + 50, resource.RLIM_INFINITY))
    assert server.query("SELECT 2").text.startswith("audit.unavailable")
    # This one would never end: it is not even begun.
    for sql in (RUNAWAY, "SELECT 3", "DELETE FROM items"):
        assert server.query(sql).text.startswith("audit.unavailable")
        assert server.call("explain", sql=sql).text.startswith("audit.unavailable")
    assert server.call("describe", tables=["items"]).text.startswith("audit.unavailable")
    resource.prlimit(process, resource.RLIMIT_FSIZE, before)
    assert server.query("SELECT 4").text == '{"columns":["4"],"rows":[[4]]}'
    assert [r["statement"] for r in records(server) if r["phase"] == "outcome"] == [
        "SELECT 1",
        "SELECT 4",
    ]
    assert verify(segment(server).parent).faults == ()


FORGED = '\n{"seq":3,"phase":"outcome","actor":"nobody"}\n'


def test_no_text_makes_a_line_of_its_own(server: Target) -> None:
    marks = "\u2028\u2029\x85\x0b\x0c\x1c\r\n" + FORGED
    server.query(f"SELECT '{marks}'")
    server.query(f"SELECT 1 -- {marks}")
    server.query("SELECT 1", source=marks)
    server.call("describe", tables=[marks])
    content = segment(server).read_text("utf-8")
    lines = content.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert len(lines) == content.count("\n")
    assert len(records(server)) == 4
    assert all(record["actor"] == "anonymous" for record in records(server))
    assert records(server)[0]["statement"] == f"SELECT '{marks}'"


def test_no_text_moves_the_cursor_or_turns_a_line_around(server: Target) -> None:
    hidden = "\x1b[2J\x9b31m\u200b\u2066\ufeff"
    server.query(f"SELECT '{hidden}', 'Köln 京都'")
    content = segment(server).read_text("utf-8")
    assert "Köln 京都" in content
    assert not set(hidden) - set("[2J31m") & set(content)
    assert hidden in records(server)[0]["statement"]


def test_errors_name_no_directory_of_this_machine(server: Target) -> None:
    directory = str(server.database.parent)
    assert not server.query("SELECT 1").refused
    server.database.unlink()
    for answer in (
        server.query("SELECT 1"),
        server.call("describe", tables=["items"]),
        server.call("sources"),
    ):
        assert directory not in answer.body.decode()
    assert "shop.db" in server.query("SELECT 1").text
    assert directory in segment(server).read_text()
