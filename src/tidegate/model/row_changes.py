"""Changes of single rows of one table: what is asked, what is found, and the answers. Frozen.

A value to write is None for NULL, `DEFAULT`, a text as the database reads it for the column, bytes,
or a number where the database keeps a class with each value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

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


class RowRequest(EngineRequest, frozen=True, kw_only=True):
    """The base of the requests about single rows. `schema` is that of the table; without one it is
    the current one."""

    about_rows: ClassVar[bool] = True

    table: str


class DescribeEditing(RowRequest, frozen=True, kw_only=True):
    """Say whether rows of a table can be changed by the caller, and what its columns take. The
    answer is an `Editability`."""

    kind: ClassVar[str] = "describe_editing"
    judgement: ClassVar[Judgement | None] = metadata(
        "describe_editing", "says whether rows can be edited"
    )


class ReadImages(RowRequest, frozen=True, kw_only=True):
    """Read rows of a table exactly, by keys as they are shown, in order to change them. The answer
    is a `FoundRows`."""

    kind: ClassVar[str] = "rows"

    keys: tuple[Row, ...]
    key_names: tuple[str, ...] = ()
    """The columns of `keys` in their order; without them it is that of the shape."""
    hidden: tuple[str, ...] = ()
    """Columns that are masked for the caller, and are left out. Set by the gate."""

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
    tries: bool = False
    """It is rolled back in the end."""

    @property
    def verbs(self) -> tuple[Verb, ...]:
        """The kinds of its edits, each once."""
        found = {edit.verb for edit in self.edits}
        return tuple([verb for verb in VERBS if verb in found])

    @property
    def digest(self) -> str:
        """Tells what it writes, over which images, from everything else."""
        bound = (self.table, self.schema, self.shape, self.edits)
        # Not as JSON, where a text and the same bytes look alike.
        return hashlib.sha256(repr(bound).encode("utf-8", "surrogatepass")).hexdigest()

    def recorded_text(self) -> str | None:
        return self.text or None

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        counts = {f"{verb}s": self.count_of(verb) for verb in self.verbs}
        return {"digest": self.digest, **counts}

    def count_of(self, verb: Verb) -> int:
        """How many edits of that kind it has."""
        return sum(edit.verb == verb for edit in self.edits)

    def shown_statement(self) -> Statement:
        return Statement(self.text or f"CHANGE ROWS OF {self.table}")


class ChangedRows(RecordedPayload, frozen=True):
    """What is stored now, in the order of the edits; None for a row that is not there. `affected`
    counts all rows, those of triggers and foreign keys included where the engine counts them.
    `change` is the id under which the rows are kept, empty if they are not."""

    rows: tuple[FoundRow | None, ...]
    affected: int
    change: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.rows)

    def recorded_arguments(self) -> Mapping[str, Any]:
        return {"kept_as": self.change} if self.change else {}
