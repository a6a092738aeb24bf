"""Who could write a file that grants rights: an agent that can write it governs itself.

Checked are the file and every directory and link that the path to it leads through, since who
may write in a directory, or owns it, may put another file in its place. A directory with the
sticky bit, such as a shared /tmp, lets only its owner and that of a file replace the file. POSIX
permissions alone: access lists are not read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from tidegate.errors import Code, TidegateError

_MOST_LINKS = 40


def require_private_file(path: Path, accounts: Collection[str] = ()) -> None:
    """Refuse a file that another account could write: one of `accounts`, or any account.

    All must be root's or ours; a group may write if only the owner is in it.
    Raises: TidegateError CONFIG_INVALID that names what is open and how to close it.
    """
    if os.name != "posix":
        return
    agents = [_account(name) for name in accounts]
    for place, is_end in _passed(path):
        try:
            status = place.lstat()
        except OSError:
            continue  # what does not exist, or may not be read, is found when it is used
        _check(place, status, agents, is_end=is_end)


def _passed(path: Path) -> Iterator[tuple[Path, bool]]:
    """Each directory and link that decides where the path leads; then its end, with True."""
    absolute = path.absolute()
    here = Path(absolute.anchor)
    rest = list(reversed(absolute.parts[1:]))
    links = 0
    while rest:
        part = rest.pop()
        place = here / part
        yield here, False
        if part == "..":
            here = here.parent
        elif place.is_symlink() and links < _MOST_LINKS:
            links += 1
            yield place, False
            target = place.readlink()
            if target.is_absolute():
                here = Path(target.anchor)
            rest += [part for part in reversed(target.parts) if part != target.anchor]
        else:
            here = place
    yield here, True


def _check(
    place: Path, status: os.stat_result, agents: list[tuple[str, int, set[int]]], *, is_end: bool
) -> None:
    mode = status.st_mode
    link = stat.S_ISLNK(mode)  # whose mode says nothing
    sticky = link or (not is_end and bool(mode & stat.S_ISVTX))
    for name, user, groups in agents:
        if user == status.st_uid or user == 0:
            raise _refused(place, f"The agents' account `{name}` owns `{place}`", "Give it away.")
        if mode & 0o020 and status.st_gid in groups and not sticky:
            raise _writable(place, f"The agents' account `{name}`")
    if status.st_uid not in (0, os.geteuid()) and (
        is_end or not _is_overflow_account(status.st_uid)
    ):
        raise _refused(
            place,
            f"`{place}` belongs to another account",
            "Let the account that runs Tidegate, or root, own it.",
        )
    if sticky:
        return
    if mode & 0o002:
        raise _writable(place, "Every account")
    if mode & 0o020 and _is_shared(status.st_gid, status.st_uid):
        raise _writable(place, "Its group")


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


def _account(name: str) -> tuple[str, int, set[int]]:
    import pwd

    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"There is no account `{name}` on this machine.",
            hint="Name in `agent_accounts` the accounts that agents run as.",
        ) from None
    return name, entry.pw_uid, set(os.getgrouplist(name, entry.pw_gid))


def _writable(place: Path, who: str) -> TidegateError:
    return _refused(
        place, f"{who} could write `{place}`, which grants rights", f"Run `chmod go-w {place}`."
    )


def _refused(place: Path, message: str, hint: str) -> TidegateError:
    return TidegateError(Code.CONFIG_INVALID, message, hint=hint, details={"path": str(place)})
