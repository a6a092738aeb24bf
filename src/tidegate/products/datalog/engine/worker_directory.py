"""The private directory of a worker, which holds a lock as long as this process lives: what a
process that was killed has left is known by it, and removed when the next worker starts."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

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
    handle = os.open(draft / _HELD, os.O_RDWR | os.O_CREAT, 0o600)
    _lock(handle)
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


def _lock(handle: int) -> bool:
    """Whether no other process has the lock."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_left(root: Path) -> None:
    with suppress(OSError):
        for path in root.glob(f"{PREFIX}*"):
            with suppress(OSError):
                if path not in _locks and path.lstat().st_uid == os.getuid():
                    _remove_unheld(path)


def _remove_unheld(path: Path) -> None:
    if path.is_symlink():
        return
    handle = os.open(path / _HELD, os.O_RDWR | os.O_NOFOLLOW)
    try:
        if _lock(handle):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)
