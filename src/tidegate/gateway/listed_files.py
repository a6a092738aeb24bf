"""The files of a database that a caller names by a path: all that its driver derives from the name.

H2 adds `.mv.db` to the name, HSQLDB `.script` and `.lobs`, SQLite `-wal`, and the databases of
Derby and Datalevin are whole folders. Each of these may be a link, so a check of the name alone
would say nothing of what is opened. No list of endings is kept: every file counts that begins with
the name.

A caller's path may be any folder, so reading it ends early: in a file system of the kernel, at a
number of files, at a depth. What was found holds until a folder or a link changes, and is found
out again by one `stat` of each.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from tidegate.system.disks import file_systems, is_on_disk

MOST_NAMES = 50_000
"""How many names are read of the folder that a database is in."""
MOST_FILES = 20_000
"""How many files and folders of one database are read."""
MOST_DEPTH = 16
"""How many folders a database may have one within the other."""

FileMark = tuple[int, int]
"""The device and the number of a file, by which two names of one file are known."""

_REST = re.compile(r"[.\-_~].*", re.DOTALL)
"""What drivers append to a database's name."""
_KERNEL = frozenset(
    {
        *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts"),
        *("devtmpfs", "efivarfs", "fusectl", "mqueue", "nsfs", "proc", "pstore", "securityfs"),
        *("selinuxfs", "sysfs", "tracefs"),
    }
)
"""File systems whose files are no one's data: the kernel makes them up."""
_MOST_KEPT = 64
SETTLED_NS = 1_000_000_000
"""How old the last change of a folder must be: one within a tick of the clock leaves no trace."""


class _Unfit(Exception):
    """What was found is not a database that can be checked. The text says why."""


class _Found(NamedTuple):
    """A file or folder by its real path; no state where a link leads to what is not there."""

    place: str
    state: os.stat_result | None


class _Look(NamedTuple):
    """What a look found, and by what is known that it would find the same again: the state of each
    folder, and where each link leads. None if it must be made again in any case."""

    marks: frozenset[FileMark]
    fault: str | None
    folders: dict[str, tuple[int, ...]] | None
    links: dict[str, tuple[str, tuple[int, ...]]]

    def holds(self) -> bool:
        if self.folders is None:
            return False
        try:
            return all(
                _mark(os.stat(folder)) == mark  # noqa: PTH116 - one of many
                for folder, mark in self.folders.items()
            ) and all(_led_to(link) == led for link, led in self.links.items())
        except OSError:
            return False


_kept: OrderedDict[tuple[str, str, tuple[str, ...], bool, bool], _Look] = OrderedDict()


def marks_of(
    path: str,
    directories: tuple[str, ...] = ("/",),
    *,
    is_folder: bool = False,
    leaves_out_links: bool = False,
) -> frozenset[FileMark]:
    """The marks of the files of the database at a path; none where nothing can be read. Reads
    folders, so it belongs in a thread. The arguments are those of `fault_of`."""
    return _look(path, directories, is_folder, leaves_out_links).marks


def fault_of(
    path: str,
    directories: tuple[str, ...],
    *,
    is_folder: bool = False,
    leaves_out_links: bool = False,
) -> str | None:
    """Why the files of the database at a path cannot be opened by a caller that may only open what
    is in the directories; None if they can be. What does not exist is not a fault. Reads folders,
    so it belongs in a thread.

    `is_folder`: the driver opens what is in the folder at the path, and nothing beside it.
    `leaves_out_links`: the engine itself reads no link in a folder that leads out of it.
    """
    return _look(path, directories, is_folder, leaves_out_links).fault


def is_below(path: str, directories: tuple[str, ...]) -> bool:
    """Whether a file is below one of the directories, after links are followed."""
    return _is_below(os.path.realpath(path), [os.path.realpath(each) for each in directories])


def _is_below(real: str, roots: list[str]) -> bool:
    return any(real == root or real.startswith(os.path.join(root, "")) for root in roots)  # noqa: PTH118 - one of many


def _look(
    path: str, directories: tuple[str, ...], is_folder: bool, leaves_out_links: bool
) -> _Look:
    plain = os.path.normpath(path)
    roots = [os.path.realpath(directory) for directory in directories]
    key = (plain, os.path.realpath(plain), tuple(roots), is_folder, leaves_out_links)
    known = _kept.get(key)
    if known is not None and known.holds():
        return known
    if not _is_below(key[1], roots):
        fault = "The file is in no directory that the operator has listed."
        return _Look(frozenset(), fault, None, {})
    walk = _Walk(plain, roots, is_folder=is_folder, leaves_out_links=leaves_out_links)
    look = walk.look()
    if look.folders is not None:
        _kept[key] = look
        with suppress(KeyError):  # another thread may have taken it
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
    return look


