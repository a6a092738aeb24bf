"""The private directory of a worker, which holds a lock as long as this process lives: what a
process that was killed has left is known by it, and removed when the next worker starts."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from tidegate.system.file_locks import take_lock, try_lock
from tidegate.system.file_rights import is_ours
from tidegate.system.private_files import create_file, open_existing

PREFIX = "tidegate-datalog-"
_DRAFT = ".tidegate-datalog-"
_HELD = "held"

_locks: dict[Path, int] = {}
"""The open lock file of each directory of this process."""


def make_directory() -> Path:
    """A new directory for a worker's files; directories that were left are removed first."""
    root = Path(tempfile.gettempdir())
    _remove_left(root)
    # It is locked before it has its name, so that no process takes it for one that was left.
    draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=root))
    handle = create_file(draft / _HELD)
    take_lock(handle)
    directory = root / (PREFIX + draft.name.removeprefix(_DRAFT))
    draft.rename(directory)
    _locks[directory] = handle
    return directory


def remove_directory(directory: Path) -> None:
    """Remove a directory, and let go of its lock."""
    shutil.rmtree(directory, ignore_errors=True)
    handle = _locks.pop(directory, None)
    if handle is not None:
        os.close(handle)


def _remove_left(root: Path) -> None:
    with suppress(OSError):
        for path in root.glob(f"{PREFIX}*"):
            with suppress(OSError):
                if path not in _locks and is_ours(path.lstat()):
                    _remove_unheld(path)


def _remove_unheld(path: Path) -> None:
    if path.is_symlink():
        return
    handle = open_existing(path / _HELD, access="read and append")
    try:
        if try_lock(handle):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)
