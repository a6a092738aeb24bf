"""Parses a source's URL: which file or folder, how much memory, and the version of the file."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tidegate.engines.common.url import (
    NONE_GIVEN,
    FileUrl,
    parse_file_url,
    parse_folder_url,
)
from tidegate.errors import Code, TidegateError
from tidegate.products.duckdb.engine.messages import Folder, Setup

OPTIONS = ("memory_limit", "threads", "timeout", "workers")
"""`memory_limit`: of one worker, like `512MB`; `threads`: of one worker; `timeout`: seconds to wait
for another process's lock; `workers`: how many statements run at once."""

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


class DuckUrl:
    """One source: the file, and what its workers may take."""

    __slots__ = ("file", "setup", "workers")

    def __init__(self, url: str, given: Mapping[str, str] = NONE_GIVEN) -> None:
        """Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE (names the path that was tried)."""
        self.file: FileUrl = parse_file_url(url, OPTIONS, given)
        _check_kind(self.file.path)
        options = self.file.options
        self.workers = _count(options.get("workers", "4"), "workers")
        self.setup = Setup(
            self.file.path,
            _bytes(options.get("memory_limit", "1GB")),
            _count(options.get("threads", "2"), "threads"),
            _seconds(options.get("timeout", "5")),
        )
        if self.file.path is None:
            self.workers = 1  # no other process sees what one process has in memory

    def version(self) -> str:
        """A text that changes when the file does. Raises: TidegateError SOURCE_UNREACHABLE."""
        path = self.file.path
        if path is None:
            return "memory"
        try:
            found = os.stat(path)  # noqa: PTH116 - a third of the cost of Path.stat, on each call
        except OSError as error:
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                f"There is no database file at {path} any more.",
                details={"path": path},
            ) from error
        mark = f"{found.st_dev:x}.{found.st_ino:x}.{found.st_mtime_ns:x}.{found.st_size:x}"
        try:
            log = os.stat(f"{path}.wal")  # noqa: PTH116 - as above
        except OSError:
            return mark
        return f"{mark}.{log.st_mtime_ns:x}.{log.st_size:x}"


FOLDER_OPTIONS = ("files", "memory_limit", "threads", "workers")
"""`files`: how many files the folder may have; the others as for a database."""

MOST_FILES = 10_000


class FolderUrl(DuckUrl):
    """A folder of files. Workers list it themselves, before each statement."""

    __slots__ = ()

    def __init__(self, url: str, given: Mapping[str, str] = NONE_GIVEN) -> None:
        """Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE (names the path that was tried)."""
        path, options = parse_folder_url(url, FOLDER_OPTIONS, given)
        self.file = FileUrl(None, options)
        self.workers = _count(options.get("workers", "4"), "workers")
        self.setup = Setup(
            None,
            _bytes(options.get("memory_limit", "1GB")),
            _count(options.get("threads", "2"), "threads"),
            0.0,
            Folder(path, _count(options.get("files", "1000"), "files", MOST_FILES)),
        )

    def version(self) -> str:
        return "folder"


_MAGIC = b"DUCK"
_MAGIC_AT = 8
_OTHER_KINDS = {
    b"PAR1": "a Parquet file",
    b"SQLi": "a SQLite database",
    b"PK\x03\x04": "a ZIP file",
}


def _check_kind(path: str | None) -> None:
    """Raises: TidegateError SOURCE_URL for a file that is no database, as one of rows. An empty
    file, or one that cannot be read, is left to DuckDB."""
    if path is None:
        return
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the name as the URL gave it
            start = file.read(_MAGIC_AT + len(_MAGIC))
    except OSError:
        return
    if not start or start[_MAGIC_AT:] == _MAGIC:
        return
    kind = _OTHER_KINDS.get(start[:4])
    raise TidegateError(
        Code.SOURCE_URL,
        f"{path} is {f'{kind}, ' if kind else ''}not a DuckDB database.",
        hint="Write sqlite:/// before it."
        if start.startswith(b"SQLite")
        else 'Load its rows into a database first: duckdb NEW.duckdb "CREATE TABLE rows AS FROM '
        "'FILE'\".",
        details={"path": path},
    )


def _bytes(text: str) -> int:
    digits = text.rstrip("KMGBIkmgbi")
    unit = _UNITS.get(text[len(digits) :].upper())
    if not digits.isdecimal() or unit is None or int(digits) * unit < 32 * 10**6:
        raise TidegateError(
            Code.SOURCE_URL, "The option `memory_limit` is a size like `512MB`, at least 32 MB."
        )
    return int(digits) * unit


def _count(text: str, name: str, most: int = 64) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise TidegateError(Code.SOURCE_URL, f"The option `{name}` is a number from 1 to {most}.")
    return int(text)


def _seconds(text: str) -> float:
    if not text.replace(".", "", 1).isdecimal():
        raise TidegateError(Code.SOURCE_URL, "The option `timeout` is a number of seconds.")
    return float(text)
