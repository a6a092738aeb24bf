"""Files that are made whole or not at all: written under another name first, next to their place.

Others may start at the same moment, or read while we write; no process ever sees half of a file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_draft(path: Path, content: bytes, mode: int = 0o600) -> Path:
    """A whole file, on the disk, that will get the name `path`. The caller renames or links it,
    or takes it away. Raises: OSError, and leaves no file then."""
    made = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            made.unlink()
        raise
    return made


def replace_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Put a file at `path`, in the place of an older one. Raises: OSError."""
    made = write_draft(path, content, mode)
    try:
        made.replace(path)
    except OSError:
        with suppress(OSError):
            made.unlink()
        raise


def create_once(path: Path, content: bytes) -> None:
    """Make a file for its owner alone, unless there is one: the first of several that make it at
    the same moment wins. Raises: OSError."""
    made = write_draft(path, content)
    try:
        with suppress(FileExistsError):
            os.link(made, path)  # unlike a rename it never takes the place of another's
    finally:
        made.unlink()
