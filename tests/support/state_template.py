"""A state without the time that its tables take: a new file begins as a copy of one that this
process has made before."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tidegate.store.sqlite import connection, state


class _Template:
    """The bytes of a state in which nothing is saved, by the product itself."""

    def __init__(self) -> None:
        self._content = b""

    def prepare(self, path: Path) -> None:
        """`connection.prepare`, with the copy before it if there is no file."""
        if path.parent.is_dir() and not path.exists():
            self._copy(path)
        connection.prepare(path)

    def _copy(self, path: Path) -> None:
        if not self._content:
            with tempfile.TemporaryDirectory() as folder:
                made = Path(folder) / "state.db"
                connection.prepare(made)
                self._content = made.read_bytes()
        # Whole at once: another process may make the same state.
        descriptor, part = tempfile.mkstemp(dir=path.parent, prefix="state-template-")
        try:
            os.write(descriptor, self._content)
            os.link(part, path)
        except FileExistsError:
            pass
        finally:
            os.close(descriptor)
            os.unlink(part)


def copy_states() -> None:
    """Let states of this process begin as copies."""
    state.prepare = _Template().prepare
