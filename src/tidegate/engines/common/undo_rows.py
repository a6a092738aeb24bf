"""What engines share that read the rows of a change before and after it, by its outline.

An engine whose database does not record changes itself locks the rows that an UPDATE or DELETE is
about, runs the statement, and reads them again by their keys, all in one transaction with one
snapshot. So the statement has to be one whose rows are known from its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from msgspec import structs

from tidegate.engines.common.row_images import RowComparison, is_same_row
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import (
    ChangeImage,
    ImageColumn,
    Reversibility,
    Row,
    RowImage,
    TableImage,
)
from tidegate.sql.change_outline import COLUMNS, ChangeOutline, outline_change

ROW_BYTES = 64
"""About what a kept row takes beside its values."""
_AT_ONCE = 200
"""Rows that one statement of ours is about, where they are part of its text."""

ItemT = TypeVar("ItemT")


class UndoTable(NamedTuple):
    """A table whose rows are kept. `key` are names of its columns, in their order. `identities` are
    columns whose values the database alone gives. `triggers` fire again when rows go back."""

    schema: str
    name: str
    columns: tuple[ImageColumn, ...]
    key: tuple[str, ...]
    shape: str
    identities: frozenset[str] = frozenset()
    triggers: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple([column.name for column in self.columns])

    @property
    def key_places(self) -> tuple[int, ...]:
        names = self.names
        return tuple([names.index(name) for name in self.key])

    def image(self, rows: Iterable[RowImage]) -> TableImage:
        """What is kept of its rows."""
        return TableImage(
            self.schema, self.name, self.columns, self.key_places, tuple(rows), self.shape
        )


class FoundTable(NamedTuple):
    """A table in the catalog, with what prevents that its rows are kept; empty if nothing does."""

    table: UndoTable
    objection: str


def found_table(
    outline: ChangeOutline, table: UndoTable, objections: Iterable[tuple[object, str]]
) -> FoundTable:
    """The table with the first objection that applies, those about its key included."""
    reasons = [reason for applies, reason in objections if applies]
    return FoundTable(table, reasons[0] if reasons else key_objection(outline, table))


def table_to_keep(found: FoundTable | str) -> UndoTable | str:
    """The table whose rows can be kept, or why they cannot be."""
    if isinstance(found, str):
        return found
    return found.objection or found.table


def reversibility_of(found: FoundTable | str) -> Reversibility:
    """What a person is shown before the yes, by what was found in the catalog."""
    table = table_to_keep(found)
    if isinstance(table, str):
        return Reversibility(False, table)
    reason = "What triggers change in other rows does not go back." if table.triggers else ""
    return Reversibility(True, reason, table.triggers)


def outline_of(text: str, dialect: str, parameters: int) -> ChangeOutline | str:
    """The outline of a change whose rows can be kept, or why there is none, as a clause."""
    outline = outline_change(text, dialect)
    if not isinstance(outline, str) and outline.parameters != parameters:
        return "its parameters are not those of the statement"
    return outline


def key_objection(outline: ChangeOutline, table: UndoTable) -> str:
    """Why rows of the table cannot be found again after the change; empty if they can."""
    if not table.key:
        return f"{table.name} has no primary key"
    if not outline.assigned.isdisjoint(name.lower() for name in table.key):
        return "it changes the primary key"
    return ""


def reading_rows(outline: ChangeOutline, columns: str) -> str:
    """The query for the rows of an UPDATE or DELETE, with what it reads of each."""
    return outline.rows.text.replace(COLUMNS, columns)


def returning(outline: ChangeOutline, columns: str) -> str:
    """The statement, which shows these columns of the rows that it adds after its own."""
    own = f"{outline.returning},\n" if outline.returning else ""
    return f"{outline.body}\nRETURNING {own}{columns}"


def each_once(rows: Sequence[Row], places: Sequence[int]) -> list[Row]:
    """The rows without those whose key was there before: a join finds some several times."""
    return list({tuple([row[place] for place in places]): row for row in rows}.values())


def row_bound(max_bytes: int) -> int:
    """How many rows fit at most: no more need to be read."""
    return max_bytes // ROW_BYTES


def too_large(max_bytes: int) -> str:
    return f"the rows take more than the {max_bytes:,} bytes of `undo.max_bytes`"


def image_of_change(
    table: UndoTable,
    outline: ChangeOutline,
    before: Sequence[Row],
    after: Sequence[Row],
    affected: int,
) -> ChangeImage | str:
    """The image of a change from its rows before and after it, or why they do not fit together. Of
    an INSERT or MERGE `before` has the rows that it changed or deleted."""
    places = table.key_places

    def key(row: Row) -> Row:
        return tuple([row[place] for place in places])

    if outline.verb in ("insert", "merge"):
        then = {key(row): row for row in after}
        was = {key(row): row for row in before}
        rows = [RowImage(was.get(each), then.get(each)) for each in {**was, **then}]
    elif outline.verb == "delete":
        if after:
            return "a row that it deletes is there all the same"
        rows = [RowImage(row, None) for row in before]
    else:
        then = {key(row): row for row in after}
        if len(then) != len(before) or any(key(row) not in then for row in before):
            return "a row that it changes is not there under its key any more"
        rows = [RowImage(row, then[key(row)]) for row in before]
    if len(rows) != affected:
        return "it is about other rows than those that were read before it"
    return ChangeImage((table.image(rows),))


class Parts(NamedTuple):
    """The rows of an image by what becomes of them when they go back."""

    returns: list[RowImage]
    goes: list[RowImage]
    changes: list[RowImage]


def parts_of(table: TableImage) -> Parts:
    """Sort the rows of a table: deleted ones return, added ones go, others change back."""
    parts = Parts([], [], [])
    for row in table.rows:
        part = parts.returns if row.after is None else parts.goes
        (part if row.after is None or row.before is None else parts.changes).append(row)
    return parts


PartName = Literal["goes", "changes", "returns"]


def restoring_orders(tables: int) -> list[list[tuple[PartName, int]]]:
    """The orders in which the rows of so many tables may go back. Rows of one may refer to those of
    another, and take unique values from each other: which order the constraints admit is found by
    trying. Each step is a part of the rows of the table at that place."""
    places = range(tables)
    orders: list[list[tuple[PartName, int]]] = []
    for first in [places] if tables == 1 else [places, places[::-1]]:
        goes: list[tuple[PartName, int]] = [("goes", place) for place in first]
        changes: list[tuple[PartName, int]] = [("changes", place) for place in places]
        returns: list[tuple[PartName, int]] = [("returns", place) for place in first[::-1]]
        orders.append([*goes, *changes, *returns])
        if tables > 1:
            orders.append([*returns, *changes, *goes])
    return orders


def changed_places(rows: Sequence[RowImage], width: int) -> list[int]:
    """The places of the columns that differ in one of the rows."""
    pairs = [
        (row.before, row.after) for row in rows if row.before is not None and row.after is not None
    ]
    return [
        place
        for place in range(width)
        if any(before[place] != after[place] for before, after in pairs)
    ]


def portions(items: Sequence[ItemT]) -> Iterator[Sequence[ItemT]]:
    """The items in parts that one statement takes."""
    for first in range(0, len(items), _AT_ONCE):
        yield items[first : first + _AT_ONCE]


def by_key(table: TableImage, rows: Iterable[Row]) -> dict[Row, Row]:
    """Rows as they were read by their keys. What was read after their columns is left out."""
    width = len(table.columns)
    return {tuple([row[place] for place in table.key]): tuple(row[:width]) for row in rows}


def compare_rows(comparison: RowComparison, kept: TableImage, there: Mapping[Row, Row]) -> None:
    """Compare the rows of an image with those that their keys find now."""
    for row in kept.rows:
        comparison.add(kept, row, there.get(kept.key_of(row)))


def restored(kept: TableImage, there: Mapping[Row, Row]) -> tuple[TableImage, int]:
    """What putting rows back has changed, as an image of its own, and how many rows are not as they
    were before the change."""
    rows = [RowImage(row.after, there.get(kept.key_of(row))) for row in kept.rows]
    pairs = zip(rows, kept.rows, strict=True)
    different = sum([not is_same_row(now.after, then.before) for now, then in pairs])
    return structs.replace(kept, rows=tuple(rows)), different


def check_restored(different: int, triggers: Sequence[str]) -> tuple[str, ...]:
    """What to say of triggers, and of rows that are not as they were. Raises: TidegateError
    UNDO_UNAVAILABLE for such rows, unless it was triggers that changed them."""
    if different and not triggers:
        rows = "1 row" if different == 1 else f"{different:,} rows"
        raise TidegateError(
            Code.UNDO_UNAVAILABLE,
            f"{rows} would not be as before the change. Nothing was changed.",
            hint="Correct the rows by statements.",
        )
    if not triggers:
        return ()
    again = (f"triggers changed {different:,} of the rows again",) if different else ()
    names = ", ".join(triggers)
    return (*again, f"what triggers change in other rows was not put back ({names} may have fired)")
