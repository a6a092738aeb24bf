"""What engines share that change single rows over exact images: which rows are read before
anything is written, and how those that differ are reported. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import structs

from tidegate.engines.api import RowsConflictError
from tidegate.engines.common.row_images import MOST_CONFLICTS, is_same, problem_of
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import Row
from tidegate.model.decisions import Permit
from tidegate.model.row_changes import (
    DEFAULT,
    ChangeRows,
    EditConflict,
    FoundRow,
    ReadImages,
    RowEdit,
    TableShape,
)

EditT = TypeVar("EditT")
_EXCHANGED = (
    "If rows exchange a unique value with each other, give one of them a free value first, and"
    " submit that by itself."
)


class NewKey(NamedTuple):
    """The key that the edit at a place gives its row, as it is written."""

    edit: int
    key: Row


def change_of(permit: Permit) -> ChangeRows:
    """The change that a permit is for. Raises: TidegateError UNSUPPORTED."""
    if isinstance(permit.request, ChangeRows):
        return permit.request
    raise TidegateError(Code.UNSUPPORTED, "Only a change of rows can be made so.")


def images_of(permit: Permit) -> ReadImages:
    """The rows that are to be read. Raises: TidegateError UNSUPPORTED."""
    if isinstance(permit.request, ReadImages):
        return permit.request
    raise TidegateError(Code.UNSUPPORTED, "Only rows by their keys can be read so.")


def keys_in_order(request: ReadImages, shape: TableShape) -> list[Row]:
    """The keys with their values in the order of the shape. Raises: TidegateError
    ARGUMENT_INVALID for keys of other columns."""
    names = [shape.names[place] for place in shape.key]
    given = list(request.key_names or names)
    if sorted(given) != sorted(names) or any(len(key) != len(names) for key in request.keys):
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The key of {shape.table} is ({', '.join(names)})"
        )
    places = [given.index(name) for name in names]
    return [tuple([key[place] for place in places]) for key in request.keys]


def without_columns(shape: TableShape, hidden: Sequence[str]) -> TableShape:
    """The shape without hidden columns. Raises: TidegateError UNSUPPORTED if one is in the key."""
    if not hidden:
        return shape
    names = [shape.names[place] for place in shape.key]
    if not set(names).isdisjoint(hidden):
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The key of {shape.table} is masked: its rows cannot be distinguished.",
        )
    columns = tuple([each for each in shape.columns if each.name not in hidden])
    left = [each.name for each in columns]
    key = tuple([left.index(name) for name in names])
    return TableShape(shape.schema, shape.table, columns, key, shape.digest)


def in_order(change: ChangeRows) -> list[tuple[int, RowEdit]]:
    """The edits with their places, in the order in which they are made."""
    return [each for edits in change.by_verb.values() for each in edits]


class EditGroup(NamedTuple):
    """Edits of one kind that write the same columns: `places` get values, `defaults` DEFAULT."""

    verb: str
    places: tuple[int, ...]
    defaults: tuple[int, ...]
    edits: list[tuple[int, RowEdit]]


def grouped(change: ChangeRows) -> list[EditGroup]:
    """The edits in the order in which they are made, those that one statement makes together."""
    groups: dict[tuple[str, tuple[int, ...], tuple[int, ...]], EditGroup] = {}
    for verb, edits in change.by_verb.items():
        for place, edit in edits:
            values = edit.values or ()
            given = tuple(sorted([at for at, value in values if value != DEFAULT]))
            by_default: tuple[int, ...] = ()
            if len(given) < len(values):
                by_default = tuple(sorted([at for at, value in values if value == DEFAULT]))
            key = verb, given, by_default
            group = groups.get(key)
            if group is None:
                group = groups[key] = EditGroup(*key, [])
            group.edits.append((place, edit))
    return list(groups.values())


class EditTurns(Generic[EditT]):
    """The order in which edits are tried one by one, of which some take a unique value that others
    have yet to give up. Each that met a value that is taken comes again after the others."""

    def __init__(self, edits: Sequence[EditT]) -> None:
        self._left: list[EditT] = []
        self._later = list(edits)
        self._tried = 0
        self._error: TidegateError | None = None

    def next(self) -> EditT | None:
        """The edit that is due; None if all are made. Raises: TidegateError, that of an edit, if
        none of those that were left could be made."""
        if not self._left:
            if self._error is not None and len(self._later) == self._tried:
                raise self._error
            # From the other end each time: rows may move up by one, or down.
            self._left, self._later = self._later, []
            self._tried = len(self._left)
        return self._left.pop() if self._left else None

    def put_off(self, edit: EditT, error: TidegateError) -> None:
        """A value that the edit writes is another row's still."""
        self._later.append(edit)
        self._error = error
        if len(self._later) > 1:
            error.hint = _EXCHANGED


