"""Edits of rows that people stage in tabs of the Data page, until they submit or discard them.

They are kept with the tab, sealed, since they hold rows: they outlive the page and the session. A
row is read exactly when its first edit is staged, and compared with what the page showed: what is
submitted later is compared with that image, whatever was read since.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, structs

from tidegate.errors import Code, TidegateError
from tidegate.model.changes import Row
from tidegate.model.editing import Editability
from tidegate.model.row_changes import (
    ChangeRows,
    FoundRow,
    FoundRows,
    ReadImages,
    RowEdit,
    TableShape,
    Verb,
)
from tidegate.model.sources import Source
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.products.console.edit_cells import Cell, Cells, cell_of, value_of
from tidegate.products.console.edit_columns import MOST_STAGED, EditColumns
from tidegate.products.console.shown_rows import ShownRows
from tidegate.products.console.staged import Staged, StagedRow, standing_of
from tidegate.store.api import StagedEditStore, WindowStore
from tidegate.store.calls import change_state, read_state
from tidegate.store.encryption import decrypt, encrypt
from tidegate.store.records import TabEntry
from tidegate.typed_values import decode_msgpack

MOST_PUT = 1_000
MOST_BYTES = 4_194_304
"""Rows of one request, and bytes that are staged in one tab."""
_UNKNOWN_TAB = "tab not found"
_Id = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,40}$")]


class EditedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table of the edits in a query tab."""

    table: str
    database: str | None = None
    schema: str | None = None


class PutEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An edit that is staged, or takes the place of one. `seen` are the row's cells as the page
    shows them, in the order of the request's columns."""

    id: _Id
    kind: Verb
    key: list[str] | None = None
    seen: list[Any] | None = None
    cells: Cells = {}


