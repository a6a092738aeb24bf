"""Files and directories for the account of this process alone: how they are made, opened, and put
in the place of older ones.

What is made here no other account can read or write, from the first moment on. One that is there
already keeps the rights that it has; `file_rights` reads them. A draft is a file with another name
next to its place: others may start at the same moment, or read while we write, and no process ever
sees half of a file. A descriptor of an open file is not inherited by other programs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

Access = Literal["read and write", "append", "overwrite"]

_MODE = 0o600
_DIRECTORY_MODE = 0o700


class NotAFileError(OSError):
    """What is at a path is a directory, a pipe, a device, or a socket."""


def make_private_directory(path: Path, *, parents: bool = True, is_new: bool = False) -> None:
    """Make a directory, and with `parents` those above it; one that is there stays as it is, unless
    it has to be new. Raises: OSError."""
    path.mkdir(mode=_DIRECTORY_MODE, parents=parents, exist_ok=not is_new)


def close_to_others(directory: Path) -> None:
    """Take from all others the rights on a directory that is there. Raises: OSError."""
    directory.chmod(_DIRECTORY_MODE)


def create_file(path: Path) -> int:
    """A new file, open for writing. A link at its place is not followed. Raises: FileExistsError,
    OSError."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)


def open_file(path: Path, access: Access, *, follow: bool = True) -> int:
    """A file, which is made if it is not there. To `append` puts each write at the end of the file,
    also while others write to it; to `overwrite` takes away what it held. Without `follow` a
    symbolic link at its place is an error. Raises: OSError."""
    flags = {
        "read and write": os.O_RDWR,
        "append": os.O_WRONLY | os.O_APPEND,
        "overwrite": os.O_WRONLY | os.O_TRUNC,
    }[access]
    flags |= os.O_CREAT | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    return os.open(path, flags, _MODE)


def open_existing(path: Path, *, access: Literal["read", "read and append"] = "read") -> int:
    """A file that is there, in a directory where another account may have put something else: a
    link is not followed, and a pipe does not keep us waiting.

    Raises: NotAFileError, OSError.
    """
    flags = os.O_RDONLY if access == "read" else os.O_RDWR | os.O_APPEND
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFileError(f"`{path}` is not a regular file")
    return descriptor


def sync_directory(directory: Path) -> None:
    """Make changes of names in the directory survive a power failure. Raises: OSError."""
    descriptor = open_directory(directory)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_directory(directory: Path) -> int:
    """A directory, to lock or to sync it. Raises: OSError."""
    return os.open(directory, os.O_RDONLY | os.O_CLOEXEC)


class Folder:
    """A folder that was opened: names in it lead nowhere else, whatever another process puts at its
    path meanwhile. Only folders that are no links are entered. Raises: OSError."""

    def __init__(self, path: Path) -> None:
        self._flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(path, self._flags)

    def enter(self, name: str) -> None:
        """Go to a folder in this one, which this object is from now on."""
        inner = os.open(name, self._flags, dir_fd=self._descriptor)
        os.close(self._descriptor)
        self._descriptor = inner

    def create_file(self, name: str) -> int:
        """A new file in the folder, open for writing. Raises: FileExistsError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=self._descriptor)

    def remove_file(self, name: str, made_as: os.stat_result) -> None:
        """Remove a file from the folder, if it is the one that was made. Never raises."""
        with suppress(OSError):
            there = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
            if os.path.samestat(there, made_as):
                os.unlink(name, dir_fd=self._descriptor)

    def close(self) -> None:
        """Let go of the folder. Once only."""
        os.close(self._descriptor)


def write_new_file(path: Path, content: bytes) -> None:
    """A new file, whole and on the disk; none is left if it cannot be. A link at its place is not
    followed. Raises: FileExistsError, OSError."""
    _write(path, create_file(path), content)


def draft_of(path: Path) -> Path:
    """The path of a draft that will get the name `path`; no other process uses it."""
    return path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")


def write_draft(path: Path, content: bytes) -> Path:
    """A whole file, on the disk, that will get the name `path`. The caller renames or links it, or
    takes it away. Raises: OSError, and leaves no file then."""
    made = draft_of(path)
    write_new_file(made, content)
    return made


def replace_file(path: Path, content: bytes, *, all_may_read: bool = False) -> None:
    """Put a file at `path`, in the place of an older one. Raises: OSError."""
    made = draft_of(path)
    mode = _MODE | stat.S_IRGRP | stat.S_IROTH if all_may_read else _MODE
    _write(made, os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), content)
    try:
        made.replace(path)
    except OSError:
        with suppress(OSError):
            made.unlink()
        raise


def create_once(path: Path, content: bytes) -> None:
    """Make a file unless there is one: the first of several that make it at the same moment wins.
    Raises: OSError."""
    made = write_draft(path, content)
    try:
        with suppress(FileExistsError):
            name_draft(made, path)
    finally:
        made.unlink()


def name_draft(draft: Path, path: Path) -> None:
    """Give a draft a further name; unlike a rename it never takes the place of another file.
    Raises: FileExistsError, OSError."""
    os.link(draft, path)


@contextmanager
def private_umask() -> Generator[None]:
    """What a library makes meanwhile, by whatever mode, is for this account alone. The whole
    process is concerned, so only commands of one thread use it."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _write(path: Path, descriptor: int, content: bytes) -> None:
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
