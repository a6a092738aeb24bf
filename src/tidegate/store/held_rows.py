"""The rows that a transaction of a gate changes: as they were, and what it is going to write.

A trigger or a rule that someone has put into a database may write something else. So the row that
is there at the end is compared with what the gate wanted before it is sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tidegate.store.sealed_lists import MEANING, SealedArea, same

Row = tuple[Any, ...]
Run = Callable[[Any, str, Sequence[Any]], list[Row]]
"""Runs a statement on a connection, and gives its rows."""
UNSAID: Final = object()
"""In place of a value that the statement works out: any will do."""
_NOTHING: Mapping[str, Any] = {}


class Dialect(NamedTuple):
    """How a database of states wants its statements."""

    run: Run
    prefix: str
    mark: str
    lock: str
    """What keeps rows that are read from others until the end of the transaction."""
    is_foreign: bool
    """Whether others may have put triggers into it, so that what is written is checked."""


class Touched(NamedTuple):
    """Rows that a transaction is going to change: those of an area of which the condition holds.
    `sets` are the columns that it may change in them, with their values."""

    area: SealedArea
    where: str
    values: Sequence[Any] = ()
    sets: Mapping[str, Any] = _NOTHING


class Held:
    """What a transaction may change: the rows that it has locked, and those that it adds."""

    def __init__(self, *, is_active: bool) -> None:
        self._is_active = is_active
        self.before: dict[SealedArea, dict[Any, bytes]] = {}
        self.added: dict[SealedArea, list[Any]] = {}
        self._written: set[tuple[SealedArea, Any]] = set()
        self._gone: set[tuple[SealedArea, Any]] = set()
        self._wanted: dict[tuple[SealedArea, Any], tuple[Row | None, Mapping[str, Any]]] = {}

    def keep(self, touched: Touched, row: Row, mac: bytes) -> None:
        """Keep a row that was locked and has its seal."""
        self.before.setdefault(touched.area, {})[row[0]] = mac
        self._wanted[touched.area, row[0]] = row, touched.sets

    def add(self, area: SealedArea, key: Any, values: Mapping[str, Any] = _NOTHING) -> None:
        """Seal a row that was added in the transaction, by its key; `values` are those of its
        columns."""
        self.added.setdefault(area, []).append(key)
        self._wanted.setdefault((area, key), (None, values))

    def expect(self, area: SealedArea, key: Any, **sets: Any) -> None:
        """Say that the transaction has changed a row, and what else it has written into it."""
        self._written.add((area, key))
        if (area, key) in self._wanted:
            row, former = self._wanted[area, key]
            self._wanted[area, key] = row, {**former, **sets}

    def expect_all(self, area: SealedArea, **sets: Any) -> None:
        """Say so of all rows of an area that were locked."""
        for key in self.before.get(area, {}):
            self.expect(area, key, **sets)

    def expect_gone(self, *areas: SealedArea) -> None:
        """Say that the transaction has removed all rows of these areas that were locked."""
        self._gone.update((area, key) for area in areas for key in self.before.get(area, {}))

    def was(self, area: SealedArea, key: Any) -> dict[str, Any]:
        """The columns of a row as they were when it was locked; none without seals."""
        row, _ = self._wanted.get((area, key), (None, _NOTHING))
        return {} if row is None else dict(zip(MEANING[area], row, strict=True))

    def has(self, area: SealedArea, key: Any) -> bool:
        """Whether the row was sealed when the transaction began; True without seals."""
        return not self._is_active or key in self.before.get(area, {})

    def keys(self, area: SealedArea) -> list[Any] | None:
        """The keys of the rows that were sealed; None without seals: then all are."""
        return list(self.before.get(area, {})) if self._is_active else None

    def is_as_wanted(self, area: SealedArea, row: Row) -> bool:
        """Whether the row holds what the gate wrote, and otherwise what it held before. A statement
        whose condition no longer holds leaves all as it was."""
        before, sets = self._wanted.get((area, row[0]), (None, _NOTHING))
        if (area, row[0]) in self._gone:
            return False
        if before == row and (area, row[0]) not in self._written:
            return True
        for place, name in enumerate(MEANING[area]):
            value = sets.get(name, UNSAID if before is None else before[place])
            if name not in sets and before is None:
                return False  # a new row has no column that the gate has not written
            if value is not UNSAID and not same(value, row[place]):
                return False
        return True