class PutEdits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `tabs/ID/edits`."""

    version: int
    table: EditedTable | None = None
    columns: tuple[str, ...] = ()
    put: Annotated[tuple[PutEdit, ...], Meta(max_length=MOST_PUT)] = ()
    remove: tuple[_Id, ...] = ()
    clear: bool = False


class Problem(NamedTuple):
    """Why an edit was not staged."""

    id: str
    problem: Literal["changed", "gone", "invalid"]
    message: str
    column: str | None = None
    now: dict[str, Cell | None] | None = None


class StagedTab(NamedTuple):
    """A tab with what is staged in it."""

    tab: TabEntry
    source: Source
    staged: Staged


class StagedEdits:
    """The staged edits of the operators. `secret` gives the key (hexadecimal digits) that seals
    them; `changed` is called for tabs whose edits are other ones."""

    def __init__(
        self,
        calls: DataCalls,
        columns: EditColumns,
        stores: tuple[WindowStore, StagedEditStore],
        secret: Callable[[], str],
        changed: Callable[[str, str, int], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls = calls
        self._columns = columns
        self._shown = ShownRows(calls)
        self._windows, self._store = stores
        self._secret = secret
        self._changed = changed
        self._clock = clock

    # Tabs

    async def load(self, id: str, caller: Caller) -> StagedTab:
        """A tab of the operator with what is staged in it. Raises: TidegateError TAB_UNKNOWN."""
        owner = caller.signed_in.operator.name
        tab = await read_state(self._windows.find, owner, id)
        visible = {each.id: each for each in self._calls.visible(caller)}
        source = None if tab is None else visible.get(tab.source_id)
        if tab is None or source is None:
            raise TidegateError(Code.TAB_UNKNOWN, _UNKNOWN_TAB)
        entry = await read_state(self._store.find, owner, id)
        if entry is None:
            return StagedTab(tab, source, Staged())
        key = bytes.fromhex(await asyncio.to_thread(self._secret))
        plain = decrypt(key, entry.body, id.encode())
        staged = Staged() if plain is None else decode_msgpack(plain, Staged)
        return StagedTab(tab, source, structs.replace(staged, version=entry.version))

    async def load_visible(self, id: str, caller: Caller) -> StagedTab:
        """The same as the operator may see it now: a mask or a filter that was set since the rows
        were read binds them as well. What is left out is still staged."""
        found = await self.load(id, caller)
        staged = found.staged
        if staged.place is None or staged.standing == standing_of(found.source, caller.signed_in):
            return found
        visible: tuple[str, ...] = ()
        with suppress(TidegateError):  # the table is hidden by now, or gone
            described = await self._columns.describe(staged.place, staged.table, caller)
            if described.shape is not None:
                visible = tuple([each.name for each in described.columns if not each.masked])
        return found._replace(staged=staged.narrowed(visible))

    async def save(self, found: StagedTab, staged: Staged, caller: Caller) -> Staged | None:
        """Keep what is staged in place of what was loaded; None if that is another by now. Raises:
        TidegateError LIMIT_BYTES."""
        plain = msgspec.msgpack.encode(structs.replace(staged, version=0))
        if len(plain) > MOST_BYTES:
            raise TidegateError(
                Code.LIMIT_BYTES,
                f"The staged edits take {len(plain):,} bytes; at most {MOST_BYTES:,} are kept in a"
                " tab. Nothing was staged.",
                hint="Submit or discard some of them first.",
            )
        tab, version = found.tab, found.staged.version
        key = bytes.fromhex(await asyncio.to_thread(self._secret))
        body = encrypt(key, plain, tab.id.encode())
        owner = caller.signed_in.operator.name
        written = await change_state(self._store.write, owner, tab.id, version, body, self._clock())
        if not written:
            return None
        self._changed(owner, tab.id, version + 1)
        return structs.replace(staged, version=version + 1)

    async def list(self, id: str, caller: Caller) -> dict[str, Any]:
        """What is staged in a tab, as JSON, without rows that were opened and no more."""
        found = await self.load_visible(id, caller)
        staged = found.staged
        return {
            "version": staged.version,
            "table": _table_fields(found, staged),
            "rows": [_row_fields(row, staged) for row in staged.rows if not row.is_open],
            "counts": staged.counts,
        }

    async def put(self, id: str, body: PutEdits, caller: Caller) -> tuple[int, dict[str, Any]]:
        """Stage edits: the HTTP status, and the answer as JSON. Raises: TidegateError TAB_UNKNOWN,
        UNSUPPORTED for a table that cannot be edited; as the gate."""
        found = await self.load(id, caller)
        if body.version != found.staged.version:
            return self._other_version(await self.load_visible(id, caller))
        staged = structs.replace(found.staged, rows=()) if body.clear else found.staged
        gone = {*body.remove, *(row.id for row in staged.rows if row.is_open)}
        gone -= {each.id for each in body.put}
        staged = structs.replace(
            staged, rows=tuple([row for row in staged.rows if row.id not in gone])
        )
        problems: list[Problem] = []
        if body.put:
            staged = await self._begun(found, staged, body, caller)
            staged, problems = await self._with_edits(found.source, staged, body, caller)
        if not staged.rows:
            staged = Staged()
        saved = await self.save(found, staged, caller)
        if saved is None:
            return self._other_version(await self.load_visible(id, caller))
        wanted = {each.id for each in body.put}
        shown = saved
        if saved.standing != standing_of(found.source, caller.signed_in):
            shown = (await self.load_visible(id, caller)).staged
        return 200, {
            "version": saved.version,
            "rows": [_row_fields(row, shown) for row in shown.rows if row.id in wanted],
            "counts": saved.counts,
            "problems": [each._asdict() for each in problems],
        }

    def _other_version(self, found: StagedTab) -> tuple[int, dict[str, Any]]:
        staged = found.staged
        return 409, {
            "error": Code.TAB_CHANGED.value,
            "message": "Another page has staged edits in this tab since.",
            "version": staged.version,
            "rows": [_row_fields(row, staged) for row in staged.rows if not row.is_open],
            "counts": staged.counts,
        }

    # What is staged

    async def _begun(
        self, found: StagedTab, staged: Staged, body: PutEdits, caller: Caller
    ) -> Staged:
        """What is staged, with its table. Raises: TidegateError UNSUPPORTED, ARGUMENT_INVALID."""
        place, table = await self._table_of(found, body, caller)
        if staged.rows and staged.place is not None:
            if (staged.place, staged.table) != (place, table):
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"Edits of {staged.table} are staged in this tab",
                    hint="Submit or discard them first.",
                )
            return staged
        described = await self._columns.describe(place, table, caller)
        standing = standing_of(found.source, caller.signed_in)
        made = Staged(place, table, described.shape, described.columns, standing=standing)
        return _checked(made, described)

    async def _table_of(
        self, found: StagedTab, body: PutEdits, caller: Caller
    ) -> tuple[Place, str]:
        tab, given = found.tab, body.table
        name = tab.table if tab.kind == "table" else None
        if name is None and given is None and found.staged.place is not None:
            return found.staged.place, found.staged.table
        if name is None and given is None:
            raise TidegateError(Code.ARGUMENT_INVALID, "The request names no table")
        database = tab.database or None
        schema = tab.schema or None
        if given is not None and name is None:
            name, database, schema = given.table, given.database, given.schema
        place = Place(found.source.name, database, schema)
        table, _ = await self._calls.table(caller, place, name or "")
        return Place(found.source.name, database, table.schema), table.name

    async def _with_edits(
        self, source: Source, staged: Staged, body: PutEdits, caller: Caller
    ) -> tuple[Staged, list[Problem]]:
        rows = {row.id: row for row in staged.rows}
        problems: list[Problem] = []
        new = [
            each
            for each in body.put
            if each.kind != "insert" and each.id not in rows and each.key is not None
        ]
        found: dict[str, FoundRow] = {}
        if new:
            staged, found, differ = await self._read(source, staged, new, body.columns, caller)
            problems += differ
        taken = {tuple(row.key): row.id for row in rows.values() if row.key is not None}
        refused = {each.id for each in problems}
        for each in body.put:
            if each.id in refused:
                continue
            was = rows.get(each.id)
            row = found.get(each.id)
            if each.kind != "insert" and was is None and row is None:
                message = "The request names no row for it"
                problems.append(Problem(each.id, "invalid", message))
                continue
            key = None if each.key is None else tuple(each.key)
            if row is not None and key is not None and taken.setdefault(key, each.id) != each.id:
                message = f"The row is staged already, as {taken[key]}"
                problems.append(Problem(each.id, "invalid", message))
                continue
            made = StagedRow(each.id, each.kind, each.key)
            if was is not None:
                made = structs.replace(was, kind=each.kind)
            elif row is not None:
                made = structs.replace(made, image=row.image, before=row.shown)
            cells, wrong = _valid(each, made, staged)
            problems += wrong
            rows[each.id] = structs.replace(made, cells=cells)
        if len(rows) > MOST_STAGED:
            raise TidegateError(
                Code.LIMIT_BYTES, f"A tab holds up to {MOST_STAGED:,} edits. Nothing was staged."
            )
        return structs.replace(staged, rows=tuple(rows.values())), problems

    async def _read(
        self,
        source: Source,
        staged: Staged,
        new: Sequence[PutEdit],
        columns: tuple[str, ...],
        caller: Caller,
    ) -> tuple[Staged, dict[str, FoundRow], list[Problem]]:
        """The rows of new edits, read exactly and as the page shows them, in this order: a row that
        changes in between is found to differ."""
        place = staged.place or Place(source.name)
        request = ReadImages(
            table=staged.table,
            schema=place.schema,
            database=place.database,
            limits=self._calls.row_limits(len(new)),
            keys=tuple([tuple(each.key or ()) for each in new]),
            key_names=staged.key_names,
        )
        images, _ = await self._calls.ask(caller, request, place.source, FoundRows)
        if staged.shape is not None and images.shape != staged.shape and staged.rows:
            raise TidegateError(
                Code.ROWS_CONFLICT,
                f"The table {staged.table} has another definition now.",
                hint="Discard the staged edits, and begin again.",
            )
        staged = structs.replace(staged, shape=images.shape)
        seen = [each for each in new if each.seen is not None]
        shown: dict[tuple[str, ...], list[Any]] = {}
        if seen and columns:
            there = [row for row in images.rows if row is not None]
            shown = await self._shown.read(
                place, staged.table, there, images.shape, columns, caller
            )
        found: dict[str, FoundRow] = {}
        problems: list[Problem] = []
        for each, row in zip(new, images.rows, strict=True):
            if row is None:
                problems.append(Problem(each.id, "gone", "The row is gone."))
                continue
            now = shown.get(tuple(each.key or ()))
            if each.seen is not None and columns and now != each.seen:
                cells = _named(images.shape, row.shown, staged)
                message = "The row is another one than the page shows."
                problems.append(Problem(each.id, "changed", message, None, cells))
                continue
            found[each.id] = row
        return staged, found, problems


def change_of(staged: Staged, limits: Any) -> tuple[ChangeRows, tuple[StagedRow, ...]]:
    """The change that is staged, and its edits in the order of the change. Raises: TidegateError
    ARGUMENT_INVALID if nothing is."""
    rows = tuple([row for row in staged.rows if not row.is_open])
    if not rows or staged.shape is None or staged.place is None:
        raise TidegateError(Code.ARGUMENT_INVALID, "No edits are staged in this tab")
    shape = staged.shape
    edits = tuple([RowEdit(row.image, _values(row, shape, staged)) for row in rows])
    request = ChangeRows(
        table=staged.table,
        schema=staged.place.schema,
        database=staged.place.database,
        limits=limits,
        shape=shape,
        edits=edits,
    )
    return request, rows


def _values(
    row: StagedRow, shape: TableShape, staged: Staged
) -> tuple[tuple[int, Any], ...] | None:
    if row.kind == "delete":
        return None
    before = dict(zip(shape.names, row.before or (), strict=False))
    return tuple(
        [
            (shape.names.index(name), value_of(cell, staged.column(name), before.get(name)))
            for name, cell in row.cells.items()
        ]
    )


def _checked(staged: Staged, described: Editability) -> Staged:
    if not described.editable or staged.shape is None:
        reason = described.reason or "The table cannot be edited."
        raise TidegateError(Code.UNSUPPORTED, reason, hint="Its rows can be read here.")
    return staged


def _valid(each: PutEdit, row: StagedRow, staged: Staged) -> tuple[Cells, list[Problem]]:
    """The cells of an edit that can be values, and what is wrong with the rest."""
    names = () if staged.shape is None else staged.shape.names
    before = dict(zip(names, row.before or (), strict=False))
    cells: Cells = {}
    problems: list[Problem] = []
    for name, cell in each.cells.items() if each.kind != "delete" else ():
        try:
            column = staged.column(name)
            reason = column.new_reason if each.kind == "insert" else column.reason
            if reason or name not in names:
                raise TidegateError(Code.ARGUMENT_INVALID, reason or "It takes no value.")
            value_of(cell, column, before.get(name))
        except TidegateError as error:
            problems.append(Problem(each.id, "invalid", error.message, name))
        else:
            cells[name] = cell
    return cells, problems


def named_cells(shape: TableShape, row: Row | None, staged: Staged) -> Cells | None:
    """A row by the names of its columns, exactly; None for none."""
    return None if row is None else _named(shape, row, staged)


def _named(shape: TableShape, row: Row, staged: Staged) -> Cells:
    classes = any(column.classes for column in staged.columns)
    return {
        name: cell_of(value, classes=classes) for name, value in zip(shape.names, row, strict=True)
    }


def _row_fields(row: StagedRow, staged: Staged) -> dict[str, Any]:
    before = None if staged.shape is None else named_cells(staged.shape, row.before, staged)
    return {
        "id": row.id,
        "kind": row.kind,
        "key": row.key,
        "before": msgspec.to_builtins(before),
        "cells": msgspec.to_builtins(row.cells),
    }


def _table_fields(found: StagedTab, staged: Staged) -> dict[str, Any] | None:
    if staged.place is None:
        return None
    return {
        "source": found.source.name,
        "database": staged.place.database,
        "schema": staged.place.schema,
        "table": staged.table,
    }
