"""Files that an export may write: inside one directory, new ones only.

The path is walked one name at a time from the directory's descriptor, and no name on it may be a
symbolic link: so what is checked is what is opened, whatever another process does meanwhile.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from tidegate.errors import Code, GateError

_MOST_TRIES = 1_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Downloads:
    """The directory of exports, `~/Downloads` unless the settings name another."""

    def __init__(self, directory: str | None = None) -> None:
        self._configured = directory

    @property
    def directory(self) -> Path:
        """The directory as it really is, without links. It need not exist."""
        if self._configured is not None:
            return Path(os.path.realpath(Path(self._configured).expanduser()))
        from platformdirs import user_downloads_path

        return Path(os.path.realpath(user_downloads_path()))

    def names(self, output_path: str, suffix: str) -> tuple[str, ...]:
        """The names on the way from the directory to the file.

        Raises: GateError ARGUMENT_INVALID for a path outside, a hidden name, another suffix.
        """
        home = self.directory
        if not output_path or "\0" in output_path:
            raise self._outside(home)
        given = Path(output_path).expanduser()
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

    def create(self, names: tuple[str, ...]) -> tuple[BinaryIO, Path]:
        """A new file, open for writing, mode 0600; `-1`, `-2` ... is put in if the name is taken.

        Raises: GateError ARGUMENT_INVALID if a folder on the way is missing or a link.
        """
        home = self.directory
        *folders, name = names
        try:
            at = os.open(home, _DIRECTORY)
        except OSError as error:
            raise _refused(f"The Downloads directory cannot be used: {error.strerror}") from None
        try:
            for folder in folders:
                inner = os.open(folder, _DIRECTORY, dir_fd=at)
                os.close(at)
                at = inner
            made, descriptor = _create(at, name)
        except OSError:
            raise _refused(
                "output_path must name a new file in a folder that exists inside the Downloads"
                " directory"
            ) from None
        finally:
            os.close(at)
        return os.fdopen(descriptor, "wb"), home.joinpath(*folders, made)

    def remove(self, path: Path) -> None:
        """Take back a file that was not finished."""
        with suppress(OSError):
            path.unlink()

    def _as_written(self) -> Path:
        if self._configured is not None:
            return Path(self._configured).expanduser()
        from platformdirs import user_downloads_path

        return user_downloads_path()

    def _outside(self, home: Path) -> GateError:
        # Its last name only: where it lies on this machine is nothing to a client.
        return _refused(f"output_path must be inside the Downloads directory ({home.name})")


def _create(directory: int, name: str) -> tuple[str, int]:
    stem, suffix = Path(name).stem, Path(name).suffix
    for number in range(_MOST_TRIES):
        candidate = name if number == 0 else f"{stem}-{number}{suffix}"
        try:
            return candidate, os.open(candidate, _NEW_FILE, 0o600, dir_fd=directory)
        except FileExistsError:
            continue
    raise FileExistsError(name)


def _refused(message: str) -> GateError:
    return GateError(
        Code.ARGUMENT_INVALID, message, hint="Give a new path inside the Downloads directory."
    )
