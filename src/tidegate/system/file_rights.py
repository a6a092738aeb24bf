"""Who owns a file, and who else could read or write it, by its owner, group and mode.

Access lists are not read: where they can give a right that no mode shows, a port has to read them.
Root may do everything, and is never named as another account.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

Stamp = tuple[int, int, int, int, int, int] | None
"""The state of a file; None if it is not there."""


def is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to the account of this process."""
    return status.st_uid == os.geteuid()


def is_open_to_others(status: os.stat_result) -> bool:
    """Whether the mode gives any account but the owner any right."""
    return bool(status.st_mode & 0o077)


def may_all_read(status: os.stat_result) -> bool:
    """Whether the mode lets every account read."""
    return bool(status.st_mode & stat.S_IROTH)


def may_all_write(status: os.stat_result) -> bool:
    """Whether the mode lets every account write."""
    return bool(status.st_mode & stat.S_IWOTH)


def only_we_write(status: os.stat_result) -> bool:
    """Whether no account but ours, or root, could have written a file."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def name_owner(status: os.stat_result) -> str:
    """The owner of a file, for a person."""
    return f"user id {status.st_uid}"


def keep_rights(path: Path, status: os.stat_result) -> None:
    """Give a file the mode of another, and its owner if that is not us. Raises: OSError."""
    if not is_ours(status):
        os.chown(path, status.st_uid, status.st_gid)
    path.chmod(status.st_mode & 0o777)


def stamp_of(path: Path) -> Stamp:
    """What changes when the content of a file does, or the rights on it."""
    try:
        status = os.stat(path)  # noqa: PTH116 - on the path of every call
    except OSError:
        return None
    return (
        *(status.st_mtime_ns, status.st_size, status.st_ino),
        *(status.st_mode, status.st_uid, status.st_gid),
    )


class Account:
    """An account of this machine: its number, and those of all groups that it is in."""

    __slots__ = ("groups", "name", "user")

    def __init__(self, name: str, user: int, groups: frozenset[int]) -> None:
        self.name = name
        self.user = user
        self.groups = groups


WriteRisk = tuple[Literal["owner", "member", "foreign", "all", "group"], str]
"""Who could write a file or put another in its place: an account, which is named, that owns it or
has the right by a group; a `foreign` owner; every account; one of its group."""


def find_write_risk(
    status: os.stat_result, accounts: Iterable[Account], *, is_end: bool
) -> WriteRisk | None:
    """Who but root and us could write what has this status, `accounts` first; None if no one could.

    A directory or link on the way (not `is_end`) with the sticky bit, such as /tmp, lets only its
    owner and that of a file replace the file.
    """
    mode = status.st_mode
    link = stat.S_ISLNK(mode)  # whose mode says nothing
    sticky = link or (not is_end and bool(mode & stat.S_ISVTX))
    for account in accounts:
        if account.user in (status.st_uid, 0):
            return "owner", account.name
        if mode & stat.S_IWGRP and status.st_gid in account.groups and not sticky:
            return "member", account.name
    if status.st_uid not in (0, os.geteuid()) and (
        is_end or not _is_overflow_account(status.st_uid)
    ):
        return "foreign", ""
    if sticky:
        return None
    if may_all_write(status):
        return "all", ""
    if mode & stat.S_IWGRP and _is_shared(status.st_gid, status.st_uid):
        return "group", ""
    return None


def find_account(name: str) -> Account | None:
    """The account of this name; None if there is none."""
    import pwd

    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, frozenset(os.getgrouplist(name, entry.pw_gid)))


def own_account_name() -> str:
    """The name of the account of this process, as the system has it and no environment; its number
    if it has no name, as in a container."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def find_runtime_socket(name: str) -> Path | None:
    """A socket that the system keeps for this account while it is logged in, such as that of its
    bus; None if there is none, or another account made it."""
    path = Path(f"/run/user/{os.geteuid()}", name)
    with suppress(OSError):
        if path.is_socket() and is_ours(path.stat()):
            return path
    return None


def _is_overflow_account(user: int) -> bool:
    """Whether the account is the overflow account. In a container it owns what belongs to accounts
    of the host, such as mounted directories: no such account can be one of its agents."""
    try:
        unmapped = int(Path("/proc/sys/fs/overflowuid").read_text())
        all_mapped = Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    except (OSError, ValueError):
        return False
    return user == unmapped and not all_mapped


def _is_shared(group: int, owner: int) -> bool:
    """Whether an account other than the owner and root is in the group."""
    import grp
    import pwd

    try:
        named: list[str] = grp.getgrgid(group).gr_mem
    except KeyError:
        named = []
    members = {entry.pw_uid for entry in pwd.getpwall() if entry.pw_gid == group}
    for name in named:
        try:
            members.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue
    return not members <= {owner, 0}
