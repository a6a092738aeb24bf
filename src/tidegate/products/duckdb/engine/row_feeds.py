"""Adds the rows of a file to a DuckDB table, some at a time. Runs in the worker.

The transaction stays open until the gate has kept the rows, or until all were tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from tidegate.engines.common.edited_images import image_of_added, image_size
from tidegate.engines.common.row_edits import check_shape, grouped, not_written
from tidegate.engines.common.undo_rows import too_large
from tidegate.model.changes import Row
from tidegate.model.row_changes import ChangeRows, RowEdit
from tidegate.products.duckdb.engine.changes import place_of
from tidegate.products.duckdb.engine.messages import EditedRows, FeedTable
from tidegate.products.duckdb.engine.row_changes import (
    check_trial,
    find_changed,
    read_by_place,
    undo_objection,
    write_group,
    written_text,
)
from tidegate.sql.dialects import find

_quote = find("duckdb").quote


class TableFeed:
    """Rows on their way into a table."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, wanted: FeedTable) -> None:
        """Raises: duckdb.Error, TidegateError."""
        shape = wanted.shape
        self._cursor = cursor
        self._places = wanted.places
        self._max_bytes = wanted.max_bytes
        self._keys: dict[int, Row] = {}
        self._done = 0
        self._table, whole = find_changed(cursor, shape.schema, shape.table, keyless=True)
        row = RowEdit(None, tuple([(place, None) for place in wanted.places]))
        self._change = ChangeRows(
            table=shape.table, schema=shape.schema, shape=shape, edits=(row,), tries=wanted.tries
        )
        check_shape(self._change, whole)
        if wanted.tries:
            check_trial(cursor, self._table)
        self.objection = undo_objection(cursor, self._change) if wanted.keeps else ""
        self._keeps = wanted.keeps and not self.objection
        names = [shape.names[place] for place in wanted.places]
        types = {column.name: column.type for column in self._table.columns}
        listed = ", ".join(map(_quote, names))
        values = ", ".join(
            [f"CAST(unnest(CAST(? AS VARCHAR[])) AS {types[each]})" for each in names]
        )
        self._insert = f"INSERT INTO {place_of(self._table)} ({listed}) SELECT {values}"

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add some rows. Raises: duckdb.Error, TidegateError."""
        if self._keeps:
            edits = [RowEdit(None, tuple(zip(self._places, row, strict=True))) for row in rows]
            change = ChangeRows(
                table=self._change.table,
                schema=self._change.schema,
                shape=self._change.shape,
                edits=tuple(edits),
            )
            for group in grouped(change):
                found = write_group(self._cursor, self._table, change, group)
                self._keys |= {self._done + place: key for place, key in found.items()}
        else:
            columns = [list(map(written_text, column)) for column in zip(*rows, strict=True)]
            done = self._cursor.execute(self._insert, columns).fetchall()
            if int(done[0][0]) != len(rows):
                raise not_written(self._change.table)
        self._done += len(rows)

    def end(self) -> EditedRows:
        """What was added, not yet committed. Raises: duckdb.Error, TidegateError."""
        if not self._keeps:
            return EditedRows([], None, self.objection)
        table = self._table
        after = read_by_place(self._cursor, table, self._keys)
        image = image_of_added(table, [after[place] for place in sorted(after)])
        if image_size(image) > self._max_bytes:
            return EditedRows([], None, too_large(self._max_bytes))
        return EditedRows([], image)
