"""Segment files, and the lock of the segment that this process appends to.

Segments are numbered. A full segment ends in a line that names the next one, which continues the
same chain. Several processes may use one directory: a server, stdio servers, the command line. No
process waits for another: it continues the newest unlocked segment or begins a new one. So there
are as many chains as there were processes at the same time, and appending needs no lock between
processes.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from tidegate.audit import chain
from tidegate.audit.control_records import PeerPosition, SegmentEnd, SegmentHeader, TruncatedWrite
from tidegate.system.descriptors import read_at
from tidegate.system.file_locks import try_lock
from tidegate.system.private_files import (
    create_file,
    make_private_directory,
    open_existing,
    sync_directory,
    write_new_file,
)
from tidegate.typed_values import decode_json

# The longest line is shorter than the last window, because every text in an event is limited.
_WINDOWS = (8_192, 262_144)
_CHECKED_BYTES = 524_288
_NAME = re.compile(r"\d{6,}\.jsonl")
_TIME = re.compile(rb'\{"seq":\d+,"time":"([^"]{20,40})"')


class Tail(msgspec.Struct, frozen=True):
    """The end of a segment.

    `size` is the length of all whole lines in bytes, `seq` and `hash` are those of the last line,
    `torn` is what follows the last line break. `next` is the segment that continues the chain, or
    empty. `at` is the time of the last line in Unix seconds, `signed` says that every line is
    covered by a checkpoint.
    """

    size: int
    seq: int
    hash: bytes
    torn: bytes
    next: str = ""
    at: float | None = None
    signed: bool = True


def segments(directory: Path) -> list[Path]:
    """The segments in the order of their creation. Raises: OSError."""
    return sorted((path for path in _named(directory) if is_file(path)), key=number_of)


def unexpected_files(directory: Path) -> list[Path]:
    """Links, pipes and directories that have the name of a segment. Raises: OSError."""
    return sorted(path for path in _named(directory) if not is_file(path))


def _named(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if is_segment(path.name)]


def is_segment(name: str) -> bool:
    """Whether this is the name of a segment."""
    return _NAME.fullmatch(name) is not None


def is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def number_of(path: Path | str) -> int:
    """The number in a segment's name."""
    return int(Path(path).stem)


def tail_of(path: Path) -> Tail | None:
    """The end of the segment at `path`; None if it cannot be read or does not verify."""
    try:
        descriptor = open_existing(path)
    except OSError:
        return None
    try:
        return read_tail(descriptor)
    finally:
        os.close(descriptor)


def read_tail(descriptor: int) -> Tail | None:
    """The end of a segment; None if its last whole line does not follow the one before it."""
    length = os.fstat(descriptor).st_size
    for size in _WINDOWS:
        start = max(0, length - size)
        window = read_at(descriptor, length - start, start)
        whole, _, torn = window.rpartition(b"\n")
        if start == 0 or whole.count(b"\n") > 1:
            return _read_end(whole, torn, length, from_start=start == 0)
    return None


def end_verifies(descriptor: int, size: int) -> bool:
    """Whether the last half megabyte of a segment's whole lines is one chain.

    It does not read the whole segment, as `verify` does, so that a server starts fast.
    Raises: OSError.
    """
    begin = max(0, size - _CHECKED_BYTES)
    window = read_at(descriptor, size - begin, begin)
    lines = window.split(b"\n")[:-1]
    if begin:
        # The first line is incomplete.
        del lines[0]
    if not lines:
        return True
    base = lines.pop(0) if begin else None
    if base is None:
        previous, first = start_of(lines[0]), chain.sequence(lines[0])
    else:
        unsealed, number = chain.unseal(base), chain.sequence(base)
        previous = None if unsealed is None else unsealed[1]
        first = None if number is None else number + 1
    if previous is None or first is None:
        return False
    return not chain.check(lines, previous, first).faults


def time_of(line: bytes) -> float | None:
    """The time in a line, in Unix seconds; None if it has none."""
    found = _TIME.match(line)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(found[1].decode()).timestamp()
    except ValueError:
        return None


def start_of(first: bytes) -> bytes | None:
    """The hash that a segment's first line follows."""
    try:
        opening = decode_json(first, SegmentHeader)
        return chain.START if opening.previous is None else bytes.fromhex(opening.previous.hash)
    except (msgspec.MsgspecError, ValueError):
        return chain.START


def _read_end(whole: bytes, torn: bytes, length: int, *, from_start: bool) -> Tail | None:
    if not whole:
        return Tail(0, 0, chain.START, torn)
    before, _, last = whole.rpartition(b"\n")
    if before or not from_start:
        unsealed = chain.unseal(before.rpartition(b"\n")[2])
        previous = None if unsealed is None else unsealed[1]
    else:
        previous = start_of(last)
    unsealed = chain.unseal(last)
    seq = chain.sequence(last)
    if previous is None or unsealed is None or seq is None or not chain.follows(last, previous):
        return None
    return Tail(
        length - len(torn),
        seq,
        unsealed[1],
        torn,
        _next_of(unsealed[0]),
        time_of(last),
        b'"phase":"checkpoint"' in last[:128],
    )


def _next_of(body: bytes) -> str:
    if b'"phase":"continued"' not in body[:128]:
        return ""
    try:
        return decode_json(body, SegmentEnd).next
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


