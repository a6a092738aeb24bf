"""File descriptors of this process: a connection takes one, and so do files and databases. Without
a free one it accepts no client, and nothing else reports it: the system lets the clients wait."""

from __future__ import annotations

import errno
import os
import sys

from tidegate.errors import Code, TidegateError

OTHERS = 256
"""Descriptors for all but the clients of one listener: files, databases, clients of HTTP."""
_EXHAUSTED = (errno.EMFILE, errno.ENFILE)


def descriptor_exhaustion() -> str:
    """A sentence if no further file or connection can be opened now; else empty."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        if error.errno not in _EXHAUSTED:
            return ""
        if error.errno == errno.ENFILE or sys.platform == "win32":
            return "the system has no file descriptor left: no further client is accepted"
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return (
            f"all {limit} file descriptors are in use: no further client is accepted; raise the"
            " limit of open files (`ulimit -n`, or LimitNOFILE of its unit)"
        )
    return ""


def ensure_descriptors(clients: int, settings: str) -> None:
    """Raise the process's own limit so that this many clients and `OTHERS` fit. `settings` says,
    for the error, what asks for them.

    Raises: TidegateError CONFIG_INVALID if the system's limit is lower.
    """
    if sys.platform == "win32":
        return
    import resource

    needed = clients + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise ValueError
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError):
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"This process may open {soft} files (`ulimit -n`) and no more than {hard}, and"
            f" {needed} are needed for {settings} and {OTHERS} others.",
            hint="Lower these settings, or raise the limit of open files.",
        ) from None
