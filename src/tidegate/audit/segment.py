"""Segment files: numbered, each one chain, each appended to by one process at a time.

Several processes may use one directory: a server, stdio servers, the command line. None waits for
another: a process continues the newest segment that nobody holds, else it begins one. So there
are as many segments as processes ever ran at once, appending needs no lock between processes, and
what a process writes is in order. Across segments the order is that of time.
"""

from __future__ import annotations

import fcntl
import os
import re
from hashlib import sha256
from pathlib import Path

import msgspec

from tidegate.audit import chain
from tidegate.audit.event import Torn, Witness

# A line is far shorter: every text in an event is cut to size.
_WINDOW = 131_072
_NAME = re.compile(r"\d{6}\.jsonl")


class Tail(msgspec.Struct, frozen=True):
    """The end of a segment: bytes of whole lines, the last line's number and hash, and what
    follows the last line break."""

    size: int
    seq: int
    hash: bytes
    torn: bytes


class Claim(msgspec.Struct, frozen=True):
    """A segment that this process alone appends to, until the descriptor is closed."""

    path: Path
    descriptor: int
    tail: Tail
    torn: Torn | None
    witnesses: tuple[Witness, ...]
    unreadable: tuple[str, ...]


def segments(directory: Path) -> list[Path]:
    """The segments in the order in which they were begun."""
    return sorted(path for path in directory.iterdir() if _NAME.fullmatch(path.name))


def claim(directory: Path) -> Claim:
    """Take the newest free segment whose end verifies, or begin one. Raises: OSError."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths = segments(directory)
    tails = {path: _tail_of(path) for path in paths}
    for path in reversed(paths):
        descriptor = _hold(path)
        if descriptor is None:
            continue
        # Read again: only now nobody else appends.
        tail = read_tail(descriptor)
        if tail is None:
            os.close(descriptor)
            continue
        return _claimed(path, descriptor, tail, tails)
    path, descriptor = _begin(directory, paths)
    return _claimed(path, descriptor, Tail(0, 0, chain.START, b""), tails)


def read_tail(descriptor: int) -> Tail | None:
    """The end of a segment; None if its last whole line does not follow the one before it."""
    length = os.fstat(descriptor).st_size
    start = max(0, length - _WINDOW)
    window = os.pread(descriptor, length - start, start)
    whole, _, torn = window.rpartition(b"\n")
    if not whole:
        return Tail(0, 0, chain.START, torn) if start == 0 else None
    before, _, last = whole.rpartition(b"\n")
    previous = chain.START
    if before or start:
        unsealed = chain.unseal(before.rpartition(b"\n")[2])
        if unsealed is None:
            return None
        previous = unsealed[1]
    unsealed = chain.unseal(last)
    seq = chain.sequence(last)
    if unsealed is None or seq is None or not chain.follows(last, previous):
        return None
    return Tail(length - len(torn), seq, unsealed[1], torn)


def _hold(path: Path) -> int | None:
    """Open a segment for appending, if we may and no other process does.

    The lock goes with the process, however that ends.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _begin(directory: Path, paths: list[Path]) -> tuple[Path, int]:
    number = int(paths[-1].stem) if paths else 0
    while True:
        number += 1
        path = directory / f"{number:06}.jsonl"
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            continue
        # Another process that looks for a free segment may be faster: then it is that one's.
        descriptor = _hold(path)
        if descriptor is not None:
            _sync_directory(directory)
            return path, descriptor


def _claimed(path: Path, descriptor: int, tail: Tail, tails: dict[Path, Tail | None]) -> Claim:
    aside = path.with_suffix(f".torn-{tail.size}")
    if tail.torn:
        _keep(aside, tail.torn)
        os.ftruncate(descriptor, tail.size)
    # Also if an earlier process kept it aside and died before it could say so.
    torn = _describe(aside) if aside.exists() else None
    witnesses: list[Witness] = []
    unreadable: list[str] = []
    for other, end in tails.items():
        if end is None:
            unreadable.append(other.name)
        elif end.seq and other != path:
            witnesses.append(Witness(other.name, end.seq, end.hash.hex()))
    return Claim(path, descriptor, tail, torn, tuple(witnesses), tuple(unreadable))


def _tail_of(path: Path) -> Tail | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return read_tail(descriptor)
    finally:
        os.close(descriptor)


def _keep(path: Path, torn: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        written = 0
        while written < len(torn):
            written += os.write(descriptor, torn[written:])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    _sync_directory(path.parent)


def _describe(path: Path) -> Torn:
    content = path.read_bytes()
    return Torn(path.name, len(content), f"sha256:{sha256(content).hexdigest()}")


def _sync_directory(directory: Path) -> None:
    """Make a new name in the directory outlast a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
