"""Checkpoints, keys, the head and anchors: who signs what, and what an older copy is held to."""

import asyncio
import json
import os
import shutil
import stat
import subprocess
import sys
from datetime import datetime

import pytest

from support.eventually import PATIENCE_S
from tidegate.audit.checkpoints import LatestCheckpoint
from tidegate.audit.control_records import parse_checkpoint
from tidegate.audit.event import Event
from tidegate.audit.keys import Keys, fingerprint, is_signed, parse_public
from tidegate.audit.log import AuditLog
from tidegate.audit.server_events import ServerEvent
from tidegate.audit.verify import read_anchors, verify
from tidegate.config.model import AuditSettings
from tidegate.errors import Code, TidegateError


def event(call_id="c"):
    return Event(call_id=call_id, phase="outcome", actor="a")


def write(state, *calls, **settings):
    log = AuditLog(state / "audit", keys=state / "keys", settings=AuditSettings(**settings))
    for call_id in calls:
        log.append(event(call_id))
    log.close()
    return log.path


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def check(state, **options):
    return verify(state / "audit", state / "keys", **options)


def test_closing_signs_the_last_line(tmp_path):
    path = write(tmp_path, "a", "b")
    *_, last, signed = lines(path)
    assert signed["phase"] == "checkpoint"
    assert signed["ends"] == [{"segment": path.name, "seq": 3, "hash": last["hash"]}]
    report = check(tmp_path)
    assert (report.intact, report.checkpoints, report.notes) == (True, 1, ())


def test_the_key_is_for_its_owner_alone_and_one_that_others_may_read_signs_nothing(tmp_path):
    keys = Keys(tmp_path / "keys")
    keys.prepare()
    private = tmp_path / "keys" / "signing.key"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(private.parent.stat().st_mode) == 0o700
    private.chmod(0o640)
    with pytest.raises(TidegateError) as caught:
        Keys(tmp_path / "keys").public()
    assert caught.value.code is Code.STATE_FAILED


def test_every_file_of_a_record_is_for_its_owner_alone_but_for_the_public_key(tmp_path):
    mask = os.umask(0)
    try:
        write(tmp_path, "a", anchor=str(tmp_path / "anchor.jsonl"))
    finally:
        os.umask(mask)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert {"head.lock", "head.json", "anchor.jsonl", "signing.key", "000001.jsonl"} <= set(modes)
    (public,) = (name for name in modes if name.endswith(".pub"))
    assert modes.pop(public) == 0o644
    assert set(modes.values()) == {0o600}, modes


def test_the_private_key_is_a_pem_file_that_others_can_read(tmp_path):
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    keys = Keys(tmp_path)
    text = keys.public()
    loaded = load_pem_private_key((tmp_path / "signing.key").read_bytes(), None)
    assert loaded.public_key().public_bytes_raw() == parse_public(text)


@pytest.mark.parametrize("content", ["", "x", "a\nYWJj\nb", "a\n!!\nb"])
def test_a_key_that_is_none_is_an_error(tmp_path, content):
    (tmp_path / "signing.key").write_text(content)
    (tmp_path / "signing.key").chmod(0o600)
    with pytest.raises(TidegateError) as caught:
        Keys(tmp_path).public()
    assert caught.value.code is Code.STATE_FAILED


def test_after_a_new_key_the_old_checkpoints_still_count(tmp_path):
    write(tmp_path, "a")
    old = Keys(tmp_path / "keys").public()
    new = Keys(tmp_path / "keys").replace()
    assert old != new
    path = write(tmp_path, "b")
    used = {line["key"] for line in lines(path) if line["phase"] == "checkpoint"}
    assert used == {fingerprint(parse_public(old)), fingerprint(parse_public(new))}
    assert check(tmp_path).checkpoints == 2
    assert check(tmp_path).intact


def test_a_checkpoint_signed_by_a_strange_key_is_found(tmp_path):
    path = write(tmp_path / "mine", "a")
    write(tmp_path / "theirs", "a")
    report = verify(tmp_path / "mine" / "audit", tmp_path / "theirs" / "keys")
    assert [(fault.segment, fault.line) for fault in report.faults][-1] == (path.name, 3)


