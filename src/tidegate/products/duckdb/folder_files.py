"""Finds the files of a folder that hold rows, and names their tables. Reads names only. Runs in the
worker, and without the driver to see what it takes to read the folder.

A table is called after its file (`orders.csv` is `orders`), and its schema after the folder below
the source's own (`north/orders.csv` is `north.orders`). Where two files would have one name, the
ending is added to both (`orders_csv`, `orders_parquet`), so that a rule for `orders` fits neither
and closes the source until the operator decides.
"""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidegate.engines.common.url import folder_path
from tidegate.errors import Code, TidegateError

KINDS = {
    **dict.fromkeys(("csv", "tsv"), "csv"),
    **dict.fromkeys(("json", "jsonl", "ndjson"), "json"),
    "parquet": "parquet",
    **dict.fromkeys(("xlsx", "xlsm", "xlsb", "xls", "ods"), "excel"),
}
"""How files are read, by their ending. CSV and JSON may be compressed (`.csv.gz`)."""

MOST_ENTRIES = 100_000
"""How many names of files and folders are read."""

DEFAULT_SCHEMA = "main"
_OTHERS = frozenset({"main", "temp", "system", "memory", "information_schema", "pg_catalog"})
"""Schemas that a folder cannot be called after, because DuckDB has its own."""

# What the judge takes for a file's path in the place of a table, and what breaks a line.
_NOT_IN_NAMES = re.compile(r"[./\\:*?\[\]\x00-\x1f\x7f\u2028\u2029]")


_PATTERN = re.compile(r"[*?\[]")
"""What DuckDB takes in a path for a pattern, which can mean other files."""


class FoundFile(NamedTuple):
    """A file below the folder. `mark` changes when the file does. `fault` says why it is not read;
    `path` is then only shown. A file is read at `path`, which leads through no symbolic link."""

    path: str
    shown: str
    kind: str
    mark: str
    fault: str | None = None


class NamedTable(NamedTuple):
    """The table of a file, or of one sheet of a workbook (0 for the first)."""

    schema: str
    name: str
    file: FoundFile
    sheet: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """The name as DuckDB compares names."""
        return self.schema.casefold(), self.name.casefold()


def scan(root: str, most: int) -> list[FoundFile]:
    """The files with rows in the folder and those below it, in the order of their paths.

    Raises: TidegateError SOURCE_UNREACHABLE if the folder cannot be read, or holds too much.
    """
    found: list[FoundFile] = []
    real_root = os.path.realpath(root)
    for file in _walk(root, real_root):
        if len(found) == most:
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                f"The folder holds more than {most:,} files with rows.",
                hint="Name a smaller folder, or give the URL the option `files` with a higher "
                "number.",
            )
        found.append(file)
    return sorted(found)


def name_tables(files: Iterable[tuple[FoundFile, str | None, int]]) -> list[NamedTable]:
    """Tables with names that differ, also for DuckDB, for which case does not count.

    Each file comes with a sheet's name, or None for the first sheet and for any other file.
    """
    same: dict[tuple[str, str], list[tuple[NamedTable, str]]] = defaultdict(list)
    for file, sheet, number in files:
        folder, _, last = file.shown.rpartition("/")
        stem, ending = _split(last)
        name = _clean(f"{stem}_{sheet}" if sheet is not None else stem)
        table = NamedTable(_schema(folder), name, file, number)
        same[table.key].append((table, ending))
    named = [tables[0][0] for tables in same.values() if len(tables) == 1]
    taken = {table.key for table in named} | set(same)
    for tables in same.values():
        for table, ending in tables if len(tables) > 1 else ():
            plain = f"{table.name}_{_clean(ending)}"
            other, number = table._replace(name=plain), 2
            while other.key in taken:
                other, number = table._replace(name=f"{plain}_{number}"), number + 1
            taken.add(other.key)
            named.append(other)
    return sorted(named)


def extras_of(url: str) -> tuple[str, ...]:
    """The extra that reads workbooks, if the folder at `url` has one now. Raises: TidegateError."""
    root = folder_path(url)
    found = _walk(root, os.path.realpath(root))
    return ("excel",) if any(file.kind == "excel" for file in found) else ()


def _walk(root: str, real_root: str) -> Iterator[FoundFile]:
    folders = [""]
    entries = 0
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as listed:  # noqa: PTH118 - names as bytes allow
                for entry in listed:
                    entries += 1
                    if entries > MOST_ENTRIES:
                        raise TidegateError(
                            Code.SOURCE_UNREACHABLE,
                            f"The folder holds more than {MOST_ENTRIES:,} names.",
                            hint="Name a smaller folder.",
                        )
                    if entry.name.startswith("."):
                        continue
                    path = f"{folder}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{path}/")
                    elif (kind := kind_of(entry.name)) is not None:
                        file = _file(entry, path, kind, real_root)
                        if file is not None:
                            yield file
        except OSError as error:
            if not folder:
                raise TidegateError(
                    Code.SOURCE_UNREACHABLE,
                    "The folder cannot be read.",
                    hint="Check that it is there, and the rights on it.",
                ) from error
            if not isinstance(error, FileNotFoundError):
                fault = f"the folder cannot be read ({error.strerror})"
                shown = _printable(folder.removesuffix("/"))
                yield FoundFile(shown, shown, "folder", "", fault)


def kind_of(name: str) -> str | None:
    """How a file of this name is read; None if it is not."""
    return KINDS.get(_split(name)[1].removesuffix(".gz").lower())


def _file(entry: os.DirEntry[str], path: str, kind: str, real_root: str) -> FoundFile | None:
    shown = _printable(path)
    try:
        if entry.is_symlink():
            real = os.path.realpath(entry.path)
            if os.path.commonpath([real, real_root]) != real_root:
                fault = "it is a link that leads out of the folder"
                return FoundFile(shown, shown, kind, "", fault)
            path, state = os.path.relpath(real, real_root), os.lstat(real)
        else:
            state = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed just now, or a link to nothing
    except OSError as error:
        return FoundFile(shown, shown, kind, "", f"{error.strerror}")
    if not stat.S_ISREG(state.st_mode):
        return None
    if shown != path and _printable(path) != path:
        return FoundFile(shown, shown, kind, "", "its name is not UTF-8 text")
    if "\\" in path and _PATTERN.search(path):  # it separates folders in a pattern
        return FoundFile(shown, shown, kind, "", "its name holds a backslash and one of * ? [")
    mark = f"{state.st_dev:x}.{state.st_ino:x}.{state.st_mtime_ns:x}.{state.st_size:x}"
    return FoundFile(path, shown, kind, mark)


def sole_path(path: str) -> str:
    """The path as DuckDB takes it for this file alone: not for a pattern, nor for a file of the
    account's home (`~`) or of a scheme (`file:`)."""
    escaped = _PATTERN.sub(r"[\g<0>]", path)
    return f"./{escaped}" if path.startswith("~") or ":" in path else escaped


def _split(name: str) -> tuple[str, str]:
    """The stem and the ending, with which `.gz` goes."""
    stem, _, ending = name.rpartition(".")
    if ending.lower() == "gz" and KINDS.get(stem.rpartition(".")[2].lower()) in ("csv", "json"):
        stem, _, inner = stem.rpartition(".")
        ending = f"{inner}.{ending}"
    return stem, ending


def _schema(folder: str) -> str:
    if not folder:
        return DEFAULT_SCHEMA
    name = _clean(folder)
    return f"{name}_" if name.casefold() in _OTHERS else name


def _clean(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name) or "_"


def _printable(name: str) -> str:
    """The name as text: bytes that are not UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
