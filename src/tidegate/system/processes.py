"""Processes: how a child is started apart from this one, and how a process is asked to end; and the
signals that ask this one.

Signals are named by what they ask for: `interrupt` (Ctrl-C), `end`, `reread` (the settings),
`replace` (the processes that this one has started, by new ones).
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Literal, TypedDict

Notice = Literal["interrupt", "end", "reread", "replace"]

_NUMBERS = {"interrupt": signal.SIGINT, "end": signal.SIGTERM}
if hasattr(signal, "SIGHUP"):
    _NUMBERS["reread"] = signal.SIGHUP
if hasattr(signal, "SIGUSR2"):
    _NUMBERS["replace"] = signal.SIGUSR2


class Apart(TypedDict):
    """What is given to the functions of asyncio and `subprocess` that start a process."""

    start_new_session: bool


APART = Apart(start_new_session=True)
"""Ctrl-C and the end of our terminal do not reach the child: we end it, or it lives on."""


def name_boot() -> str:
    """A name of this machine since its start: another machine and a later start have another one.
    Where the system gives none, it is the machine's name alone."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return platform.node()


def start_apart(
    command: Sequence[str],
    *,
    errors: int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
    inherited: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program that goes on when this process ends. It reads and prints nothing; what it
    says on standard error goes to the descriptor `errors`. Of our descriptors it has those in
    `inherited`, under the same numbers. Raises: OSError."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env=environment,
        pass_fds=inherited,
        **APART,
    )


async def start_child(
    command: Sequence[str], inherited: Collection[int]
) -> asyncio.subprocess.Process:
    """Start a program that ends with us: it shares our standard error, reads and prints nothing,
    and has of our descriptors those in `inherited`, under the same numbers. Ctrl-C at our terminal
    reaches us alone. Raises: OSError."""
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=tuple(inherited),
        **APART,
    )


def ask_child(child: asyncio.subprocess.Process, notice: Notice) -> None:
    """Send a child a signal; nothing happens if it has ended."""
    with suppress(ProcessLookupError):
        child.send_signal(_NUMBERS[notice])


def ended_with_us() -> list[str]:
    """Words before a command by which its process is asked to end when this one is killed; none
    where no program does that, and then it has to see by itself that we are gone."""
    import shutil

    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    if setpriv is None or "busybox" in os.path.realpath(setpriv):  # which cannot do it
        return []
    return [setpriv, "--pdeathsig", "TERM"]


def ask_to_end(pid: int) -> None:
    """Ask a process to end in good order; nothing happens if it has ended. Raises: PermissionError
    for one of another account."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def kill(pid: int) -> None:
    """End a process at once, whatever it is doing. It is still to be waited for."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def has_ended(pid: int) -> bool:
    """Whether a child has ended; the one that waits for it can still collect it. False where the
    system cannot say that."""
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def owner_of(pid: int) -> Literal["us", "others"] | None:
    """Whose process it is, as far as we may send it signals; None if none has this number."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return "others"
    except (ProcessLookupError, OverflowError):
        return None
    return "us"


def program_of(pid: int | None) -> str:
    """The name of the program that a process runs, where the system says it; else empty."""
    with suppress(OSError):
        return re.sub(r"[^\w.-]", "", Path(f"/proc/{pid}/comm").read_text())[:40]
    return ""


def on_notice(handlers: Mapping[Notice, Callable[[], object]]) -> None:
    """Have the running loop call a handler when the process is sent a signal. Where the loop knows
    no signals, nothing changes: they then do what the system does by default."""
    loop = asyncio.get_running_loop()
    for notice, handler in handlers.items():
        with suppress(NotImplementedError, KeyError):
            loop.add_signal_handler(_NUMBERS[notice], handler)


def forget_notices(*notices: Notice, ignore: bool = False) -> None:
    """Undo `on_notice`; with `ignore` a later signal does nothing at all."""
    loop = asyncio.get_running_loop()
    for notice in notices:
        with suppress(NotImplementedError, KeyError):
            loop.remove_signal_handler(_NUMBERS[notice])
            if ignore:
                signal.signal(_NUMBERS[notice], signal.SIG_IGN)


def interrupt_when_asked_to_end() -> None:
    """Have KeyboardInterrupt raised when the process is asked to end, so that what is temporary is
    removed."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
