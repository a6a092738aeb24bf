"""Who could write a file that grants rights: an agent that can write it governs itself.

Checked are the file and every directory and link that the path to it leads through, since who
may write in a directory, or owns it, may put another file in its place. A directory with the
sticky bit, such as a shared /tmp, lets only its owner and that of a file replace the file. POSIX
permissions alone: access lists are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from tidegate.errors import Code, TidegateError
from tidegate.system.file_rights import Account, WriteRisk, find_account, find_write_risk

_MOST_LINKS = 40


def require_private_file(path: Path, accounts: Collection[str] = ()) -> None:
    """Refuse a file that another account could write: one of `accounts`, or any account.

    All must be root's or ours; a group may write if only the owner is in it.
    Raises: TidegateError CONFIG_INVALID that names what is open and how to close it.
    """
    agents = [_account(name) for name in accounts]
    for place, is_end in _passed(path):
        try:
            status = place.lstat()
        except OSError:
            continue  # what does not exist, or may not be read, is found when it is used
        risk = find_write_risk(status, agents, is_end=is_end)
        if risk is not None:
            raise _refused(place, risk)


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


def _account(name: str) -> Account:
    found = find_account(name)
    if found is None:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"There is no account `{name}` on this machine.",
            hint="Name in `agent_accounts` the accounts that agents run as.",
        )
    return found


def _refused(place: Path, risk: WriteRisk) -> TidegateError:
    kind, account = risk
    agents = f"The agents' account `{account}`"
    if kind == "owner":
        message, hint = f"{agents} owns `{place}`", "Give it away."
    elif kind == "foreign":
        message = f"`{place}` belongs to another account"
        hint = "Let the account that runs Tidegate, or root, own it."
    else:
        who = {"member": agents, "all": "Every account", "group": "Its group"}[kind]
        message = f"{who} could write `{place}`, which grants rights"
        hint = f"Run `chmod go-w {place}`."
    return TidegateError(Code.CONFIG_INVALID, message, hint=hint, details={"path": str(place)})
