"""Records of several gates, verified together and with what their state knows."""

import shutil
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tidegate.audit import joint_verify
from tidegate.audit.chain_uses import SEEN
from tidegate.audit.control_records import encode_control_record, parse_checkpoint
from tidegate.audit.event import Event
from tidegate.audit.gate_lease import GateLease
from tidegate.audit.joint_verify import verify_together
from tidegate.audit.keys import Keys
from tidegate.audit.log import AuditLog
from tidegate.audit.seen_gates import EVERY_S, SeenGates, seen_heads
from tidegate.audit.server_events import ServerEvent
from tidegate.errors import Code, TidegateError
from tidegate.store.sqlite.state import SqliteState


class Gates:
    """Two gates with a record each, on one state."""

    def __init__(self, directory):
        self.state = SqliteState(directory / "state.db")
        self.a, self.b = directory / "a", directory / "b"
        for each in (self.a, self.b):
            self.write(each, f"{each.name}run-1")

    def write(self, directory, *calls, events=(), keeps=True, at=None):
        """Let a gate run for these calls and events; `keeps`: it sees the state at the end."""
        lease = GateLease(self.state, directory, 1)
        lease.take()
        clock = {} if at is None else {"clock": at.timestamp}
        log = AuditLog(directory / "audit", keys=directory / "audit-key", **clock)
        for call_id in calls:
            log.append(Event(call_id=call_id, phase="outcome", actor="a"))
        for name, details in events:
            log.record_event(ServerEvent(name=name, details=details))
        log.close()
        if keeps:
            lease.close()

    def entry(self, directory):
        id = (directory / "audit" / "gate-id").read_text()
        (found,) = [each for each in self.state.gates.list() if each.id == id]
        return found

    def replace(self, directory, **changes):
        """Write into the state's table, as someone with a login there could."""
        entry = self.entry(directory)._replace(**changes)
        self.state.gates.forget(entry.id)
        self.state.gates.claim(entry)

    def verify(self, *directories, **options):
        return verify_together(directories or (self.a, self.b), self.state.gates.list(), **options)

    def faults(self, *directories, **options):
        """All faults as texts, those of one record with its name."""
        report = self.verify(*directories, **options)
        found = list(report.faults)
        for gate in report.gates:
            name = gate.directory.rpartition("/")[2]
            found += [f"{name} {each.segment}: {each.reason}" for each in gate.report.faults]
        assert report.intact == (not found)
        return found


@pytest.fixture
def gates(tmp_path):
    made = Gates(tmp_path)
    yield made
    made.state.close()


def event(name, **details):
    return name, details


def cut(directory, lines=2):
    path = directory / "audit" / "000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))


def test_two_records_with_their_state_are_intact(gates):
    gates.write(gates.a, "arun-2", events=[event("approval.used", approval="ap1")])
    report = gates.verify()
    assert report.intact and not report.unchecked and not report.notes
    assert [each.gate for each in report.gates] == [
        gates.entry(gates.a).id,
        gates.entry(gates.b).id,
    ]
    assert report.lines == sum(each.report.lines for each in report.gates)


def test_a_line_that_a_crash_cut_short_is_a_note_and_no_fault(gates):
    path = gates.b / "audit" / "000001.jsonl"
    with path.open("ab") as file:
        file.write(b'{"seq":9,"time":"20')
    report = gates.verify()
    assert report.intact and not report.unchecked
    (note,) = report.gates[1].report.notes
    assert "unfinished line" in note
    gates.write(gates.b, "brun-2")  # the next process keeps it aside and goes on
    assert gates.faults() == []


def test_an_end_that_was_cut_off_with_the_head_beside_the_key_is_found_by_the_state(gates):
    cut(gates.a)
    (gates.a / "audit-key" / "head.json").unlink()
    (fault,) = gates.faults()
    assert fault.startswith("a 000001.jsonl: the end was cut off: its head in the state")


def test_a_record_of_which_all_was_put_back_is_found_by_the_state(gates, tmp_path):
    shutil.copytree(gates.a, tmp_path / "older")
    gates.write(gates.a, "arun-2")
    shutil.rmtree(gates.a)
    shutil.copytree(tmp_path / "older", gates.a)
    assert ["the end was cut off: its head in the state" in each for each in gates.faults()] == [
        True
    ]


def test_a_gate_whose_record_is_not_given_is_named_with_its_place(gates):
    (fault,) = gates.faults(gates.a)
    entry = gates.entry(gates.b)
    assert f"the record of the gate {entry.id} is missing: it was in {entry.place}" in fault
    assert "it ends with 000001.jsonl number" in fault
    report = gates.verify(gates.a, complete=False)
    assert report.intact and "1 other records" in report.notes[0]


def test_a_gate_that_was_removed_from_the_state_as_well_is_named_by_those_who_saw_it(gates):
    entry = gates.entry(gates.b)
    seen = seen_heads(gates.state.gates.list(), gates.entry(gates.a).id)
    gates.write(gates.a, events=[(SEEN, seen)])
    assert gates.faults() == []
    gates.state.gates.forget(entry.id)
    (fault,) = gates.faults(gates.a)
    assert f"{entry.id} is missing, also in the state: it was in {entry.place}" in fault
    (fault,) = gates.faults()
    assert "b : the state does not know this gate" in fault


