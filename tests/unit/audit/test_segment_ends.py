"""The end of a segment as a starting server looks at it, and what verification says of ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidegate.audit import chain
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.audit.segment import end_verifies, lock_for_append, start_of, time_of
from tidegate.audit.verify import verify
from tidegate.config.model import AuditSettings

CHECKED = 512 * 1024
HEADER = (
    b'{"seq":1,"time":"2026-01-01T00:00:00Z","phase":"open","segment":"000001.jsonl",'
    b'"process":1,"version":"0"}'
)


def lines(count: int, width: int = 1000) -> list[bytes]:
    """A header and lines of `width` bytes and more, sealed."""
    found, previous = [], chain.START
    for number in range(1, count + 1):
        body = HEADER if number == 1 else b'{"seq":%d,"a":"%b"}' % (number, b"x" * width)
        line, previous = chain.seal(body, previous)
        found.append(line + b"\n")
    return found


@contextmanager
def opened(path: Path, content: bytes) -> Iterator[tuple[int, int]]:
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDWR)
    try:
        yield descriptor, len(content)
    finally:
        os.close(descriptor)


def verifies(path: Path, segment: list[bytes]) -> bool:
    with opened(path, b"".join(segment)) as (descriptor, size):
        return end_verifies(descriptor, size)


def spoiled(line: bytes) -> bytes:
    return line.replace(b"xx", b"yx", 1)


def test_a_short_segment_is_looked_at_from_its_header(tmp_path: Path) -> None:
    path, whole = tmp_path / "000001.jsonl", lines(20)
    assert verifies(path, whole)
    assert verifies(path, [])
    for changed in (1, 10, 19):
        assert not verifies(
            path, [*whole[:changed], spoiled(whole[changed]), *whole[changed + 1 :]]
        )
    assert not verifies(path, [*whole[:5], *whole[6:]])
    assert not verifies(path, [b"rubbish\n", *whole[1:]])
    assert not verifies(path, whole[1:])
    with opened(path, b"".join(whole) + b'{"seq":21,') as (descriptor, size):
        assert end_verifies(descriptor, size)  # a line that a crash cut is no whole line


def test_of_a_long_segment_the_last_half_megabyte_is_looked_at(tmp_path: Path) -> None:
    path, whole = tmp_path / "000001.jsonl", lines(1200)
    size, base = 0, len(whole)
    while size + len(whole[base - 1]) <= CHECKED:
        base -= 1
        size += len(whole[base])
    # The first whole line in the window is what the others follow.
    assert verifies(path, whole)
    assert verifies(path, [*whole[:5], spoiled(whole[5]), *whole[6:]])
    for changed in (base + 1, base + 2, len(whole) - 1):
        assert not verifies(
            path, [*whole[:changed], spoiled(whole[changed]), *whole[changed + 1 :]]
        )
    assert not verifies(path, [*whole[: base + 1], *whole[base + 2 :]])
    shorter = b"z" * (len(whole[base]) - 1) + b"\n"
    assert not verifies(path, [*whole[:base], shorter, *whole[base + 1 :]])
    numberless = whole[base].replace(b'{"seq":', b'{"sqe":')
    assert not verifies(path, [*whole[:base], numberless, *whole[base + 1 :]])


def test_a_segment_is_locked_by_one_and_only_if_it_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "000001.jsonl"
    assert lock_for_append(path) is None
    path.touch()
    held = lock_for_append(path)
    assert held is not None
    assert lock_for_append(path) is None
    os.close(held)
    again = lock_for_append(path)
    assert again is not None
    os.close(again)
    os.mkfifo(tmp_path / "000002.jsonl")
    assert lock_for_append(tmp_path / "000002.jsonl") is None
    (tmp_path / "000003.jsonl").mkdir()
    assert lock_for_append(tmp_path / "000003.jsonl") is None


# What verification says of ends.


def append(log: AuditLog, count: int) -> None:
    for number in range(count):
        log.append(Event(call_id=f"c{number}", phase="outcome", actor="a" * 200))


@pytest.fixture
def rotated(tmp_path: Path) -> tuple[Path, Path]:
    """The directory of a log of several segments, and that of its keys."""
    directory, keys = tmp_path / "audit", tmp_path / "keys"
    for _ in range(4):
        log = AuditLog(directory, keys=keys, settings=AuditSettings(segment_bytes=2_000))
        append(log, 10)
        log.close()
    assert len(list(directory.iterdir())) > 3
    return directory, keys


def test_signatures_are_checked_where_a_key_is_given_and_it_is_said_where_not(
    rotated: tuple[Path, Path],
) -> None:
    directory, keys = rotated
    note = "no public key was given, so no signature was checked"
    with_keys, without = verify(directory, keys), verify(directory)
    assert with_keys.intact and without.intact
    assert note not in with_keys.unchecked and note in without.unchecked
    assert with_keys.checkpoints > 0 and without.checkpoints == 0


def test_a_segment_that_another_continues_and_that_is_gone_is_one_fault_of_the_segment(
    rotated: tuple[Path, Path],
) -> None:
    directory, _ = rotated
    (directory / "000002.jsonl").unlink()
    faults = verify(directory).faults
    assert [(fault.segment, fault.line) for fault in faults] == [("000002.jsonl", 0)]


def test_the_newest_segment_that_is_gone_is_missed_by_the_one_it_continued(
    rotated: tuple[Path, Path],
) -> None:
    directory, _ = rotated
    newest = max(directory.glob("*.jsonl"))
    newest.unlink()
    (fault,) = verify(directory).faults
    assert (fault.segment, fault.line) == (newest.name, 0)
    assert "it continued" in fault.reason


@pytest.mark.parametrize("line", [b"", b"{}", b'{"seq":1}', b"Dear Sir"])
def test_a_line_without_a_time_or_an_earlier_segment_has_none(line: bytes) -> None:
    assert time_of(line) is None
    assert start_of(line) == chain.START
