"""The page itself: files that hold no data, read once.

`index.html` names the build, a digest of all files, so that a page of an earlier build can tell.
"""

from __future__ import annotations

import gzip
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
_BUILD = b"{{build}}"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """A file as it is sent. `etag` changes with its content; `compressed` is the same by gzip."""

    content: bytes
    compressed: bytes
    content_type: str
    etag: bytes


class PageFiles:
    """The files of a folder, by name."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder

    @cached_property
    def build(self) -> str:
        """A digest of all files."""
        digest = sha256()
        for path in self._paths:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:16]

    @cached_property
    def files(self) -> dict[str, PageFile]:
        """Each file by its name."""
        found: dict[str, PageFile] = {}
        for path in self._paths:
            content = path.read_bytes()
            if path.name == INDEX:
                content = content.replace(_BUILD, self.build.encode())
            etag = b'"%s"' % sha256(content).hexdigest()[:24].encode()
            found[path.name] = PageFile(
                content, gzip.compress(content, mtime=0), _TYPES[path.suffix], etag
            )
        return found

    @cached_property
    def _paths(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.suffix in _TYPES)


def accepts_gzip(accepted: bytes) -> bool:
    """Whether a client takes gzip, by its `Accept-Encoding`."""
    for each in accepted.lower().split(b","):
        coding, _, weight = each.partition(b";")
        if coding.strip() in (b"gzip", b"*"):
            return weight.replace(b" ", b"").strip(b"0.") != b"q="
    return False
