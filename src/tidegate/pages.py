"""The rows of a result: how many may come, and the form in which they travel to an edge.

Frozen; imports nothing of ours. `results/page.py` fills a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Budgets that the gate puts on a run; the database enforces `timeout_s` itself."""

    max_rows: int = 500
    max_bytes: int = 4_194_304
    timeout_s: float = 30.0


class Column(msgspec.Struct, frozen=True):
    """A result column; `type` is the database's own name for it, empty if it has none."""

    name: str
    type: str = ""


class Truncation(msgspec.Struct, frozen=True):
    """One way in which a result was cut. `kind` is `rows`, `bytes` or `value`."""

    kind: Literal["rows", "bytes", "value"]
    limit: int
    returned: int


class Page(msgspec.Struct, frozen=True):
    """Rows of a result, already encoded: `rows` is a JSON array of arrays, UTF-8.

    `affected` counts rows changed by a writing statement; `more` is the handle under which the
    rest is shelved, if it is.
    """

    columns: tuple[Column, ...]
    rows: bytes
    row_count: int
    affected: int = 0
    truncations: tuple[Truncation, ...] = ()
    elapsed_ms: float = 0.0
    more: str | None = None
    status: str | None = None


class RowWriter(Protocol):
    """Takes a result's rows as they come, where they are wanted in another form than a page."""

    def begin(self, columns: tuple[Column, ...]) -> None:
        """Called once, before any row."""
        ...

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take rows of plain Python values, in the order of the columns."""
        ...
