"""The lease of a gate's id: a copy of its volume is refused, and its head goes to the state."""

import shutil

import pytest

from tidegate.audit.control_records import parse_checkpoint
from tidegate.audit.event import Event
from tidegate.audit.gate_lease import LEASE_S, GateLease, holder_of
from tidegate.audit.log import AuditLog
from tidegate.errors import Code, TidegateError
from tidegate.store.sqlite.state import SqliteState


@pytest.fixture
def state(tmp_path):
    """One that gates share; which implementation it is, the contract of the stores holds for."""
    opened = SqliteState(tmp_path / "state.db")
    yield opened
    opened.close()


@pytest.fixture
def volume(tmp_path):
    made = tmp_path / "volume"
    made.mkdir()
    return made


def never(_):
    raise AssertionError("it waited")


def take(state, directory, processes=1, wait=never):
    lease = GateLease(state, directory, processes)
    lease.take(wait)
    return lease


def write(directory, *calls):
    log = AuditLog(directory / "audit", keys=directory / "audit-key")
    for call_id in calls:
        log.append(Event(call_id=call_id, phase="outcome", actor="a"))
    log.close()


def refuse(state, what):
    """Have the state be one that can be read, and not written so."""
    with state._usage.changing() as connection:
        connection.execute(
            f"CREATE TRIGGER no_{what} BEFORE {what} ON gates"
            " BEGIN SELECT RAISE(ABORT, 'full'); END"
        )


def copy_of(directory):
    copied = directory.with_name("copy")
    shutil.copytree(directory, copied)
    return copied


def test_processes_on_one_volume_share_the_lease(state, volume):
    first, second = take(state, volume), take(state, volume)
    command = take(state, volume, processes=0)
    assert first.id == second.id == command.id
    (entry,) = state.gates.list()
    assert (entry.processes, entry.place.rpartition(":")[2]) == (1, str(volume))
    assert entry.expires_at == entry.renewed_at + LEASE_S


def test_a_copied_volume_is_refused_and_told_who_holds_the_id(state, volume):
    held = take(state, volume)
    copied = copy_of(volume)
    waited = []

    def renew(seconds):
        waited.append(seconds)
        (entry,) = state.gates.list()
        state.gates.claim(entry._replace(renewed_at=entry.renewed_at + 3, expires_at=2e10))

    with pytest.raises(TidegateError) as caught:
        take(state, copied, wait=renew)
    error = caught.value
    assert error.code is Code.STATE_FAILED
    assert len(waited) == 1, "it was refused as soon as the other one had renewed its lease"
    assert f":{volume}`" in error.message and str(copied) in error.message
    assert error.details["gate"] == held.id
    assert "move `audit`" in error.hint
    (entry,) = state.gates.list()
    assert entry.holder == holder_of(volume / "audit")


def test_a_holder_that_does_not_renew_either_is_waited_for_at_most_as_long_as_a_lease(
    state, volume
):
    take(state, volume)
    waited = []
    with pytest.raises(TidegateError):
        take(state, copy_of(volume), wait=waited.append)
    assert LEASE_S <= sum(waited) < 2 * LEASE_S


def test_a_volume_that_was_moved_gets_the_id_when_the_lease_has_ended(state, volume):
    lease = take(state, volume)
    moved = copy_of(volume)
    assert take(state, moved, wait=lambda _: state.gates.forget(lease.id)).id == lease.id
    with pytest.raises(TidegateError, match="this is a copy"):
        lease._renewed_at = float("-inf")
        lease.renew()


def test_who_has_lost_the_lease_sees_the_state_no_more(state, volume):
    lease = take(state, volume)
    state.versions.work_with(lease.renew)
    state.versions.look()
    state.gates.forget(lease.id)
    take(state, copy_of(volume))
    lease._renewed_at = float("-inf")
    with pytest.raises(TidegateError, match="this is a copy"):
        state.versions.look()


def test_a_lease_that_cannot_be_renewed_counts_as_long_as_no_one_else_has_it(state, volume):
    lease = take(state, volume)
    refuse(state, "UPDATE")
    lease._renewed_at = float("-inf")
    lease.renew()
    assert take(state, volume).id == lease.id
    state.gates.forget(lease.id)
    refuse(state, "INSERT")
    with pytest.raises(TidegateError, match="full"):
        lease.renew()


def test_a_new_checkpoint_goes_to_the_state_at_the_next_look(state, volume):
    lease = take(state, volume)
    write(volume, "a-1")
    lease.renew()
    (entry,) = state.gates.list()
    first = parse_checkpoint(entry.head)
    write(volume, "a-2")
    lease.close()
    (entry,) = state.gates.list()
    assert parse_checkpoint(entry.head).seq > first.seq
    assert entry.head == (volume / "audit-key" / "head.json").read_bytes()


def test_a_record_that_was_put_back_leaves_the_head_that_the_state_has(state, volume):
    lease = take(state, volume)
    write(volume, "a-1")
    older = copy_of(volume)
    write(volume, "a-2", "a-3")
    lease.renew()
    (before,) = state.gates.list()
    shutil.rmtree(volume)
    shutil.copytree(older, volume)
    # The former holder is gone for long.
    state.gates.claim(before._replace(renewed_at=1.0, expires_at=2.0))
    lease = take(state, volume)
    assert "put back from an older copy" in lease.problem
    write(volume, "a-4")
    lease.renew()
    lease.close()
    (after,) = state.gates.list()
    assert after.head == before.head


def test_a_gate_goes_on_from_a_head_that_is_older_than_its_record(state, volume):
    write(volume, "a-1")
    take(state, volume)
    write(volume, "a-2")  # while the state was away
    lease = take(state, volume)
    assert lease.problem == ""
    lease.renew()
    (entry,) = state.gates.list()
    assert entry.head == (volume / "audit-key" / "head.json").read_bytes()
