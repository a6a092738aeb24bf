"""`tidegate audit`: what happened, and a proof that the record of it is whole."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.eventually import HANG_S, PATIENCE_S
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.cli.checks.state import check_record


@pytest.fixture
def record(run: Callable[..., Any], towns: Path, state: Path) -> Path:
    """A state in which two statements ran and one was refused; returns its audit directory."""
    assert run("query", "towns", "SELECT name FROM towns").status == 0
    assert run("query", "towns", "SELECT count(*) FROM visits").status == 0
    assert run("query", "towns", "DROP TABLE towns").status != 0
    return state / "audit"


def test_a_whole_record_is_said_to_be_intact(run, record):
    ended = run("audit", "verify")
    assert ended.status == 0
    assert ended.out.startswith("intact: ")
    assert json.loads(run("audit", "verify", "--json").out)["intact"]


def test_verifying_writes_nothing(run, record):
    before = {path: path.read_bytes() for path in record.iterdir()}
    run("audit", "verify")
    run("audit", "tail")
    run("audit", "checkpoint")
    assert {path: path.read_bytes() for path in record.iterdir()} == before


def test_a_changed_word_is_found_with_its_line_and_ends_in_status_1(run, record):
    path = record / "000001.jsonl"
    content = path.read_bytes()
    at = content.index(b"visits")
    path.write_bytes(content.replace(b"visits", b"towns_", 1))
    ended = run("audit", "verify")
    assert ended.status == 1
    line = content[:at].count(b"\n") + 1
    assert f"000001.jsonl line {line}: the line was changed" in ended.out
    assert "CHANGED" in ended.out
    faults = json.loads(run("audit", "verify", "--json").out)["faults"]
    assert faults[0]["line"] == line


def test_an_end_that_was_cut_off_is_found(run, record):
    path = record / "000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    ended = run("audit", "verify")
    assert ended.status == 1
    assert "the end was cut off" in ended.out


def test_a_state_put_back_is_found_by_the_checkpoint_kept_elsewhere(run, record, state, tmp_path):
    shutil.copytree(state, tmp_path / "older")
    run("query", "towns", "SELECT 1")
    anchor = tmp_path / "anchor.txt"
    anchor.write_text(run("audit", "checkpoint").out)
    assert run("audit", "verify", "--anchor", str(anchor)).status == 0
    assert run("audit", "verify", "--anchor", anchor.read_text()).status == 0
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "older", state)
    assert run("audit", "verify").status == 0
    assert run("audit", "verify", "--anchor", str(anchor)).status == 1


def test_a_copy_is_checked_with_the_public_key(run, record, tmp_path):
    public = run("audit", "key").out.strip()
    shutil.copytree(record, tmp_path / "copy")
    ended = run("audit", "verify", "--directory", str(tmp_path / "copy"), "--key", public)
    assert ended.status == 3
    assert ended.out.startswith("intact as far as it could be checked: ")
    assert "not checked: no checkpoint from outside the log" in ended.err
    assert " 0 checkpoints" not in ended.out
    (tmp_path / "anchor").write_text(run("audit", "checkpoint").out)
    anchor = ("--anchor", str(tmp_path / "anchor"))
    ended = run("audit", "verify", "--directory", str(tmp_path / "copy"), "--key", public, *anchor)
    assert (ended.status, ended.out[:8]) == (0, "intact: ")


@pytest.mark.parametrize("taken", ["audit-key", "audit-key/head.json"])
def test_a_record_without_keys_or_head_is_not_said_to_be_intact(run, record, state, taken):
    gone = state / taken
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    ended = run("audit", "verify")
    assert ended.status in (1, 3)
    assert not ended.out.startswith("intact: ")
    # `doctor` itself signs what it records, so its check is asked alone.
    (finding,) = asyncio.run(check_record(state, HANG_S))
    assert finding.state in ("note", "fault")


def test_a_replaced_key_leaves_the_record_intact_and_is_on_record(run, record):
    old = run("audit", "key").out
    new = run("audit", "key", "--replace").out
    assert old != new
    assert run("audit", "verify").status == 0
    assert run("audit", "key", "--all").out == new + old
    assert "audit.key_replaced" in run("audit", "tail").out


def test_the_newest_records_are_shown_in_order(run, record):
    shown = run("audit", "tail").out.splitlines()
    phases = [line.split("  ")[1] for line in shown]
    # A source is tried before it is saved.
    assert phases == ["outcome", "event", "outcome", "outcome", "refusal"]
    assert "SELECT name FROM towns" in shown[2]
    assert "DROP TABLE towns" in shown[4]
    newest = run("audit", "tail", "-n", "1")
    assert newest.out.splitlines() == shown[4:]
    assert "there are more" in newest.err
    assert "there are more" not in run("audit", "tail", "-n", "5").err


def test_a_statement_that_the_record_has_in_part_says_how_long_it_was(run, record):
    text = "SELECT name" + ", 1" * 1_500 + " AS password, 'hunter2' FROM towns"
    assert run("query", "towns", text).status == 0
    shown = run("audit", "tail", "-n", "1").out
    assert f"... ({len(text):,} characters)" in shown
    assert "hunter2" not in shown


def test_records_are_chosen_by_who_where_and_when(run, record):
    def count(*words):
        return len(run("audit", "tail", "--json", *words).out.splitlines())

    assert count("--actor", "cli") == 5
    assert count("--actor", "nobody") == 0
    assert count("--source", "towns") == 5
    assert count("--source", "elsewhere") == 0
    assert count("--since", "1h") == 5
    assert count("--since", "2999-01-01") == 0
    assert count("--until", "1h") == 0
    assert count("--until", "2999-01-01") == 5
    assert count("--all") > 5
    refused = run("audit", "tail", "--since", "soon")
    assert refused.status == 2 and "Use a form such as 2h" in refused.err


def test_a_statement_cannot_move_the_cursor_of_who_reads_the_record(run, record):
    run("query", "towns", "SELECT '\x1b[2J\u202e'")
    shown = run("audit", "tail", "-n", "1").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_following_shows_what_comes(run, record, state):
    words = [sys.executable, "-m", "tidegate", "audit", "tail", "--follow", "-n", "1", "--json"]
    environment = {**os.environ, "TIDEGATE_STATE": str(state), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as following:
        try:
            assert b"DROP TABLE towns" in following.stdout.readline()
            run("query", "towns", "SELECT 'the next one'")
            assert b"the next one" in following.stdout.readline()
        finally:
            following.send_signal(signal.SIGINT)
        assert following.wait(PATIENCE_S) == 130


def test_before_anything_was_signed_there_is_no_checkpoint(run):
    assert run("audit", "checkpoint").status != 0
    assert run("audit", "tail").status != 0
    assert run("audit", "verify").status != 0


def test_a_dry_run_is_shown_as_one(run, record, state):
    log = AuditLog(record, keys=state / "audit-key")
    for request in ("dry_run", "query"):
        log.append(
            Event(call_id=request, phase="intent", actor="ann", source="towns", request=request)
        )
    log.close()
    shown = run("audit", "tail", "--actor", "ann").out.splitlines()
    assert ["dry run, rolled back" in line for line in shown] == [True, False]
