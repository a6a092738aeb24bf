"""An index of the audit log for people who search it: one line a call, with full text and facets.

The index can be removed and is built again from the log; it proves nothing. What proves a line is
its place in the log, which `proof.py` reads again. Lines are added when someone asks.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, cast

import apsw
import msgspec

from tidegate.audit.activity_lines import (
    Found,
    Line,
    LineFilter,
    Session,
    SessionPage,
)
from tidegate.audit.activity_reading import new_lines
from tidegate.audit.activity_writing import add_batch
from tidegate.audit.segment import segments
from tidegate.errors import Code, TidegateError
from tidegate.system.private_files import open_file

MOST_COUNTED = 10_000
"""Counts and facets stop there; the reply reports it."""
_BATCH = 5_000
_NEARLY_ALL = 1_000_000
"""Bytes that are missing of the log as long as it counts as read."""
_SCHEMA_VERSION = 4
_SCHEMA = """
CREATE TABLE segments (name TEXT PRIMARY KEY, read INTEGER NOT NULL, follows TEXT);
CREATE TABLE lines (
    n INTEGER PRIMARY KEY, time REAL NOT NULL, call_id TEXT NOT NULL, segment TEXT NOT NULL,
    offset INTEGER NOT NULL, seq INTEGER NOT NULL, session INTEGER NOT NULL, actor TEXT NOT NULL,
    actor_name TEXT NOT NULL, client TEXT NOT NULL, address TEXT NOT NULL, surface TEXT NOT NULL,
    tool TEXT NOT NULL, source TEXT NOT NULL, request TEXT NOT NULL, statement TEXT NOT NULL,
    effect TEXT NOT NULL, verdict TEXT NOT NULL, rule TEXT NOT NULL, outcome TEXT NOT NULL,
    code TEXT NOT NULL, message TEXT NOT NULL, rows INTEGER, ms REAL, approval TEXT NOT NULL,
    event TEXT NOT NULL, own INTEGER NOT NULL
);
CREATE UNIQUE INDEX lines_call ON lines (call_id) WHERE call_id <> '';
CREATE INDEX lines_own ON lines (own, n);
CREATE INDEX lines_source ON lines (source, n);
CREATE INDEX lines_actor ON lines (actor_name, n);
CREATE INDEX lines_outcome ON lines (outcome, n);
CREATE INDEX lines_session ON lines (session, n);
CREATE INDEX lines_approval ON lines (approval) WHERE approval <> '';
CREATE INDEX lines_time ON lines (time);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, actor TEXT NOT NULL, actor_name TEXT NOT NULL, client TEXT NOT NULL,
    started_at REAL NOT NULL, ended_at REAL NOT NULL, calls INTEGER NOT NULL,
    denied INTEGER NOT NULL, writes INTEGER NOT NULL, own INTEGER NOT NULL
);
CREATE INDEX sessions_caller ON sessions (actor, client, ended_at);
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', tokenize = "unicode61 remove_diacritics 2", prefix = '2 3'
);
"""

FACETS = ("source", "actor_name", "outcome", "effect", "surface")


_FIELDS = Line.__struct_fields__
_COLUMNS = ", ".join(f"lines.{name}" for name in _FIELDS)
_SESSION = ", ".join(
    "(SELECT call_id FROM lines WHERE session = sessions.id AND call_id <> '' ORDER BY n LIMIT 1)"
    if name == "call_id"
    else name
    for name in Session.__struct_fields__
)


class ActivityIndex:
    """The index at `path` of the log in `directory`. Safe to use from any thread."""

    def __init__(self, path: Path, directory: Path) -> None:
        self._path = path
        self._directory = directory
        self._lock = Lock()
        self._updating = Lock()  # held for long; between batches the others read
        self._opened: apsw.Connection | None = None

    def update(self, *, batches: int | None = None, seconds: float | None = None) -> int:
        """Add what the log has more by now; the number of the newest line. With `batches` no more
        than so many, and with `seconds` for no longer than that, for a caller that cannot wait for
        a whole log.

        Raises: TidegateError STATE_FAILED.
        """
        end = None if seconds is None else time.monotonic() + seconds
        patience = 0.0 if batches is not None else -1 if seconds is None else seconds
        if not self._updating.acquire(timeout=patience):
            return self._newest()  # another caller adds them
        try:
            self._add_new(batches, end)
        finally:
            self._updating.release()
        return self._newest()

    def _newest(self) -> int:
        with self.using() as connection:
            return _count(connection.execute("SELECT coalesce(max(n), 0) FROM lines"))

    def newest_of(self, wanted: LineFilter, after: int) -> int:
        """The number of the newest line after `after` that matches, 0 if there is none. Raises:
        TidegateError STATE_FAILED."""
        where, values = _where(wanted)
        with self.using() as connection:
            found = connection.execute(
                f"SELECT coalesce(max(n), 0) FROM {_tables(wanted)} WHERE n > :after AND {where}",
                {**values, "after": after},
            )
            return _count(found)

    def share(self) -> float:
        """How much of the log the index has, from 0 to 1. Raises: TidegateError STATE_FAILED."""
        with _failures():
            with self.using() as connection:
                done = _count(connection.execute("SELECT coalesce(sum(read), 0) FROM segments"))
            size = sum(path.stat().st_size for path in segments(self._directory))
        return 1.0 if size - done < _NEARLY_ALL else done / size

    def _add_new(self, batches: int | None, end: float | None) -> None:
        with _failures():
            with self.using() as connection:
                done = dict(_rows(connection.execute("SELECT name, read FROM segments")))
            grown = [
                new_lines(path, done.get(path.name, 0))
                for path in segments(self._directory)
                if path.stat().st_size > done.get(path.name, 0)
            ]
            merged = heapq.merge(*grown, key=lambda line: line.at)
            while batches != 0 and (batch := list(islice(merged, _BATCH))):
                with self.using() as connection:
                    add_batch(connection, batch)
                batches = None if batches is None else batches - 1
                if end is not None and time.monotonic() >= end:
                    return

    def find(
        self,
        wanted: LineFilter,
        *,
        before: int | None = None,
        limit: int = 100,
        counts: bool = True,
    ) -> Found:
        """Lines that match, newest first, below the number `before`. Raises: as `update`."""
        where, values = _where(wanted)
        page = f"{where} AND lines.n < :before" if before is not None else where
        values["before"] = before
        with self.using() as connection:
            rows = _rows(
                connection.execute(
                    f"SELECT {_COLUMNS} FROM {_tables(wanted)} WHERE {page}"
                    f" ORDER BY {_order(wanted)} DESC LIMIT :limit",
                    {**values, "limit": limit + 1},
                )
            )
            lines = tuple(Line(*row) for row in rows[:limit])
            more_pages = lines[-1].n if len(rows) > limit else None
            if not counts:
                return Found(lines, more_pages)
            fields = ", ".join(f"lines.{name}" for name in FACETS)
            # Where the page holds all that matches, the index is not read a second time.
            matching = [tuple(getattr(line, name) for name in FACETS) for line in lines]
            if more_pages is not None or before is not None:
                matching = _rows(
                    connection.execute(
                        f"SELECT {fields} FROM {_tables(wanted)} WHERE {where}"
                        f" ORDER BY {_order(wanted)} DESC LIMIT :limit",
                        {**values, "limit": MOST_COUNTED + 1},
                    )
                )
        more = len(matching) > MOST_COUNTED
        return Found(
            *(lines, more_pages, min(len(matching), MOST_COUNTED), more),
            _facets(matching[:MOST_COUNTED]),
        )

    def count(self, wanted: LineFilter) -> int:
        """How many lines match, up to one more than `MOST_COUNTED`. Raises: as `update`."""
        where, values = _where(wanted)
        with self.using() as connection:
            found = connection.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {_tables(wanted)} WHERE {where} LIMIT :most)",
                {**values, "most": MOST_COUNTED + 1},
            )
            return _count(found)

    def line(self, n: int) -> Line | None:
        """The line of that number."""
        with self.using() as connection:
            rows = _rows(connection.execute(f"SELECT {_COLUMNS} FROM lines WHERE n = ?", (n,)))
            return Line(*rows[0]) if rows else None

    def count_since(self, at: float) -> int:
        """How many lines are newer than a time."""
        with self.using() as connection:
            return _count(connection.execute("SELECT count(*) FROM lines WHERE time > ?", (at,)))

    def line_of(self, call_id: str) -> Line | None:
        """The line of a call."""
        with self.using() as connection:
            sql = f"SELECT {_COLUMNS} FROM lines WHERE call_id = ? AND call_id <> ''"
            rows = _rows(connection.execute(sql, (call_id,)))
            return Line(*rows[0]) if rows else None

    def story(self, wanted: LineFilter, *, after: int, limit: int) -> Found:
        """Lines that match above the number `after`, oldest first; counts nothing."""
        where, values = _where(wanted)
        with self.using() as connection:
            rows = _rows(
                connection.execute(
                    f"SELECT {_COLUMNS} FROM {_tables(wanted)} WHERE {where} AND lines.n > :after"
                    f" ORDER BY {_order(wanted)} LIMIT :limit",
                    {**values, "after": after, "limit": limit + 1},
                )
            )
        lines = tuple(Line(*row) for row in rows[:limit])
        return Found(lines, lines[-1].n if len(rows) > limit else None)

    def sessions(
        self, wanted: LineFilter, *, before: int | None = None, limit: int = 50
    ) -> SessionPage:
        """The sessions with a line that matches below the number `before`, newest first. Reads
        `MOST_COUNTED` lines for a page."""
        where, values = _where(wanted)
        page = f"{where} AND lines.n < :before" if before is not None else where
        found: dict[int, tuple[int, float]] = {}
        with self.using() as connection:
            rows = _rows(
                connection.execute(
                    f"SELECT lines.n, lines.session, lines.time FROM {_tables(wanted)} WHERE {page}"
                    f" ORDER BY {_order(wanted)} DESC LIMIT :most",
                    {**values, "before": before, "most": MOST_COUNTED},
                )
            )
            ended = rows[-1][0] if len(rows) == MOST_COUNTED else None
            for n, session, at in rows:
                if session and session not in found and len(found) == limit:
                    ended = n + 1
                    break
                if session:
                    found[session] = n, at
            ids = msgspec.json.encode(list(found)).decode()
            sessions = connection.execute(
                f"SELECT {_SESSION} FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
                " ORDER BY ended_at DESC",
                (ids,),
            )
            shown = [Session(*row) for row in _rows(sessions)]
            return SessionPage(tuple(_as_seen(connection, shown, wanted.sources)), ended, found)

    def session(self, id: int, sources: tuple[str, ...] | None = None) -> Session | None:
        """The session of that number, to a reader who may see these sources, None all."""
        with self.using() as connection:
            rows = _rows(connection.execute(f"SELECT {_SESSION} FROM sessions WHERE id = ?", (id,)))
            return next(iter(_as_seen(connection, [Session(*row) for row in rows], sources)), None)

    def close(self) -> None:
        """Close the index. Safe to call twice."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    @contextmanager
    def using(self) -> Generator[apsw.Connection, None, None]:
        """The connection, for one caller at a time. An index that turns out to be damaged is
        removed: the next caller builds it again. Raises: TidegateError STATE_FAILED."""
        with self._lock, _failures():
            try:
                if self._opened is None:
                    self._opened = _open(self._path)
                yield self._opened
            except (apsw.NotADBError, apsw.CorruptError):
                if self._opened is not None:
                    self._opened.close(True)
                    self._opened = None
                _remove(self._path)
                raise


