"""A secret of this state directory: made once, kept in a file that its owner alone can read."""

from __future__ import annotations

import os
from pathlib import Path

from tidegate.errors import Code, TidegateError
from tidegate.system.file_rights import is_open_to_others
from tidegate.system.private_files import create_once

_BYTES = 32


def read_or_create_secret(path: Path) -> str:
    """The secret in `path`, 64 hexadecimal digits; made now if there is none.

    Raises: TidegateError STATE_FAILED if the file cannot be made or read, is not whole, or if
    others may read it.
    """
    try:
        if not path.exists():
            create_once(path, os.urandom(_BYTES).hex().encode())
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            text = file.read(_BYTES * 2 + 1).decode("ascii", "replace")
    except OSError as error:
        raise _failed(f"cannot be used: {error.strerror}", path) from error
    if is_open_to_others(status):
        raise _failed("can be read by others", path)
    if len(text) != _BYTES * 2 or not text.isalnum():
        raise _failed("does not hold a secret of ours", path)
    return text


def _failed(problem: str, path: Path) -> TidegateError:
    return TidegateError(
        Code.STATE_FAILED, f"The secret `{path}` {problem}", details={"path": str(path)}
    )
