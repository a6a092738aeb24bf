"""A real disk of a few megabytes, which a test fills to the last byte."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

MEGABYTES = 3


class SmallDisk:
    """The disk that is mounted at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / "state"

    def fill(self) -> None:
        """Write until there is no space for a byte more."""
        file = os.open(self.path / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while os.write(file, bytes(65_536)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC
        finally:
            os.close(file)
        assert os.statvfs(self.path).f_bavail == 0

    def free(self) -> None:
        (self.path / "filler").unlink()


@contextmanager
def small_disk(mounted: Path) -> Generator[SmallDisk]:
    """The disk within a block; the test is skipped where none can be mounted."""
    mounted.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=700", "none", mounted],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    try:
        yield SmallDisk(mounted)
    finally:
        subprocess.run(["umount", "--lazy", mounted], check=True)
