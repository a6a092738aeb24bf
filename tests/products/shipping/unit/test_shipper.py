"""A destination gets every line in order, and a position is saved once it has acknowledged."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from products.shipping.support.ocsf_schema import validated
from products.shipping.support.receivers import OtlpReceiver, otlp_receiver
from products.shipping.support.record import first_of_each, ids_of, open_record, uids, write
from support.eventually import wait_until
from support.otlp_server import respond
from tidegate.products.shipping.destination import Destination, FileDestination
from tidegate.products.shipping.otlp import OtlpDestination
from tidegate.products.shipping.segments import SegmentReader
from tidegate.products.shipping.settings import DestinationSettings
from tidegate.products.shipping.shipper import Shipper
from tidegate.store.shipping import Position
from tidegate.store.sqlite.state import SqliteState

GATE = "g"
SEGMENT = "000001.jsonl"


class Place(NamedTuple):
    """A record, a state, and how a destination is shipped to."""

    record: Path
    state: SqliteState

    def make(self, destination: Destination, name: str = "to") -> Shipper:
        self.state.shipping.set_destinations(GATE, [name])
        shipper = Shipper(
            name, GATE, SegmentReader(self.record), destination, self.state.shipping, 0.01
        )
        shipper.load()
        return shipper

    @property
    def saved(self) -> dict[str, Position]:
        return self.state.shipping.positions(GATE, "to")

    @property
    def size(self) -> int:
        return (self.record / SEGMENT).stat().st_size


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    log = open_record(tmp_path / "audit")
    write(log, *(f"call-{number}" for number in range(20)))
    log.close()
    state = SqliteState(tmp_path / "state.db")
    yield Place(tmp_path / "audit", state)
    state.close()


@contextmanager
def running(shipper: Shipper) -> Generator[Shipper]:
    shipper.start()
    try:
        yield shipper
    finally:
        shipper.ask_to_stop()
        shipper.join(60)


def otlp(receiver: OtlpReceiver, note: Callable[[int, str], None] = print, **more: Any) -> Any:
    settings = DestinationSettings("to", receiver.url, **more)
    return OtlpDestination(settings, GATE, note)


def test_a_file_gets_every_line_once_as_a_valid_event(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    with running(place.make(FileDestination(file))):
        wait_until(lambda: place.saved.get(SEGMENT) == Position(place.size, 21), "it is shipped")
        log = open_record(place.record)
        write(log, "later")
        log.close()
        wait_until(lambda: place.saved[SEGMENT].offset == place.size, "the rest is shipped")
    lines = file.read_bytes().splitlines()
    assert uids(lines) == ids_of(place.record, GATE)
    for line in lines:
        validated(line)


def test_a_later_process_goes_on_where_the_saved_position_is(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    place.make(FileDestination(file)).ship()
    log = open_record(place.record)
    write(log, "later")
    log.close()
    place.make(FileDestination(file)).ship()
    assert uids(file.read_bytes().splitlines()) == ids_of(place.record, GATE)


def test_otlp_gets_every_line_once_with_its_id(place: Place, monkeypatch: Any) -> None:
    monkeypatch.setenv("OTLP_TOKEN", "hunter2")
    with otlp_receiver() as receiver:
        headers = {"Authorization": "Bearer ${ENV:OTLP_TOKEN}"}
        place.make(otlp(receiver, headers=headers)).ship()
        assert receiver.ids == ids_of(place.record, GATE)
        assert receiver.headers[0]["authorization"] == "Bearer hunter2"
        assert uids(map(str.encode, map(bytes.decode, receiver.bodies))) == receiver.ids
    for body in receiver.bodies:
        validated(body)
    assert place.saved == {SEGMENT: Position(place.size, 21)}


@pytest.mark.parametrize("fault", ["before", "after", "503", "429", "page"])
def test_what_was_not_acknowledged_comes_again_with_the_same_ids(place: Place, fault: str) -> None:
    """A receiver that dies before or after it has kept a batch, or that answers with a fault."""
    faults = [fault, fault]

    def before(handler: Any, size: int) -> bool:
        if faults and fault != "after":
            faults.pop()
            if fault.isdigit():
                respond(handler, int(fault), retry_after="0")
            elif fault == "page":
                handler.send_response(200)
                handler.send_header("content-type", "text/html")
                handler.send_header("content-length", "6")
                handler.end_headers()
                handler.wfile.write(b"<html>")
            return False
        return True

    def after(handler: Any) -> bool:
        if faults and fault == "after":
            faults.pop()
            return False
        return True

    with otlp_receiver() as receiver:
        receiver.before, receiver.after = before, after
        with running(place.make(otlp(receiver))) as shipper:
            wait_until(lambda: shipper.failure, "the fault is seen")
            assert place.saved == {}
            assert "\n" not in shipper.failure
            wait_until(lambda: place.saved.get(SEGMENT), "it is shipped")
            assert shipper.failure == ""
    assert first_of_each(receiver.ids) == ids_of(place.record, GATE)
    assert len(receiver.ids) == 21 * (3 if fault == "after" else 1)


def test_a_receiver_that_takes_no_large_request_gets_smaller_ones(place: Place) -> None:
    log = open_record(place.record)
    write(log, *(f"more-{number}" for number in range(6_000)))
    log.close()

    def before(handler: Any, size: int) -> bool:
        if size > 400_000:
            respond(handler, 413)
            return False
        return True

    with otlp_receiver() as receiver:
        receiver.before = before
        with running(place.make(otlp(receiver))):
            wait_until(lambda: place.saved.get(SEGMENT, Position(0, 0)).offset == place.size, "all")
    assert receiver.ids == ids_of(place.record, GATE)
    assert len(receiver.requests) > 2


def test_a_receiver_that_takes_no_request_at_all_is_a_failure(place: Place) -> None:
    asked: list[int] = []

    def before(handler: Any, size: int) -> bool:
        asked.append(size)
        respond(handler, 413)
        return False

    with otlp_receiver() as receiver:
        receiver.before = before
        with running(place.make(otlp(receiver))) as shipper:
            wait_until(lambda: shipper.failure or len(asked) > 40, "the fault is seen")
    assert "at once" in shipper.failure
    assert place.saved == {}


def test_what_a_receiver_threw_away_is_noted_and_not_sent_again(place: Place) -> None:
    noted: list[tuple[int, str]] = []
    with otlp_receiver() as receiver:
        receiver.rejected = 4
        place.make(otlp(receiver, lambda count, why: noted.append((count, why)))).ship()
    assert noted == [(4, "too old")]
    assert len(receiver.ids) == 21
    assert place.saved[SEGMENT].offset == place.size


class Stuck:
    """A destination that hangs in its first batch until the test lets it go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.goes_on = threading.Event()

    def send(self, events: bytes) -> None:
        self.began.set()
        self.goes_on.wait(60)

    def acknowledged(self) -> int:
        return 0

    def reset(self) -> None: ...


