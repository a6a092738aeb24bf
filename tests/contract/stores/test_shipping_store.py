"""The contract of `ShippingStore`: how far each destination has the record of a gate."""

from tidegate.store.shipping import Position

GATE = "aa00"
AT = Position(100, 3)


def test_a_position_is_found_by_every_process(state, other):
    state.shipping.set_destinations(GATE, ["siem"])
    state.shipping.save(GATE, "siem", {"000001.jsonl": AT, "000002.jsonl": Position(9, 1, True)})
    assert other.shipping.positions(GATE, "siem") == {
        "000001.jsonl": AT,
        "000002.jsonl": Position(9, 1, True),
    }
    assert other.shipping.destinations(GATE) == ("siem",)


def test_a_later_position_replaces_that_of_its_segment_alone(state):
    state.shipping.set_destinations(GATE, ["siem"])
    state.shipping.save(GATE, "siem", {"000001.jsonl": AT, "000002.jsonl": AT})
    state.shipping.save(GATE, "siem", {"000001.jsonl": Position(200, 6, True)})
    assert state.shipping.positions(GATE, "siem") == {
        "000001.jsonl": Position(200, 6, True),
        "000002.jsonl": AT,
    }


def test_a_destination_that_is_named_no_more_is_forgotten_and_others_stay(state):
    state.shipping.set_destinations(GATE, ["siem", "file"])
    for name in ("siem", "file"):
        state.shipping.save(GATE, name, {"000001.jsonl": AT})
    state.shipping.set_destinations(GATE, ["file", "new"])
    assert state.shipping.destinations(GATE) == ("file", "new")
    assert state.shipping.positions(GATE, "siem") == {}
    assert state.shipping.positions(GATE, "file") == {"000001.jsonl": AT}
    assert state.shipping.positions(GATE, "new") == {}


def test_that_a_destination_has_caught_up_is_kept_until_it_is_named_no_more(state, other):
    state.shipping.set_destinations(GATE, ["siem", "file"])
    assert state.shipping.followed(GATE) == frozenset()
    state.shipping.set_followed(GATE, "siem")
    state.shipping.set_destinations(GATE, ["siem", "file"])
    assert other.shipping.followed(GATE) == {"siem"}
    state.shipping.set_destinations(GATE, ["file"])
    state.shipping.set_destinations(GATE, ["siem", "file"])
    assert other.shipping.followed(GATE) == frozenset()


def test_nothing_is_saved_of_a_destination_that_is_not_named(state):
    state.shipping.save(GATE, "siem", {"000001.jsonl": AT})
    state.shipping.set_destinations(GATE, ["siem"])
    assert state.shipping.positions(GATE, "siem") == {}


def test_gates_on_one_state_do_not_meet(state, other):
    for gate in (GATE, "bb11"):
        state.shipping.set_destinations(gate, ["siem"])
    state.shipping.save(GATE, "siem", {"000001.jsonl": AT})
    assert other.shipping.positions("bb11", "siem") == {}
    other.shipping.set_destinations("bb11", [])
    assert state.shipping.positions(GATE, "siem") == {"000001.jsonl": AT}


def test_segments_that_were_removed_are_forgotten_for_every_destination(state):
    state.shipping.set_destinations(GATE, ["siem", "file"])
    for name in ("siem", "file"):
        state.shipping.save(GATE, name, {"000001.jsonl": AT, "000002.jsonl": AT})
    state.shipping.forget(GATE, ["000001.jsonl"])
    for name in ("siem", "file"):
        assert state.shipping.positions(GATE, name) == {"000002.jsonl": AT}
