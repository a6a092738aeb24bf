"""Disks: what is free, what can be reserved, and which file systems are none of data."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def free_bytes(path: Path) -> int:
    """What this account may still write on the disk of a file or directory. Raises: OSError."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def allocate(descriptor: int, begin: int, size: int) -> bool:
    """Give a file space on the disk, so that a later write there needs none. What it holds stays,
    and it grows as far as needed. False where the system has no such call. Raises: OSError."""
    if not hasattr(os, "posix_fallocate"):
        return False
    os.posix_fallocate(descriptor, begin, size)
    return True


def try_writing(directory: Path, size: int = 4_096) -> None:
    """See that a disk takes `size` bytes in a directory; they are gone afterwards. Raises:
    OSError."""
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        # Random, because a file system that compresses needs no space for zeros.
        file.write(os.urandom(size))
        os.fsync(file.fileno())


def is_on_disk(status: os.stat_result) -> bool:
    """Whether a file is certainly on a device, in no file system that the kernel makes up. False is
    no answer: `file_systems` has it."""
    return os.major(status.st_dev) != 0


def file_systems() -> dict[int, str]:
    """The kinds of the mounted file systems, such as `ext4` or `proc`, by their device (`st_dev`);
    empty where the system does not list them."""
    found: dict[int, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
            mount, _, source = line.partition(" - ")
            major, minor = mount.split(" ")[2].split(":")
            found[os.makedev(int(major), int(minor))] = source.partition(" ")[0]
    return found
