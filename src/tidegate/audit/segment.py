"""Segment files: numbered, found again, and read from their end.

A segment that is full ends in a line that names the next one, which goes on with the same chain.
Across chains the order is that of time.
"""

from __future__ import annotations

import os
import re
import stat
from datetime import datetime
from pathlib import Path

import msgspec

from tidegate.audit import chain
from tidegate.audit.control_records import SegmentEnd, SegmentHeader

# The longest line is shorter than the last of them: every text in an event is cut to size.
_WINDOWS = (8_192, 262_144)
_CHECKED_BYTES = 524_288
PLAIN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Others may write in the directory: no link is followed, and no pipe waited for."""
_NAME = re.compile(r"\d{6,}\.jsonl")
_TIME = re.compile(rb'\{"seq":\d+,"time":"([^"]{20,40})"')


class Tail(msgspec.Struct, frozen=True):
    """The end of a segment: bytes of whole lines, the last line's number and hash, what follows
    the last line break, the segment that the chain goes on in, if it does, when the last line was
    written, in Unix seconds, and whether nothing is left to sign."""

    size: int
    seq: int
    hash: bytes
    torn: bytes
    next: str = ""
    at: float | None = None
    signed: bool = True


def segments(directory: Path) -> list[Path]:
    """The segments in the order in which they were begun. Raises: OSError."""
    return sorted((path for path in _named(directory) if is_file(path)), key=number_of)


def unexpected_files(directory: Path) -> list[Path]:
    """What has the name of a segment and is none: a link, a pipe, a directory. Raises: OSError."""
    return sorted(path for path in _named(directory) if not is_file(path))


def _named(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if _NAME.fullmatch(path.name)]


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
        descriptor = os.open(path, os.O_RDONLY | PLAIN)
    except OSError:
        return None
    try:
        return read_tail(descriptor) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    finally:
        os.close(descriptor)


def read_tail(descriptor: int) -> Tail | None:
    """The end of a segment; None if its last whole line does not follow the one before it."""
    length = os.fstat(descriptor).st_size
    for size in _WINDOWS:
        start = max(0, length - size)
        window = os.pread(descriptor, length - start, start)
        whole, _, torn = window.rpartition(b"\n")
        if start == 0 or whole.count(b"\n") > 1:
            return _read_end(whole, torn, length, from_start=start == 0)
    return None


def end_verifies(descriptor: int, size: int) -> bool:
    """Whether the last half megabyte of a segment's whole lines is one chain.

    A server that starts must not read a whole segment; `verify` does. Raises: OSError.
    """
    begin = max(0, size - _CHECKED_BYTES)
    window = os.pread(descriptor, size - begin, begin)
    lines = window.split(b"\n")[:-1]
    if begin:
        # The first is cut, and the one after it has nothing to be held to.
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
    """When a line was written, in Unix seconds, as it says itself; None if it does not."""
    found = _TIME.match(line)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(found[1].decode()).timestamp()
    except ValueError:
        return None


def start_of(first: bytes) -> bytes | None:
    """The hash that a segment's first line follows; None if the line is not to be understood."""
    try:
        opening = msgspec.json.decode(first, type=SegmentHeader)
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
        return msgspec.json.decode(body, type=SegmentEnd).next
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
