"""What programs of this account could do with a database file if the gate were not there."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote

from tidegate.engines.common.account import AccountFacts, ReadingRequest, Risk
from tidegate.engines.common.url import file_of
from tidegate.errors import TidegateError
from tidegate.system.file_rights import may_all_read, may_all_write, own_account_name


def path_of(url: str) -> Path | None:
    """The file of a URL; None if the database is in memory or no file."""
    try:
        name = file_of(url)
    except TidegateError:
        return None
    return None if name is None else Path(name)


def file_risks(facts: AccountFacts) -> list[Risk]:
    """What the rights on the file and its folder allow."""
    path = path_of(facts.url)
    if path is None:
        return []
    found: list[Risk] = []
    account = f"this account ({own_account_name()})"
    if os.access(path, os.W_OK):
        found.append(Risk(f"{account} may write {path.name}: any program of it could"))
    if os.access(path.parent, os.W_OK):
        found.append(Risk(f"{account} may replace or delete files in {path.parent.name}/"))
    status = path.stat()
    if may_all_write(status):
        found.append(
            Risk(f"every account of this machine may write {path.name}", f"chmod o-w {path.name}")
        )
    if may_all_read(status):
        found.append(
            Risk(
                f"every account of this machine may read {path.name} past the gate",
                f"chmod o-r {path.name}",
            )
        )
    return found


def file_script(request: ReadingRequest, note: str) -> list[str]:
    """Lines for a shell: the gate's own account may read the file, and another one owns it."""
    path = path_of(request.url)
    if path is None:
        return ["# The source has no database file to protect."]
    file, folder = quote(str(path)), quote(str(path.parent))
    return [
        f"# {request.name} is an account of the operating system for the gate alone. Run as root.",
        f"id {request.name} >/dev/null 2>&1 || useradd --system --create-home {request.name}",
        f"chown root:{request.name} {file} && chmod 640 {file}",
        "# Without the right to write the folder that account cannot replace the file.",
        f"chown root {folder} && chmod go-w,o-rwx {folder} && chgrp {request.name} {folder}"
        f" && chmod g+rx {folder}",
        f"# {note}",
    ]
