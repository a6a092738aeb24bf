"""Reading segments as their writer goes on: whole lines, once each, however the writer goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from products.shipping.support.record import ids_of, open_record, uids, write
from tidegate.products.shipping.events import make_events
from tidegate.products.shipping.segments import SegmentReader
from tidegate.store.shipping import Position


def read_all(directory: Path, positions: dict[str, Position], most_bytes: int = 900) -> list[str]:
    """The ids of all that lies beyond the positions, which are moved."""
    found: list[str] = []
    while batches := list(SegmentReader(directory).read(positions, most_bytes)):
        for batch in batches:
            positions[batch.segment] = batch.position
            events = b"".join(make_events("g", batch.segment, batch.text, batch.after))
            found += uids(events.splitlines())
    return found


def test_every_line_is_read_once_while_the_writer_goes_on_to_new_segments(tmp_path: Path) -> None:
    log = open_record(tmp_path, segment_bytes=2_000)
    positions: dict[str, Position] = {}
    found: list[str] = []
    for number in range(40):
        write(log, f"call-{number}")
        log._maintain(log._sync)
        if number % 7 == 0:
            found += read_all(tmp_path, positions)
    log.close()
    found += read_all(tmp_path, positions)
    assert found == ids_of(tmp_path, "g")
    assert len(positions) > 3
    assert SegmentReader(tmp_path).lag(positions).size == 0


def test_a_full_segment_is_complete_and_the_open_one_is_not(tmp_path: Path) -> None:
    log = open_record(tmp_path, segment_bytes=300)
    write(log, "a")
    log._maintain(log._sync)
    write(log, "b")
    positions: dict[str, Position] = {}
    read_all(tmp_path, positions)
    log.close()
    assert [each.complete for _, each in sorted(positions.items())] == [True, False]


def test_a_line_longer_than_a_batch_comes_alone(tmp_path: Path) -> None:
    log = open_record(tmp_path)
    write(log, "a", "b" * 50, "c")
    log.close()
    positions: dict[str, Position] = {}
    assert read_all(tmp_path, positions, 64) == ids_of(tmp_path, "g")


def test_half_a_line_is_left_until_it_is_whole(tmp_path: Path) -> None:
    log = open_record(tmp_path)
    write(log, "a")
    log.close()
    positions: dict[str, Position] = {}
    read_all(tmp_path, positions)
    file = tmp_path / "000001.jsonl"
    line = b'{"seq":3,"time":"2026-11-30T06:30:54Z","phase":"event","name":"x"}\n'
    with file.open("ab") as more:
        more.write(line[:20])
    assert read_all(tmp_path, positions) == []
    with file.open("ab") as more:
        more.write(line[20:])
    assert read_all(tmp_path, positions) == ["g/000001/3"]


def test_what_comes_while_a_segment_is_read_is_left_for_the_next_look(tmp_path: Path) -> None:
    """The sync before the first of its lines was not about what came later."""
    log = open_record(tmp_path)
    write(log, "a", "b")
    reader, positions = SegmentReader(tmp_path), dict[str, Position]()
    whole = (tmp_path / "000001.jsonl").stat().st_size
    batches = reader.read(positions, 64)
    first = next(batches)
    write(log, "c")
    last = [first, *batches][-1]
    assert last.position == Position(whole, 3, False)
    positions[last.segment] = last.position
    assert read_all(tmp_path, positions) == ["g/000001/4"]
    log.close()


def test_a_segment_that_was_cut_gives_nothing(tmp_path: Path) -> None:
    log = open_record(tmp_path)
    write(log, "a", "b")
    log.close()
    positions: dict[str, Position] = {}
    read_all(tmp_path, positions)
    file = tmp_path / "000001.jsonl"
    file.write_bytes(file.read_bytes()[:-30])
    assert read_all(tmp_path, positions) == []


def test_the_lag_is_what_is_missing_and_how_old_it_is(tmp_path: Path) -> None:
    log = open_record(tmp_path)
    write(log, "a")
    positions: dict[str, Position] = {}
    reader = SegmentReader(tmp_path)
    whole = (tmp_path / "000001.jsonl").stat().st_size
    lag = reader.lag(positions)
    assert lag.size == whole
    assert 0 <= lag.age() < 600
    read_all(tmp_path, positions)
    assert (reader.lag(positions).size, reader.lag(positions).age()) == (0, 0.0)
    write(log, "b")
    log.close()
    assert 0 < reader.lag(positions).size < whole


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_segment_that_is_not_what_was_shipped_begins_again(tmp_path: Path, damage: str) -> None:
    log = open_record(tmp_path)
    write(log, "a", "b", "c")
    log.close()
    positions: dict[str, Position] = {}
    ids = read_all(tmp_path, positions)
    reader = SegmentReader(tmp_path)
    assert reader.check(positions) == positions
    file = tmp_path / "000001.jsonl"
    text = file.read_bytes()
    file.write_bytes(text[:-30] if damage == "cut" else text.replace(b'{"seq":4', b'{"seq":9'))
    assert reader.check(positions) == {}
    assert reader.removed([*positions, "000009.jsonl"]) == {"000009.jsonl"}
    assert len(ids) == 4
