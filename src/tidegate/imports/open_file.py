"""An open file that stays open for what reads it, also after its owner has let it go.

The number of a closed file is given to the next one that is opened, by anyone: a reader that knew
no more than the number would go on in that one.
"""

from __future__ import annotations

import os
from typing import IO, Protocol

from tidegate.system.descriptors import duplicate, read_at, write_at


class Readable(Protocol):
    """What has an open file."""

    def fileno(self) -> int: ...


class OpenFile:
    """A file without a name, closed when nothing refers to it any more. It takes the place of the
    object that it is made of."""

    _descriptor = -1

    def __init__(self, file: IO[bytes]) -> None:
        """Raises: OSError."""
        self._descriptor = duplicate(file.fileno())
        self._size = 0
        file.close()

    def fileno(self) -> int:
        """Its number: for as long as the caller keeps this object."""
        return self._descriptor

    def write(self, data: bytes) -> None:
        """Add to its end. Raises: OSError."""
        self.write_at(data, self._size)

    def write_at(self, data: bytes, at: int) -> None:
        """Raises: OSError."""
        view = memoryview(data)
        while view:
            written = write_at(self._descriptor, view, at)
            view, at = view[written:], at + written
        self._size = max(self._size, at)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def read_part(file: Readable, size: int, at: int) -> bytes:
    """Up to so many bytes from a place. Raises: OSError."""
    return read_at(file.fileno(), size, at)
