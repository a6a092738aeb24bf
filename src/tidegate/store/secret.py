"""A secret of this state directory: made once, kept in a file that its owner alone can read."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from tidegate.errors import Code, GateError

_BYTES = 32


def kept_secret(path: Path) -> str:
    """The secret in `path`, 64 hexadecimal digits; made now if there is none.

    Raises: GateError STATE_FAILED if the file cannot be made or read, is not whole, or if others
    may read it.
    """
    try:
        with suppress(FileExistsError):
            _make(path)
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_BYTES * 2 + 1).decode("ascii", "replace")
    except OSError as error:
        raise _failed(f"cannot be used: {error.strerror}", path) from error
    if stat.S_IMODE(mode) & 0o077:
        raise _failed("can be read by others", path)
    if len(text) != _BYTES * 2 or not text.isalnum():
        raise _failed("does not hold a secret of ours", path)
    return text


def _make(path: Path) -> None:
    """Make the file whole or not at all: others may start at the same moment."""
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(os.urandom(_BYTES).hex())
        os.link(draft, path)  # unlike a rename it never takes the place of another's
    finally:
        draft.unlink()


def _failed(problem: str, path: Path) -> GateError:
    return GateError(
        Code.STATE_FAILED, f"The secret `{path}` {problem}", details={"path": str(path)}
    )
