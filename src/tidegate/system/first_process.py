"""What the first process of a container owes it: to wait for orphans, or they stay as zombies.

The first process stays as small as it is when it forks; the child does the work. Only Linux has
such containers; elsewhere no program is process 1.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_FROM_TERMINAL = 0x80
"""`si_code` of a signal of the kernel: the terminal sends it to all processes at it, the child
among them."""


def leave_first_place() -> None:
    """Return in a child process, if this is process 1, which from then on waits for orphans, passes
    signals on, and ends as the child does. Elsewhere return at once.

    To be called before a thread is started.
    """
    if os.getpid() != 1:
        return
    signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    while (status := _collect(child)) is None:
        found = signal.sigwaitinfo(signals)
        if found.si_signo != signal.SIGCHLD and found.si_code != _FROM_TERMINAL:
            with suppress(ProcessLookupError):
                os.kill(child, found.si_signo)
    os._exit(status if status >= 0 else 128 - status)


def _collect(child: int) -> int | None:
    """Wait for all that have ended; the exit status of the child, of a signal the negative number,
    if it is among them."""
    status: int | None = None
    with suppress(ChildProcessError):
        while True:
            pid, how = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                status = os.waitstatus_to_exitcode(how)
    return status
