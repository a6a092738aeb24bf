"""State in one SQLite file: the default store. Knows no policy and no clock.

WAL, mode 0600. Two connections: one for rights, whose writes are synced before they return, and
one for history, which may lose its last moments with the power and never holds up the other.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import apsw
import msgspec

from tidegate.actors import Scope
from tidegate.errors import Code, GateError
from tidegate.sources import Source
from tidegate.store.api import Area, HistoryEntry, TokenEntry
from tidegate.store.database import connect, prepare, transaction

_OF_SOURCE = "id, name, url, engine, dialect, external_access, ai_policy, safe_mode, tags, rules"
_RULES = (
    "approval",
    "unattended",
    "unqualified",
    "destructive_scope",
    "masks",
    "filters",
    "run_as",
)
_PLAIN = msgspec.structs.asdict(Source("", "", "", "", ""))
_OF_TOKEN = ", ".join(TokenEntry.__struct_fields__)
_HISTORY_FIELDS = tuple(name for name in HistoryEntry.__struct_fields__ if name != "id")
_OF_HISTORY = ", ".join(f'"{name}"' for name in _HISTORY_FIELDS)
# One statement for a whole group: SQLite works through it without taking Python's lock back for
# each row, which under load would make the event loop wait thousands of times.
_ADD_HISTORY = (
    f"INSERT INTO history ({_OF_HISTORY}) SELECT "
    + ", ".join(f"value ->> '$.{name}'" for name in _HISTORY_FIELDS)
    + " FROM json_each(?) ORDER BY key"
)


class SqliteStore:
    """A `Store` in the file at `path`, made if it is not there."""

    def __init__(self, path: Path) -> None:
        """Open and bring up to date. Raises: GateError STATE_FAILED."""
        self._path = path
        self._lock = Lock()
        self._history_lock = Lock()
        self._history: apsw.Connection | None = None
        with _failures():
            prepare(path)
            self._rights = connect(path)
        self._execute = self._rights.execute
        self._version = -1
        self._generations: dict[str, int] = {}
        self._all_sources: tuple[Source, ...] | None = None
        self._sources: dict[str, Source] = {}

    def generation(self, area: Area) -> int:
        with self._lock:
            self._look()
            return self._generations[area]

    def _look(self) -> None:
        """See whether somebody changed the file, and forget what no longer holds."""
        # Inline, without a context manager: this runs on every call of the gate.
        try:
            version: int = self._execute("PRAGMA data_version").get
            if version == self._version:
                return
            generations = dict(self._execute("SELECT area, value FROM generations"))
        except apsw.Error as error:
            raise _failed(error) from error
        if generations["sources"] != self._generations.get("sources"):
            self._all_sources = None
            self._sources.clear()
        self._generations = generations
        self._version = version

    def sources(self) -> tuple[Source, ...]:
        with self._lock, _failures():
            self._look()
            if self._all_sources is None:
                rows = self._execute(f"SELECT {_OF_SOURCE} FROM sources ORDER BY name")
                self._all_sources = tuple(_source(row) for row in rows)
            return self._all_sources

    def source(self, name: str) -> Source | None:
        with self._lock:
            self._look()
            found = self._sources.get(name)
            if found is not None:
                return found
            with _failures():
                row = self._execute(
                    f"SELECT {_OF_SOURCE} FROM sources WHERE name = ?", (name,)
                ).fetchone()
            if row is None:
                return None
            found = self._sources[name] = _source(row)
            return found

    def add_source(self, source: Source) -> None:
        with self._changing() as connection:
            try:
                connection.execute(
                    f"INSERT INTO sources ({_OF_SOURCE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    _columns(source),
                )
            except apsw.ConstraintError:
                raise GateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already a source `{source.name}`.",
                    hint="Use another name, or change it with `tidegate source update`.",
                ) from None

    def change_source(self, source: Source) -> bool:
        with self._changing() as connection:
            connection.execute(
                f"UPDATE sources SET ({_OF_SOURCE}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " WHERE name = ? AND id = ?",
                (*_columns(source), source.name, source.id),
            )
            return connection.changes() > 0

    def remove_source(self, name: str) -> bool:
        with self._changing() as connection:
            connection.execute("DELETE FROM sources WHERE name = ?", (name,))
            return connection.changes() > 0

    def tokens(self) -> tuple[TokenEntry, ...]:
        with self._lock, _failures():
            rows = self._execute(f"SELECT {_OF_TOKEN} FROM tokens ORDER BY serial")
            return tuple(_token(row) for row in rows)

    def add_token(self, entry: TokenEntry, digest: bytes) -> None:
        values = (
            entry.id, entry.name, entry.prefix, entry.scope.value, _names(entry.sources),
            entry.created_at, entry.expires_at, entry.last_used_at, entry.revoked_at,
            _names(entry.tags), _names(entry.tables), digest,
        )  # fmt: skip
        with self._changing() as connection:
            connection.execute(
                "UPDATE tokens SET revoked_at = ?1"
                " WHERE name = ?2 AND revoked_at IS NULL AND expires_at <= ?1",
                (entry.created_at, entry.name),
            )
            try:
                connection.execute(
                    f"INSERT INTO tokens ({_OF_TOKEN}, digest)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    values,
                )
            except apsw.ConstraintError:
                raise GateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already an active token `{entry.name}`.",
                    hint="Revoke it first, or use another name.",
                ) from None

    def token_by_digest(self, digest: bytes) -> TokenEntry | None:
        with self._lock, _failures():
            row = self._execute(
                f"SELECT {_OF_TOKEN} FROM tokens WHERE digest = ?", (digest,)
            ).fetchone()
            return None if row is None else _token(row)

    def revoke_token(self, name: str, at: float) -> TokenEntry | None:
        with self._changing() as connection:
            row = connection.execute(
                "UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL"
                f" RETURNING {_OF_TOKEN}",
                (at, name),
            ).fetchone()
            return None if row is None else _token(row)

    def revoked_tokens(self, ids: Collection[str]) -> frozenset[str]:
        with self._lock, _failures():
            rows = self._execute(
                "SELECT id FROM tokens WHERE revoked_at IS NOT NULL"
                " AND id IN (SELECT value FROM json_each(?))",
                (msgspec.json.encode(list(ids)).decode(),),
            )
            return frozenset(row[0] for row in rows)

    def touch_tokens(self, uses: Mapping[str, float]) -> None:
        with self._writing_history() as connection:
            connection.executemany(
                "UPDATE tokens SET last_used_at = ?2 WHERE id = ?1"
                " AND (last_used_at IS NULL OR last_used_at < ?2)",
                uses.items(),
            )

    def add_history(self, entries: Sequence[HistoryEntry]) -> None:
        if not entries:
            return
        group = msgspec.json.encode(entries).decode()
        with self._writing_history() as connection:
            connection.execute(_ADD_HISTORY, (group,))

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
        with self._history_lock, _failures():
            rows = self._history_connection().execute(
                f"SELECT {_OF_HISTORY}, id FROM history {where} ORDER BY at DESC, id DESC LIMIT ?",
                values,
            )
            return [_entry(row) for row in rows]

    def _index_words(self) -> None:
        """Bring the index of words up to the newest entry."""
        with self._writing_history() as connection:
            connection.execute(
                "INSERT INTO history_words (rowid, text) SELECT id, text FROM history"
                " WHERE id > (SELECT upto FROM history_indexed);"
                "UPDATE history_indexed SET upto = coalesce((SELECT max(id) FROM history), upto)"
            )

    def trim_history(self, keep: int, since: float) -> int:
        with self._writing_history() as connection:
            connection.execute(
                "DELETE FROM history WHERE at < ? OR id <="
                " (SELECT id FROM history ORDER BY id DESC LIMIT 1 OFFSET ?)",
                (since, keep),
            )
            return connection.changes()

    def close(self) -> None:
        with self._history_lock:
            if self._history is not None:
                self._history.close()
                self._history = None
        with self._lock:
            self._rights.close()

    @contextmanager
    def _changing(self) -> Generator[apsw.Connection, None, None]:
        """A transaction on rights, after which this process, too, looks again."""
        with self._lock, _failures():
            with transaction(self._rights):
                yield self._rights
            # Our own changes do not count in `data_version`.
            self._version = -1

    @contextmanager
    def _writing_history(self) -> Generator[apsw.Connection, None, None]:
        with self._history_lock, _failures():
            connection = self._history_connection()
            with transaction(connection):
                yield connection

    def _history_connection(self) -> apsw.Connection:
        if self._history is None:
            self._history = connect(self._path, "NORMAL")
        return self._history


@contextmanager
def _failures() -> Generator[None, None, None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise _failed(error) from error


def _failed(error: Exception) -> GateError:
    if isinstance(error, apsw.BusyError):
        return GateError(
            Code.STATE_FAILED,
            "Another process holds the state store.",
            hint="Retry in a moment.",
            retry_after_s=1.0,
        )
    return GateError(Code.STATE_FAILED, f"The state store failed: {error}.")


def _source(row: tuple[Any, ...]) -> Source:
    *columns, tags, rules = row
    source = Source(*columns, tags=msgspec.json.decode(tags, type=tuple[str, ...]))
    if rules == "{}":
        return source
    fields = msgspec.structs.asdict(source) | msgspec.json.decode(rules)
    return msgspec.convert(fields, Source)


def _columns(source: Source) -> tuple[str, ...]:
    """What stands in the columns of `_OF_SOURCE`."""
    return (
        source.id, source.name, source.url, source.engine, source.dialect,
        source.external_access, source.ai_policy, source.safe_mode,
        msgspec.json.encode(source.tags).decode(), _rules(source),
    )  # fmt: skip


def _rules(source: Source) -> str:
    """What the operator set of the fields that have no column of their own."""
    set_here = {
        name: getattr(source, name) for name in _RULES if getattr(source, name) != _PLAIN[name]
    }
    return msgspec.json.encode(set_here).decode()


def _token(row: tuple[Any, ...]) -> TokenEntry:
    fields: dict[str, Any] = dict(zip(TokenEntry.__struct_fields__, row, strict=True))
    fields["scope"] = Scope(fields["scope"])
    for name in ("sources", "tags", "tables"):
        fields[name] = _set(fields[name])
    return TokenEntry(**fields)


def _names(names: frozenset[str] | None) -> str | None:
    return None if names is None else msgspec.json.encode(sorted(names)).decode()


def _set(names: str | None) -> frozenset[str] | None:
    return None if names is None else frozenset(msgspec.json.decode(names, type=list[str]))


def _entry(row: tuple[Any, ...]) -> HistoryEntry:
    fields = dict(zip(_HISTORY_FIELDS, row, strict=False))
    fields["success"] = bool(fields["success"])
    return HistoryEntry(**fields, id=row[-1])


def _quotable(word: str) -> str:
    return word.replace("\0", " ").replace('"', '""')
