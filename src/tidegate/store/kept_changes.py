"""What both states do with the rows of `changes`, within their transactions: each has a stamp, so
that a gate puts back only what a gate has kept, on the source and for the caller that it was kept
of. That a change was put back, or never committed, is in lists of seals: a stamp of before says
nothing of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import structs

from tidegate.model.changes import ChangeEntry
from tidegate.store.held_rows import Dialect, Row
from tidegate.store.seals import Seals
from tidegate.store.stamps import MEANING, columns_of

_AREA = "changes"
_NAMES = MEANING[_AREA]
COLUMNS = columns_of(_AREA)
_PLACES = {name: place for place, name in enumerate(_NAMES)}

Ending = Literal["undone", "discarded"]
ENDINGS: tuple[Ending, ...] = ("undone", "discarded")


class KeptChanges:
    """The rows of one state. Without a key all rows count."""

    def __init__(self, dialect: Dialect, seals: Seals) -> None:
        self._dialect = dialect
        self._seals = seals
        self._table = f"{dialect.prefix}changes"

    def add(self, connection: Any, entry: ChangeEntry) -> None:
        """Write the row of a new change."""
        values = {name: _column(getattr(entry, name)) for name in _NAMES}
        marks = ", ".join([self._dialect.mark] * len(values))
        sql = f"INSERT INTO {self._table} ({COLUMNS}) VALUES ({marks})"
        self._dialect.run(connection, sql, list(values.values()))
        self._seals.stamps.write(connection, _AREA, values)

    def read(self, connection: Any, rest: str, *values: Any) -> tuple[ChangeEntry, ...]:
        """The changes whose rows are as a gate has left them."""
        rows = self._dialect.run(connection, f"SELECT {COLUMNS} FROM {self._table} {rest}", values)
        return tuple(map(_entry, self._seals.stamps.good(connection, _AREA, rows)))

    def ending(self, connection: Any, entry: ChangeEntry) -> Ending | None:
        """How a change has ended, whatever its row says. Raises: TidegateError STATE_FAILED where
        the lists that say so are not as a gate has left them."""
        for ending in ENDINGS:
            if self._seals.was_used(connection, _name_of(ending, entry.id), entry.made_at):
                return ending
        return None

    def has_foreign(self, connection: Any, id: str) -> bool:
        """Whether there is a row of that id which no gate has left so."""
        sql = f"SELECT {COLUMNS} FROM {self._table} WHERE id = {self._dialect.mark}"
        rows = self._dialect.run(connection, sql, (id,))
        return len(self._seals.stamps.good(connection, _AREA, rows)) < len(rows)

    def confirm(self, connection: Any, entry: ChangeEntry) -> bool:
        """A change was committed, and so was the undo that it is. False if it was not
        `prepared`."""
        was = self._hold(connection, entry.id)
        if entry.undoes:
            undone = self._hold(connection, entry.undoes)
            until = entry.expires_at if undone is None else undone[_PLACES["expires_at"]]
            self._end(connection, "undone", entry.undoes, max(until, entry.expires_at), entry)
            if undone is not None and undone[_PLACES["state"]] == "done":
                self._write(connection, undone, state="undone", undone_by=entry.id)
        if was is None or was[_PLACES["state"]] != "prepared":
            return False
        self._write(connection, was, state="done")
        return True

    def mark_undone(self, connection: Any, entry: ChangeEntry, by: str) -> None:
        """A change was put back by that one."""
        self._end(connection, "undone", entry.id, entry.expires_at, entry)
        was = self._hold(connection, entry.id)
        if was is not None:
            self._write(connection, was, state="undone", undone_by=by)

    def discard(self, connection: Any, entry: ChangeEntry) -> None:
        """A change was never committed; its row is removed by the caller."""
        self._end(connection, "discarded", entry.id, entry.expires_at, entry)

    def forget(self, connection: Any, ids: Sequence[str]) -> None:
        """The rows of these ids are removed."""
        self._seals.stamps.remove(connection, _AREA, ids)

    def _hold(self, connection: Any, id: str) -> Row | None:
        """The row of a change, which no one else changes until the transaction ends; None if there
        is none that a gate has left so."""
        sql = f"SELECT {COLUMNS} FROM {self._table} WHERE id = {self._dialect.mark}"
        rows = self._dialect.run(connection, f"{sql}{self._dialect.lock}", (id,))
        return next(iter(self._seals.stamps.good(connection, _AREA, rows)), None)

    def _write(self, connection: Any, was: Row, **sets: str) -> None:
        mark, values = self._dialect.mark, dict(zip(_NAMES, was, strict=True)) | sets
        columns = ", ".join(f"{name} = {mark}" for name in sets)
        sql = f"UPDATE {self._table} SET {columns} WHERE id = {mark}"
        self._dialect.run(connection, sql, (*sets.values(), values["id"]))
        self._seals.stamps.write(connection, _AREA, values)

    def _end(
        self, connection: Any, ending: Ending, id: str, until: float, entry: ChangeEntry
    ) -> None:
        self._seals.use_once(connection, _name_of(ending, id), until, entry.made_at)


def _name_of(ending: Ending, id: str) -> str:
    return f"change {ending}/{id}"


def _column(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, tuple) else value


def _entry(row: Row) -> ChangeEntry:
    fields = dict(zip(_NAMES, row, strict=True))
    tables = msgspec.json.decode(fields.pop("tables"), type=tuple[str, ...])
    return ChangeEntry(**fields, tables=tables)


def with_ending(entry: ChangeEntry, ending: Ending | None) -> ChangeEntry | None:
    """The change as it is, whatever its row says; None for one that never was."""
    if ending == "discarded":
        return None
    return entry if ending is None else structs.replace(entry, state="undone")
