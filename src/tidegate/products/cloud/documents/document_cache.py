"""Keeps the values of provider documents: reading YAML takes ten times as long as reading these.

A file is named after the digest of the document's content, so that it needs no other mark of being
current. The directory belongs to this account alone: what is in it is used as if it had been read
from the document.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from tidegate.config.file_permissions import require_private_file
from tidegate.paths import expand
from tidegate.products.cloud.documents.yaml_reader import read_yaml
from tidegate.system.file_rights import only_we_write
from tidegate.system.private_files import make_private_directory, replace_file

_FORMAT: Final = b"1"
"""Of the files; a reader of YAML that reads differently is another format."""
_LEAST_BYTES: Final = 16_384
"""A smaller document is read about as fast as its file here."""
_MOST_FILES: Final = 4_096
_SUFFIX: Final = ".msgpack"


def _own_content(path: Path) -> bytes:
    """What a file holds that no other account could write: one may have been put there while the
    directory was open to others. Raises: OSError."""
    with path.open("rb") as file:
        if not only_we_write(os.fstat(file.fileno())):
            raise PermissionError(path)
        return file.read()


class DocumentCache:
    """The files in `directory`, which is made when it is needed. Without a directory nothing is
    kept. A file that cannot be read or written, or that another account could have written, is as
    if there were none."""

    def __init__(self, directory: str | Path | None) -> None:
        """Raises: TidegateError ARGUMENT_INVALID for a home directory that does not exist,
        CONFIG_INVALID for a directory in which another account could write."""
        self._directory = expand(directory) if directory else None
        if self._directory is not None:
            require_private_file(self._directory)

    def read(self, content: bytes, name: str) -> Any:
        """The values in `content`. Raises: TidegateError DOCUMENT_INVALID that names `name`."""
        if self._directory is None or len(content) < _LEAST_BYTES:
            return read_yaml(content, name)
        digest = hashlib.sha256(_FORMAT + content).hexdigest()
        path = self._directory / f"{digest}{_SUFFIX}"
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.msgpack.decode(_own_content(path))
        values = read_yaml(content, name)
        # Whole numbers of more than 64 bits have no place in the format.
        with suppress(OSError, OverflowError, msgspec.EncodeError):
            self._keep(path, msgspec.msgpack.encode(values))
        return values

    def _keep(self, path: Path, content: bytes) -> None:
        make_private_directory(path.parent)
        replace_file(path, content)
        files = list(path.parent.glob(f"*{_SUFFIX}"))
        if len(files) <= _MOST_FILES:
            return
        files.sort(key=lambda each: each.stat().st_mtime)
        for old in files[: len(files) // 2]:
            old.unlink(missing_ok=True)
