"""Changes of single rows of one table: what is asked, what is found, and the answers. Frozen.

A value to write is None for NULL, `DEFAULT`, a text as the database reads it for the column, bytes,
or a number where the database keeps a class with each value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from tidegate.model.changes import ImageColumn, Problem, Row
from tidegate.model.replies import RecordedPayload
from tidegate.model.requests import EngineRequest, metadata
from tidegate.model.statements import Judgement, Statement

Verb = Literal["insert", "update", "delete"]
VERBS: tuple[Verb, ...] = ("delete", "update", "insert")
"""The kinds of edits, in the order in which they are made: what is deleted leaves its key."""
MOST_EDITS = 10_000
"""Rows of one change."""
MOST_FED = 1_000_000
"""Rows of one change that come from a file."""
_UNDO_ROW_BYTES = 96
_UNDO_VALUE_BYTES = 12


class Default(msgspec.Struct, frozen=True, tag="default"):
    """The value that the database gives to a column by itself."""


DEFAULT = Default()


class TableShape(msgspec.Struct, frozen=True):
    """The columns of a table that hold values of their own, as far as a caller may see them. `key`
    are the places of the key's columns. `digest` tells the definition of the table from another.
    """

    schema: str
    table: str
    columns: tuple[ImageColumn, ...]
    key: tuple[int, ...]
    digest: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple([column.name for column in self.columns])

    def key_of(self, row: Row) -> Row:
        """The values of the key in a row of these columns."""
        return tuple([row[place] for place in self.key])


class FoundRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of a table, in the order of its shape. `image` has exact values that only the engine
    reads; `shown` has them as they could be written again."""

    image: Row
    shown: Row


class FoundRows(msgspec.Struct, frozen=True):
    """Rows by their keys, in the order of the keys; None for a key without a row."""

    shape: TableShape
    rows: tuple[FoundRow | None, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.rows)


class RowEdit(msgspec.Struct, frozen=True, array_like=True):
    """What becomes of one row. `before` is the image that a person saw, None for a row that is
    added. `values` are (place of the column, value), None for a row that is deleted."""

    before: Row | None
    values: tuple[tuple[int, Any], ...] | None

    @property
    def verb(self) -> Verb:
        if self.before is None:
            return "insert"
        return "delete" if self.values is None else "update"


class EditConflict(msgspec.Struct, frozen=True):
    """An edit, by its place, whose row is not as the person saw it; `now` is None if it is gone.
    `differs` are the places of the columns that changed."""

    edit: int
    problem: Problem
    now: FoundRow | None = None
    differs: tuple[int, ...] = ()


class RowFeed(Protocol):
    """Rows that are added, held in a file, and read as often as they are needed. Each has a value
    for every one of `places`, the places of columns."""

    name: str
    """That of the file that they are from."""
    file_digest: str
    """SHA-256 of that file."""
    places: tuple[int, ...]
    count: int
    size: int
    """Bytes that hold the values."""

    @property
    def digest(self) -> str:
        """SHA-256 of all values, as they are written."""
        ...

    def batches(self) -> Iterator[Sequence[Sequence[Any]]]:
        """All rows, some at a time. Raises: TidegateError."""
        ...

    def note(self, first: int, last: int) -> None:
        """These rows, counted from 1, are being written. Called from any thread."""
        ...


def undo_size(feed: RowFeed) -> int:
    """Bytes that are enough to keep the rows of a feed for undo: an image, and what the database
    keeps of a change."""
    return 2 * feed.size + feed.count * (_UNDO_ROW_BYTES + _UNDO_VALUE_BYTES * len(feed.places))


class RowRequest(EngineRequest, frozen=True, kw_only=True):
    """The base of the requests about single rows. `schema` is that of the table; without one it is
    the current one."""

    about_rows: ClassVar[bool] = True

    table: str


class DescribeEditing(RowRequest, frozen=True, kw_only=True):
    """Say whether rows of a table can be changed by the caller, and what its columns take. The
    answer is an `Editability`."""

    kind: ClassVar[str] = "describe_editing"
    costs: ClassVar[bool] = False
    judgement: ClassVar[Judgement | None] = metadata(
        "describe_editing", "says whether rows can be edited"
    )

    adds: bool = False
    """It is about adding rows alone, for which a table needs no key."""


