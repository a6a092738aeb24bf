"""Follows a settings file while a server runs, so that a change of policy holds from the next call.

Of the settings, what is said of sources is followed: which there are, what each admits, masks and
filters. Addresses, surfaces and limits hold until the server starts again. While the file cannot be
read, no call is let through: nobody knows what it says.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tidegate.config.model import Config
from tidegate.errors import Code, GateError


class Following:
    """The file at `path`, as it is from now on: make this before the file is read first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._stamp()
        self._error: GateError | None = None

    def look(self, load: Callable[[], Config]) -> Config | None:
        """What `load` gives if the file has changed since the last look, else None. Microseconds.

        Raises: GateError CONFIG_INVALID, also again, while what is there cannot be used.
        """
        stamp = self._stamp()
        if stamp == self._seen:
            if self._error is not None:
                raise self._error
            return None
        self._seen = stamp
        try:
            config = load()
        except GateError as error:
            self._error = GateError(
                Code.CONFIG_INVALID,
                "The settings were changed and cannot be used: nothing runs until they can",
                hint="Ask the operator to correct the settings.",
            )
            raise self._error from error
        self._error = None
        return config

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)  # noqa: PTH116 - on the path of every call
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
