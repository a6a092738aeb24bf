"""Finds rows of a CSV file that have more or fewer values than others.

DuckDB's sniffer takes what fits: of a file in which one row lacks a value it makes one column of
whole lines, or leaves the lines out that come before the longest row, and its header with them.
Such a table is wrong, and nothing reports it. Here the rows are counted where the sniffer's result
looks like that.
"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections.abc import Iterator
from typing import TextIO

DELIMITERS = (",", ";", "\t", "|")
_MOST_ROWS = 200_000
_LOOKED_AT = 20
_LONGEST_LINE = 100_000
_COMPRESSED = ".gz"
_OTHERWISE_COMPRESSED = (".zst", ".bz2", ".xz")


def find_uneven_row(path: str, columns: int, skipped: int) -> str | None:
    """Which row has another number of values than the first; None if the file does not look
    wrong. `columns` and `skipped` lines before them are what the sniffer found, none of either if
    it found nothing.

    Raises: OSError.
    """
    if (columns > 1 and not skipped) or path.endswith(_OTHERWISE_COMPRESSED):
        return None
    if columns > 1 and not _divided_lines(path, skipped):
        return None
    for delimiter in DELIMITERS:
        first = _first_lines(path, max(1, skipped))
        if any(delimiter in line for line in first) or _looks_divided(path, delimiter):
            found = _uneven(path, delimiter)
            if found is not None:
                return found
    return None


def _divided_lines(path: str, most: int) -> bool:
    return any(mark in line for line in _first_lines(path, most) for mark in DELIMITERS)


def skipped_text(path: str, skipped: int) -> bool:
    """Whether lines before the table hold anything. Raises: OSError."""
    if path.endswith(_OTHERWISE_COMPRESSED):
        return False
    return any(line.strip() for line in _first_lines(path, skipped))


def _uneven(path: str, delimiter: str) -> str | None:
    first: tuple[int, int] | None = None
    for line, count in _counts(path, delimiter):
        if first is None:
            first = line, count
        elif count != first[1]:
            there = f"line {first[0]} has {_values(first[1])}"
            return f"{there} but line {line} has {_values(count)}; make all rows alike"
    return None


def _looks_divided(path: str, delimiter: str) -> bool:
    """Whether most of the first rows have several values: a title may precede them."""
    counts = [count for _, count in itertools.islice(_counts(path, delimiter), _LOOKED_AT)]
    return sum(count > 1 for count in counts) * 2 > len(counts)


def _counts(path: str, delimiter: str) -> Iterator[tuple[int, int]]:
    """The line on which each row ends and how many values it has, without empty lines."""
    with _opened(path) as lines:
        reader = csv.reader(lines, delimiter=delimiter)
        try:
            for row in itertools.islice(reader, _MOST_ROWS):
                if row:
                    yield reader.line_num, len(row)
        except csv.Error:  # not of this form after all
            return


def _first_lines(path: str, most: int) -> list[str]:
    with _opened(path) as lines:
        return [line[:_LONGEST_LINE] for line in itertools.islice(lines, most)]


def _opened(path: str) -> TextIO:
    if path.endswith(_COMPRESSED):
        return gzip.open(path, "rt", encoding="utf-8", errors="replace", newline="")
    return open(path, encoding="utf-8", errors="replace", newline="")  # noqa: PTH123 - as text


def _values(count: int) -> str:
    return "one value" if count == 1 else f"{count} values"
