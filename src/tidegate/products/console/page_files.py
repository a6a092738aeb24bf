"""The page itself: files that hold no data, read once.

`index.html` names the build, a digest of all files, in the address of each. What one address gives
never changes, so browsers keep it, and a page never gets files of two builds. It also names all
modules that the first ones need, so that they are fetched at once and not one after the other.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import tidegate.charts

FOLDER = Path(__file__).parent / "page"
CHART = Path(tidegate.charts.__file__).parent / "chart.js"
"""The module that draws charts, here and in the page of an MCP App."""
INDEX = "index.html"
FIRST = "app.js"
_IMPORT = re.compile(r'^(?:import|export)\b[^;]*?\bfrom "\./([\w.]+)";', re.MULTILINE)
_LATER = re.compile(r'\bawait import\("\./([\w.]+)"\)')
_STYLE = re.compile(r'\bloadStyle\("([\w.]+)"\)')
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


class PageFile(NamedTuple):
    """A file as it is sent. `etag` changes with its content; `compressed` is the same by gzip."""

    content: bytes
    compressed: bytes
    content_type: str
    etag: bytes


class PageFiles:
    """The files of a folder, and the module of charts, by name."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder

    @cached_property
    def build(self) -> str:
        """A digest of all files."""
        digest = sha256()
        for name, content in self._contents.items():
            digest.update(name.encode() + b"\0" + content)
        return digest.hexdigest()[:16]

    @cached_property
    def files(self) -> dict[str, PageFile]:
        """Each file by its name."""
        found: dict[str, PageFile] = {}
        for name, content in self._contents.items():
            if name == INDEX:
                texts = {each: kept.decode() for each, kept in self._contents.items()}
                content = render_index(texts, self.build).encode()
            etag = b'"%s"' % sha256(content).hexdigest()[:24].encode()
            kind = _TYPES[name[name.rindex(".") :]]
            found[name] = PageFile(content, gzip.compress(content, mtime=0), kind, etag)
        return found

    @cached_property
    def _contents(self) -> dict[str, bytes]:
        """The files as they lie there, in the order of their names."""
        paths = [CHART, *(path for path in self._folder.iterdir() if path.suffix in _TYPES)]
        return {path.name: path.read_bytes() for path in sorted(paths, key=lambda each: each.name)}


def render_index(texts: Mapping[str, str], build: str) -> str:
    """The page with its build, the modules that it loads at once, and those that each module which
    is loaded later needs in addition."""
    first = modules_of(FIRST, texts)
    at_once = [
        f'<link rel="modulepreload" href="/console/assets/{build}/{name}">'
        for name in first
        if name != FIRST
    ]
    for importer, name in _later(first, texts):
        there = {*first, *modules_of(importer, texts)}
        needed = [each for each in modules_of(name, texts) if each not in there]
        styles = [style for each in needed for style in _STYLE.findall(texts.get(each, ""))]
        names = " ".join([*needed, *styles])
        at_once.append(f'<meta name="tidegate-needs" data-module="{name}" content="{names}">')
    page = texts[INDEX].replace("{{modules}}", "\n".join(at_once))
    return page.replace("{{build}}", build)


def _later(first: Sequence[str], texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The modules that are loaded later, each with one that is there by then: of the modules loaded
    at once, and of those that are loaded later themselves."""
    known = [(FIRST, each) for name in first for each in _LATER.findall(texts.get(name, ""))]
    for importer, name in known:
        yield importer, name
        for each in modules_of(name, texts):
            found = [(name, other) for other in _LATER.findall(texts.get(each, ""))]
            known += [pair for pair in found if pair not in known]


def modules_of(name: str, texts: Mapping[str, str]) -> list[str]:
    """A module and all that it imports, the nearest first."""
    found = [name]
    for each in found:
        found += [
            other
            for other in dict.fromkeys(_IMPORT.findall(texts.get(each, "")))
            if other not in found
        ]
    return found


def accepts_gzip(accepted: bytes) -> bool:
    """Whether a client takes gzip, by its `Accept-Encoding`."""
    for each in accepted.lower().split(b","):
        coding, _, weight = each.partition(b";")
        if coding.strip() in (b"gzip", b"*"):
            return weight.replace(b" ", b"").strip(b"0.") != b"q="
    return False
