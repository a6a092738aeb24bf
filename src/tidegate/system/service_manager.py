"""The service manager that started this process, such as systemd: it gets reports of what the
process is doing, and may have given it sockets.

The protocol of reports is that of sd_notify(3): datagrams of lines `NAME=value` to the socket that
the variable NOTIFY_SOCKET names. Without the variable nothing is sent. That of sockets is
sd_listen_fds(3): descriptors from 3 on, their count and names in variables.
"""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

SOCKET = "NOTIFY_SOCKET"
_PATIENCE_S = 1.0
"""How long a manager may take to accept a message. The server does not wait longer for it."""


_FIRST = 3
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def take_given_sockets() -> list[tuple[str, socket.socket]]:
    """The sockets that the manager gave to this process, each with its name, which may be empty.
    The variables are taken out of the environment, and no program that we start inherits one."""
    pid, count, names = (os.environ.pop(name, "") for name in _VARIABLES)
    if pid != str(os.getpid()) or not count.isdigit():
        return []
    called = names.split(":") if names else []
    found: list[tuple[str, socket.socket]] = []
    for index in range(int(count)):
        descriptor = _FIRST + index
        os.set_inheritable(descriptor, False)
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            name = called[index] if index < len(called) else ""
            found.append((name, socket.socket(fileno=descriptor)))
    return found


class ServiceManager:
    """The manager at a socket: a path, or an abstract name that begins with `@`; empty: none."""

    def __init__(self, address: str) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._ends = False

    @classmethod
    def of_process(cls) -> ServiceManager:
        """The one that started this process. The variable is taken out of the environment: no
        program that we start speaks for us."""
        return cls(os.environ.pop(SOCKET, ""))

    def report_ready(self) -> None:
        """Callers are served now."""
        self._send("READY=1")

    def report_stopping(self, within_s: float) -> None:
        """The process will have ended within so many seconds. The first time counts."""
        if not self._ends:
            self._ends = True
            self._send("STOPPING=1", f"EXTEND_TIMEOUT_USEC={round(within_s * 1e6)}")

    @contextmanager
    def reloading(self) -> Generator[None]:
        """While the block runs, the settings are read again."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1_000}")
        try:
            yield
        finally:
            self._send("READY=1")

    def _send(self, *lines: str) -> None:
        """A manager that does not answer any more keeps no caller from being served."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_PATIENCE_S)
            sender.sendto("\n".join(lines).encode(), self._address)
