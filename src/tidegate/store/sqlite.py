"""State in one SQLite file: the default store. Knows no policy and no clock.

WAL, mode 0600. Rights are written here, on a connection whose writes are synced before they return;
what may lose its last moments is in `notes.py`, how records stand in rows in `rows.py`.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import monotonic_ns

import apsw
import msgspec

from tidegate.errors import Code, GateError
from tidegate.sources import Source
from tidegate.store.api import Area, HistoryEntry, TokenEntry
from tidegate.store.database import connect, failed, failures, prepare, transaction
from tidegate.store.notes import Notes
from tidegate.store.rows import (
    OF_SOURCE,
    OF_TOKEN,
    read_source,
    read_token,
    source_values,
    token_values,
)

_MOMENT_NS = 100_000
"""For how long a look holds. A call looks twice within less: whose the token is, and what may be
seen. What another process changes counts for every call that begins a tenth of a millisecond on."""


class SqliteStore:
    """A `Store` in the file at `path`, made if it is not there."""

    def __init__(self, path: Path) -> None:
        """Open and bring up to date. Raises: GateError STATE_FAILED."""
        self._lock = Lock()
        self._notes = Notes(path)
        with failures():
            prepare(path)
            self._rights = connect(path)
        self._execute = self._rights.execute
        self._version = -1
        self._looked_at = 0
        self._generations: dict[str, int] = {}
        self._all_sources: tuple[Source, ...] | None = None
        self._sources: dict[str, Source] = {}

    def generation(self, area: Area) -> int:
        with self._lock:
            self._look()
            return self._generations[area]

    def _look(self) -> None:
        """See whether somebody changed the file, and forget what no longer holds."""
        # Inline, without a context manager: this runs on every call of the gate, twice.
        now = monotonic_ns()
        if now - self._looked_at < _MOMENT_NS:
            return
        try:
            version: int = self._execute("PRAGMA data_version").get
            if version == self._version:
                self._looked_at = now
                return
            generations = dict(self._execute("SELECT area, value FROM generations"))
        except apsw.Error as error:
            raise failed(error) from error
        if generations["sources"] != self._generations.get("sources"):
            self._all_sources = None
            self._sources.clear()
        self._generations = generations
        self._version = version
        self._looked_at = now

    def sources(self) -> tuple[Source, ...]:
        with self._lock, failures():
            self._look()
            if self._all_sources is None:
                rows = self._execute(f"SELECT {OF_SOURCE} FROM sources ORDER BY name")
                self._all_sources = tuple(read_source(row) for row in rows)
            return self._all_sources

    def source(self, name: str) -> Source | None:
        with self._lock:
            self._look()
            found = self._sources.get(name)
            if found is not None:
                return found
            with failures():
                row = self._execute(
                    f"SELECT {OF_SOURCE} FROM sources WHERE name = ?", (name,)
                ).fetchone()
            if row is None:
                return None
            found = self._sources[name] = read_source(row)
            return found

    def add_source(self, source: Source) -> None:
        with self._changing() as connection:
            try:
                connection.execute(
                    f"INSERT INTO sources ({OF_SOURCE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    source_values(source),
                )
            except apsw.ConstraintError:
                raise GateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already a source `{source.name}`.",
                    hint="Use another name, or change it with `tidegate source update`.",
                ) from None

    def change_source(self, source: Source, was: Source) -> bool:
        with self._changing() as connection:
            row = connection.execute(
                f"SELECT {OF_SOURCE} FROM sources WHERE name = ? AND id = ?",
                (source.name, source.id),
            ).fetchone()
            if row is None or read_source(row) != was:
                return False
            connection.execute(
                f"UPDATE sources SET ({OF_SOURCE}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " WHERE name = ? AND id = ?",
                (*source_values(source), source.name, source.id),
            )
            return True

    def remove_source(self, name: str) -> bool:
        with self._changing() as connection:
            connection.execute("DELETE FROM sources WHERE name = ?", (name,))
            return connection.changes() > 0

    def tokens(self) -> tuple[TokenEntry, ...]:
        with self._lock, failures():
            rows = self._execute(f"SELECT {OF_TOKEN} FROM tokens ORDER BY serial")
            return tuple(read_token(row) for row in rows)

    def add_token(self, entry: TokenEntry, digest: bytes) -> None:
        with self._changing() as connection:
            connection.execute(
                "UPDATE tokens SET revoked_at = ?1"
                " WHERE name = ?2 AND revoked_at IS NULL AND expires_at <= ?1",
                (entry.created_at, entry.name),
            )
            try:
                connection.execute(
                    f"INSERT INTO tokens ({OF_TOKEN}, digest)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*token_values(entry), digest),
                )
            except apsw.ConstraintError:
                raise GateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already an active token `{entry.name}`.",
                    hint="Revoke it first, or use another name.",
                ) from None

    def token_by_digest(self, digest: bytes) -> TokenEntry | None:
        with self._lock, failures():
            row = self._execute(
                f"SELECT {OF_TOKEN} FROM tokens WHERE digest = ?", (digest,)
            ).fetchone()
            return None if row is None else read_token(row)

    def revoke_token(self, name: str, at: float) -> TokenEntry | None:
        with self._changing() as connection:
            row = connection.execute(
                "UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL"
                f" RETURNING {OF_TOKEN}",
                (at, name),
            ).fetchone()
            return None if row is None else read_token(row)

    def revoked_tokens(self, ids: Collection[str]) -> frozenset[str]:
        with self._lock, failures():
            rows = self._execute(
                "SELECT id FROM tokens WHERE revoked_at IS NOT NULL"
                " AND id IN (SELECT value FROM json_each(?))",
                (msgspec.json.encode(list(ids)).decode(),),
            )
            return frozenset(row[0] for row in rows)

    def touch_tokens(self, uses: Mapping[str, float]) -> None:
        self._notes.touch_tokens(uses)

    def add_history(self, entries: Sequence[HistoryEntry]) -> None:
        self._notes.add(entries)

    def search_history(
        self,
        words: Sequence[str],
        *,
        sources: Collection[str] | None,
        since: float | None,
        until: float | None,
        limit: int,
        actor: str | None = None,
    ) -> list[HistoryEntry]:
        return self._notes.search(
            words, sources=sources, since=since, until=until, limit=limit, actor=actor
        )

    def trim_history(self, keep: int, since: float) -> int:
        return self._notes.trim(keep, since)

    def close(self) -> None:
        self._notes.close()
        with self._lock:
            self._rights.close()

    @contextmanager
    def _changing(self) -> Generator[apsw.Connection, None, None]:
        """A transaction on rights, after which this process, too, looks again."""
        with self._lock, failures():
            with transaction(self._rights):
                yield self._rights
            # Our own changes do not count in `data_version`.
            self._version = -1
            self._looked_at = 0
