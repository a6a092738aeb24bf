"""Descriptors of open files, pipes and sockets: the standard three, where they lead, what they
hold, and whose they are."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

STDIN, STDOUT, STDERR = range(3)


def open_missing_streams() -> None:
    """Open nothing, as /dev/null, for each standard stream that is closed, so that no other file
    gets its number. Raises: OSError."""
    for number, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number, which is this one


def open_nowhere() -> int:
    """A descriptor for writing whose content goes nowhere. Raises: OSError."""
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def take_streams() -> tuple[int, int]:
    """Standard input and output under other numbers, out of reach of what prints or reads: that
    gets nothing from now on. Raises: OSError."""
    source, target = os.dup(STDIN), os.dup(STDOUT)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, STDIN)
    os.dup2(nothing, STDOUT)
    os.close(nothing)
    return source, target


def lead_to(descriptor: int, target: int, *, inheritable: bool = False) -> None:
    """Have a descriptor, which stays the same number, lead to what `target` leads to. Both are to
    be closed. Raises: OSError."""
    os.dup2(target, descriptor, inheritable)


def duplicate(descriptor: int) -> int:
    """A further descriptor of what is open; no child inherits it. Raises: OSError."""
    return os.dup(descriptor)


def keep_from_children(descriptor: int) -> None:
    """No program that we start inherits it. Raises: OSError."""
    os.set_inheritable(descriptor, False)


def open_shared_memory(size: int) -> int:
    """A descriptor of memory, all zero, which processes that inherit it can map and share. Raises:
    OSError."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tidegate")
    else:  # macOS
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def open_pipe() -> tuple[int, int]:
    """The ends of a new pipe, for reading and for writing; no child inherits them unless it is
    given one. Raises: OSError."""
    return os.pipe()


def widen_pipe(descriptor: int, size: int) -> None:
    """Have a pipe hold this many bytes, where the system lets us: a user's pipes may already have
    all the memory that they may. Never raises."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)


def waiting_bytes(descriptor: int) -> int:
    """How many bytes have arrived at a socket or pipe and were not read. Raises: OSError."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)


def is_own_connection(peer_port: int, own_port: int) -> bool:
    """Whether the other end of a loopback connection over IPv4 belongs to our account, by the
    kernel's table of connections. True where there is no such table: a caller has to bear that."""
    import socket
    import struct
    from pathlib import Path

    try:
        table = Path("/proc/net/tcp").read_text("ascii")
    except OSError:
        return True
    (address,) = struct.unpack("=I", socket.inet_aton("127.0.0.1"))
    wanted = [f"{address:08X}:{peer_port:04X}", f"{address:08X}:{own_port:04X}"]
    for line in table.splitlines():
        fields = line.split()
        if fields[1:3] == wanted:
            return int(fields[7]) == os.geteuid()
    return False


def read_at(descriptor: int, size: int, begin: int) -> bytes:
    """Up to `size` bytes of a file from a place on, whatever its position is, which stays: threads
    may read at the same time. Raises: OSError."""
    return os.pread(descriptor, size, begin)


def write_at(descriptor: int, content: bytes | memoryview, begin: int) -> int:
    """Write to a file from a place on, as `read_at` reads; returns how many bytes were written.
    Raises: OSError."""
    return os.pwrite(descriptor, content, begin)


def sync_content(descriptor: int) -> None:
    """Wait until the content of a file is on the disk; its times need not be. Raises: OSError."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:  # macOS
        os.fsync(descriptor)
