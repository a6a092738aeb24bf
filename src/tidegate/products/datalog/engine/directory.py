"""A directory of Datalevin, seen from outside: what is in it, and who else has it open.

Two processes that change one Datalog database give two entities one id, so a change is made only
by a process that has the directory alone: our processes hold a lock on the directory meanwhile, and
the locks of the engine itself show other programs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import Code, TidegateError
from tidegate.system.file_locks import part_lock_holders, try_lock
from tidegate.system.private_files import open_directory
from tidegate.system.processes import program_of

DATA = "data.mdb"
LOCK = "lock.mdb"
VERSION = "VERSION"


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
    try:
        handle = open_directory(Path(path))
    except FileNotFoundError:  # it is about to be made
        yield
        return
    try:
        try:
            has_lock = try_lock(handle)
        except OSError:
            has_lock = False
        if not has_lock:
            raise _locked(path, None)
        others = users_of(path) - {own_pid}
        if others:
            raise _locked(path, min(others))
        yield
    finally:
        os.close(handle)


def users_of(path: str) -> set[int]:
    """The processes that have the data of a directory open, as far as the system says. The engine
    locks a byte for each of them in its lock file."""
    return part_lock_holders(Path(path) / LOCK)


def _locked(path: str, pid: int | None) -> TidegateError:
    who = f"The process {pid}" if pid is not None else "Another Tidegate"
    name = program_of(pid)
    return TidegateError(
        Code.SOURCE_LOCKED,
        f"{who}{f' ({name})' if name else ''} has {path} open, and two processes that change one"
        " database damage it. Nothing was changed.",
        hint="Retry when it has ended, or make the change through it. Gates that share the source"
        " need it at a Datalevin server (dtlv://).",
        details={"path": path, **({} if pid is None else {"pid": pid})},
    )