def part_of(change: ChangeRows, rows: Sequence[Sequence[Any]]) -> ChangeRows:
    """The same change of some rows of its feed, as edits."""
    places = () if change.feed is None else change.feed.places
    edits = tuple([RowEdit(None, tuple(zip(places, row, strict=True))) for row in rows])
    return structs.replace(change, feed=None, edits=edits)


def old_keys(change: ChangeRows) -> list[tuple[int, Row]]:
    """The keys of the rows that are there, with the places of their edits."""
    return [
        (place, change.shape.key_of(edit.before))
        for place, edit in enumerate(change.edits)
        if edit.before is not None
    ]


def new_keys(change: ChangeRows, there: Mapping[int, FoundRow | None]) -> list[NewKey]:
    """The keys that rows get, where they are known. `there` are the rows that the edits are about,
    with the change's columns."""
    found: list[NewKey] = []
    for place, edit in enumerate(change.edits):
        values = dict(edit.values or ())
        if edit.verb == "delete" or not rekeys(change.shape, edit):
            continue
        now = there.get(place)
        parts: list[Any] = [
            values.get(at, DEFAULT if now is None else now.shown[at]) for at in change.shape.key
        ]
        if not any(part is None or part == DEFAULT for part in parts):
            found.append(NewKey(place, tuple(parts)))
    return found


def rekeys(shape: TableShape, edit: RowEdit) -> bool:
    """Whether an edit writes the key of its row."""
    return any(place in shape.key for place, _ in edit.values or ())


def check_shape(change: ChangeRows, now: TableShape) -> tuple[int, ...]:
    """The places, among the columns that the table has now, of those that the change is about.

    Raises: TidegateError ROWS_CONFLICT if the table has another definition than when its rows were
    read.
    """
    names = now.names
    if change.shape.digest != now.digest or not set(change.shape.names) <= set(names):
        raise TidegateError(
            Code.ROWS_CONFLICT,
            f"The table {change.table} has another definition than when its rows were read."
            " Nothing was changed.",
            hint="Read the rows again.",
        )
    return tuple([names.index(name) for name in change.shape.names])


def narrowed(row: Row, places: Sequence[int]) -> Row:
    """The values of these columns."""
    return tuple([row[place] for place in places])


def narrowed_row(row: FoundRow | None, places: Sequence[int]) -> FoundRow | None:
    """A row with these columns alone."""
    if row is None or list(places) == [*range(len(row.image))]:
        return row
    return FoundRow(narrowed(row.image, places), narrowed(row.shown, places))


def check_rows(
    change: ChangeRows,
    there: Mapping[int, FoundRow | None],
    taken: Mapping[int, FoundRow | None],
) -> None:
    """Compare each row with its image, and see that no new key is taken. Both have rows by the
    place of the edit, with the change's columns: what is `there` under the old key, and what has
    `taken` the new one.

    Raises: RowsConflictError.
    """
    conflicts: list[EditConflict] = []
    freed: set[Row] = set()
    for place, edit in enumerate(change.edits):
        if edit.before is None:
            continue
        now = there.get(place)
        problem = problem_of(edit.before, None if now is None else now.image)
        if problem is not None:
            differs = () if now is None else _differing(edit.before, now.image)
            conflicts.append(EditConflict(place, problem, now, differs))
        if edit.values is None or rekeys(change.shape, edit):
            freed.add(change.shape.key_of(edit.before))
    for place, now in taken.items():
        if now is not None and change.shape.key_of(now.image) not in freed:
            conflicts.append(EditConflict(place, "exists", now))
    if conflicts:
        conflicts.sort(key=lambda each: each.edit)
        raise RowsConflictError(
            change.table, tuple(conflicts[:MOST_CONFLICTS]), len({each.edit for each in conflicts})
        )


def _differing(one: Row, other: Row) -> tuple[int, ...]:
    pairs = enumerate(zip(one, other, strict=True))
    return tuple([place for place, (was, now) in pairs if not is_same(was, now)])


def not_written(table: str) -> TidegateError:
    """The error for a row that the database left as it was, without a reason."""
    return TidegateError(
        Code.SQL_FAILED,
        f"A trigger or rule of {table} left a row as it was. Nothing was changed.",
        hint="Look at the triggers of the table.",
    )