class SegmentLock(msgspec.Struct, frozen=True):
    """A segment that only this process appends to, until the descriptor is closed.

    `started_at` is the time of its first line, None for an empty segment. `previous` is the end of
    the segment that an empty one continues, `continued` names segments that others continue.
    """

    path: Path
    descriptor: int
    tail: Tail
    started_at: float | None = None
    previous: PeerPosition | None = None
    torn: TruncatedWrite | None = None
    witnesses: tuple[PeerPosition, ...] = ()
    unreadable: tuple[str, ...] = ()
    continued: frozenset[str] = frozenset()


def acquire(
    directory: Path, ends: Iterable[PeerPosition] = (), *, fresh: bool = False
) -> SegmentLock:
    """Lock the newest unlocked segment whose end verifies, or begin a new one.

    `ends` are the positions in the newest checkpoint. A segment that ends before its position is
    not continued, because it is not the one that was signed; an empty hash matches any. `fresh`
    begins a new segment in any case. Raises: OSError.
    """
    make_private_directory(directory)
    expected = {end.segment: end for end in ends}
    paths = segments(directory)
    tails = {
        path: _as_signed(tail, expected.get(path.name))
        for path in paths
        # Another process may have just removed it because it expired.
        if (tail := tail_of(path)) is not None or is_file(path)
    }
    for path in reversed(tails):
        seen = tails[path]
        if fresh or seen is None or seen.next:
            continue
        descriptor = lock_for_append(path)
        if descriptor is None:
            continue
        # Read again: before the lock was taken, another process could append.
        tail = _as_signed(read_tail(descriptor), expected.get(path.name))
        if tail is None or tail.next:
            os.close(descriptor)
            continue
        if not end_verifies(descriptor, tail.size):
            # Lines after a fault would not be trusted either.
            tails[path] = None
            os.close(descriptor)
            continue
        return _segment_lock(path, descriptor, tail, tails)
    floor = max((number_of(name) for name in [*map(str, paths), *expected]), default=0)
    path, descriptor = create(directory, floor)
    return _segment_lock(path, descriptor, Tail(0, 0, chain.START, b""), tails)


def create(directory: Path, floor: int) -> tuple[Path, int]:
    """Create and lock an empty segment numbered above `floor`. Raises: OSError."""
    number = floor
    while True:
        number += 1
        path = directory / f"{number:06}.jsonl"
        try:
            os.close(create_file(path))
        except FileExistsError:
            continue
        # Another process that searches for an unlocked segment may have taken this one.
        descriptor = lock_for_append(path)
        if descriptor is not None:
            sync_directory(directory)
            return path, descriptor


def lock_for_append(path: Path) -> int | None:
    """Open and lock a segment for appending; None if that is not possible.

    The operating system releases the lock when the process ends, however it ends.
    """
    try:
        descriptor = open_existing(path, access="read and append")
    except OSError:
        return None
    with suppress(OSError):
        if try_lock(descriptor):
            return descriptor
    os.close(descriptor)
    return None


def _as_signed(tail: Tail | None, end: PeerPosition | None) -> Tail | None:
    """The tail; None if it ends before the signed position."""
    if tail is None or end is None or tail.seq > end.seq:
        return tail
    return tail if tail.seq == end.seq and end.hash in ("", tail.hash.hex()) else None


def _segment_lock(
    path: Path, descriptor: int, tail: Tail, tails: dict[Path, Tail | None]
) -> SegmentLock:
    aside = path.with_suffix(f".torn-{tail.size}")
    if tail.torn:
        _keep_aside(aside, tail.torn)
        os.ftruncate(descriptor, tail.size)
    previous: PeerPosition | None = None
    witnesses: list[PeerPosition] = []
    unreadable: list[str] = []
    continued: list[str] = []
    for other, end in tails.items():
        if other == path:
            continue
        if end is None:
            unreadable.append(other.name)
        elif end.next == path.name:
            previous = PeerPosition(other.name, end.seq, end.hash.hex())
            continued.append(other.name)
        elif end.next and (path.parent / end.next).exists():
            continued.append(other.name)
        elif end.seq:
            witnesses.append(PeerPosition(other.name, end.seq, end.hash.hex()))
    if tail.size:
        previous = None
    elif previous is not None:
        # The process that created it ended before it wrote the first line.
        tail = Tail(0, previous.seq, bytes.fromhex(previous.hash), b"")
    return SegmentLock(
        path,
        descriptor,
        tail,
        time_of(read_at(descriptor, 128, 0)) if tail.size else None,
        previous,
        # An earlier process may have ended between moving it aside and recording that.
        _describe(aside) if is_file(aside) else None,
        tuple(witnesses),
        tuple(unreadable),
        frozenset(continued),
    )


def _keep_aside(path: Path, torn: bytes) -> None:
    # An existing file is not written to: it may be a link to a file elsewhere, such as a key.
    path.unlink(missing_ok=True)
    write_new_file(path, torn)
    sync_directory(path.parent)


def _describe(path: Path) -> TruncatedWrite:
    content = path.read_bytes()
    return TruncatedWrite(path.name, len(content), f"sha256:{sha256(content).hexdigest()}")