def test_a_gate_that_was_forgotten_on_record_is_not_missed(gates):
    b = gates.entry(gates.b).id
    seen = seen_heads(gates.state.gates.list(), gates.entry(gates.a).id)
    gates.write(gates.a, events=[(SEEN, seen), event("gate.forgotten", gate=b)])
    assert len(gates.faults(gates.a)) == 1  # as long as the state knows it
    gates.state.gates.forget(b)
    assert gates.faults(gates.a) == []


def test_a_gate_records_others_when_it_first_sees_them_and_then_now_and_then(gates):
    recorded = []
    own = gates.entry(gates.a).id
    seen = SeenGates(own, gates.state.gates, lambda details: recorded.append(set(details)))
    seen.look(0.0)
    b, c = gates.entry(gates.b).id, gates.b.with_name("c")
    gates.write(gates.b, "brun-2")
    seen.look(EVERY_S - 1)
    assert recorded == [{b}]
    gates.write(c, "crun-1")
    seen.look(EVERY_S - 1)
    assert recorded == [{b}, {b, gates.entry(c).id}]
    seen.look(3 * EVERY_S)  # nothing is new
    gates.write(gates.b, "brun-3")
    seen.look(3 * EVERY_S)
    assert len(recorded) == 3


def test_what_another_gate_saw_of_a_record_must_be_in_it(gates):
    seen = seen_heads(gates.state.gates.list(), gates.entry(gates.a).id)
    gates.write(gates.a, events=[(SEEN, seen)])
    cut(gates.b)
    (gates.b / "audit-key" / "head.json").unlink()
    gates.replace(gates.b, head=b"")
    faults = gates.faults()
    assert any(
        "the end was cut off" in each and "/a 000001.jsonl number" in each for each in faults
    )


def test_a_head_that_was_removed_is_found(gates):
    gates.write(gates.a, "arun-2")
    gates.replace(gates.a, head=b"")
    assert gates.faults() == ["a : its head in the state was removed"]


def test_a_head_that_was_put_back_is_found_where_the_gate_has_been_there_since(gates):
    older = gates.entry(gates.a).head
    ahead = datetime.now(UTC) + timedelta(hours=1)
    gates.write(gates.a, "arun-2", at=ahead)
    gates.replace(gates.a, head=older, renewed_at=(ahead + timedelta(minutes=5)).timestamp())
    (fault,) = gates.faults()
    assert fault.startswith("a : its head in the state is of") and fault.endswith("was put back")


def test_a_head_that_is_older_than_the_record_of_a_gate_that_has_ended_is_said(gates):
    older = gates.entry(gates.a).head
    gates.write(gates.a, "arun-2", at=datetime.now(UTC) + timedelta(hours=1))
    gates.replace(gates.a, head=older)
    report = gates.verify()
    assert report.intact
    assert "did not see the state then, or the head was put back" in report.unchecked[0]


def test_a_head_that_was_put_back_is_found_by_another_gate_that_saw_a_later_one(gates):
    older = gates.entry(gates.b).head
    gates.write(gates.b, "brun-2", at=datetime.now(UTC) + timedelta(hours=1))
    seen = seen_heads(gates.state.gates.list(), gates.entry(gates.a).id)
    gates.write(gates.a, events=[(SEEN, seen)])
    gates.replace(gates.b, head=older)
    (fault,) = gates.faults()
    assert "was put back" in fault and "has seen one of" in fault


def test_a_head_of_another_key_and_another_key_are_faults(gates, tmp_path):
    head = parse_checkpoint(gates.entry(gates.a).head)
    keys = Keys(tmp_path / "forger")
    public = keys.public()
    forged = encode_control_record(keys.sign(msgspec.structs.replace(head, seq=1)))
    gates.replace(gates.a, head=forged, public_key=public)
    faults = gates.faults()
    assert any("another key for this gate" in each for each in faults)
    assert any("not signed by a trusted key" in each for each in faults)
    gates.replace(gates.a, head=b"no checkpoint")
    assert any("head in the state cannot be read" in each for each in gates.faults())


def test_an_approval_that_was_used_at_two_gates_is_found(gates):
    used = event("approval.used", approval="ap1")
    gates.write(gates.a, events=[event("approval.allowed", approval="ap1"), used])
    assert gates.faults() == []
    gates.write(gates.b, events=[used])
    (fault,) = gates.faults()
    assert "the approval ap1 could be used once and was used 2 times: in" in fault
    assert str(gates.a) in fault and str(gates.b) in fault


