"""The saved sources in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from functools import partial
from typing import cast

import apsw

from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.store.held_rows import Touched
from tidegate.store.seals import Seals
from tidegate.store.source_rows import COLUMNS, NAMES, rename_in_lists, source_of, values_of
from tidegate.store.sqlite.rights import RightsConnection

_MARKS = ", ".join("?" * len(NAMES))


class SqliteSourceStore:
    """`api.SourceStore` in the state file."""

    def __init__(self, rights: RightsConnection, seals: Seals) -> None:
        self._rights = rights
        self._seals = seals
        self._versions = rights.versions.known
        self.generation = partial(self._versions.of, "sources")
        self._known_at: int | None = None
        self._all: tuple[Source, ...] | None = None
        self._by_name: dict[str, Source] = {}
        self._followed: tuple[tuple[Source, ...], dict[str, Source]] = (), {}
        self._versions.load_with("sources", self._load)

    def list(self) -> tuple[Source, ...]:
        if self._versions.followed:
            self._versions.check()
            return self._followed[0]
        known = self._known()
        if self._all is None:
            found = self._read()
            if known is self._by_name:
                self._all = found
            return found
        return self._all

    def find(self, name: str) -> Source | None:
        if self._versions.followed:
            self._versions.check()
            return self._followed[1].get(name)
        known = self._known()
        found = known.get(name)
        if found is None:
            with self._rights.reading() as connection:
                rows = self._seals.select(connection, "sources", COLUMNS, "WHERE name = ?", (name,))
            if not rows:
                return None
            found = known[name] = source_of(rows[0])
        return found

    def add(self, source: Source) -> None:
        with (
            self._rights.changing(uses_reserve=False) as connection,
            self._seals.changing(connection) as held,
        ):
            try:
                connection.execute(
                    f"INSERT INTO sources ({COLUMNS}) VALUES ({_MARKS})", values_of(source)
                )
                held.add("sources", source.id)
            except apsw.ConstraintError:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already a source `{source.name}`.",
                    hint="Use another name, or change it with `tidegate source update`.",
                ) from None

    def change(self, source: Source, was: Source) -> bool:
        with (
            self._rights.changing() as connection,
            self._seals.changing(connection, Touched("sources", "id = ?", (source.id,))) as held,
        ):
            row = connection.execute(
                f"SELECT {COLUMNS} FROM sources WHERE name = ? AND id = ?",
                (source.name, source.id),
            ).fetchone()
            if row is None or source_of(row) != was or not held.has("sources", source.id):
                return False
            # The columns that were compared are in the WHERE: on a server another transaction may
            # have changed the row since it was read.
            connection.execute(
                f"UPDATE sources SET ({COLUMNS}) = ({_MARKS}) WHERE ({COLUMNS}) = ({_MARKS})",
                (*values_of(source), *row),
            )
            return connection.changes() > 0

    def rename(self, was: Source, now: Source, at: float) -> tuple[str, ...] | None:
        with (
            self._rights.changing() as connection,
            self._seals.changing(
                connection,
                Touched("sources", "id = ?", (was.id,)),
                Touched("tokens", "revoked_at IS NULL"),
                Touched("budgets", "source IN (?, ?)", (was.name, now.name)),
                Touched(
                    "approvals",
                    "state IN ('pending', 'allowed') AND subject ->> '$.source_id' = ?",
                    (was.id,),
                ),
            ) as held,
        ):
            row = connection.execute(
                f"SELECT {COLUMNS} FROM sources WHERE name = ? AND id = ?",
                (was.name, was.id),
            ).fetchone()
            if row is None or source_of(row) != was or not held.has("sources", was.id):
                return None
            holders: list[str] = []
            rows = connection.execute(
                "SELECT id, name, sources, tables FROM tokens"
                " WHERE revoked_at IS NULL ORDER BY serial"
            )
            tokens = cast("list[tuple[str, str, str | None, str | None]]", rows.fetchall())
            for id, holder, sources, tables in tokens:
                renamed = rename_in_lists(holder, (sources, tables), was.name, now.name)
                if renamed is not None:
                    connection.execute(
                        "UPDATE tokens SET sources = ?, tables = ? WHERE id = ?", (*renamed, id)
                    )
                    holders.append(holder)
            try:
                connection.execute(
                    f"UPDATE sources SET ({COLUMNS}) = ({_MARKS}) WHERE ({COLUMNS}) = ({_MARKS})",
                    (*values_of(now), *row),
                )
                held.add("sources", now.id)
            except apsw.ConstraintError:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already a source `{now.name}`.",
                    hint="Use another name.",
                ) from None
            if was.name != now.name:  # of a source of that name that was there before
                connection.execute("DELETE FROM budgets WHERE source = ?", (now.name,))
            stamps = self._seals.stamps
            stamped = stamps.of_source(connection, was.id)
            for table, column, old, new in (
                ("history", "source", was.name, now.name),
                ("windows", "source_id", was.id, now.id),
                ("closed_tabs", "source_id", was.id, now.id),
                ("saved_queries", "source_id", was.id, now.id),
                ("budgets", "source", was.name, now.name),
                ("changes", "source_id", was.id, now.id),
                ("confirmed_pairs", "source_id", was.id, now.id),
                ("answers", "source_id", was.id, now.id),
            ):
                connection.execute(
                    f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, old)
                )
            connection.execute(
                "UPDATE changes SET source = ? WHERE source_id = ?", (now.name, now.id)
            )
            stamps.rename_source(connection, stamped, now.id, now.name)
            # A person was shown the old name, under which another source may come.
            connection.execute(
                "UPDATE approvals SET state = 'expired', ended_at = ?"
                " WHERE state IN ('pending', 'allowed') AND subject ->> '$.source_id' = ?",
                (at, was.id),
            )
            return tuple(holders)

    def remove(self, name: str) -> bool:
        with (
            self._rights.changing() as connection,
            self._seals.changing(connection, Touched("sources", "name = ?", (name,))),
        ):
            connection.execute("DELETE FROM sources WHERE name = ?", (name,))
            return connection.changes() > 0

    def _load(self) -> None:
        """Read all sources, for answers from memory where changes are followed."""
        found = self._read()
        self._followed = found, {source.name: source for source in found}

    def _read(self) -> tuple[Source, ...]:
        with self._rights.reading() as connection:
            rows = self._seals.select(
                connection, "sources", COLUMNS, "ORDER BY name", is_whole=True
            )
            return tuple(source_of(row) for row in rows)

    def _known(self) -> dict[str, Source]:
        """The sources that were read, by name; an empty dict after any change of a source."""
        generation = self.generation()
        if generation != self._known_at:
            # In this order, and a new dict: another thread may be reading rows of before.
            self._all, self._by_name = None, {}
            self._known_at = generation
        return self._by_name