def test_a_destination_that_hangs_delays_no_other(place: Place, tmp_path: Path) -> None:
    stuck = Stuck()
    file = tmp_path / "record.jsonl"
    with running(place.make(stuck, "stuck")):
        assert stuck.began.wait(60)
        with running(place.make(FileDestination(file))):
            wait_until(lambda: place.saved.get(SEGMENT), "the other has it")
        stuck.goes_on.set()
    assert uids(file.read_bytes().splitlines()) == ids_of(place.record, GATE)


def test_shipping_goes_on_while_the_state_cannot_be_written(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    shipper = place.make(FileDestination(file))
    place.state.close()
    with running(shipper):
        wait_until(lambda: shipper.failure, "the fault is seen")
    assert first_of_each(uids(file.read_bytes().splitlines())) == ids_of(place.record, GATE)


def test_a_segment_that_was_removed_is_forgotten(place: Place, tmp_path: Path) -> None:
    file = FileDestination(tmp_path / "record.jsonl")
    place.make(file).ship()
    (place.record / SEGMENT).unlink()
    place.make(file).ship()
    assert place.saved == {}


def test_an_id_is_the_gate_the_segment_and_the_number(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    place.make(FileDestination(file)).ship()
    first, *_ = map(json.loads, file.read_bytes().splitlines())
    assert first["metadata"]["uid"] == "g/000001/1"
    assert first["metadata"]["sequence"] == 1
    assert time.time() - first["time"] / 1000 < 600
