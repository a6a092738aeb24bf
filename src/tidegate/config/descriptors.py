"""Whether this process may still open files. Without a free descriptor it accepts no client, and
nothing else would say so: the system leaves the clients waiting."""

from __future__ import annotations

import errno
import os
import sys

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
