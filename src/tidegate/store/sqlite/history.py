"""The history of statements in the state file. The index of words follows when someone searches."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import structs

from tidegate.model.replies import HistoryEntry
from tidegate.store.sqlite.connection import StateConnection

_FIELDS = tuple(name for name in HistoryEntry.__struct_fields__ if name != "id")
_COLUMNS = ", ".join(f'"{name}"' for name in _FIELDS)

GROUP_ROWS = 64
"""Rows that one statement adds. SQLite works through them without taking Python's lock back for
each, which under load would make the event loop wait thousands of times."""


def _add(rows: int) -> str:
    row = f"({', '.join('?' * len(_FIELDS))})"
    return f"INSERT INTO history ({_COLUMNS}) VALUES {', '.join([row] * rows)}"


class SqliteHistoryStore:
    """`api.HistoryStore` in the state file."""

    def __init__(self, file: StateConnection) -> None:
        self._file = file

    def add(self, entries: Sequence[HistoryEntry]) -> None:
        if not entries:
            return
        rows = [structs.astuple(entry)[:-1] for entry in entries]  # without the id
        with self._file.changing() as connection:
            for start in range(0, len(rows), GROUP_ROWS):
                group = rows[start : start + GROUP_ROWS]
                connection.execute(_add(len(group)), tuple(chain.from_iterable(group)))

    def search(
        self,
        words: Sequence[str],
        *,
        sources: Collection[str] | None,
        since: float | None,
        until: float | None,
        limit: int,
        actor: str | None = None,
    ) -> list[HistoryEntry]:
        conditions: list[str] = []
        values: list[Any] = []
        # Quoted, a word has no operators; one without a letter or digit has no tokens to match.
        terms = [f'"{_quotable(word)}"*' for word in words if any(map(str.isalnum, word))]
        if terms:
            self._index_words()
            conditions.append("id IN (SELECT rowid FROM history_words WHERE history_words MATCH ?)")
            values.append(" ".join(terms))
        if sources is not None:
            conditions.append("source IN (SELECT value FROM json_each(?))")
            values.append(msgspec.json.encode(list(sources)).decode())
        if actor is not None:
            conditions.append("actor = ?")
            values.append(actor)
        if since is not None:
            conditions.append("at >= ?")
            values.append(since)
        if until is not None:
            conditions.append("at <= ?")
            values.append(until)
        where = "WHERE " + " AND ".join(conditions) if conditions else ""
        values.append(limit)
        with self._file.reading() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS}, id FROM history {where} ORDER BY at DESC, id DESC LIMIT ?",
                values,
            )
            return [_entry(row) for row in rows]

    def _index_words(self) -> None:
        """Bring the index of words up to the newest entry."""
        with self._file.changing() as connection:
            connection.execute(
                "INSERT INTO history_words (rowid, text) SELECT id, text FROM history"
                " WHERE id > (SELECT upto FROM history_indexed);"
                "UPDATE history_indexed SET upto = coalesce((SELECT max(id) FROM history), upto)"
            )

    def trim(self, keep: int, since: float) -> int:
        with self._file.changing() as connection:
            connection.execute(
                "DELETE FROM history WHERE at < ? OR id <="
                " (SELECT id FROM history ORDER BY id DESC LIMIT 1 OFFSET ?)",
                (since, keep),
            )
            return connection.changes()


def _quotable(word: str) -> str:
    return word.replace("\0", " ").replace('"', '""')


def _entry(row: tuple[Any, ...]) -> HistoryEntry:
    fields = dict(zip(_FIELDS, row, strict=False))
    fields["success"] = bool(fields["success"])
    return HistoryEntry(**fields, id=row[-1])