def test_a_copy_elsewhere_is_checked_with_the_public_key_alone(tmp_path):
    write(tmp_path, "a")
    public = parse_public(Keys(tmp_path / "keys").public())
    report = verify(tmp_path / "audit", trusted={fingerprint(public): public})
    assert (report.intact, report.checkpoints) == (True, 1)
    bare = verify(tmp_path / "audit")
    assert (bare.intact, bare.checkpoints) == (True, 0)
    assert [words in said for words, said in zip(UNCHECKED, bare.unchecked, strict=True)] == [
        True
    ] * 2


UNCHECKED = ("no signature was checked", "cut off at the end would not be seen")


def test_a_record_is_signed_until_its_newest_checkpoint_wherever_that_is_kept(tmp_path):
    times, heads = [], []
    for call_id in "abc":
        path = write(tmp_path, call_id)
        times.append(datetime.fromisoformat(lines(path)[-1]["time"]))
        heads.append(parse_checkpoint((tmp_path / "keys" / "head.json").read_bytes()))
    assert times == sorted(set(times))
    public = parse_public(Keys(tmp_path / "keys").public())
    trusted = {fingerprint(public): public}
    for anchors in ([], heads[:1], heads, heads[::-1]):
        report = verify(tmp_path / "audit", trusted=trusted, anchors=anchors)
        assert (report.intact, report.signed_until) == (True, times[-1])


def test_what_could_not_be_checked_is_said_and_a_cut_end_is_the_reason(tmp_path):
    path = write(tmp_path, "a")
    write(tmp_path, "b")
    public = parse_public(Keys(tmp_path / "keys").public())
    trusted = {fingerprint(public): public}
    head = (tmp_path / "keys" / "head.json").read_text()
    assert check(tmp_path).unchecked == ()
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(content[:3]))  # up to the first checkpoint
    assert not check(tmp_path).intact
    copied = verify(tmp_path / "audit", trusted=trusted)
    assert copied.intact  # nothing in it shows what was cut off
    assert [UNCHECKED[1] in said for said in copied.unchecked] == [True]
    anchored = verify(tmp_path / "audit", anchors=[parse_checkpoint(head)], trusted=trusted)
    assert not anchored.intact and anchored.unchecked == ()
    (tmp_path / "keys" / "head.json").unlink()
    assert [UNCHECKED[1] in said for said in check(tmp_path).unchecked] == [True]


def test_lines_that_no_checkpoint_covers_are_noted(tmp_path):
    write(tmp_path, "a")
    log = AuditLog(tmp_path / "audit", keys=tmp_path / "keys")
    log.append(event("b"))
    assert check(tmp_path).intact
    assert "no checkpoint covers lines 4 to 5 yet" in check(tmp_path).notes[0]
    log.close()
    assert check(tmp_path).notes == ()


CRASH = """
import os, sys
from pathlib import Path
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
log = AuditLog(Path(sys.argv[1]) / "audit", keys=Path(sys.argv[1]) / "keys")
for number in range(int(sys.argv[2])):
    log.append(Event(call_id=f"crash {number}", phase="outcome", actor="a"))
os._exit(0)
"""


def test_lines_of_processes_that_ended_without_signing_are_counted_once_each(tmp_path):
    write(tmp_path, "a")  # lines 1 to 3, the last a checkpoint
    for count in (2, 0, 1):  # 4 to 6, 7 alone, which says nothing, 8 and 9
        subprocess.run([sys.executable, "-c", CRASH, str(tmp_path), str(count)], check=True)
    path = write(tmp_path, "b")
    report = check(tmp_path)
    assert report.intact
    assert [line["phase"] for line in lines(path)][3:9] == [
        *("open", "outcome", "outcome", "open", "open", "outcome"),
    ]
    (note,) = report.notes
    assert "5 lines, the last of them line 9, were written by processes that ended" in note


def test_a_missing_or_unreadable_head_is_found(tmp_path):
    write(tmp_path, "a")
    write(tmp_path, "b")
    head = tmp_path / "keys" / "head.json"
    content = head.read_bytes()
    head.write_bytes(content.replace(b'"oldest":1', b'"oldest":9'))
    assert "not signed" in check(tmp_path).faults[0].reason
    head.write_bytes(b"{}")
    assert "cannot be read" in check(tmp_path).faults[0].reason
    head.unlink()
    (fault,) = check(tmp_path).faults
    assert (fault.segment, fault.line) == ("", 0)
    assert "is missing" in fault.reason
    head.write_bytes(content)
    assert check(tmp_path).intact


