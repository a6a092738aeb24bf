"""Files that an export may write: inside one directory, new ones only.

The path is walked one name at a time from the directory's descriptor, and no name on it may be a
symbolic link: so what is checked is what is opened, whatever another process does meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from tidegate.errors import Code, TidegateError
from tidegate.paths import expand, of_platform
from tidegate.system.private_files import Folder

_MOST_TRIES = 1_000


class Downloads:
    """The directory of exports, `~/Downloads` unless the settings name another."""

    def __init__(self, directory: str | None = None) -> None:
        self._configured = directory

    @property
    def directory(self) -> Path:
        """The directory as it really is, without links. It need not exist."""
        return Path(os.path.realpath(self._as_written()))

    def names(self, output_path: str, suffix: str) -> tuple[str, ...]:
        """The names on the way from the directory to the file.

        Raises: TidegateError ARGUMENT_INVALID for a path outside, a hidden name, another suffix.
        """
        home = self.directory
        try:
            given = expand(output_path)
            os.fsencode(given)
        except (TidegateError, UnicodeError):  # no such user; half a surrogate pair
            raise self._outside(home) from None
        if not output_path.isprintable():
            raise _refused("output_path must not hold control characters")
        # Links above the directory may be written either way; `..` is taken out as text.
        lexical = Path(os.path.normpath(home / given))
        for root in (home, Path(os.path.normpath(self._as_written()))):
            if lexical != root and lexical.is_relative_to(root):
                names = lexical.relative_to(root).parts
                break
        else:
            raise self._outside(home)
        if ".." in given.parts:
            raise self._outside(home)
        if any(name.startswith(".") for name in names):
            raise _refused("output_path must not name a hidden file or folder")
        if Path(names[-1]).suffix.lower() != suffix:
            raise _refused(f"output_path must end in {suffix}")
        return names

    def new_file(self, names: tuple[str, ...]) -> NewFile:
        """A file that is made when the first bytes come; `-1`, `-2` ... if the name is taken."""
        return NewFile(self.directory, names)

    def _as_written(self) -> Path:
        if self._configured is not None:
            return expand(self._configured)
        from platformdirs import user_downloads_path

        return of_platform(user_downloads_path)

    def _outside(self, home: Path) -> TidegateError:
        # Its last name only: where it lies on this machine is nothing to a client.
        return _refused(f"output_path must be inside the Downloads directory ({home.name})")


class NewFile:
    """A file being written, from whatever thread; mode 0600. Not finished, it is taken back."""

    def __init__(self, home: Path, names: tuple[str, ...]) -> None:
        self._home = home
        self._names = names
        self._guard = Lock()
        self._folder: Folder | None = None
        self._file: BinaryIO | None = None
        self._ended = False
        self._made_as: os.stat_result | None = None
        self.path: Path | None = None

    def put(self, chunk: bytes) -> None:
        """Write. Raises: TidegateError ARGUMENT_INVALID if a folder on the way is missing or a
        link, STATE_FAILED if the disk is full."""
        with self._guard:
            if self._ended:  # the call was given up, and its last rows still came
                raise TidegateError(Code.CALL_CANCELLED, "The export was ended")
            file = self._file or self._made()
            with _failures_reported():
                file.write(chunk)

    def finish(self) -> Path:
        """The path of the whole file. Raises: TidegateError as `put`."""
        with self._guard:
            file = self._file or self._made()
            with _failures_reported():
                file.close()
            self._let_go()
            assert self.path is not None  # noqa: S101 - made above
            return self.path

    def discard(self) -> None:
        """Remove what was written, if it is still there. Safe to call twice."""
        with self._guard:
            if not self._ended:
                self._take_back()
            self._let_go()

    def _take_back(self) -> None:
        if self._file is None or self._made_as is None or self.path is None:
            return
        with suppress(OSError):
            self._file.close()
        if self._folder is not None:
            # By the folder that was opened: the path may lead elsewhere by now.
            self._folder.remove_file(self.path.name, self._made_as)

    def _made(self) -> BinaryIO:
        *folders, name = self._names
        try:
            self._folder = Folder(self._home)
        except OSError as error:
            raise _refused(f"The Downloads directory cannot be used: {error.strerror}") from None
        try:
            for folder in folders:
                self._folder.enter(folder)
            made, descriptor = _create(self._folder, name)
        except OSError:
            raise _refused(
                "output_path must name a new file in a folder that exists inside the Downloads"
                " directory"
            ) from None
        self._made_as = os.fstat(descriptor)
        self._file = os.fdopen(descriptor, "wb")
        self.path = self._home.joinpath(*folders, made)
        return self._file

    def _let_go(self) -> None:
        self._ended = True
        if self._folder is not None:
            self._folder.close()
            self._folder = None


def _create(folder: Folder, name: str) -> tuple[str, int]:
    stem, suffix = Path(name).stem, Path(name).suffix
    for number in range(_MOST_TRIES):
        candidate = name if number == 0 else f"{stem}-{number}{suffix}"
        try:
            return candidate, folder.create_file(candidate)
        except FileExistsError:
            continue
    raise FileExistsError(name)


@contextmanager
def _failures_reported() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise TidegateError(
            Code.STATE_FAILED,
            f"The export cannot be written: {error.strerror}",
            hint="Ask the operator to make room, or export fewer rows.",
        ) from None


def _refused(message: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID, message, hint="Give a new path inside the Downloads directory."
    )
