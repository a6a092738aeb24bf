"""Passwords of sources that a person typed: one file each, for its owner alone, in the state
directory. A source's URL refers to it as `${FILE:...}`, like to any other file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tidegate.config.atomic_files import replace_file
from tidegate.errors import Code, TidegateError
from tidegate.secrets import files_of


class Passwords:
    """Those below a state directory."""

    def __init__(self, state: Path) -> None:
        self.directory = state.absolute() / "passwords"

    def save(self, source: str, password: str) -> str:
        """Keep a source's password; returns the reference to it. An older one stays until it is
        removed: a running server may still open connections with it.

        Raises: TidegateError STATE_FAILED.
        """
        path = self.directory / f"{source}.{os.urandom(4).hex()}"
        try:
            self.directory.mkdir(mode=0o700, exist_ok=True)
            self.directory.chmod(0o700)
            replace_file(path, password.encode())
        except OSError as error:
            raise TidegateError(
                Code.STATE_FAILED,
                f"The password cannot be kept in `{path}`: {error.strerror}.",
                details={"path": str(path)},
            ) from None
        return f"${{FILE:{path}}}"

    def find(self, source: str) -> tuple[str, str] | None:
        """The reference to a password that was saved for a source, and the password. Raises:
        TidegateError STATE_FAILED."""
        try:
            for path in sorted(self.directory.iterdir()) if self.directory.is_dir() else ():
                if path.name.rpartition(".")[0] == source:
                    return f"${{FILE:{path}}}", path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise TidegateError(
                Code.STATE_FAILED,
                f"The passwords in `{self.directory}` cannot be read: {error}.",
                details={"path": str(self.directory)},
            ) from None
        return None

    def copy(self, old: str, new: str, *texts: str, named: Iterable[str] = ()) -> dict[str, str]:
        """Keep the passwords of the source `old` for `new` as well: those that its `texts`, a URL
        and options, refer to, and those that were made for its accounts and are in none of the
        `named` URLs of others. Returns the new reference of each, by the old one.

        Raises: TidegateError STATE_FAILED, and then nothing is kept for `new`.
        """
        own = {name for text in texts for name in files_of(text)}
        others = {name for text in named for name in files_of(text)}
        made: dict[str, str] = {}
        try:
            for path in sorted(self.directory.iterdir()) if self.directory.is_dir() else ():
                source = path.name.rpartition(".")[0]
                of_account = source == old or source.startswith(f"{old}.")
                if str(path) in own or (of_account and str(path) not in others):
                    renamed = new + source.removeprefix(old) if of_account else new
                    made[f"${{FILE:{path}}}"] = self.save(renamed, path.read_text())
        except BaseException as error:
            self.remove(*made.values())
            if not isinstance(error, OSError | UnicodeDecodeError):
                raise
            raise TidegateError(
                Code.STATE_FAILED,
                f"The passwords in `{self.directory}` cannot be read: {error}.",
                details={"path": str(self.directory)},
            ) from None
        return made

    def remove(self, *urls: str, named: Iterable[str] = ()) -> None:
        """Remove the passwords that these URLs refer to, as far as they are kept here and the URLs
        in `named` refer to none of them."""
        used = {name for url in named for name in files_of(url)}
        for name in (name for url in urls for name in files_of(url) if name not in used):
            path = Path(name)
            if path.parent == self.directory:
                with suppress(OSError):
                    path.unlink()