def _as_seen(
    connection: apsw.Connection, sessions: Sequence[Session], sources: tuple[str, ...] | None
) -> list[Session]:
    """Sessions to a reader who may see these sources: times and counts are those of their lines."""
    if sources is None:
        return list(sessions)
    where, values = _where(LineFilter(sources=sources))
    ids = msgspec.json.encode([each.id for each in sessions]).decode()
    rows = connection.execute(
        "SELECT session, min(time), max(time), count(*), sum(outcome = 'denied'),"
        " sum(effect NOT IN ('', 'read', 'session') AND outcome IN ('ok', 'unknown')), sum(own)"
        " FROM lines"
        f" WHERE session IN (SELECT value FROM json_each(:ids)) AND {where} GROUP BY session",
        {**values, "ids": ids},
    )
    counted = {row[0]: row[1:] for row in _rows(rows)}
    names = ("started_at", "ended_at", "calls", "denied", "writes", "own")
    return [
        msgspec.structs.replace(each, call_id="", **dict(zip(names, counted[each.id], strict=True)))
        for each in sessions
        if each.id in counted
    ]


def _open(path: Path) -> apsw.Connection:
    """A connection to the index; one of another version or a damaged one is built again."""
    for _ in range(2):
        os.close(open_file(path, "read and write"))
        connection = apsw.Connection(os.fspath(path))
        try:
            connection.set_busy_timeout(5_000)
            connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF").fetchall()
            version = _count(connection.execute("PRAGMA user_version"))
            if version == _SCHEMA_VERSION:
                return connection
            tables = _count(connection.execute("SELECT count(*) FROM sqlite_schema"))
            if version == 0 and not tables:
                with connection:
                    connection.execute(_SCHEMA)
                    connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
                return connection
        except (apsw.NotADBError, apsw.CorruptError):
            pass
        connection.close()
        _remove(path)
    raise apsw.CorruptError("the index cannot be built")


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _rows(cursor: apsw.Cursor) -> list[tuple[Any, ...]]:
    return cast("list[tuple[Any, ...]]", cursor.fetchall())