class _Walk:
    """One reading of the files of a database."""

    def __init__(
        self, path: str, roots: list[str], *, is_folder: bool, leaves_out_links: bool
    ) -> None:
        self._path = path
        self._roots = roots
        self._is_folder = is_folder
        self._leaves_out_links = leaves_out_links
        self._folders: dict[str, tuple[int, ...]] = {}
        self._links: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._systems: dict[int, str] | None = None

    def look(self) -> _Look:
        marks: set[FileMark] = set()
        fault: str | None = None
        settled = time.time_ns() - SETTLED_NS
        try:
            for found in self._files():
                fault = fault or self._fault_of(found)
                state = found.state
                if state is not None and not stat.S_ISDIR(state.st_mode):
                    marks.add((state.st_dev, state.st_ino))
        except _Unfit as error:
            fault = fault or str(error)
        except OSError as error:
            fault = fault or f"The files of the database cannot be checked ({error.strerror})."
        stays = fault is None and all(mark[-1] < settled for mark in self._folders.values())
        return _Look(frozenset(marks), fault, self._folders if stays else None, self._links)

    def _fault_of(self, found: _Found) -> str | None:
        name = os.path.basename(found.place)[:80]  # noqa: PTH119
        if not _is_below(found.place, self._roots):
            return (
                f"A file of the database, {name!r}, is outside the directories that the operator"
                " has listed: a link leads there."
            )
        if found.state is None or stat.S_ISDIR(found.state.st_mode):
            return None
        if not stat.S_ISREG(found.state.st_mode):
            return f"A file of the database, {name!r}, is no plain file."
        if found.state.st_nlink > 1 and os.sep not in self._roots:
            return (
                f"A file of the database, {name!r}, has a second name (a hard link), which may be"
                " anywhere."
            )
        return None

    def _files(self) -> Iterator[_Found]:
        """The files and folders, files that are near first. Links are followed, but not through
        folders outside of the listed directories, which are a fault already.

        Raises: OSError, _Unfit.
        """
        waiting = deque((found, 0) for found in self._named())
        seen: set[str] = set()
        while waiting:
            found, depth = waiting.popleft()
            if found.place in seen:
                continue
            seen.add(found.place)
            if len(seen) > MOST_FILES:
                raise _Unfit(_too_many(MOST_FILES))
            state = found.state
            if state is not None:
                self._check_system(state)
            yield found
            if state is None or not stat.S_ISDIR(state.st_mode):
                continue
            if _is_below(found.place, self._roots):
                if depth >= MOST_DEPTH:
                    raise _Unfit(
                        f"The folder holds folders more than {MOST_DEPTH} deep, too deep to be"
                        " checked. Name the database's own folder."
                    )
                room = MOST_FILES - len(waiting)
                waiting += [(each, depth + 1) for each in self._inside(found.place, state, room)]

    def _named(self) -> Iterator[_Found]:
        """What is at the path and beside it with names that begin with its own."""
        for path in {self._path, os.path.realpath(self._path)}:  # SQLite uses where a link leads
            folder, last = os.path.split(path)
            if self._is_folder or not last:
                yield self._followed(path)
                continue
            real = os.path.realpath(folder)
            try:
                state = os.stat(real)  # noqa: PTH116 - as text
                for entry in self._entries(real, state, MOST_NAMES):
                    rest = entry.name.removeprefix(last)
                    if entry.name == last or (rest != entry.name and _REST.fullmatch(rest)):
                        yield self._found(entry)
            except FileNotFoundError:
                continue

    def _inside(self, place: str, state: os.stat_result, room: int) -> Iterator[_Found]:
        for entry in self._entries(place, state, room):
            if not (self._leaves_out_links and entry.is_symlink()):
                yield self._found(entry)

    def _entries(self, folder: str, state: os.stat_result, most: int) -> Iterator[os.DirEntry[str]]:
        """What is in a folder. `state` was taken before, so that what changes meanwhile is seen."""
        self._check_system(state)
        self._folders[folder] = _mark(state)
        with os.scandir(folder) as listed:
            for count, entry in enumerate(listed):
                if count >= most:
                    raise _Unfit(_too_many(max(most, MOST_FILES)))
                yield entry

    def _found(self, entry: os.DirEntry[str]) -> _Found:
        if entry.is_symlink():
            return self._followed(entry.path)
        try:
            return _Found(entry.path, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            return _Found(entry.path, None)

    def _followed(self, path: str) -> _Found:
        place = os.path.realpath(path)
        state = _state(place)
        self._links[path] = place, _file_mark(state)
        return _Found(place, state)

    def _check_system(self, state: os.stat_result) -> None:
        """Raises: _Unfit in a file system of the kernel."""
        if is_on_disk(state):
            return
        if self._systems is None:
            self._systems = _kernel_systems()
        kind = self._systems.get(state.st_dev)
        if kind is not None:
            raise _Unfit(
                f"The path is in a file system of the kernel ({kind}), not in one of data."
            )


def _kernel_systems() -> dict[int, str]:
    """The devices of the kernel's own file systems, where the system lists its mounts."""
    return {device: kind for device, kind in file_systems().items() if kind in _KERNEL}


def _too_many(most: int) -> str:
    return (
        f"The folder holds more than {most:,} names, too many to be checked. Name the database's"
        " own folder."
    )


def _state(place: str) -> os.stat_result | None:
    try:
        return os.stat(place)  # noqa: PTH116 - one of many
    except (FileNotFoundError, NotADirectoryError):
        return None


def _led_to(link: str) -> tuple[str, tuple[int, ...]]:
    place = os.path.realpath(link)
    return place, _file_mark(_state(place))


def _mark(state: os.stat_result) -> tuple[int, ...]:
    """What changes when a name in a folder does: the time cannot be set by a program."""
    return state.st_dev, state.st_ino, state.st_mode, state.st_ctime_ns


def _file_mark(state: os.stat_result | None) -> tuple[int, ...]:
    if state is None:
        return ()
    return state.st_dev, state.st_ino, state.st_mode, state.st_nlink
