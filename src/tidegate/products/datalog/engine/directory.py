"""A directory of Datalevin, seen from outside: what is in it, and who else has it open.

Two processes that change one Datalog database give two entities one id, so a change is made only
by a process that has the directory alone: our processes hold a lock on the directory meanwhile, and
the locks of the engine itself show other programs.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tidegate.errors import Code, TidegateError

DATA = "data.mdb"
LOCK = "lock.mdb"
VERSION = "VERSION"

_MOST_LOCKS = 200


def check_directory(path: str, version: str, *, creates: bool) -> None:
    """See that a directory holds what this version of Datalevin opens without changing it.

    `creates`: it may be absent or empty. Raises: TidegateError SOURCE_UNREACHABLE, POLICY_READ_ONLY
    with `absent`, which is then to be made.
    """
    directory = Path(path)
    try:
        if not (directory / DATA).exists():
            if creates:
                _check_room(directory)
                return
            what = "is not there" if not directory.exists() else "holds no Datalevin data"
            raise TidegateError(
                Code.POLICY_READ_ONLY,
                f"The directory {path} {what}, and a call that only reads makes nothing.",
                hint="Check the path.",
                details={"path": path, "absent": "directory"},
            )
        _check_links(directory)
        found = (directory / VERSION).read_text("utf-8", "replace").strip()[:40]
    except FileNotFoundError:
        found = "none that is recorded"
    except OSError as error:
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"The directory {path} cannot be read: {error.strerror}.",
            details={"path": path},
        ) from error
    if found != version:
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"The directory {path} is of Datalevin {found}, and Tidegate has {version}: opening it"
            " would rewrite it.",
            hint="`tidegate datalog migrate SOURCE --copy-to DIRECTORY` makes a copy for this"
            " version, or says how to get one.",
            details={"path": path, "found": found, "version": version},
        )


def marks_of(path: str) -> tuple[int, ...] | None:
    """What changes when another file replaces one that `check_directory` read; None
    where one is missing."""
    try:
        data, version = (Path(path) / DATA).lstat(), (Path(path) / VERSION).lstat()
        folder = Path(path).stat()  # its time changes with the name of any file in it
    except OSError:
        return None
    of_data = (data.st_dev, data.st_ino, data.st_nlink, data.st_mode)
    of_version = (version.st_ino, version.st_mtime_ns, version.st_size)
    return (*of_data, *of_version, folder.st_ino, folder.st_mtime_ns)


def _check_links(directory: Path) -> None:
    """See that each file in a directory is one of it: Datalevin opens files by names of its own,
    and one that is a link, or has another name elsewhere, would be a file outside.

    Raises: TidegateError SOURCE_UNREACHABLE.
    """
    with os.scandir(directory) as found:
        entries = list(found)
    for entry in entries:
        status = entry.stat(follow_symlinks=False)
        linked = stat.S_ISREG(status.st_mode) and status.st_nlink > 1
        if entry.is_symlink() or linked:
            what = "is a link" if entry.is_symlink() else "has a second name by a hard link"
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                f"The file {entry.name[:80]!r} in the directory {directory} {what}, so it may be a"
                " file outside of it. Nothing was opened.",
                hint="Put a copy of the file in its place.",
                details={"path": str(directory)},
            )


def _check_room(directory: Path) -> None:
    if directory.is_dir() and any(directory.iterdir()):
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"The directory {directory} holds other files, so no database is made in it.",
            hint="Name an empty directory, or one that is not there yet.",
            details={"path": str(directory)},
        )
    if not directory.exists() and not directory.parent.is_dir():
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"The directory {directory.parent} is not there.",
            details={"path": str(directory.parent)},
        )


@contextmanager
def held_for_change(path: str, own_pid: int) -> Generator[None]:
    """Hold a directory while one change is made in it. `own_pid` is the worker's, which has it
    open.

    Raises: TidegateError SOURCE_LOCKED, which names the process that has it.
    """
    import fcntl

    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # it is about to be made
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _locked(path, None) from None
        others = users_of(path) - {own_pid}
        if others:
            raise _locked(path, min(others))
        yield
    finally:
        os.close(handle)


def users_of(path: str) -> set[int]:
    """The processes that have the data of a directory open, as far as the system says. The engine
    locks a byte for each of them in its lock file."""
    lock = Path(path) / LOCK
    found: set[int] = set()
    with suppress(OSError):
        if sys.platform == "linux":
            status = lock.stat()
            name = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
            for line in Path("/proc/locks").read_text().splitlines():
                fields = line.replace("->", " ").split()
                if len(fields) > 5 and fields[1] in ("POSIX", "OFDLCK") and fields[5] == name:
                    found.add(int(fields[4]))
    with suppress(OSError):
        found |= _asked_users(lock)
    return {pid for pid in found if pid > 0}


def _asked_users(lock: Path) -> set[int]:
    """Those that the system says would keep us from locking parts of the file."""
    import fcntl

    found: set[int] = set()
    with lock.open("rb") as file:
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


def _locked(path: str, pid: int | None) -> TidegateError:
    who = f"The process {pid}" if pid is not None else "Another Tidegate"
    name = _name_of(pid)
    return TidegateError(
        Code.SOURCE_LOCKED,
        f"{who}{f' ({name})' if name else ''} has {path} open, and two processes that change one"
        " database damage it. Nothing was changed.",
        hint="Retry when it has ended, or make the change through it.",
        details={"path": path, **({} if pid is None else {"pid": pid})},
    )


def _name_of(pid: int | None) -> str:
    with suppress(OSError):
        return re.sub(r"[^\w.-]", "", Path(f"/proc/{pid}/comm").read_text())[:40]
    return ""
