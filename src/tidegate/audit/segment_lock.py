"""The segment that this process alone appends to.

Several processes may use one directory: a server, stdio servers, the command line. None waits for
another: a process continues the newest segment that nobody holds, else it begins one. So there
are as many chains as processes ever ran at once, appending needs no lock between processes, and
what a process writes is in order.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from tidegate.audit import chain
from tidegate.audit.control_records import PeerPosition, TruncatedWrite
from tidegate.audit.segment import (
    PLAIN,
    Tail,
    end_verifies,
    is_file,
    number_of,
    read_tail,
    segments,
    tail_of,
    time_of,
)


class SegmentLock(msgspec.Struct, frozen=True):
    """A segment that this process alone appends to, until the descriptor is closed.

    `begun` is when its first line was written, None for an empty one. `previous` is the end of the
    segment that an empty one continues, `finished` are those that others continue.
    """

    path: Path
    descriptor: int
    tail: Tail
    begun: float | None = None
    previous: PeerPosition | None = None
    torn: TruncatedWrite | None = None
    witnesses: tuple[PeerPosition, ...] = ()
    unreadable: tuple[str, ...] = ()
    finished: frozenset[str] = frozenset()


def acquire(
    directory: Path, ends: Iterable[PeerPosition] = (), *, fresh: bool = False
) -> SegmentLock:
    """Take the newest free segment whose end verifies, or begin one.

    A segment that does not reach as far as `ends` says, from the newest checkpoint, is left alone:
    it is not the one that was signed (an empty hash stands for any). `fresh` begins one in any
    case. Raises: OSError.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    expected = {end.segment: end for end in ends}
    paths = segments(directory)
    tails = {
        path: _as_signed(tail, expected.get(path.name))
        for path in paths
        # Another process may have removed it just now, having kept it long enough.
        if (tail := tail_of(path)) is not None or is_file(path)
    }
    for path in reversed(tails):
        seen = tails[path]
        if fresh or seen is None or seen.next:
            continue
        descriptor = hold(path)
        if descriptor is None:
            continue
        # Read again: only now nobody else appends.
        tail = _as_signed(read_tail(descriptor), expected.get(path.name))
        if tail is None or tail.next:
            os.close(descriptor)
            continue
        if not end_verifies(descriptor, tail.size):
            # What comes after a fault would be doubted with it.
            tails[path] = None
            os.close(descriptor)
            continue
        return _claimed(path, descriptor, tail, tails)
    floor = max((number_of(name) for name in [*map(str, paths), *expected]), default=0)
    path, descriptor = create(directory, floor)
    return _claimed(path, descriptor, Tail(0, 0, chain.START, b""), tails)


def create(directory: Path, floor: int) -> tuple[Path, int]:
    """An empty segment, numbered above `floor`, that we hold. Raises: OSError."""
    number = floor
    while True:
        number += 1
        path = directory / f"{number:06}.jsonl"
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            continue
        # Another process that looks for a free segment may be faster: then it is that one's.
        descriptor = hold(path)
        if descriptor is not None:
            sync_directory(directory)
            return path, descriptor


def hold(path: Path) -> int | None:
    """Open a segment for appending, if we may and no other process does.

    The lock goes with the process, however that ends.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | PLAIN)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a file")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def sync_directory(directory: Path) -> None:
    """Make a new name in the directory outlast a power cut. Raises: OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _as_signed(tail: Tail | None, end: PeerPosition | None) -> Tail | None:
    """The tail, if it reaches as far as was signed."""
    if tail is None or end is None or tail.seq > end.seq:
        return tail
    return tail if tail.seq == end.seq and end.hash in ("", tail.hash.hex()) else None


def _claimed(
    path: Path, descriptor: int, tail: Tail, tails: dict[Path, Tail | None]
) -> SegmentLock:
    aside = path.with_suffix(f".torn-{tail.size}")
    if tail.torn:
        _keep(aside, tail.torn)
        os.ftruncate(descriptor, tail.size)
    previous: PeerPosition | None = None
    witnesses: list[PeerPosition] = []
    unreadable: list[str] = []
    finished: list[str] = []
    for other, end in tails.items():
        if other == path:
            continue
        if end is None:
            unreadable.append(other.name)
        elif end.next == path.name:
            previous = PeerPosition(other.name, end.seq, end.hash.hex())
            finished.append(other.name)
        elif end.next and (path.parent / end.next).exists():
            finished.append(other.name)
        elif end.seq:
            witnesses.append(PeerPosition(other.name, end.seq, end.hash.hex()))
    if tail.size:
        previous = None
    elif previous is not None:
        # Whoever began it died before the first line.
        tail = Tail(0, previous.seq, bytes.fromhex(previous.hash), b"")
    return SegmentLock(
        path,
        descriptor,
        tail,
        time_of(os.pread(descriptor, 128, 0)) if tail.size else None,
        previous,
        # Also if an earlier process kept it aside and died before it could say so.
        _describe(aside) if is_file(aside) else None,
        tuple(witnesses),
        tuple(unreadable),
        frozenset(finished),
    )


def _keep(path: Path, torn: bytes) -> None:
    # Whatever stands there is not written to: it may lead to a file outside, such as a key.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, 0o600)
    try:
        written = 0
        while written < len(torn):
            written += os.write(descriptor, torn[written:])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(path.parent)


def _describe(path: Path) -> TruncatedWrite:
    content = path.read_bytes()
    return TruncatedWrite(path.name, len(content), f"sha256:{sha256(content).hexdigest()}")
