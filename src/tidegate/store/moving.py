"""Moves a state from a SQLite file into a PostgreSQL database, or back.

What only reads goes on meanwhile; what writes waits, and is refused with a retry where it takes
longer than a call waits. At every moment at most one of the two states can be used: the copy first
says that it is not whole, then the old state says where it has gone, then the copy is whole. A move
that was ended in between is finished by the same command.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, cast

import apsw
import psycopg
from psycopg.conninfo import conninfo_to_dict

from tidegate.errors import Code, TidegateError
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.opening import FILE
from tidegate.store.postgres import schema
from tidegate.store.postgres.connection import StateConnection, failed
from tidegate.store.postgres.database import DIALECT, connect_once
from tidegate.store.seal_memory import SealMemory
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import (
    connect,
    failures,
    mark_moved,
    place_of_move,
    prepare,
    transaction,
)
from tidegate.store.versions import UNFINISHED

TABLES = (
    "sources", "tokens", "pairings", "operators", "operator_links", "operator_sessions",
    "approvals", "webhook_messages", "changes", "change_keys", "change_images", "history",
    "unrecorded_events", "windows", "window_pages", "tabs", "closed_tabs", "tab_events",
    "staged_edits", "tasks", "confirmed_pairs", "answers", "provider_use", "shared_secrets",
    "used_values", "failures", "locks", "saved_queries", "query_versions", "query_runs",
    "query_tabs", "shipping_destinations", "shipping_positions", "budgets", "budget_use",
    "messages", "gates", "seals", "stamps", "carried_values",
)  # fmt: skip
"""What both states hold; rows that others refer to come first."""
OWN_TABLES = {"about", "commits", "generations"}
"""Those of PostgreSQL that are not copied as they are."""
_MOST_S = 3_600.0
_GROUP = 1_000


def move_to_postgres(directory: Path, url: str, key: ClusterKey | None = None) -> int:
    """Move the state of a directory into the database of a URL; how many rows. They keep their
    seals; without any they are sealed with the key. Raises: TidegateError STATE_FAILED,
    ARGUMENT_INVALID if there is a state."""
    path, place = directory / FILE, name_of(url)
    if not path.exists():
        raise _invalid(f"There is no state in `{directory}`.", "Name the directory with --state.")
    try:
        with connect_once(url, _MOST_S) as target, failures(), closing(connect(path)) as old:
            flag = _flag(target)
            if flag == UNFINISHED and place_of_move(old) == place:
                _set_flag(target, "")
                return 0
            if place_of_move(old):
                raise _invalid(f"The state has moved to {place_of_move(old)}.", "Name that one.")
            _make_room(target, flag)
            schema.prepare(url, unfinished=True)
            with transaction(old):
                copied = _fill_postgres(old, target, key)
                mark_moved(old, place)
            _set_flag(target, "")
            return copied
    except psycopg.Error as error:
        raise failed(error) from error


def move_to_sqlite(url: str, directory: Path) -> int:
    """Move the state in the database of a URL into a file in a directory; how many rows. Raises:
    as `move_to_postgres`."""
    path, place = directory / FILE, str(directory.absolute())
    draft = path.with_name(f"{FILE}.incoming")
    try:
        with connect_once(url, _MOST_S) as old, failures():
            if _flag(old) == place and draft.exists():
                _put_in_place(draft, path)
                return 0
            schema.prepare(url)
            if path.exists() and not _has_moved(path):
                raise _invalid(f"There is a state in `{directory}`.", "Name another directory.")
            for end in ("", "-wal", "-shm"):
                draft.with_name(f"{draft.name}{end}").unlink(missing_ok=True)
            prepare(draft)
            tables = ", ".join(f"tidegate.{name}" for name in TABLES)
            old.ask("BEGIN")
            old.ask(f"LOCK TABLE {tables}, tidegate.generations IN SHARE MODE")
            with closing(connect(draft)) as new:
                with transaction(new):
                    copied = _fill_sqlite(old, new)
                new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            _leave(old, place)
            old.ask("COMMIT")
            _put_in_place(draft, path)
            return copied
    except psycopg.Error as error:
        raise failed(error) from error


def copy_to_sqlite(url: str, path: Path) -> None:
    """Write the state in the database of a URL, as it is at one moment, into a new file, while
    others go on. Raises: TidegateError STATE_FAILED."""
    try:
        schema.prepare(url)
        with connect_once(url, _MOST_S) as old, failures():
            prepare(path)
            old.ask("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            with closing(connect(path)) as new:
                with transaction(new):
                    _fill_sqlite(old, new)
                new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                new.execute("PRAGMA journal_mode = DELETE")
            old.ask("COMMIT")
    except psycopg.Error as error:
        raise failed(error) from error


def name_of(url: str) -> str:
    """The database of a URL without its login, for people."""
    parts = conninfo_to_dict(url)
    host, port = parts.get("host") or "localhost", parts.get("port") or 5432
    return f"PostgreSQL {host}:{port}/{parts.get('dbname') or parts.get('user') or ''}"


# PostgreSQL


def _flag(connection: StateConnection) -> str | None:
    """Where the state there has moved, or that it is not whole; None if there is no state."""
    if connection.row("SELECT to_regclass('tidegate.about')::text") == (None,):
        return None
    row = connection.row("SELECT moved_to FROM tidegate.about")
    return None if row is None else str(row[0])


def _set_flag(connection: StateConnection, text: str) -> None:
    connection.ask("UPDATE tidegate.about SET moved_to = %s", (text,))


def _make_room(connection: StateConnection, flag: str | None) -> None:
    """Remove what is left of a state that has moved or was not whole. Raises: TidegateError."""
    if flag:
        connection.ask("DROP SCHEMA tidegate CASCADE")
    elif flag is not None and any(
        connection.number(f"SELECT count(*) FROM (SELECT 1 FROM tidegate.{name} LIMIT 1) AS one")
        for name in TABLES
        if name != "gates"  # a command that has read an empty state is one
    ):
        raise _invalid("There is a state in that database.", "Name another database.")
    elif flag is not None:
        connection.ask("DROP SCHEMA tidegate CASCADE")


def _leave(connection: StateConnection, place: str) -> None:
    """Have the state be here no more: every statement of those who have it open fails."""
    connection.ask("DROP SCHEMA IF EXISTS tidegate_moved CASCADE")
    connection.ask("ALTER SCHEMA tidegate RENAME TO tidegate_moved")
    connection.ask("CREATE SCHEMA tidegate")
    connection.ask("CREATE TABLE tidegate.about AS SELECT * FROM tidegate_moved.about")
    _set_flag(connection, place)


def _columns_of(connection: StateConnection, table: str) -> dict[str, str]:
    """The types of the columns that a state writes, by name."""
    rows = connection.ask(
        "SELECT column_name::text, data_type::text FROM information_schema.columns"
        " WHERE table_schema = 'tidegate' AND table_name = %s AND is_generated = 'NEVER'",
        (table,),
    )
    return {row[0]: row[1] for row in rows}


def _fill_postgres(old: apsw.Connection, target: StateConnection, key: ClusterKey | None) -> int:
    copied = 0
    target.ask("BEGIN")
    for table in TABLES:
        types = _columns_of(target, table)
        names = [name for name in _sqlite_columns(old, table) if name in types]
        booleans = [types[name] == "boolean" for name in names]
        marked = ", ".join(f'"{name}"' for name in names)
        more = ', "source", "source_id"' if table == "approvals" else ""
        rows = old.execute(f"SELECT {marked} FROM {table}")
        with (
            target.cursor() as cursor,
            cursor.copy(f"COPY tidegate.{table} ({marked}{more}) FROM STDIN".encode()) as copy,
        ):
            for row in cast("Iterable[tuple[Any, ...]]", rows):
                values = [
                    bool(value) if is_boolean and value is not None else value
                    for value, is_boolean in zip(row, booleans, strict=True)
                ]
                if more:
                    subject = json.loads(str(row[names.index("subject")]))
                    values += [subject["source"], subject["source_id"]]
                copy.write_row(values)
                copied += 1
        _go_on_counting(target, table)
    counters = old.execute("SELECT area, value FROM generations")
    for area, value in cast("Iterable[tuple[str, int]]", counters):
        _count_on(target, area, value)
    _seal(target, key)
    target.ask("COMMIT")
    return copied


def _seal(target: StateConnection, key: ClusterKey | None) -> None:
    """Seal what was copied without seals, and where the state is now. No process can use the copy
    yet."""
    seals = Seals(DIALECT, key, SealMemory(None))
    if key is not None and not target.number("SELECT count(*) FROM tidegate.seals"):
        seals.seal_all(target)
    elif key is not None:
        given = partial(nullcontext, target)
        seals.open(given, given)
        seals.stamps.stamp(target, "about")
    if target.number("SELECT count(*) FROM tidegate.seals"):
        target.ask(
            "UPDATE tidegate.about SET oldest_reader = greatest(oldest_reader, %s)",
            (schema.SEALED,),
        )


def _go_on_counting(target: StateConnection, table: str) -> None:
    """Have the numbers that the table gives begin after those that it holds."""
    row = target.row(
        "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'tidegate'"
        " AND table_name = %s AND is_identity = 'YES'",
        (table,),
    )
    if row is not None:
        target.ask(
            f"SELECT setval(pg_get_serial_sequence('tidegate.{table}', '{row[0]}'),"
            f" (SELECT coalesce(max({row[0]}), 0) + 1 FROM tidegate.{table}), false)"
        )


def _count_on(target: StateConnection, area: str, value: int) -> None:
    target.ask(
        "INSERT INTO tidegate.generations AS had VALUES (%s, %s) ON CONFLICT (area)"
        " DO UPDATE SET value = greatest(had.value, excluded.value) + 1",
        (area, value),
    )


# SQLite


def _sqlite_columns(connection: apsw.Connection, table: str) -> list[str]:
    rows = connection.execute(f"SELECT name FROM pragma_table_info('{table}')")
    return [row[0] for row in cast("Iterable[tuple[str]]", rows)]


def _has_moved(path: Path) -> bool:
    with closing(connect(path)) as connection:
        return bool(place_of_move(connection))


def _put_in_place(draft: Path, path: Path) -> None:
    for each in (draft, path):
        for end in ("-wal", "-shm"):
            each.with_name(f"{each.name}{end}").unlink(missing_ok=True)
    draft.replace(path)


def _fill_sqlite(old: StateConnection, new: apsw.Connection) -> int:
    copied = 0
    for table in TABLES:
        types = _columns_of(old, table)
        names = [name for name in _sqlite_columns(new, table) if name in types]
        marked = ", ".join(f'"{name}"' for name in names)
        marks = ", ".join("?" * len(names))
        with old.cursor() as cursor:
            rows = cursor.stream(f"SELECT {marked} FROM tidegate.{table}".encode())
            for group in _groups(rows):
                new.executemany(f"INSERT INTO {table} ({marked}) VALUES ({marks})", group)
                copied += len(group)
    for area, value in old.ask("SELECT area, value FROM tidegate.generations").fetchall():
        new.execute(
            "UPDATE generations SET value = max(value, ?) + 1 WHERE area = ?", (value, area)
        )
    return copied


def _groups(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    group: list[Sequence[Any]] = []
    for row in rows:
        group.append(row)
        if len(group) == _GROUP:
            yield group
            group = []
    if group:
        yield group


def _invalid(message: str, hint: str) -> TidegateError:
    return TidegateError(Code.ARGUMENT_INVALID, message, hint=hint)
