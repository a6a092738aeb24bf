"""What is staged in a tab, as it is kept: rows of one table, and the rights under which they were
read."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import msgspec
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.model.changes import Row
from tidegate.model.editing import EditColumn
from tidegate.model.row_changes import TableShape, Verb
from tidegate.model.sources import Source
from tidegate.products.console.data_calls import Place
from tidegate.products.console.edit_cells import Cells


class StagedRow(msgspec.Struct, frozen=True):
    """A staged edit. `image` and `before` are the row as it was when it was first staged."""

    id: str
    kind: Verb
    key: list[str] | None = None
    image: Row | None = None
    before: Row | None = None
    cells: Cells = {}

    @property
    def is_open(self) -> bool:
        """Whether it changes nothing: its row was opened in an editor, and no more."""
        return self.kind == "update" and not self.cells


class Sent(msgspec.Struct, frozen=True):
    """A submission that began. It is taken away with the end, if that is known. `gate` is the one
    that makes it, of several on the state; empty once it does no more."""

    id: str
    at: float
    gate: str = ""


class Staged(msgspec.Struct, frozen=True):
    """All that is staged in a tab, over rows of one shape. `version` is the store's, `standing` the
    rights under which the rows were read (`standing_of`). `sent` says that it was submitted, also
    to a server that has ended before it knew the outcome."""

    place: Place | None = None
    table: str = ""
    shape: TableShape | None = None
    columns: tuple[EditColumn, ...] = ()
    rows: tuple[StagedRow, ...] = ()
    version: int = 0
    standing: str = ""
    sent: Sent | None = None

    def column(self, name: str) -> EditColumn:
        """Raises: TidegateError ARGUMENT_INVALID."""
        for column in self.columns:
            if column.name == name:
                return column
        raise TidegateError(Code.ARGUMENT_INVALID, f"{self.table} has no column {name[:80]!r}")

    @property
    def key_names(self) -> tuple[str, ...]:
        keyed = sorted([each for each in self.columns if each.key], key=lambda each: each.key)
        return tuple([each.name for each in keyed])

    @property
    def counts(self) -> dict[str, int]:
        made = [row.kind for row in self.rows if not row.is_open]
        return {kind: made.count(kind) for kind in ("insert", "update", "delete")}

    def narrowed(self, visible: Collection[str]) -> Staged:
        """The same with the values of these columns alone, and without rows if one of the key is
        not among them."""
        shape = self.shape
        if shape is None or not visible or not set(self.key_names) <= set(visible):
            return structs.replace(self, rows=())
        places = [place for place, name in enumerate(shape.names) if name in visible]
        columns = tuple([shape.columns[place] for place in places])
        key = tuple([places.index(place) for place in shape.key])
        shape = structs.replace(shape, columns=columns, key=key)
        rows = tuple([_narrowed(row, places, visible) for row in self.rows])
        return structs.replace(self, shape=shape, rows=rows)


def _narrowed(row: StagedRow, places: list[int], visible: Collection[str]) -> StagedRow:
    cells = {name: cell for name, cell in row.cells.items() if name in visible}
    if row.image is None or row.before is None:
        return structs.replace(row, cells=cells)
    image, before = [tuple([each[at] for at in places]) for each in (row.image, row.before)]
    return structs.replace(row, image=image, before=before, cells=cells)


def standing_of(source: Source, signed_in: SignedIn) -> str:
    """A digest of what decides on what an operator sees of a source."""
    bound = (source, signed_in.operator.roles)
    return hashlib.sha256(msgspec.json.encode(bound)).hexdigest()
