"""Starts a server, says what it has used of the machine, and ends it again, whatever happens.

CPU is read from the kernel's clock of the process (nanoseconds), summed over the process and its
living descendants, with what already ended descendants used from /proc (10 ms ticks).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Launch:
    """A command line and what it adds to the environment."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)


class Process:
    """A started server. Use as a context: leaving it ends the whole process group."""

    def __init__(self, launch: Launch, log: Path, *, pipes: bool = False) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        self._log: IO[bytes] = log.open("wb")
        self.popen = subprocess.Popen(
            launch.argv,
            env=_environment() | launch.env,
            cwd=log.parent,
            stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipes else self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self.pid = self.popen.pid

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def cpu(self) -> float:
        """Seconds of CPU used so far by the process and its descendants."""
        return sum(_clock(pid) + _ended(pid) for pid in self._tree())

    def rss(self) -> int:
        """Resident bytes of the process and its descendants."""
        return sum(resident(pid) for pid in self._tree())

    def finish(self) -> float:
        """Close standard input, wait for the end, and say what CPU the whole life took (wait4).

        A server that does not end by itself within five seconds is made to.
        """
        assert self.popen.stdin is not None
        self.popen.stdin.close()
        killer = threading.Timer(5, self.popen.kill)
        killer.start()
        try:
            _, status, usage = os.wait4(self.pid, 0)
        finally:
            killer.cancel()
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime

    def end(self) -> None:
        """Ask the process to stop, then make it."""
        try:
            if self.popen.poll() is None:
                self.popen.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.popen.wait(5)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.popen.wait(5)
        finally:
            for pipe in (self.popen.stdin, self.popen.stdout, self._log):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def last_words(self) -> str:
        """The end of what the server wrote to its log, for an error message."""
        return self.log.read_bytes()[-2000:].decode(errors="replace")

    def _tree(self) -> list[int]:
        return tree(self.pid)


def tree(pid: int, without: Container[int] = ()) -> list[int]:
    """A process and its living descendants, less those in `without` and theirs."""
    pids = [pid]
    for one in pids:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                children = map(int, (task / "children").read_text().split())
                pids += [child for child in children if child not in without]
    return pids


def cpu_here(without: Container[int] = ()) -> float:
    """Seconds of CPU used so far by this process and its living descendants."""
    return sum(_clock(pid) for pid in tree(os.getpid(), without))


def peak(pid: int) -> int:
    """The most bytes that a process had resident so far."""
    return _status(pid, "VmHWM:")


def free_port() -> int:
    """A port of loopback that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(process: Process, port: int, timeout: float = 60) -> None:
    """Return when the server listens. Raises RuntimeError with its last words if it does not."""
    end = time.monotonic() + timeout
    while time.monotonic() < end and process.popen.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"server did not listen on its port:\n{process.last_words()}")


def _environment() -> dict[str, str]:
    kept = ("HOME", "LANG", "PATH", "TMPDIR", "TZ")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _clock(pid: int) -> float:
    # The clock id of a process, as clock_getcpuclockid(3) makes it: Python has no binding for it.
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _ended(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[13]) + int(fields[14])) / _TICK


def resident(pid: int) -> int:
    """The bytes that a process has resident now."""
    return _status(pid, "VmRSS:")


def _status(pid: int, key: str) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0
