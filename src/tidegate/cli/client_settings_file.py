"""A settings file of another program, replaced atomically after a backup."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tidegate.errors import Code, TidegateError
from tidegate.system.file_rights import keep_rights
from tidegate.system.private_files import write_draft

BACKUP = ".tidegate.bak"

_MARK = "\ufeff"


class ClientSettingsFile:
    """The file at `path`, or the one that a symbolic link there leads to.

    Raises: TidegateError CLIENT_FILE if it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve() if path.is_symlink() else path
        try:
            content = self.path.read_bytes()
            self._seen: os.stat_result | None = self.path.stat()
        except FileNotFoundError:
            content, self._seen = b"", None
        except OSError as error:
            raise _failed(self.path, f"cannot be read: {error.strerror}") from None
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise _failed(self.path, "is not UTF-8 text") from None
        self._content = content
        self._mark = _MARK if text.startswith(_MARK) else ""
        self.text = text.removeprefix(_MARK)

    @property
    def backup(self) -> Path:
        """The path of the copy from before the last change."""
        return self.path.with_name(self.path.name + BACKUP)

    def replace(self, text: str) -> None:
        """Replace the content, with the same mode and owner, and keep the old content as a backup.

        Raises: TidegateError CLIENT_FILE; then the file is unchanged.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._seen is not None:
                self._put(self.backup, self._content)
            self._refuse_changed()
            self._put(self.path, (self._mark + text).encode())
        except OSError as error:
            raise _failed(self.path, f"cannot be written: {error.strerror}") from None

    def _refuse_changed(self) -> None:
        """Raises: TidegateError if another program has changed the file since it was read."""
        try:
            now = self.path.read_bytes()
        except FileNotFoundError:
            now = b""
        if now != self._content:
            raise _failed(self.path, "was changed by another program at the same time")

    def _put(self, path: Path, content: bytes) -> None:
        """Write a file atomically."""
        made = write_draft(path, content)
        try:
            if self._seen is not None:
                keep_rights(made, self._seen)
            made.replace(path)
        except OSError:
            with suppress(OSError):
                made.unlink()
            raise


def _failed(path: Path, problem: str) -> TidegateError:
    return TidegateError(
        Code.CLIENT_FILE,
        f"The settings file `{path}` {problem}; nothing was changed.",
        details={"path": str(path)},
    )
