"""The log: one chain per segment, continued by whoever is free, never half a line."""

import asyncio
import json
import os
import stat

import pytest

from support.eventually import PATIENCE_S
from tidegate.audit import chain
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.audit.verify import verify
from tidegate.audit.writer import GroupCommit
from tidegate.errors import Code, TidegateError


def event(call_id="c", **fields):
    return Event(call_id=call_id, phase="outcome", actor="tok_1", **fields)


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write(directory, *calls):
    log = AuditLog(directory)
    for call_id in calls:
        log.append(event(call_id))
    log.close()
    return log.path


def unavailable(action):
    with pytest.raises(TidegateError) as caught:
        action()
    assert caught.value.code is Code.AUDIT_UNAVAILABLE
    return caught.value


def test_each_event_is_a_line_at_once_and_numbered(tmp_path):
    log = AuditLog(tmp_path, lambda: 1_700_000_000.0)
    assert log.append(event("a")) == 2
    assert log.append(event("b")) == 3
    assert [(line["seq"], line.get("call_id")) for line in lines(log.path)] == [
        (1, None),
        (2, "a"),
        (3, "b"),
    ]
    assert lines(log.path)[0]["phase"] == "open"
    assert lines(log.path)[0]["process"] == os.getpid()
    log.close()


def test_the_files_are_for_their_owner_alone(tmp_path):
    path = write(tmp_path / "audit", "a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_reopening_continues_the_chain(tmp_path):
    first = write(tmp_path, "a")
    assert write(tmp_path, "b") == first
    assert [line["seq"] for line in lines(first)] == [1, 2, 3, 4]
    assert verify(tmp_path).intact


def test_a_second_log_on_the_directory_has_a_segment_of_its_own(tmp_path):
    first, second = AuditLog(tmp_path), AuditLog(tmp_path)
    assert first.path != second.path
    first.append(event("a"))
    second.append(event("b"))
    first.close()
    second.close()
    third, fourth = AuditLog(tmp_path), AuditLog(tmp_path)
    assert {third.path, fourth.path} == {first.path, second.path}
    third.close()
    fourth.close()
    assert verify(tmp_path).segments == 2
    assert verify(tmp_path).intact


def test_an_opening_names_how_far_the_others_had_come(tmp_path):
    first = AuditLog(tmp_path)
    first.append(event("a"))
    second = AuditLog(tmp_path)
    (witness,) = lines(second.path)[0]["witnesses"]
    last = lines(first.path)[-1]
    assert witness == {"segment": first.path.name, "seq": 2, "hash": last["hash"]}
    first.close()
    second.close()


@pytest.mark.parametrize("torn", [b"{", b'{"seq":3,"time":"20', b"\0" * 5_000])
def test_a_line_that_a_crash_tore_is_kept_aside_and_put_on_record(tmp_path, torn):
    path = write(tmp_path, "a")
    with path.open("ab") as file:
        file.write(torn)
    assert verify(tmp_path).intact
    assert str(len(torn)) in verify(tmp_path).notes[0]
    write(tmp_path, "b")
    opening = lines(path)[2]
    assert opening["torn"]["bytes"] == len(torn)
    assert (tmp_path / opening["torn"]["file"]).read_bytes() == torn
    assert verify(tmp_path).intact
    (tmp_path / opening["torn"]["file"]).write_bytes(b"other")
    assert "missing or changed" in verify(tmp_path).faults[0].reason


def test_a_torn_line_that_was_kept_aside_but_not_yet_recorded_is_recorded(tmp_path):
    path = write(tmp_path, "a")
    path.with_suffix(f".torn-{path.stat().st_size}").write_bytes(b"torn")
    write(tmp_path)
    assert lines(path)[2]["torn"]["bytes"] == 4


def test_a_crash_in_the_very_first_line_is_survived(tmp_path):
    (tmp_path / "000001.jsonl").write_bytes(b'{"seq":1,"ti')
    path = write(tmp_path, "a")
    assert path.name == "000001.jsonl"
    assert lines(path)[0]["torn"]["bytes"] == 12
    assert verify(tmp_path).intact


def test_a_segment_whose_end_was_changed_is_left_alone_and_named(tmp_path):
    first = write(tmp_path, "a", "b")
    first.write_bytes(first.read_bytes().replace(b'"call_id":"b"', b'"call_id":"x"'))
    second = write(tmp_path, "c")
    assert second.name == "000002.jsonl"
    assert lines(second)[0]["unreadable"] == [first.name]
    assert [(fault.segment, fault.line) for fault in verify(tmp_path).faults] == [(first.name, 3)]


def test_long_lines_are_continued_too(tmp_path):
    log = AuditLog(tmp_path)
    for _ in range(8):
        log.append(event(statement="\x01" * 5_000, error="\x01" * 5_000, client="\x01" * 5_000))
    log.close()
    assert log.path.stat().st_size > 200_000
    assert write(tmp_path, "a") == log.path
    assert verify(tmp_path).intact


def test_in_a_directory_that_cannot_be_made_nothing_is_recorded(tmp_path):
    (tmp_path / "file").write_text("")
    log = AuditLog(tmp_path / "file" / "audit")
    unavailable(lambda: log.append(event()))
    log.close()


def test_a_closed_log_takes_nothing(tmp_path):
    log = AuditLog(tmp_path)
    log.close()
    log.close()
    unavailable(lambda: log.append(event()))


def test_everyone_who_waits_is_notified_when_the_record_is_durable(tmp_path):
    log = AuditLog(tmp_path)

    async def call(number):
        await log.durable(log.append(event(str(number))))

    async def calls():
        await asyncio.wait_for(asyncio.gather(*(call(number) for number in range(200))), PATIENCE_S)
        await log.durable(5)

    for _ in range(2):
        asyncio.run(calls())
    log.close()
    assert verify(tmp_path).lines == 401


def test_a_waiter_who_gives_up_disturbs_no_one(tmp_path):
    log = AuditLog(tmp_path)

    async def calls():
        seq = log.append(event())
        waiters = [asyncio.create_task(log.durable(seq)) for _ in range(3)]
        await asyncio.sleep(0)
        waiters[0].cancel()
        await asyncio.wait_for(asyncio.gather(*waiters[1:]), PATIENCE_S)
        assert waiters[0].cancelled()

    asyncio.run(calls())
    log.close()
    assert verify(tmp_path).faults == ()


def test_a_failed_sync_is_final_and_everyone_gets_the_error():
    reading, writing = os.pipe()
    sync = GroupCommit(writing)  # a pipe cannot be synced

    async def wait():
        sync.note(1)
        await asyncio.wait_for(sync.wait(1), PATIENCE_S)

    for _ in range(2):
        unavailable(lambda: asyncio.run(wait()))
    sync.close()
    os.close(reading)
    os.close(writing)


def test_a_log_that_was_removed_under_us_takes_nothing_more(tmp_path):
    log = AuditLog(tmp_path)
    log.path.unlink()

    async def call():
        await asyncio.wait_for(log.durable(log.append(event())), PATIENCE_S)

    assert "removed" in unavailable(lambda: asyncio.run(call())).message
    unavailable(lambda: log.append(event()))
    log.close()


def test_the_hash_is_over_the_line_and_the_hash_before(tmp_path):
    path = write(tmp_path, "a")
    previous = chain.START
    for line in path.read_bytes().splitlines():
        assert chain.follows(line, previous)
        previous = bytes.fromhex(json.loads(line)["hash"])
