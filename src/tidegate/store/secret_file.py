"""Secrets of a gate: from the key of all gates, or else made once and kept in files of the state
directory that their owner alone can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from tidegate.errors import Code, TidegateError
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.system.file_rights import is_open_to_others
from tidegate.system.private_files import create_once

_BYTES = 32


class GateSecrets:
    """The secrets of the gate with a state directory, and with the key of all gates if they have
    one. Each is 64 hexadecimal digits."""

    def __init__(self, directory: Path, key: ClusterKey | None) -> None:
        self._directory = directory
        self._key = key

    def read(self, name: Literal["mask", "undo", "staged", "carried"]) -> str:
        """The secret of that name. Raises: TidegateError STATE_FAILED."""
        if self._key is not None:
            return self._key.derive_text(name)
        return read_or_create_secret(self._directory / f"{name}.key")

    def former_undo(self) -> str | None:
        """That of changes which were made before the gates had a key. Raises: TidegateError
        STATE_FAILED."""
        path = self._directory / "undo.key"
        has_former = self._key is not None and path.exists()
        return read_or_create_secret(path) if has_former else None


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