def test_an_approval_that_was_given_back_or_is_for_several_calls_counts_as_it_was_given(gates):
    used = event("approval.used", approval="ap1")
    gates.write(gates.a, events=[used, event("approval.returned", approval="ap1")])
    gates.write(gates.b, events=[used])
    assert gates.faults() == []
    many = event("approval.used", approval="ap2")
    allowed = event("approval.allowed", approval="ap2", minutes="5", uses="2")
    gates.write(gates.a, events=[allowed, many])
    gates.write(gates.b, events=[many])
    assert gates.faults() == []
    gates.write(gates.b, events=[many])
    (fault,) = gates.faults()
    assert "could be used 2 times and was used 3 times" in fault


def test_one_record_alone_does_not_say_how_often_an_approval_of_another_gate_counts(gates):
    allowed = event("approval.allowed", approval="ap1", minutes="5", uses="2")
    used = event("approval.used", approval="ap1")
    gates.write(gates.a, events=[used, used])
    assert gates.faults(gates.a, complete=False) == []
    assert len(gates.faults()) == 1
    gates.write(gates.b, events=[allowed])
    assert gates.faults() == []


def test_what_two_gates_recorded_late_is_one_use(gates):
    nonce = event("request_state.used", nonce="abc1", happened_at="2026-11-30T11:00:00+00:00")
    gates.write(gates.a, events=[nonce])
    gates.write(gates.b, events=[nonce])
    assert gates.faults() == []
    gates.write(gates.b, events=[event("request_state.used", nonce="abc1")])
    assert len(gates.faults()) == 1

    used = event("approval.used", approval="ap1")
    late = event("approval.returned", approval="ap1", happened_at="2026-11-30T11:00:00+00:00")
    gates.write(gates.a, events=[used, used, late])
    gates.write(gates.b, events=[used, late])
    assert any("was used 2 times" in each for each in gates.faults())


def test_a_sealed_answer_that_was_used_at_two_gates_is_found(gates):
    used = event("request_state.used", nonce="abc1")
    gates.write(gates.a, events=[used])
    assert gates.faults() == []
    gates.write(gates.b, events=[used])
    (fault,) = gates.faults()
    assert "the answer with the nonce abc1 was used 2 times" in fault


def test_calls_of_one_process_in_two_records_are_found(gates):
    gates.write(gates.b, "arun-7")
    (fault,) = gates.faults()
    assert fault.startswith("calls of one process, such as arun-7, are in")


def test_a_copy_of_a_record_beside_it_is_found(gates, tmp_path):
    shutil.copytree(gates.a, tmp_path / "again")
    (fault,) = gates.faults(gates.a, tmp_path / "again", gates.b)
    assert "are copies of the record of one gate" in fault


def test_a_copy_without_its_keys_is_verified_by_the_key_that_the_state_has(gates, tmp_path):
    shutil.copytree(gates.a / "audit", tmp_path / "log")
    report = gates.verify(tmp_path / "log", gates.b)
    assert report.intact and not report.gates[0].report.unchecked
    assert report.gates[0].report.checkpoints > 0


def test_an_anchor_is_compared_with_the_record_whose_key_has_signed_it(gates, tmp_path):
    anchor = parse_checkpoint(gates.entry(gates.b).head)
    assert gates.faults(anchors=[anchor]) == []
    foreign = Keys(tmp_path / "foreign")
    foreign.public()
    (fault,) = gates.faults(anchors=[foreign.sign(anchor)])
    assert "anchor 1 is not signed by a key of these records" in fault


def test_an_anchor_of_a_gate_is_not_missed_in_a_later_one_with_the_same_key(gates):
    restored = gates.b.with_name("restored")
    shutil.copytree(gates.b / "audit-key", restored / "audit-key")
    (restored / "audit-key" / "head.json").unlink()
    gates.write(restored, "newrun-1")
    anchor = parse_checkpoint(gates.entry(gates.b).head)
    assert gates.faults(gates.a, gates.b, restored, anchors=[anchor]) == []
    cut(gates.b)
    assert gates.faults(gates.a, gates.b, restored, anchors=[anchor])


def test_without_a_state_it_is_said_that_a_missing_gate_would_not_be_seen(gates):
    report = verify_together([gates.a], None)
    assert report.intact
    assert "a gate that is missing would not be seen" in report.unchecked[0]


@pytest.mark.parametrize("name", ["nothing", "."])
def test_a_directory_without_a_record_is_refused(gates, tmp_path, name):
    with pytest.raises(TidegateError) as caught:
        gates.verify(tmp_path / name)
    assert caught.value.code is Code.ARGUMENT_INVALID


def test_a_use_of_which_half_was_on_the_disk_is_read_again(gates, monkeypatch):
    used = event("approval.used", approval="ap1")
    gates.write(gates.a, events=[used])
    gates.write(gates.b, events=[used])
    read = joint_verify.read_uses

    def read_and_go_on(log):
        found = read(log)
        if log.parent == gates.b and found.grants["ap1"] and gates.late:
            gates.write(gates.a, events=[gates.late.pop()])
        return found

    gates.late = [event("approval.returned", approval="ap1")]
    monkeypatch.setattr(joint_verify, "read_uses", read_and_go_on)
    assert gates.faults() == []
