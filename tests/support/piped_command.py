"""A command of a process that has loaded the package, with pipes for texts."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from support.loaded_commands import LoadedCommand, shared


class PipedCommand:
    """What tests need of `subprocess.Popen` with three pipes."""

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], cwd: Path | None
    ) -> None:
        self._words = list(words)
        given, stdin = os.pipe()
        stdout, out = os.pipe()
        stderr, err = os.pipe()
        self.stdin: IO[str] | None = os.fdopen(stdin, "w", encoding="utf-8")
        self.stdout: IO[str] | None = os.fdopen(stdout, encoding="utf-8")
        self.stderr: IO[str] | None = os.fdopen(stderr, encoding="utf-8")
        self._command: LoadedCommand = shared().begin(words, (given, out, err), environment, cwd)
        for descriptor in (given, out, err):
            os.close(descriptor)
        self.pid = self._command.pid
        self.poll = self._command.poll
        self.wait = self._command.wait
        self.send_signal = self._command.send_signal
        self.kill = self._command.kill

    @property
    def returncode(self) -> int | None:
        return self._command.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Close its input, read its outputs to their ends and wait for its own.

        Raises: TimeoutExpired.
        """
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        until = None if timeout is None else time.monotonic() + timeout
        outputs = [file for file in (self.stdout, self.stderr) if file and not file.closed]
        said = {file.fileno(): b"" for file in outputs}
        with selectors.DefaultSelector() as waiting:
            for descriptor in said:
                waiting.register(descriptor, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(_left(until))
                if not ready:
                    raise subprocess.TimeoutExpired(self._words, timeout or 0.0)
                for key, _ in ready:
                    part = os.read(key.fd, 65_536)
                    said[key.fd] += part
                    if not part:
                        waiting.unregister(key.fd)
        self.wait(_left(until))
        self._command.close()
        out, err = (
            said[file.fileno()].decode() if file in outputs else ""
            for file in (self.stdout, self.stderr)
        )
        for file in outputs:
            file.close()
        return out, err


def _left(until: float | None) -> float | None:
    """Seconds until then."""
    return None if until is None else max(0.0, until - time.monotonic())
