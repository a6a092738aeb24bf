"""The rows that the statements of one transaction have touched, each as it was before the first.

An engine adds the rows of each statement as it has run, and reads them again before the COMMIT:
what differs then is what the transaction has changed. A row that a statement has touched stays
locked, so no other transaction changes it in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from tidegate.engines.common.row_images import is_same_row
from tidegate.engines.common.undo_rows import ROW_BYTES, UndoTable, too_large
from tidegate.model.changes import ChangeImage, ChangeKeeper, Row, RowImage, TableImage
from tidegate.model.transactions import MarkTransaction

Place = tuple[str, str]
"""The schema and the name of a table."""


class BlockRows:
    """What one transaction has touched. `reason` says why it cannot be taken back."""

    def __init__(self) -> None:
        self.reason = ""
        self._tables: dict[Place, UndoTable] = {}
        self._before: dict[tuple[Place, Row], Row | None] = {}
        self._size = 0
        self._savepoints: list[tuple[str, int, str]] = []

    def add(self, table: UndoTable, image: ChangeImage, max_bytes: int) -> str:
        """Take the rows of a statement. Returns why they cannot be kept; empty if they are."""
        place = (table.schema, table.name)
        known = self._tables.setdefault(place, table)
        if known.shape != table.shape:
            return f"the table {table.name} has had two definitions since it began"
        for kept in image.tables:
            for row in kept.rows:
                of = (place, kept.key_of(row))
                if of not in self._before:
                    self._before[of] = row.before
                    self._size += ROW_BYTES + _size(of[1]) + _size(row.before or ())
        return too_large(max_bytes) if self._size > max_bytes else ""

    async def take(
        self,
        table: UndoTable | None,
        image: ChangeImage | str,
        keeper: ChangeKeeper,
        max_bytes: int,
    ) -> None:
        """Take what a statement has touched: its image, or why there is none, after which the
        transaction cannot be taken back. Raises: TidegateError if it must be."""
        reason = image if isinstance(image, str) else ""
        if table is not None and not isinstance(image, str):
            reason = self.add(table, image, max_bytes)
        if reason:
            self.give_up(reason)
            await asyncio.to_thread(keeper.give_up, reason)

    async def prepare(self, keeper: ChangeKeeper, tables: Sequence[TableImage]) -> None:
        """Keep what the transaction has changed in these tables, before its COMMIT. Raises:
        TidegateError."""
        if self.reason:
            await asyncio.to_thread(keeper.give_up, self.reason)
        else:
            await asyncio.to_thread(keeper.prepare, ChangeImage(tuple(tables)))

    def give_up(self, reason: str) -> None:
        """The transaction can no longer be taken back, unless it goes back to a savepoint."""
        self.reason = self.reason or reason

    def marked(self, request: MarkTransaction) -> None:
        """Follow a savepoint that was set or left. What was first touched after one that the
        transaction goes back to is forgotten: it is as it was, and no longer locked."""
        saved = self._savepoints
        if request.action == "savepoint":
            saved.append((request.name, len(self._before), self.reason))
            return
        places = [at for at, (name, _, _) in enumerate(saved) if name == request.name]
        if not places:
            if request.action != "read only":
                self.give_up("it has gone back to a savepoint that is not known here")
            return
        at = places[-1]
        if request.action == "release":
            del saved[at:]
        else:
            _, count, self.reason = saved[at]
            for of in list(self._before)[count:]:
                self._size -= ROW_BYTES + _size(of[1]) + _size(self._before.pop(of) or ())
            del saved[at + 1 :]

    @property
    def tables(self) -> Iterator[tuple[UndoTable, list[Row]]]:
        """The tables with the keys of their rows, in the order in which they were first touched."""
        for place, table in self._tables.items():
            keys = [key for where, key in self._before if where == place]
            if keys:
                yield table, keys

    def image(self, table: UndoTable, there: Mapping[Row, Row]) -> TableImage | None:
        """The rows of a table that are not as they were; None if all are. `there` are those that
        its keys find now."""
        place = (table.schema, table.name)
        rows = [
            RowImage(before, there.get(key))
            for (where, key), before in self._before.items()
            if where == place and not is_same_row(before, there.get(key))
        ]
        return table.image(rows) if rows else None


def _size(values: Sequence[object]) -> int:
    return sum([len(each) if isinstance(each, (str, bytes)) else 8 for each in values])
