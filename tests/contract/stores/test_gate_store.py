"""The contract of `GateStore`: one holder has the lease of a gate's id at a time."""

import threading

from tidegate.store.gates import GateEntry

FIRST = GateEntry("aa00", "h1", "one:/state", "ed25519:k", 2, b'{"seq":1}', 100.0, 112.0)


def later(entry, seconds, **changes):
    return entry._replace(
        renewed_at=entry.renewed_at + seconds, expires_at=entry.expires_at + seconds, **changes
    )


def test_a_gate_is_seen_by_every_process(state, other):
    assert state.gates.claim(FIRST) == FIRST
    second = FIRST._replace(id="bb11", place="two:/state")
    other.gates.claim(second)
    assert state.gates.list() == other.gates.list() == (FIRST, second)


def test_its_holder_renews_a_lease_at_any_time_and_another_one_once_it_has_ended(state, other):
    state.gates.claim(FIRST)
    renewed = later(FIRST, 3.0)
    assert other.gates.claim(renewed) == renewed
    copy = later(FIRST, 14.9, holder="h2", place="two:/copy")
    assert other.gates.claim(copy) == renewed
    assert state.gates.list() == (renewed,)
    copy = later(FIRST, 15.0, holder="h2", place="two:/copy")
    assert other.gates.claim(copy) == copy
    assert state.gates.claim(later(FIRST, 16.0)) == copy


def test_a_claim_without_a_head_and_of_no_process_leaves_both(state):
    state.gates.claim(FIRST)
    command = later(FIRST, 1.0, processes=0, head=b"")
    assert state.gates.claim(command) == command._replace(processes=2, head=FIRST.head)
    assert state.gates.claim(later(command, 1.0, head=b"{}")).head == b"{}"


def test_a_gate_that_is_forgotten_is_not_there(state, other):
    state.gates.claim(FIRST)
    assert other.gates.forget("aa00")
    assert not state.gates.forget("aa00")
    assert state.gates.list() == ()


def test_of_those_who_claim_an_id_at_once_one_has_it(open_state):
    holders = ("h1", "h2", "h3")
    opened = [open_state() for _ in holders]
    for round_ in range(10):
        found = {}

        def claim(state, holder, gate=f"g{round_}", found=found):
            found[holder] = state.gates.claim(FIRST._replace(id=gate, holder=holder)).holder

        threads = [
            threading.Thread(target=claim, args=pair) for pair in zip(opened, holders, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == len(holders)
        assert len(set(found.values())) == 1
