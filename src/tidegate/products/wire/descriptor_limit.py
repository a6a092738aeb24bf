"""The limit of file descriptors of this process: a connection takes one, and so do files and
databases. Without room for all that the settings allow, a flood would stop the whole server."""

from __future__ import annotations

import sys

from tidegate.errors import Code, TidegateError
from tidegate.products.wire.settings import PgWireSettings

OTHERS = 256
"""Descriptors for all but the clients of the wire protocol: files, databases, clients of HTTP."""


def ensure_descriptors(settings: PgWireSettings) -> None:
    """Raise the process's own limit to what the settings need. Raises: TidegateError CONFIG_INVALID
    if the system's limit is lower."""
    if sys.platform == "win32":
        return
    import resource

    needed = settings.max_connections + settings.max_logins + OTHERS
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
            f" {needed} are needed for `pg.max_connections` {settings.max_connections},"
            f" `pg.max_logins` {settings.max_logins} and {OTHERS} others.",
            hint="Lower `pg.max_connections`, or raise the limit of open files.",
        ) from None
