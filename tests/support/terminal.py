"""The command line as a person has it: on a terminal, where it may ask and they may type."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from support.command_line import environment
from support.eventually import HANG_S


class Terminal:
    """A process on a terminal of its own; `said` is all that it has shown so far."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.said = ""
        self._master = master
        self._seen = 0

    def until(self, text: str) -> str:
        """Wait until it shows `text`; returns what it showed since the last wait."""
        deadline = time.monotonic() + HANG_S
        while text not in self.said[self._seen :]:
            if not self._read(deadline):
                raise AssertionError(f"it ended before it said {text!r}; it said: {self.said}")
        end = self.said.index(text, self._seen) + len(text)
        shown, self._seen = self.said[self._seen : end], end
        return shown

    def type(self, text: str) -> None:
        """Type a line. A program that reads a password sees it, and the terminal does not."""
        os.write(self._master, text.encode() + b"\n")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._master, b"\x03")

    def end(self) -> int:
        """Wait for its end; returns the exit status."""
        deadline = time.monotonic() + HANG_S
        while self._read(deadline):
            pass
        return self.process.wait(HANG_S)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError(f"it said nothing more for too long; it said: {self.said}")
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # Linux's way to say that the other side has closed
            return False
        self.said += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def terminal(
    words: Sequence[str],
    state: Path,
    cwd: Path | None = None,
    variables: Mapping[str, str] | None = None,
    piped: str | None = None,
) -> Generator[Terminal]:
    """`tidegate WORDS` on a terminal; killed at the end of the block if it is still there. `piped`
    comes from a pipe in place of the terminal, as in `printf SECRET | tidegate ...`."""
    master, slave = pty.openpty()
    given, giving = os.pipe()
    os.write(giving, (piped or "").encode())
    os.close(giving)

    def enter() -> None:
        os.login_tty(slave)
        if piped is not None:
            os.dup2(given, 0)

    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", *words],
        preexec_fn=enter,
        pass_fds=[slave, given],
        env={**environment(state), "TERM": "dumb", **(variables or {})},
        cwd=cwd,
    )
    os.close(slave)
    os.close(given)
    try:
        yield Terminal(process, master)
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait(HANG_S)
        os.close(master)
