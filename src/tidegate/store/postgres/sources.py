"""The saved sources in PostgreSQL."""

from __future__ import annotations

from functools import partial

import psycopg
from psycopg import errors

from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.store.held_rows import Held, Touched
from tidegate.store.postgres.connection import StateConnection, failed
from tidegate.store.postgres.database import Database, connect_once
from tidegate.store.source_rows import COLUMNS, NAMES, rename_in_lists, source_of, values_of
from tidegate.store.versions import Versions

_MARKS = ", ".join(["%s"] * len(NAMES))

_FOLLOWING = (
    ("history", "source", False),
    ("windows", "source_id", True),
    ("closed_tabs", "source_id", True),
    ("saved_queries", "source_id", True),
    ("budgets", "source", False),
    ("changes", "source_id", True),
    ("confirmed_pairs", "source_id", True),
    ("answers", "source_id", True),
)
"""What goes with a source to its new name, or, if true, to its new id."""


def read_sources(url: str) -> tuple[Source, ...]:
    """The saved sources of the state in the database of a URL, whether a gate has sealed them or
    not: none of them may be opened. Nothing is made or changed. Raises: TidegateError STATE_FAILED,
    also if there is no state."""
    try:
        with connect_once(url) as connection:
            rows = connection.ask(f"SELECT {COLUMNS} FROM tidegate.sources ORDER BY name")
            return tuple(map(source_of, rows))
    except psycopg.Error as error:
        raise failed(error) from error


class PostgresSourceStore:
    """`api.SourceStore` in PostgreSQL."""

    def __init__(self, database: Database, versions: Versions) -> None:
        self._database = database
        self._versions = versions
        self.generation = partial(versions.of, "sources")
        self._known: tuple[int, tuple[Source, ...], dict[str, Source]] | None = None
        self._followed: tuple[tuple[Source, ...], dict[str, Source]] = (), {}
        versions.load_with("sources", self._load)

    def list(self) -> tuple[Source, ...]:
        return self._current()[0]

    def find(self, name: str) -> Source | None:
        return self._current()[1].get(name)

    def add(self, source: Source) -> None:
        with (
            self._database.changing("rights") as connection,
            self._database.seals.changing(connection) as held,
        ):
            try:
                connection.ask(
                    f"INSERT INTO tidegate.sources ({COLUMNS}) VALUES ({_MARKS})", values_of(source)
                )
                held.add("sources", source.id, _named(source))
            except errors.UniqueViolation:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already a source `{source.name}`.",
                    hint="Use another name, or change it with `tidegate source update`.",
                ) from None

    def change(self, source: Source, was: Source) -> bool:
        with (
            self._database.changing("rights") as connection,
            self._database.seals.changing(
                connection, Touched("sources", "id = %s", (source.id,), _named(source))
            ) as held,
        ):
            if not held.has("sources", source.id):
                return False
            if not _is_unchanged(connection, was, name=source.name, id=source.id):
                return False
            _write(connection, source, source.name)
            held.expect("sources", source.id)
            return True

    def rename(self, was: Source, now: Source, at: float) -> tuple[str, ...] | None:
        with (
            self._database.changing("rights", "approvals", "windows", "queries") as connection,
            self._database.seals.changing(
                connection,
                Touched("sources", "id = %s", (was.id,), _named(now)),
                Touched("tokens", "revoked_at IS NULL"),
                Touched(
                    "budgets", "source IN (%s, %s)", (was.name, now.name), {"source": now.name}
                ),
                Touched(
                    "approvals",
                    "state IN ('pending', 'allowed') AND source_id = %s",
                    (was.id,),
                    {"state": "expired", "ended_at": at},
                ),
            ) as held,
        ):
            if not held.has("sources", was.id):
                return None
            if not _is_unchanged(connection, was, name=was.name, id=was.id):
                return None
            holders = _rename_in_tokens(connection, held, was.name, now.name)
            try:
                _write(connection, now, was.name)
                held.add("sources", now.id, _named(now))
                held.expect("sources", now.id)
            except errors.UniqueViolation:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already a source `{now.name}`.",
                    hint="Use another name.",
                ) from None
            if was.name != now.name:  # of a source of that name that was there before
                connection.ask("DELETE FROM tidegate.budgets WHERE source = %s", (now.name,))
            stamps = self._database.seals.stamps
            stamped = stamps.of_source(connection, was.id)
            for table, column, is_id in _FOLLOWING:
                old, new = (was.id, now.id) if is_id else (was.name, now.name)
                connection.ask(
                    f"UPDATE tidegate.{table} SET {column} = %s WHERE {column} = %s", (new, old)
                )
            connection.ask(
                "UPDATE tidegate.changes SET source = %s WHERE source_id = %s", (now.name, now.id)
            )
            stamps.rename_source(connection, stamped, now.id, now.name)
            # A person was shown the old name, under which another source may come.
            connection.ask(
                "UPDATE tidegate.approvals SET state = 'expired', ended_at = %s"
                " WHERE state IN ('pending', 'allowed') AND source_id = %s",
                (at, was.id),
            )
            return tuple(holders)

    def remove(self, name: str) -> bool:
        with (
            self._database.changing("rights") as connection,
            self._database.seals.changing(
                connection, Touched("sources", "name = %s", (name,))
            ) as held,
        ):
            held.expect_gone("sources")
            return connection.change("DELETE FROM tidegate.sources WHERE name = %s", (name,)) > 0

    def _current(self) -> tuple[tuple[Source, ...], dict[str, Source]]:
        """All sources, and by name: from memory."""
        if self._versions.followed:
            self._versions.check()
            return self._followed
        generation = self.generation()
        if self._known is None or self._known[0] != generation:
            self._known = (generation, *self._read())
        return self._known[1:]

    def _load(self) -> None:
        """Read all sources, for answers from memory where changes are followed."""
        self._followed = self._read()

    def _read(self) -> tuple[tuple[Source, ...], dict[str, Source]]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(
                connection, "sources", COLUMNS, "ORDER BY name", is_whole=True
            )
            found = tuple(map(source_of, rows))
        return found, {source.name: source for source in found}


def _is_unchanged(connection: StateConnection, was: Source, *, name: str, id: str) -> bool:
    row = connection.row(
        f"SELECT {COLUMNS} FROM tidegate.sources WHERE name = %s AND id = %s FOR UPDATE",
        (name, id),
    )
    return row is not None and source_of(row) == was


def _write(connection: StateConnection, source: Source, name: str) -> None:
    connection.ask(
        f"UPDATE tidegate.sources SET ({COLUMNS}) = ({_MARKS}) WHERE name = %s",
        (*values_of(source), name),
    )


def _rename_in_tokens(connection: StateConnection, held: Held, old: str, new: str) -> list[str]:
    """Rename a source in the lists of tokens; the names of these tokens."""
    holders: list[str] = []
    rows = connection.ask(
        "SELECT id, name, sources, tables FROM tidegate.tokens"
        " WHERE revoked_at IS NULL ORDER BY serial"
    )
    for id, holder, sources, tables in rows.fetchall():
        renamed = rename_in_lists(holder, (sources, tables), old, new)
        if renamed is not None:
            connection.ask(
                "UPDATE tidegate.tokens SET sources = %s, tables = %s WHERE id = %s",
                (*renamed, id),
            )
            held.expect("tokens", id, sources=renamed[0], tables=renamed[1])
            holders.append(holder)
    return holders


def _named(source: Source) -> dict[str, str]:
    return dict(zip(NAMES, values_of(source), strict=True))
