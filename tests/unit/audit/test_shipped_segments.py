"""A segment may be removed once every destination has all of it."""

import pytest

from tidegate.audit.shipped import ShippedSegments, find_gate_id, gate_id
from tidegate.store.shipping import Position
from tidegate.store.sqlite.state import SqliteState

SEGMENT = "000001.jsonl"


@pytest.fixture
def state(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    yield state
    state.close()


def test_a_record_that_no_one_ships_is_kept_by_no_one(state, tmp_path):
    assert ShippedSegments(state.shipping, tmp_path).have(SEGMENT, 10)
    assert find_gate_id(tmp_path) == ""


def test_every_destination_must_have_the_whole_segment(state, tmp_path):
    gate = gate_id(tmp_path)
    shipped = ShippedSegments(state.shipping, tmp_path)
    state.shipping.set_destinations(gate, ["siem", "file"])
    assert not shipped.have(SEGMENT, 10)
    state.shipping.save(gate, "siem", {SEGMENT: Position(10, 1)})
    assert not shipped.have(SEGMENT, 10)
    state.shipping.save(gate, "file", {SEGMENT: Position(9, 1)})
    assert not shipped.have(SEGMENT, 10)
    state.shipping.save(gate, "file", {SEGMENT: Position(10, 1)})
    assert shipped.have(SEGMENT, 10)
    assert not shipped.have("000002.jsonl", 10)


def test_what_cannot_be_found_out_keeps_a_segment(state, tmp_path):
    gate_id(tmp_path)
    state.close()
    assert not ShippedSegments(state.shipping, tmp_path).have(SEGMENT, 10)


def test_the_id_of_a_record_is_made_once_and_differs_from_that_of_another(tmp_path):
    (tmp_path / "other").mkdir()
    assert gate_id(tmp_path) == gate_id(tmp_path) == find_gate_id(tmp_path)
    assert gate_id(tmp_path / "other") != gate_id(tmp_path)
