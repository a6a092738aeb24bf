"""What several processes do to one record at the same moment, each step brought about by hand."""

import asyncio
import os
import queue
import threading

import pytest

from support.eventually import HANG_S
from tidegate.audit import segment, tail
from tidegate.audit.event import Event
from tidegate.audit.keys import Keys
from tidegate.audit.log import AuditLog
from tidegate.audit.tail import Tail, TailFilter
from tidegate.audit.verify import _Verification, verify
from tidegate.config.model import AuditSettings
from tidegate.errors import Code, TidegateError


def write(state, call_id):
    log = AuditLog(state / "audit", keys=state / "keys")
    log.append(Event(call_id=call_id, phase="outcome", actor="a"))
    log.close()


@pytest.fixture
def removed_just_now(tmp_path, monkeypatch):
    """A segment that a listing still has, and a server has removed since."""
    write(tmp_path, "a")
    gone = tmp_path / "audit" / "000002.jsonl"
    listed = segment.segments
    for module in (segment, tail):
        monkeypatch.setattr(module, "segments", lambda directory: [*listed(directory), gone])
    return tmp_path


def test_a_key_that_is_being_made_or_replaced_is_seen_whole_or_not_at_all(tmp_path, monkeypatch):
    seen = []
    sync = os.fsync

    def look(descriptor):
        private = (tmp_path / "signing.key").exists()
        seen.append((private, len(Keys(tmp_path).trusted())))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    keys = Keys(tmp_path)
    assert keys.public() != keys.replace()
    assert seen == [(False, 0), (True, 0), (True, 1), (True, 1)]
    assert len(keys.trusted()) == 2
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_segment_that_goes_while_one_begins_is_no_fault_of_it(removed_just_now):
    write(removed_just_now, "b")
    report = verify(removed_just_now / "audit", removed_just_now / "keys")
    assert report.faults == ()
    assert b'"unreadable":["' not in (removed_just_now / "audit" / "000001.jsonl").read_bytes()


def test_a_segment_that_goes_while_the_record_is_shown_is_passed_over(removed_just_now):
    shown = Tail(removed_just_now / "audit")
    assert [record.fields["call_id"] for record in shown.newest(TailFilter(), 9)] == ["a"]
    assert shown.more(TailFilter()) == []
    shown._read[removed_just_now / "audit" / "000002.jsonl"] = 100
    assert len(shown.newest(TailFilter(), 9)) == 1


def test_a_segment_that_is_begun_while_the_record_is_verified_is_no_fault(tmp_path, monkeypatch):
    settings = AuditSettings(segment_bytes=1_000)
    log = AuditLog(tmp_path / "audit", keys=tmp_path / "keys", settings=settings)
    listed = segment.segments

    def turn_a_page(directory):
        found = listed(directory)
        while log.path in found:
            log.append(Event(call_id="c", phase="outcome", actor="a"))
            log._maintain(log._sync)
        return found

    monkeypatch.setattr("tidegate.audit.verify.segments", turn_a_page)
    assert not _Verification(tmp_path / "audit", tmp_path / "keys", (), {}).report().intact
    monkeypatch.setattr("tidegate.audit.verify.segments", once(turn_a_page, listed))
    assert verify(tmp_path / "audit", tmp_path / "keys").intact
    log.close()


def once(first, then):
    """What is called the first time, and what each time after it."""
    calls = [first]
    return lambda *given: (calls.pop() if calls else then)(*given)


def test_a_fault_in_a_record_that_grows_is_reported_all_the_same(tmp_path, monkeypatch):
    write(tmp_path, "a")
    path = tmp_path / "audit" / "000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"call_id":"a"', b'"call_id":"b"'))
    log = AuditLog(tmp_path / "audit", keys=tmp_path / "keys")
    listed = segment.segments

    def grow(directory):
        log.append(Event(call_id="c", phase="outcome", actor="a"))
        return listed(directory)

    monkeypatch.setattr("tidegate.audit.verify.segments", grow)
    assert not verify(tmp_path / "audit", tmp_path / "keys").intact
    log.close()


def test_calls_are_recorded_while_a_rotation_waits_for_the_disk(tmp_path, monkeypatch):
    settings = AuditSettings(segment_bytes=1_000)
    log = AuditLog(tmp_path / "audit", keys=tmp_path / "keys", settings=settings)
    full = log.path
    waiting, disk = queue.SimpleQueue(), threading.Semaphore(0)

    def hold(name, path, armed):
        real = getattr(os, name)

        def wait(descriptor):
            if armed() and os.fstat(descriptor).st_ino == path.stat().st_ino:
                waiting.put(name)
                assert disk.acquire(timeout=HANG_S)
            real(descriptor)

        monkeypatch.setattr(os, name, wait)

    hold("fsync", full.parent, lambda: True)
    hold("fdatasync", full, lambda: log.path != full)
    for name in "abcdef":
        log.append(Event(call_id=name, phase="outcome", actor="a"))
    # A call comes while the name of the new segment waits, and one while the full one does.
    assert waiting.get(timeout=HANG_S) == "fsync"
    log.append(Event(call_id="g", phase="outcome", actor="a"))
    assert log.path == full
    disk.release()
    assert waiting.get(timeout=HANG_S) == "fdatasync"
    number = log.append(Event(call_id="h", phase="outcome", actor="a"))
    assert log.path != full and b'"call_id":"h"' in log.path.read_bytes()
    assert log._sync._synced < number
    disk.release()
    asyncio.run(log.durable(number))
    log.close()
    assert verify(tmp_path / "audit", tmp_path / "keys").intact
    text = b"".join(path.read_bytes() for path in sorted((tmp_path / "audit").glob("*.jsonl")))
    places = [text.index(b'"call_id":"%c"' % ord(name)) for name in "abcdefgh"]
    assert places == sorted(places)


def test_nothing_is_called_durable_while_a_full_segment_cannot_be_synced(tmp_path, monkeypatch):
    settings = AuditSettings(segment_bytes=1_000)
    log = AuditLog(tmp_path / "audit", settings=settings)
    for name in "abcdef":
        log.append(Event(call_id=name, phase="outcome", actor="a"))
    full, real = log._writer.descriptor, os.fdatasync

    def fail(descriptor):
        if descriptor == full:
            raise OSError(5, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", fail)
    log._rotate()
    assert log._sync.failure == "Input/output error"
    with pytest.raises(TidegateError) as caught:
        asyncio.run(log.durable(1))
    assert caught.value.code is Code.AUDIT_UNAVAILABLE
    log.close()