class ReadImages(RowRequest, frozen=True, kw_only=True):
    """Read rows of a table exactly, by keys as they are shown, in order to change them. The answer
    is a `FoundRows`."""

    kind: ClassVar[str] = "rows"
    costs: ClassVar[bool] = False

    keys: tuple[Row, ...]
    key_names: tuple[str, ...] = ()
    """The columns of `keys` in their order; without them it is that of the shape."""
    hidden: tuple[str, ...] = ()
    """Columns that are masked for the caller, and are left out. Set by the gate."""
    adds: bool = False
    """Rows are to be added alone: the table needs no key. Set by the gate."""

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        return {"table": self.table, "rows": len(self.keys)}

    def shown_statement(self) -> Statement:
        return Statement(f"READ {len(self.keys)} ROWS OF {self.table}", self.keys)


class ChangeRows(RowRequest, frozen=True, kw_only=True):
    """Add, change and delete rows of one table: all of them, as one change, or none. The answer is
    a `ChangedRows`. `text` says it in SQL, and is set by the gate.

    Each row is locked and compared with its image before anything is written.
    """

    kind: ClassVar[str] = "change_rows"
    has_dry_run: ClassVar[bool] = True

    shape: TableShape
    edits: tuple[RowEdit, ...]
    text: str = ""
    known_digest: str = ""
    """Its digest, for the records. Set by the gate."""
    tries: bool = False
    """It is rolled back in the end."""
    feed: RowFeed | None = None
    """Rows that are added, in place of `edits`."""

    @property
    def verbs(self) -> tuple[Verb, ...]:
        """The kinds of its edits, each once."""
        if self.feed is not None:
            return ("insert",)
        return tuple(self.by_verb)

    @property
    def by_verb(self) -> dict[Verb, list[tuple[int, RowEdit]]]:
        """Its edits with their places, in the order in which they are made."""
        found: dict[Verb, list[tuple[int, RowEdit]]] = {verb: [] for verb in VERBS}
        for place, edit in enumerate(self.edits):
            found[edit.verb].append((place, edit))
        return {verb: edits for verb, edits in found.items() if edits}

    @property
    def digest(self) -> str:
        """Tells what it writes, over which images, from everything else."""
        bound: tuple[Any, ...] = (self.table, self.schema, self.shape, self.edits)
        if self.feed is not None:
            bound = (*bound, self.feed.places, self.feed.count, self.feed.digest)
        # Not as JSON, where a text and the same bytes look alike.
        return hashlib.sha256(repr(bound).encode("utf-8", "surrogatepass")).hexdigest()

    def recorded_text(self) -> str | None:
        return self.text or None

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        counts = {f"{verb}s": self.count_of(verb) for verb in self.verbs}
        found = {"digest": self.known_digest or self.digest, **counts}
        if self.feed is not None:
            found |= {"file": self.feed.name, "file_sha256": self.feed.file_digest}
        return found

    def count_of(self, verb: Verb) -> int:
        """How many edits of that kind it has."""
        if self.feed is not None:
            return self.feed.count if verb == "insert" else 0
        return sum(edit.verb == verb for edit in self.edits)

    def shown_statement(self) -> Statement:
        return Statement(self.text or f"CHANGE ROWS OF {self.table}")


class ChangedRows(RecordedPayload, frozen=True):
    """What is stored now, in the order of the edits; None for a row that is not there. `affected`
    counts all rows, those of triggers and foreign keys included where the engine counts them. `fed`
    counts those that came from a file: they are not in `rows`. `change` is the id under which the
    rows are kept, empty if they are not."""

    rows: tuple[FoundRow | None, ...]
    affected: int
    change: str = ""
    remarks: tuple[str, ...] = ()
    fed: int = 0

    @property
    def row_count(self) -> int:
        return len(self.rows) + self.fed

    def recorded_arguments(self) -> Mapping[str, Any]:
        return {"kept_as": self.change} if self.change else {}
