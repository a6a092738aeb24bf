"""Decides what is said of an account that could do more than read: it is the last fence."""

from __future__ import annotations

import re
from collections.abc import Iterable

_GRANT = re.compile(r"GRANT (.+?) ON (\S+|`[^`]*`\.\S+) TO ", re.DOTALL)
_COLUMNS = re.compile(r"\([^)]*\)")

_HARMLESS = frozenset(
    {
        "BINLOG MONITOR",
        "PROCESS",
        "REPLICATION CLIENT",
        "SELECT",
        "SHOW DATABASES",
        "SHOW VIEW",
        "SLAVE MONITOR",
        "USAGE",
    }
)


def warnings_of(grants: Iterable[str]) -> tuple[str, ...]:
    """What the lines of SHOW GRANTS allow beside reading, in sentences for the operator."""
    privileges: set[str] = set()
    for grant in grants:
        found = _GRANT.match(grant)
        if found is not None:
            named = _COLUMNS.sub("", found[1]).split(",")
            privileges |= {name.strip().upper() for name in named}
    dangerous = privileges - _HARMLESS
    everything = "ALL PRIVILEGES" in dangerous
    warnings: list[str] = []
    if "FILE" in dangerous or everything:
        warnings.append(
            "the account has FILE: it could read and write files of the server; revoke it"
        )
    changes = sorted(dangerous - {"FILE"})
    if changes:
        shown = ", ".join(changes[:4]) + (", ..." if len(changes) > 4 else "")
        warnings.append(
            f"the account may do more than read ({shown}): a read-only transaction is no full"
            " fence in MySQL, so give this source an account with SELECT and SHOW VIEW alone"
        )
    return tuple(warnings)
