"""Copies of large files, which share their blocks with the original where the file system can."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

_FICLONE = 0x40049409
"""`ioctl` by which a file system has one file share the blocks of another until either changes."""
_CHUNK = 16 * 1024**2


def copy_file(original: Path, copy: Path) -> None:
    """Copy a file, sharing its blocks where the file system can, and without its holes. The copy is
    for this account alone, and takes the place of what `copy` held; a link at the place of the
    original is not followed. Raises: OSError."""
    source = os.open(original, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        target = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            if not _shares_blocks(source, target):
                _copy_data(source, target)
        finally:
            os.close(target)
    finally:
        os.close(source)


def stored_bytes(path: Path) -> int:
    """The bytes that a file takes on the disk: one that is mapped may be mostly holes. Raises:
    OSError."""
    status = path.stat()
    return min(status.st_size, status.st_blocks * 512)


def _shares_blocks(source: int, target: int) -> bool:
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _copy_data(source: int, target: int) -> None:
    size = os.fstat(source).st_size
    os.truncate(target, size)
    end = 0
    while end < size:
        try:
            begin = os.lseek(source, end, os.SEEK_DATA)
            end = os.lseek(source, begin, os.SEEK_HOLE)
        except OSError:  # what is left is a hole
            return
        while begin < end:
            copied = _copy_range(source, target, begin, min(_CHUNK, end - begin))
            if not copied:
                return
            begin += copied


def _copy_range(source: int, target: int, begin: int, size: int) -> int:
    if sys.platform == "linux":
        with suppress(OSError):  # not between these two file systems
            return os.copy_file_range(source, target, size, begin, begin)
    return os.pwrite(target, os.pread(source, size, begin), begin)