def _count(cursor: apsw.Cursor) -> int:
    return int(_rows(cursor)[0][0])


def _where(wanted: LineFilter) -> tuple[str, dict[str, Any]]:
    """The condition of a filter, and its values by name."""
    parts, values = ["true"], dict[str, Any]()
    for name, value in (
        ("source", wanted.source),
        ("actor_name", wanted.actor),
        ("outcome", wanted.outcome),
        ("effect", wanted.effect),
        ("surface", wanted.surface),
        ("session", wanted.session),
        ("approval", wanted.approval),
    ):
        if value:
            parts.append(f"lines.{name} = :{name}")
            values[name] = value
    if wanted.sources is not None:
        parts.append("lines.source IN (SELECT value FROM json_each(:sources))")
        values["sources"] = msgspec.json.encode(wanted.sources).decode()
    if wanted.own is not None:
        parts.append(f"lines.own = {int(wanted.own)}")
    for name, sign in (("since", ">="), ("until", "<")):
        if (at := getattr(wanted, name)) is not None:
            parts.append(f"lines.time {sign} :{name}")
            values[name] = at
    if wanted.words:
        parts.append("words MATCH :words")
        quoted = [f'"{word.replace(chr(34), chr(34) * 2)}"*' for word in wanted.words]
        values["words"] = " ".join(quoted)
    return " AND ".join(parts), values


def _tables(wanted: LineFilter) -> str:
    return "words JOIN lines ON lines.n = words.rowid" if wanted.words else "lines"


def _order(wanted: LineFilter) -> str:
    return "words.rowid" if wanted.words else "lines.n"


def _facets(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for place, name in enumerate(FACETS):
        counts: dict[str, int] = {}
        for row in rows:
            if value := str(row[place]):
                counts[value] = counts.get(value, 0) + 1
        found[name] = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:50]
    return found


@contextmanager
def _failures() -> Generator[None, None, None]:
    """Raise what SQLite and the file system report as STATE_FAILED."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise TidegateError(
            Code.STATE_FAILED,
            f"The index of the audit log cannot be read or written: {error}.",
            hint="A damaged one is built again: ask again. It can be removed, too: activity.db in"
            " the state directory.",
        ) from error
