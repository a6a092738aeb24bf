"""Decides how a session becomes a caller, and the source's own account again.

A role adds its privileges to the account's own, so the account should have next to none. MariaDB
keeps the role when a connection is reset, so it is put back by name.
"""

from __future__ import annotations

import re

from tidegate.engines.identities import role_of
from tidegate.errors import Code, GateError
from tidegate.sources import Identity, RunAs
from tidegate.sql.dialects import find
from tidegate.sql.opinion import Refusal
from tidegate.sql.scan import scan

_VARIABLE = re.compile(r"[A-Za-z0-9_.$]{1,64}")


def assumption(identity: Identity) -> list[bytes]:
    """The statements that make a session the caller. Raises: GateError POLICY_IDENTITY."""
    texts: list[bytes] = []
    role = role_of(identity)
    if role is not None:
        texts.append(f"SET ROLE {_quoted(role)}".encode())
    if identity.variables:
        values = [
            f"@{_quoted(name)} = _utf8mb4 X'{value.encode().hex()}'"
            for name, value in identity.variables
        ]
        texts.append(f"SET {', '.join(values)}".encode())
    return texts


def return_home(role: str | None, *, mariadb: bool) -> bytes:
    """The statement that gives a session the role back that it came with."""
    if not mariadb:
        return b"SET ROLE DEFAULT"
    return b"SET ROLE NONE" if role is None else f"SET ROLE {_quoted(role)}".encode()


def check_run_as(run_as: RunAs | None) -> None:
    """Raises: GateError CONFIG_INVALID for what cannot be the name of a variable."""
    for name, _ in run_as.variables if run_as is not None else ():
        if _VARIABLE.fullmatch(name) is None:
            raise GateError(
                Code.CONFIG_INVALID,
                f"`run_as.variables` names `{name}`, which is no name of a user variable.",
                hint="Use letters, digits, `_`, `.` and `$`, without the @.",
            )


def sets_variables(text: str) -> bool:
    """Whether a change might set a user variable, and so say that somebody else made it."""
    try:
        tokens = scan(text, find("mysql"))
    except Refusal:
        return True
    keys = [token.key for token in tokens]
    kinds = [token.kind for token in tokens]
    return ":=" in keys or any(
        key == "INTO" and kind == "param" for key, kind in zip(keys, kinds[1:], strict=False)
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
