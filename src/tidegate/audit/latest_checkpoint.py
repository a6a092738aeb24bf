"""Where the newest checkpoint is kept outside the log: beside the key, and in an anchor.

Whoever can write the log alone cannot put an older copy of it in place unseen: the head tells how
far it had come. The head is one file that all processes on a log replace in turn, so each
checkpoint knows of all. An anchor is a file elsewhere that gets every checkpoint as a line.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tidegate.audit.control_records import Checkpoint, encode_control_record, parse_checkpoint
from tidegate.errors import TidegateError

_TURN_S = 1.0


class LatestCheckpoint:
    """The head in `directory`; `anchor` is the file that checkpoints are appended to as well."""

    def __init__(self, directory: Path, anchor: Path | None = None) -> None:
        self.path = directory / "head.json"
        self._lock = directory / "head.lock"
        self._anchor = anchor

    def read(self) -> Checkpoint | None:
        """The newest checkpoint; None if there is none yet, or it cannot be read."""
        with suppress(OSError, TidegateError):
            return parse_checkpoint(self.path.read_bytes())
        return None

    @contextmanager
    def turn(self) -> Generator[Checkpoint | None]:
        """Hold the head while a checkpoint is made, and read it.

        Raises: OSError; TimeoutError if another process does not let go of it within a second.
        """
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until = time.monotonic() + _TURN_S
            while not _locked(descriptor):
                if time.monotonic() > until:
                    raise TimeoutError(f"`{self._lock}` is held by another process")
                time.sleep(0.005)
            yield self.read()
        finally:
            os.close(descriptor)

    def put(self, checkpoint: Checkpoint) -> None:
        """Make this the newest; call it in a turn. Raises: OSError."""
        text = encode_control_record(checkpoint) + b"\n"
        made = self.path.with_suffix(".new")
        _write(made, text, os.O_TRUNC)
        made.replace(self.path)
        if self._anchor is not None:
            _write(self._anchor, text, os.O_APPEND)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(path: Path, text: bytes, how: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    try:
        if os.write(descriptor, text) != len(text):
            raise OSError(f"there was no room for a checkpoint in `{path}`")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
