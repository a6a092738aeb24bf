"""Attacks on the record by who may write in its directory, but not with its key: what they leave
there must not keep the verifier from telling, nor the server from starting, nor reach other files.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.eventually import PATIENCE_S
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.audit.verify import verify
from tidegate.config.model import AuditSettings
from tidegate.errors import Code, TidegateError

SMALL = AuditSettings(segment_bytes=1_500)


def event(number):
    return Event(call_id=f"c{number}", phase="outcome", actor="a", statement="SELECT 1")


@pytest.fixture
def state(tmp_path):
    """A record of several segments that continue each other, signed."""
    log = AuditLog(tmp_path / "audit", keys=tmp_path / "keys", settings=SMALL)
    for _ in range(3):
        for number in range(8):
            log.append(event(number))
        log.close()
        log = AuditLog(tmp_path / "audit", keys=tmp_path / "keys", settings=SMALL)
    log.close()
    assert verify(tmp_path / "audit", tmp_path / "keys").intact
    assert len(list((tmp_path / "audit").glob("*.jsonl"))) > 2
    return tmp_path


def in_a_process(state, text):
    """Run Python on the record, so that one that hangs can be ended."""
    code = (
        "import sys; from pathlib import Path; state = Path(sys.argv[1])\n"
        "from tidegate.audit.log import AuditLog\nfrom tidegate.audit.verify import verify\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code + text, str(state)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    ).stdout  # fmt: skip


@pytest.mark.parametrize("name", ["00000x.jsonl", "../x.jsonl", "x", "", "9" * 5_000 + ".jsonl"])
@pytest.mark.parametrize(
    "mark",
    ['"next":"', '"previous":{"segment":"', '"ends":[{"segment":"', '"phase":"open","segment":"'],
)  # fmt: skip
def test_a_name_that_was_changed_in_a_mark_is_reported_and_stops_no_one(state, mark, name):
    for path in sorted((state / "audit").glob("*.jsonl")):
        text = path.read_text()
        at = text.find(mark)
        if at < 0:
            continue
        end = text.index('"', at + len(mark))
        line = text.count("\n", 0, at) + 1
        path.write_text(text[: at + len(mark)] + name + text[end:])
        faults = verify(state / "audit", state / "keys").faults
        assert (path.name, line) in [(fault.segment, fault.line) for fault in faults]
        AuditLog(state / "audit", keys=state / "keys").close()
        return
    pytest.fail("no such mark")


def test_a_file_with_a_huge_number_is_reported_at_once(state):
    (state / "audit" / "999999999999.jsonl").touch()
    reported = in_a_process(
        state,
        "report = verify(state / 'audit', state / 'keys')\n"
        "print(report.intact, len(report.faults) < 1000)",
    )
    assert reported.split() == ["False", "True"]


@pytest.mark.parametrize("kind", ["pipe", "link", "directory"])
def test_what_is_no_file_among_the_segments_is_reported_and_not_waited_for(state, kind):
    path = state / "audit" / "000099.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(state / "audit" / "000001.jsonl")
    else:
        path.mkdir()
    reported = in_a_process(
        state,
        "for fault in verify(state / 'audit', state / 'keys').faults: print(fault.segment)\n"
        "AuditLog(state / 'audit', keys=state / 'keys').close()",
    )
    assert "000099.jsonl" in reported.split()


def test_a_link_in_the_place_of_a_torn_line_reaches_no_file_outside(state):
    key = state / "keys" / "signing.key"
    held = key.read_bytes()
    newest = max((state / "audit").glob("*.jsonl"))
    size = newest.stat().st_size
    newest.write_bytes(newest.read_bytes() + b"torn")
    newest.with_suffix(f".torn-{size}").symlink_to(key)
    try:
        AuditLog(state / "audit", keys=state / "keys").close()
    except TidegateError as error:
        assert error.code is Code.AUDIT_UNAVAILABLE
    assert key.read_bytes() == held
    assert b"torn" not in b"".join(path.read_bytes() for path in (state / "keys").iterdir())


def test_a_head_with_an_invalid_segment_name_is_reported_and_the_log_goes_on(state):
    head = state / "keys" / "head.json"
    head.write_text(head.read_text().replace('"segment":"0', '"segment":"x', 1))
    report = verify(state / "audit", state / "keys")
    assert not report.intact
    assert [fault.reason for fault in report.faults] == [
        f"the newest checkpoint, `{head}`, cannot be read"
    ]
    log = AuditLog(state / "audit", keys=state / "keys")
    log.append(event(99))
    log.close()
    newest = max((state / "audit").glob("*.jsonl"))
    assert '"call_id":"c99"' in newest.read_text()
    assert verify(state / "audit", state / "keys").intact