def test_the_whole_state_put_back_is_found_by_an_anchor_alone(tmp_path):
    state, older = tmp_path / "state", tmp_path / "older"
    write(state, "a")
    shutil.copytree(state, older)
    write(state, "b")
    anchors = read_anchors((state / "keys" / "head.json").read_text())
    assert check(state, anchors=anchors).intact
    assert check(older).intact
    (fault,) = check(older, anchors=anchors).faults
    assert (fault.segment, fault.line) == ("000001.jsonl", 3)
    assert "anchor 1" in fault.reason


def test_a_record_begun_again_is_found_by_an_anchor(tmp_path):
    write(tmp_path / "state", "a", "b")
    anchors = read_anchors((tmp_path / "state" / "keys" / "head.json").read_text())
    shutil.rmtree(tmp_path / "state" / "audit")
    (tmp_path / "state" / "keys" / "head.json").unlink()
    write(tmp_path / "state", "x", "y", "z", "more")
    assert check(tmp_path / "state").intact
    reasons = [fault.reason for fault in check(tmp_path / "state", anchors=anchors).faults]
    assert any("rewritten" in reason for reason in reasons)


def test_an_anchor_file_gets_every_checkpoint(tmp_path):
    anchor = tmp_path / "elsewhere.jsonl"
    for call_id in "abc":
        write(tmp_path, call_id, anchor=str(anchor))
    anchors = read_anchors(str(anchor))
    assert len(anchors) == 3
    assert all(is_signed(each, Keys(tmp_path / "keys").trusted()) for each in anchors)
    assert check(tmp_path, anchors=anchors).intact
    with anchor.open("a") as file:
        file.write('{"seq":')
    assert len(read_anchors(str(anchor))) == 3


@pytest.mark.parametrize("text", ["{}", "{", "/nowhere/at/all"])
def test_what_is_no_anchor_is_an_error(text):
    with pytest.raises(TidegateError) as caught:
        read_anchors(text)
    assert caught.value.code is Code.ARGUMENT_INVALID


def test_an_anchor_that_was_forged_is_found(tmp_path):
    write(tmp_path, "a")
    text = (tmp_path / "keys" / "head.json").read_text().replace('"seq":2', '"seq":1')
    (fault,) = check(tmp_path, anchors=[parse_checkpoint(text)]).faults
    assert "anchor 1 is not signed" in fault.reason


def test_a_segment_short_of_its_checkpoint_is_not_continued(tmp_path):
    first = write(tmp_path, "a")
    whole = first.read_bytes()
    first.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    second = write(tmp_path, "b")
    assert second.name == "000002.jsonl"
    assert lines(second)[0]["unreadable"] == [first.name]
    assert [fault.segment for fault in check(tmp_path).faults] == [first.name]


def test_a_removed_newest_segment_is_found_and_its_number_not_given_again(tmp_path):
    write(tmp_path, "a").unlink()
    assert write(tmp_path, "b").name == "000002.jsonl"
    assert [(fault.segment, fault.line) for fault in check(tmp_path).faults] == [
        ("000001.jsonl", 0)
    ]


def test_a_checkpoint_knows_of_every_process(tmp_path):
    first = AuditLog(tmp_path / "audit", keys=tmp_path / "keys")
    first.append(event("a"))
    second = write(tmp_path, "b")
    first.append(event("c"))
    first.close()
    head = LatestCheckpoint(tmp_path / "keys").read()
    assert {end.segment for end in head.ends} == {first.path.name, second.name}
    assert check(tmp_path).intact


def test_a_server_signs_while_it_runs(tmp_path):
    settings = AuditSettings(checkpoint_s=0.001)
    log = AuditLog(tmp_path / "audit", keys=tmp_path / "keys", settings=settings)

    async def wait_for_a_checkpoint():
        while LatestCheckpoint(tmp_path / "keys").read() is None:
            await log.durable(log.append(event()))
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(wait_for_a_checkpoint(), PATIENCE_S))
    log.close()
    assert check(tmp_path).intact


