"""What this process may take: open files, memory, the processor, the disk."""

from __future__ import annotations

import os
import sys
from math import inf
from pathlib import Path


def open_file_limit() -> float:
    """How many files and connections this process may have open; infinite without a limit."""
    import resource

    return _number(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def most_open_files() -> float:
    """How far `raise_open_files` may raise the limit; infinite if there is no end."""
    import resource

    return _number(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def raise_open_files(needed: int) -> bool:
    """Raise this process's limit of open files; False if the system does not let it be so high."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError):
        return False
    return True


def bound_memory(size: int) -> None:
    """Let this process take no more than `size` bytes for its data, or less if it may take less:
    then it gets MemoryError. Linux alone keeps such a bound; elsewhere nothing changes."""
    if sys.platform == "linux":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        bound = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))


def give_way(thread: int, by: int) -> None:
    """Have one thread, by its native number, wait for the others of the process, where the system
    can order single threads. Raises: OSError."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, own + by)


def written_bytes(thread: int) -> int | None:
    """How many bytes a thread of this process, by its native number, has written in its life; None
    where the system does not count them."""
    try:
        counts = Path(f"/proc/self/task/{thread}/io").read_bytes()
    except OSError:
        return None
    return int(counts.partition(b"wchar:")[2].split(None, 1)[0])


def _number(limit: int) -> float:
    import resource

    return inf if limit == resource.RLIM_INFINITY else limit
