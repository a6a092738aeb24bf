"""File descriptors of this process: a connection takes one, and so do files and databases. Without
a free one it accepts no client, and nothing else reports it: the system lets the clients wait."""

from __future__ import annotations

import errno
import os

from tidegate.errors import Code, TidegateError
from tidegate.system.descriptors import open_nowhere
from tidegate.system.limits import most_open_files, open_file_limit, raise_open_files

OTHERS = 256
"""Descriptors for all but the clients of one listener: files, databases, clients of HTTP."""
_EXHAUSTED = (errno.EMFILE, errno.ENFILE)


def descriptor_exhaustion() -> str:
    """A sentence if no further file or connection can be opened now; else empty."""
    try:
        os.close(open_nowhere())
    except OSError as error:
        if error.errno not in _EXHAUSTED:
            return ""
        if error.errno == errno.ENFILE:
            return "the system has no file descriptor left: no further client is accepted"
        return (
            f"all {open_file_limit()} file descriptors are in use: no further client is accepted;"
            " raise the limit of open files (`ulimit -n`, or LimitNOFILE of its unit)"
        )
    return ""


def ensure_descriptors(clients: int, settings: str) -> None:
    """Raise the process's own limit so that this many clients and `OTHERS` fit. `settings` says,
    for the error, what asks for them.

    Raises: TidegateError CONFIG_INVALID if the system's limit is lower.
    """
    needed = clients + OTHERS
    now = open_file_limit()
    if now < needed and not raise_open_files(needed):
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"This process may open {now} files (`ulimit -n`) and no more than"
            f" {most_open_files()}, and {needed} are needed for {settings} and {OTHERS} others.",
            hint="Lower these settings, or raise the limit of open files.",
        )
