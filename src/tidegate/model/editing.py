"""Whether rows of a table can be changed by a caller, and what its columns take. Frozen."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.model.row_changes import TableShape, Verb

Editor = Literal[
    "text", "integer", "decimal", "float", "boolean", "date", "time", "timestamp", "timestamp_tz",
    "interval", "uuid", "json", "bytes", "enum", "array", "other",
]  # fmt: skip
"""What an editor of a value is made for."""


class Reference(msgspec.Struct, frozen=True):
    """The table that a foreign key refers to: `columns` are there what `own` are here."""

    schema: str
    table: str
    columns: tuple[str, ...]
    own: tuple[str, ...]


class EditColumn(msgspec.Struct, frozen=True):
    """A column for the editor of a row.

    `key` is its place in the key, from 1, or 0. With a `reason` its values cannot be written, and
    with a `new_reason` not in new rows: a key may be given once where it cannot be changed.
    `labels` are all values that it takes, where they are listed. `length` is the most characters.
    `classes`: each value has a class of its own, one of integer, real, text and blob.
    """

    name: str
    type: str
    editor: Editor
    nullable: bool = True
    default: str | None = None
    has_default: bool = False
    key: int = 0
    reason: str = ""
    masked: bool = False
    labels: tuple[str, ...] = ()
    length: int | None = None
    classes: bool = False
    reference: Reference | None = None
    new_reason: str = ""


class Editability(msgspec.Struct, frozen=True):
    """Whether rows of a table can be changed. `reason` says why not, as a sentence; `refused` why
    edits of some kinds cannot be made. `asks`: a person is asked about each change. `undo`: its
    rows are kept to put them back. `most` rows may be changed at a time. `shape` is there unless
    the database could not be asked."""

    reason: str
    columns: tuple[EditColumn, ...] = ()
    shape: TableShape | None = None
    refused: tuple[tuple[Verb, str], ...] = ()
    asks: bool = False
    undo: bool = False
    most: int | None = None

    @property
    def editable(self) -> bool:
        return not self.reason

    @property
    def row_count(self) -> int:
        return len(self.columns)
