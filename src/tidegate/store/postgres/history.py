"""The history of statements in PostgreSQL. Its words are indexed when someone searches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tidegate.model.replies import HistoryEntry
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows
from tidegate.store.postgres.words import index_of, query_of

_ENTRIES = Rows(HistoryEntry)
_ADDED = Rows(HistoryEntry, without=("id",))
_GROUP = 500
_INDEX_GROUP = 500
_MOST_GROUPS = 100


class PostgresHistoryStore:
    """`api.HistoryStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, entries: Sequence[HistoryEntry]) -> None:
        if not entries:
            return
        with self._database.changing(settles=False) as connection:
            for start in range(0, len(entries), _GROUP):
                group = entries[start : start + _GROUP]
                marks = ", ".join([f"({_ADDED.marks})"] * len(group))
                connection.ask(
                    f"INSERT INTO tidegate.history ({_ADDED.columns}) VALUES {marks}",
                    [value for entry in group for value in _ADDED.values(entry)],
                )

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
        query = query_of([word for word in words if any(map(str.isalnum, word))])
        if query:
            self._index_words()
            conditions.append("words @@ %s::tsquery")
            values.append(query)
        for condition, value in (
            ("source = ANY(%s::text[])", None if sources is None else list(sources)),
            ("actor = %s", actor),
            ("at >= %s", since),
            ("at <= %s", until),
        ):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        where = "WHERE " + " AND ".join(conditions) if conditions else ""
        with self._database.reading() as connection:
            rows = connection.ask(
                f"SELECT {_ENTRIES.columns} FROM tidegate.history {where}"
                " ORDER BY at DESC, id DESC LIMIT %s",
                [*values, limit],
            )
            return _ENTRIES.records(rows)

    def trim(self, keep: int, since: float) -> int:
        with self._database.changing(settles=False) as connection:
            return connection.change(
                "DELETE FROM tidegate.history WHERE at < %s OR id <="
                " (SELECT id FROM tidegate.history ORDER BY id DESC LIMIT 1 OFFSET %s)",
                (since, keep),
            )

    def _index_words(self) -> None:
        """Bring the index of words up to the newest entry."""
        for _ in range(_MOST_GROUPS):
            with self._database.changing(settles=False) as connection:
                rows = connection.ask(
                    "SELECT id, text FROM tidegate.history WHERE words IS NULL LIMIT %s",
                    (_INDEX_GROUP,),
                ).fetchall()
                if rows:
                    connection.ask(
                        "UPDATE tidegate.history SET words = given.words::tsvector"
                        " FROM unnest(%s::bigint[], %s::text[]) AS given (id, words)"
                        " WHERE history.id = given.id",
                        ([row[0] for row in rows], [index_of(row[1]) for row in rows]),
                    )
            if len(rows) < _INDEX_GROUP:
                return