def test_a_full_segment_is_continued_in_the_next(tmp_path):
    first = write(tmp_path, *"abcdefgh", segment_bytes=1_000)
    second = write(tmp_path, "i", segment_bytes=1_000)
    assert (first.name, second.name) == ("000001.jsonl", "000002.jsonl")
    end, opening = lines(first)[-1], lines(second)[0]
    assert (end["phase"], end["next"]) == ("continued", second.name)
    assert opening["previous"] == {"segment": first.name, "seq": end["seq"], "hash": end["hash"]}
    assert opening["seq"] == end["seq"] + 1
    third = write(tmp_path, "j", segment_bytes=10_000)
    assert third == second
    assert check(tmp_path).intact


def test_a_segment_is_full_at_its_age_too(tmp_path):
    times = {"now": 1_000_000.0}
    settings = AuditSettings(segment_age_s=60)
    for seconds, name in ((0, "000001.jsonl"), (59, "000001.jsonl"), (60, "000002.jsonl")):
        times["now"] = 1_000_000.0 + seconds
        log = AuditLog(
            tmp_path / "audit", lambda: times["now"], keys=tmp_path / "keys", settings=settings
        )
        assert log.path.name == name
        log.close()
    assert check(tmp_path).intact


def test_a_crash_between_two_segments_is_survived(tmp_path):
    first = write(tmp_path, *"abcdefgh", segment_bytes=1_000)
    second = write(tmp_path, segment_bytes=1_000)
    for left in (b"", b'{"seq":1'):
        (tmp_path / "keys" / "head.json").unlink()
        second.write_bytes(left)
        assert check(tmp_path).intact
        third = write(tmp_path, "i")
        assert third == second
        assert lines(second)[0]["previous"]["segment"] == first.name
        assert check(tmp_path).intact


def test_segments_that_were_kept_long_enough_are_removed_and_nothing_is_missed(tmp_path):
    day = 86_400.0
    now = [1_000 * day]
    settings = AuditSettings(segment_age_s=day, keep_days=3)

    def session(name):
        log = AuditLog(
            tmp_path / "audit", lambda: now[0], keys=tmp_path / "keys", settings=settings
        )
        log.append(event(name))
        log._maintain(log._sync)
        log.close()

    for number in range(8):
        session(f"day-{number}")
        # What a crash tore is kept aside as long as the segment that it was torn from.
        (tmp_path / "audit" / f"{number + 1:06}.torn-7").write_bytes(b"torn")
        assert check(tmp_path).faults == ()
        now[0] += day
    folder = tmp_path / "audit"
    names = sorted(path.name for path in folder.glob("*.jsonl"))
    assert [path.stem for path in sorted(folder.glob("*.torn-*"))] == [
        name.removesuffix(".jsonl") for name in names
    ]
    assert names[0] > "000003.jsonl"
    assert names[-1] == "000008.jsonl"
    (tmp_path / "audit" / names[0]).unlink()
    assert [fault.segment for fault in check(tmp_path).faults] == [names[0]]


def test_an_expired_segment_stays_until_it_is_shipped_whole(tmp_path):
    day = 86_400.0
    now = [1_000 * day]
    has = {}
    settings = AuditSettings(segment_age_s=day, keep_days=1)

    def session():
        log = AuditLog(
            *(tmp_path / "audit", lambda: now[0]),
            keys=tmp_path / "keys",
            settings=settings,
            is_shipped=lambda segment, size: has.get(segment, 0) >= size,
        )
        log.append(event())
        log._maintain(log._sync)
        log.close()
        now[0] += day

    for _ in range(5):
        session()
    names = sorted(path.name for path in (tmp_path / "audit").iterdir())
    assert names[0] == "000001.jsonl"
    has["000001.jsonl"] = (tmp_path / "audit" / "000001.jsonl").stat().st_size
    has["000002.jsonl"] = (tmp_path / "audit" / "000002.jsonl").stat().st_size - 1
    session()
    assert sorted(path.name for path in (tmp_path / "audit").iterdir())[0] == "000002.jsonl"
    assert check(tmp_path).faults == ()


def test_a_checkpoint_that_cannot_be_kept_is_put_on_record(tmp_path):
    log = AuditLog(
        tmp_path / "audit",
        keys=tmp_path / "keys",
        settings=AuditSettings(checkpoint_lines=1, anchor=str(tmp_path / "no" / "where")),
    )
    log.record_event(ServerEvent(name="server.started"))
    log._maintain(log._sync)
    log.close()
    names = [line.get("name") for line in lines(log.path)]
    assert "checkpoint.failed" in names
    assert check(tmp_path).intact
