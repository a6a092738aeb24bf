"""The files of a database that a caller names by a path: all that its driver derives from the name.

H2 adds `.mv.db` to the name, HSQLDB `.script` and `.lobs`, SQLite `-wal`, and the databases of
Derby and Datalevin are whole folders. Each of these may be a link, so a check of the name alone
would say nothing of what is opened. No list of endings is kept: every file counts that begins with
the name.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

MOST_FILES = 50_000
"""How many names are looked at for one database."""

FileMark = tuple[int, int]
"""The device and the number of a file, by which two names of one file are known."""

_REST = re.compile(r"[.\-_~].*", re.DOTALL)
"""What drivers put behind a database's name."""


class TooManyFiles(OSError):
    """A folder holds more than can be looked at."""


def marks_of(path: str) -> frozenset[FileMark]:
    """The marks of all files of the database at a path; none where nothing can be read."""
    found: set[FileMark] = set()
    with suppress(OSError):
        for _, state in _files(path, leaves_out_links=False):
            if state is not None and not stat.S_ISDIR(state.st_mode):
                found.add((state.st_dev, state.st_ino))
    return frozenset(found)


def fault_of(
    path: str, directories: tuple[str, ...], *, leaves_out_links: bool = False
) -> str | None:
    """Why the files of the database at a path cannot be opened by one who may only open what is
    in the directories; None if they can be. What is not there is no fault.

    `leaves_out_links`: the engine itself reads no link in a folder that leads out of it.
    """
    roots = [os.path.realpath(directory) for directory in directories]
    if not _is_below(os.path.realpath(path), roots):
        return "The file is in no directory that the operator has listed."
    everywhere = os.sep in roots
    try:
        for place, state in _files(path, leaves_out_links=leaves_out_links):
            name = os.path.basename(place)[:80]  # noqa: PTH119
            if not _is_below(place, roots):
                return (
                    f"A file of the database, {name!r}, is outside the directories that the"
                    " operator has listed: a link leads there."
                )
            if state is None or stat.S_ISDIR(state.st_mode):
                continue
            if not stat.S_ISREG(state.st_mode):
                return f"A file of the database, {name!r}, is no plain file."
            if state.st_nlink > 1 and not everywhere:
                return (
                    f"A file of the database, {name!r}, has a second name (a hard link), which"
                    " may be anywhere."
                )
    except TooManyFiles:
        return f"The folder holds more than {MOST_FILES:,} names, too many to be looked at."
    except OSError as error:
        return f"The files of the database cannot be looked at ({error.strerror})."
    return None


def is_below(path: str, directories: tuple[str, ...]) -> bool:
    """Whether a file is below one of the directories, after links are followed."""
    return _is_below(os.path.realpath(path), [os.path.realpath(each) for each in directories])


def _is_below(real: str, roots: list[str]) -> bool:
    return any(os.path.commonpath([real, root]) == root for root in roots)


def _files(path: str, *, leaves_out_links: bool) -> Iterator[tuple[str, os.stat_result | None]]:
    """The files and folders of a database by their real paths, with links followed; None for what
    is not there, such as a file that would be made through a link.

    Raises: OSError.
    """
    seen: set[str] = set()
    waiting: list[str] = []
    plain = os.path.normpath(path)
    for name in {plain, os.path.realpath(plain)}:  # SQLite derives names from where a link leads
        folder, last = os.path.split(name)
        try:
            with os.scandir(folder) as listed:
                for count, entry in enumerate(listed):
                    if count >= MOST_FILES:
                        raise TooManyFiles
                    rest = entry.name.removeprefix(last)
                    if entry.name == last or (rest != entry.name and _REST.fullmatch(rest)):
                        waiting.append(entry.path)
        except FileNotFoundError:
            continue
    while waiting:
        place = os.path.realpath(waiting.pop())
        if place in seen:
            continue
        seen.add(place)
        if len(seen) > MOST_FILES:
            raise TooManyFiles
        try:
            state = os.stat(place)  # noqa: PTH116 - one of many
        except FileNotFoundError:
            state = None
        yield place, state
        if state is not None and stat.S_ISDIR(state.st_mode):
            with os.scandir(place) as listed:
                waiting += [
                    entry.path for entry in listed if not (leaves_out_links and entry.is_symlink())
                ]
