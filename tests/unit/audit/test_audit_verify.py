"""Verifying a directory: what was changed, and where."""

from datetime import UTC, datetime

import pytest

from tidegate.audit import chain
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.audit.verify import verify
from tidegate.errors import Code, TidegateError


@pytest.fixture
def directory(tmp_path):
    """Two segments: the first with lines 1 to 6, the second begun while the first was at 4."""
    first = AuditLog(tmp_path)
    _append(first, 3)
    second = AuditLog(tmp_path)
    _append(second, 3)
    _append(first, 2)
    second.close()
    first.close()
    return tmp_path


def _append(log, count):
    for number in range(count):
        log.append(Event(call_id=f"c{number}", phase="outcome", actor="a"))


def change(directory, segment, changing):
    path = directory / segment
    path.write_bytes(b"".join(changing(path.read_bytes().splitlines(keepends=True))))
    return [(fault.segment, fault.line) for fault in verify(directory).faults]


def test_what_was_written_is_intact(directory):
    report = verify(directory)
    assert (report.segments, report.lines, report.faults, report.notes) == (2, 10, (), ())
    assert report.intact


def test_an_empty_or_missing_directory(tmp_path):
    assert verify(tmp_path).intact
    with pytest.raises(TidegateError) as caught:
        verify(tmp_path / "nowhere")
    assert caught.value.code is Code.STATE_FAILED


def test_a_removed_line_is_found(directory):
    assert change(directory, "000001.jsonl", lambda old: old[:2] + old[3:]) == [("000001.jsonl", 3)]


def test_a_removed_first_line_is_found(directory):
    assert change(directory, "000001.jsonl", lambda old: old[1:]) == [("000001.jsonl", 1)]


def test_exchanged_lines_are_found(directory):
    assert change(directory, "000002.jsonl", lambda old: [old[0], old[2], old[1], old[3]]) == [
        ("000002.jsonl", 2)
    ]


def test_a_changed_last_line_is_found(directory):
    assert change(
        directory, "000001.jsonl", lambda old: [*old[:-1], old[-1].replace(b'"c1"', b'"c9"')]
    ) == [("000001.jsonl", 6)]


def test_a_line_put_in_is_found(directory):
    assert change(directory, "000001.jsonl", lambda old: [*old[:3], old[2], *old[3:]]) == [
        ("000001.jsonl", 4)
    ]


def test_an_end_that_was_cut_off_is_found_as_far_as_another_segment_saw_it(directory):
    assert change(directory, "000001.jsonl", lambda old: old[:3]) == [("000001.jsonl", 3)]


def test_an_end_cut_off_later_needs_a_witness_that_is_not_there_yet(directory):
    assert change(directory, "000001.jsonl", lambda old: old[:4]) == []


def test_lines_of_another_segment_are_found(directory):
    (directory / "000002.jsonl").write_bytes((directory / "000001.jsonl").read_bytes())
    faults = verify(directory).faults
    assert ("000002.jsonl", 1) in [(fault.segment, fault.line) for fault in faults]


def test_a_removed_segment_is_found(directory):
    (directory / "000001.jsonl").unlink()
    assert [(fault.segment, fault.line) for fault in verify(directory).faults] == [
        ("000001.jsonl", 0)
    ]


def test_a_segment_without_a_witness_is_missed_by_its_number(tmp_path):
    for name in ("000001.jsonl", "000003.jsonl"):
        (tmp_path / name).write_bytes(b"")
    assert [fault.segment for fault in verify(tmp_path).faults] == ["000002.jsonl"]


def test_a_history_rewritten_is_found_by_its_witness(directory, tmp_path):
    forged = tmp_path / "forged"
    log = AuditLog(forged)
    _append(log, 5)
    log.close()
    (directory / "000001.jsonl").write_bytes((forged / "000001.jsonl").read_bytes())
    (fault,) = verify(directory).faults
    assert (fault.segment, fault.line) == ("000001.jsonl", 4)
    assert "rewritten" in fault.reason


