"""Locks on files, between processes and between the open files of one process.

A lock belongs to an open file. It ends when that file is closed, or when the process ends, however
it ends: no lock is left by a process that was killed. It keeps no one from reading or writing the
file, and it is held where the file has another name by now. A port may not weaken any of this.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

_MOST_LOCKS = 200


def take_lock(descriptor: int) -> None:
    """Lock an open file for this holder alone, and wait until no other has it. Raises: OSError."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file if that is possible at once; False if another open file is in the way.
    Several may hold a `shared` lock, while no one has another.

    Raises: OSError where the file cannot be locked at all.
    """
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor: int, within_s: float, poll_s: float) -> bool:
    """Lock an open file as soon as no other has it; False if another has it for all of the time.
    Raises: OSError as `try_lock`."""
    until = time.monotonic() + within_s
    while not try_lock(descriptor):
        if time.monotonic() > until:
            return False
        time.sleep(poll_s)
    return True


def end_lock(descriptor: int) -> None:
    """Let go of the lock of an open file, which stays open. Raises: OSError."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_locked(descriptor: int) -> bool:
    """Whether another open file holds its lock alone, by a shared lock that is let go at once, so
    that those who ask do not take each other for the holder. True also where it is not known."""
    try:
        if not try_lock(descriptor, shared=True):
            return True
        end_lock(descriptor)
    except OSError:
        return True
    return False


def part_lock_holders(path: Path) -> set[int]:
    """The processes that hold locks on parts of a file, which libraries such as LMDB take; as far
    as the system tells. Not the locks of this module, which are on whole files. Never raises."""
    found: set[int] = set()
    with suppress(OSError):
        if sys.platform == "linux":
            status = path.stat()
            name = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
            for line in Path("/proc/locks").read_text().splitlines():
                fields = line.replace("->", " ").split()
                if len(fields) > 5 and fields[1] in ("POSIX", "OFDLCK") and fields[5] == name:
                    found.add(int(fields[4]))
    with suppress(OSError):
        found |= _asked_holders(path)
    return {pid for pid in found if pid > 0}


def _asked_holders(path: Path) -> set[int]:
    """Those that the system says would keep us from locking parts of the file."""
    import fcntl

    found: set[int] = set()
    with path.open("rb") as file:
        begin = 0
        for _ in range(_MOST_LOCKS):
            answer = fcntl.fcntl(file.fileno(), fcntl.F_GETLK, _packed(fcntl.F_WRLCK, begin))
            kind, start, length, pid = _unpacked(answer)
            if kind == fcntl.F_UNLCK:
                break
            found.add(pid)
            if length == 0:
                break
            begin = start + length
    return found


def _packed(kind: int, begin: int) -> bytes:
    """`struct flock` for all of a file from a place on."""
    if sys.platform == "linux":
        return struct.pack("hhqqi4x", kind, os.SEEK_SET, begin, 0, 0)
    return struct.pack("qqihh", begin, 0, 0, kind, os.SEEK_SET)


def _unpacked(answer: bytes) -> tuple[int, int, int, int]:
    """The type, start, length and process of a lock."""
    if sys.platform == "linux":
        kind, _, start, length, pid = struct.unpack("hhqqi4x", answer)
    else:
        start, length, pid, kind, _ = struct.unpack("qqihh", answer)
    return kind, start, length, pid
