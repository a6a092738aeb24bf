"""Changes that are kept so that their rows can be put back: what is kept, what is asked about it,
and the answers. Frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from tidegate.model.replies import RecordedPayload
from tidegate.model.requests import EngineRequest, Request, metadata
from tidegate.model.statements import Effect, Judgement, Statement

ChangeState = Literal["prepared", "done", "undone"]
Problem = Literal["changed", "gone", "exists"]
Row = tuple[Any, ...]

READS_ROWS = Judgement(
    Effect.READ, "request.describe_undo", "shows rows that a change left", verb="describe_undo"
)
PUTS_BACK = Judgement(
    Effect.WRITE,
    "request.undo",
    "puts the rows of a change back as they were",
    verb="undo",
)


class Reversibility(msgspec.Struct, frozen=True):
    """Whether the rows of a change can be put back, as it is known before a person is asked.

    `reason` says why they cannot, as a clause, or what stays in spite of it. `triggers` are those
    that would fire again.
    """

    possible: bool
    reason: str = ""
    triggers: tuple[str, ...] = ()


class ImageColumn(msgspec.Struct, frozen=True, array_like=True):
    """A column of a kept row. `type` is the database's own name for its type."""

    name: str
    type: str = ""


class RowImage(msgspec.Struct, frozen=True, array_like=True):
    """One row in the order of the columns; `before` None: it was added, `after` None: deleted."""

    before: Row | None
    after: Row | None


class TableImage(msgspec.Struct, frozen=True):
    """The rows of one table that a change touched, whole and with exact values.

    `key` are the places of the key's columns. `shape` tells the definition of the table from
    another: with another one nothing is put back. `schema` is empty where the engine has none.
    """

    schema: str
    table: str
    columns: tuple[ImageColumn, ...]
    key: tuple[int, ...]
    rows: tuple[RowImage, ...]
    shape: str = ""

    def key_of(self, row: RowImage) -> Row:
        """The key by which a row is found now."""
        values = row.after if row.after is not None else row.before or ()
        return tuple([values[place] for place in self.key])


class ChangeImage(msgspec.Struct, frozen=True):
    """All rows that a change touched. `native` is what the engine keeps in addition."""

    tables: tuple[TableImage, ...]
    native: bytes = b""

    @property
    def row_count(self) -> int:
        return sum([len(table.rows) for table in self.tables])


class RowConflict(msgspec.Struct, frozen=True):
    """A row that is not as the change left it: another change touched it since (`changed`), it is
    no longer there (`gone`), or a row with its key has come (`exists`). `key` reads like `id = 3`;
    it is empty where the caller may not see it."""

    table: str
    key: str
    problem: Problem


class Comparison(msgspec.Struct, frozen=True):
    """Rows now, next to what a change left. `conflicts` are some of `count`; `as_before`: every row
    is as it was before the change. `reason`: why they cannot be compared, or put back. `triggers`
    would fire, or have fired, again. `remarks` say what is not quite as it was."""

    conflicts: tuple[RowConflict, ...] = ()
    count: int = 0
    as_before: bool = False
    reason: str = ""
    triggers: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class ChangeKeeper(Protocol):
    """Keeps the rows of one change. An engine calls `prepare` or `give_up` once, in the transaction
    of the change and before its COMMIT. Both may wait for a disk.

    In a transaction over several statements each has a keeper, which an engine calls only to
    `give_up`; the COMMIT has one for the rows of them all."""

    max_bytes: int

    def prepare(self, image: ChangeImage) -> None:
        """Keep the rows durably. Raises: TidegateError; then the change is rolled back."""
        ...

    def give_up(self, reason: str) -> None:
        """The rows cannot be kept. Raises: TidegateError if the change must be rolled back then."""
        ...


class ChangeEntry(msgspec.Struct, frozen=True):
    """A kept change, without its rows. Times are Unix seconds.

    `prepared`: it is under way, or it is not known whether it was committed. `approval` is the id
    of the approval that let it run, `call_id` finds it in the audit log. `undoes`: it put the rows
    of that change back; `undone_by`: that change put its rows back. `size` is in bytes. `database`
    is where it ran, empty where the source's URL says.
    """

    id: str
    source: str
    source_id: str
    actor: str
    actor_name: str
    made_at: float
    expires_at: float
    state: ChangeState = "prepared"
    tables: tuple[str, ...] = ()
    rows: int = 0
    size: int = 0
    approval: str = ""
    call_id: str = ""
    undoes: str = ""
    undone_by: str = ""
    database: str = ""


class ListChanges(Request, frozen=True):
    """List kept changes, newest first: those that `approval` let run, or all; made before `before`
    (Unix seconds) if that is given. An agent sees its own. The answer is a `ChangeList`."""

    kind: ClassVar[str] = "changes"
    judgement: ClassVar[Judgement | None] = metadata("changes", "lists changes that are kept")
    spans_sources: ClassVar[bool] = True

    approval: str = ""
    limit: int = 50
    before: float | None = None


class ChangeRequest(EngineRequest, frozen=True):
    """The base of the requests about one kept change. `image` is set by the gate."""

    names_change: ClassVar[bool] = True

    change: str
    image: ChangeImage | None = None

    def recorded_arguments(self) -> Mapping[str, Any] | None:
        return {"change": self.change}


class DescribeUndo(ChangeRequest, frozen=True):
    """Show what would be put back, and what prevents it. Changes nothing. The answer is an
    `UndoPreview`."""

    kind: ClassVar[str] = "describe_undo"
    costs: ClassVar[bool] = False
    judgement: ClassVar[Judgement | None] = READS_ROWS

    def shown_statement(self) -> Statement:
        return Statement(f"SHOW UNDO {self.change}")


class UndoChange(ChangeRequest, frozen=True):
    """Put the rows of a change back as they were, all of them or none. The answer is an `Undone`.
    `summary` is set by the gate, for the person who is asked."""

    kind: ClassVar[str] = "undo"
    judgement: ClassVar[Judgement | None] = PUTS_BACK

    summary: str = ""

    def shown_statement(self) -> Statement:
        return Statement(f"UNDO {self.change}{self.summary and f': {self.summary}'}")


class ChangeList(msgspec.Struct, frozen=True):
    """Kept changes, newest first."""

    entries: tuple[ChangeEntry, ...]

    @property
    def row_count(self) -> int:
        return len(self.entries)


class UndoTable(msgspec.Struct, frozen=True):
    """Some rows of one table: `after`, as the change left them, and `before`, as they would be
    again; None for a row that is not there. Values are text, or None for NULL and for the columns
    in `masked`. `count` is how many rows there are in all."""

    table: str
    columns: tuple[str, ...]
    after: tuple[tuple[str | None, ...] | None, ...]
    before: tuple[tuple[str | None, ...] | None, ...]
    count: int
    masked: tuple[str, ...] = ()
    reason: str = ""


class UndoPreview(msgspec.Struct, frozen=True):
    """What an undo would do. `possible`: it would succeed now, else `reason` says why not."""

    entry: ChangeEntry
    tables: tuple[UndoTable, ...]
    possible: bool
    reason: str = ""
    conflicts: tuple[RowConflict, ...] = ()
    conflict_count: int = 0
    triggers: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        return self.entry.rows


class Undone(RecordedPayload, frozen=True):
    """The rows of the change `undone` are as they were. `change` is the id under which this is kept
    itself, empty if it is not."""

    undone: str
    change: str
    rows: int
    tables: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        return self.rows

    def recorded_arguments(self) -> Mapping[str, Any]:
        return {"kept_as": self.change} if self.change else {}