def _sealed(*bodies):
    lines, previous = [], chain.START
    for body in bodies:
        line, previous = chain.seal(body, previous)
        lines.append(line + b"\n")
    return b"".join(lines)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"seq":1,"phase":"outcome"}', "does not begin with a header"),
        (b'{"seq":1,"time":"x","phase":"open","segment":"000001.jsonl"}', "cannot be read"),
        (
            b'{"seq":1,"time":"2026-01-01T00:00:00Z","phase":"open","segment":"000009.jsonl",'
            b'"process":1,"version":"0"}',
            "belongs to 000009.jsonl",
        ),
        (b"[]", "no number"),
    ],
)
def test_a_chain_that_no_one_opened_is_found(tmp_path, body, reason):
    (tmp_path / "000001.jsonl").write_bytes(_sealed(body))
    assert reason in verify(tmp_path).faults[0].reason


def test_a_header_that_claims_to_continue_another_segment_is_the_first_line(directory):
    path = directory / "000002.jsonl"
    header = (
        b'{"seq":%d,"time":"2026-01-01T00:00:00Z","phase":"open","segment":"000002.jsonl",'
        b'"process":1,"version":"0"%b}'
    )
    previous = b',"previous":{"segment":"000001.jsonl","seq":1,"hash":"00"}'
    path.write_bytes(_sealed(header % (1, b""), header % (2, b"")))
    assert [fault for fault in verify(directory).faults if fault.segment == path.name] == []
    path.write_bytes(_sealed(header % (1, b""), header % (2, previous)))
    (fault,) = (fault for fault in verify(directory).faults if fault.segment == path.name)
    assert fault.line == 2
    assert "claims to continue 000001.jsonl" in fault.reason


def edited(line):
    return line.replace(b'"actor":"a"', b'"actor":"x"')


def test_b8_what_follows_a_fault_is_verified_too(tmp_path):
    log = AuditLog(tmp_path)
    _append(log, 8)
    log.close()
    path = tmp_path / "000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2], lines[6] = edited(lines[2]), edited(lines[6])
    path.write_bytes(b"".join(lines))
    report = verify(tmp_path)
    assert [fault.line for fault in report.faults] == [3, 7]
    assert report.lines == 7


def test_b8_a_line_that_cannot_be_read_hides_no_later_fault(tmp_path):
    log = AuditLog(tmp_path)
    _append(log, 8)
    log.close()
    path = tmp_path / "000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2], lines[6] = b"nonsense\n", edited(lines[6])
    path.write_bytes(b"".join(lines))
    report = verify(tmp_path)
    assert [fault.line for fault in report.faults] == [3, 7]
    # The line after the unreadable one has nothing to be held to.
    assert report.lines == 6


def test_b8_a_segment_that_does_not_verify_is_not_continued(tmp_path):
    log = AuditLog(tmp_path)
    _append(log, 8)
    log.close()
    path = tmp_path / "000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = edited(lines[2])
    path.write_bytes(b"".join(lines))
    before = path.read_bytes()
    log = AuditLog(tmp_path)
    _append(log, 1)
    log.close()
    assert path.read_bytes() == before
    assert log.path.name == "000002.jsonl"
    assert {fault.segment for fault in verify(tmp_path).faults} == {"000001.jsonl"}


def test_e_each_fault_of_the_whole_log_is_reported(directory, tmp_path):
    from tidegate.audit.control_records import Checkpoint

    strange = [
        Checkpoint(n, datetime.now(UTC), "checkpoint", "000001.jsonl", (), 1, "k", "00")
        for n in (1, 2)
    ]
    reasons = [fault.reason for fault in verify(directory, anchors=strange).faults]
    assert len(reasons) == 2
    assert "anchor 1" in reasons[0]
    assert "anchor 2" in reasons[1]
