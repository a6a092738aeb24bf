"""The tables of the state, and of which version they are.

Migrations are numbered scripts of plain SQL; those that are missing are applied in one transaction,
by one process at a time. Beside its number each version names the oldest that can still read it, so
that gates of two neighbouring versions work on one state while one is rolled.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import errors

from tidegate.errors import Code, TidegateError
from tidegate.store.postgres.connection import StateConnection, failed
from tidegate.store.postgres.database import LOCK, MIGRATION_LOCK, Database, connect_once
from tidegate.store.sealed_lists import MEANING
from tidegate.store.versions import UNFINISHED, StateMoved

NEWEST = 7
"""The number of the last script."""
OLDEST_READER = 1
"""The lowest `NEWEST` of a program that can work on the tables as the last script leaves them."""
SEALED = 5
"""The lowest `NEWEST` of a program that seals rows."""
OLDEST_SERVER = 140_000
SYSTEM = "(SELECT system_identifier::text FROM pg_control_system())"
TIMELINE = "('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int"
"""On which server, and in which of its lives, this is: a promotion begins another one. The control
file still names the former for a while."""
KEPT = (
    "system_id, timeline, state_id, epoch_at,"
    " (SELECT mac FROM tidegate.stamps WHERE area = 'about' AND name = state_id)"
)
"""Where the state says that it was last, and its stamp."""
_MIGRATION_S = 120.0
_SCRIPTS = Path(__file__).parent / "migrations"


def scripts() -> list[Path]:
    """The migrations in the order in which they apply: `0001_start.sql`, ..."""
    return sorted(_SCRIPTS.glob("[0-9][0-9][0-9][0-9]_*.sql"))


def prepare(url: str, *, unfinished: bool = False) -> str:
    """Make the tables if there are none, and bring them up to date. Returns the state's id. One
    that is made `unfinished` cannot be used before `about` says so.

    Raises: TidegateError STATE_FAILED for a database that cannot be reached or written, and for a
    state that is of a newer version, or has moved.
    """
    try:
        with connect_once(url, _MIGRATION_S) as connection:
            if read_version(connection) < NEWEST:
                _migrate(connection, UNFINISHED if unfinished else "")
            row = connection.row("SELECT state_id FROM tidegate.about")
            return "" if row is None else str(row[0])
    except psycopg.Error as error:
        raise failed(error) from error


@contextmanager
def seal_lock(database: Database) -> Generator[StateConnection, None, None]:
    """A transaction that seals all rows: no one else changes them meanwhile, and programs that
    seal none cannot use the state from then on. Raises: TidegateError."""
    tables = ", ".join(f"tidegate.{area}" for area in sorted(MEANING))
    with database.changing("rights", "approvals", "pairings", "operators") as connection:
        connection.ask(f"LOCK TABLE {tables}, tidegate.seals IN SHARE ROW EXCLUSIVE MODE")
        connection.ask(
            "UPDATE tidegate.about SET oldest_reader = greatest(oldest_reader, %s)", (SEALED,)
        )
        yield connection


def newer(version: int, oldest: int) -> TidegateError:
    """The refusal of a state that this program cannot read any more."""
    return TidegateError(
        Code.STATE_FAILED,
        f"The state is of version {version}, which needs a Tidegate that knows version {oldest}; "
        f"this one knows {NEWEST}.",
        hint="Upgrade Tidegate on this machine.",
    )


def read_version(connection: StateConnection) -> int:
    """The version of the tables; 0 if there are none. Raises: TidegateError STATE_FAILED for a
    server that is too old, and a state that this program cannot use, or that has moved."""
    if connection.info.server_version < OLDEST_SERVER:
        number = connection.info.server_version // 10_000
        raise TidegateError(
            Code.STATE_FAILED,
            f"The state's PostgreSQL is of version {number}; it must be"
            f" {OLDEST_SERVER // 10_000} or newer.",
        )
    try:
        row = connection.row("SELECT version, oldest_reader, moved_to FROM tidegate.about")
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return 0
    if row is None:
        raise TidegateError(Code.STATE_FAILED, "The state's database holds no version of it.")
    version, oldest, moved_to = row
    if moved_to:
        raise StateMoved(str(moved_to))
    if oldest > NEWEST:
        raise newer(version, oldest)
    return int(version)


def _migrate(connection: StateConnection, moved_to: str) -> None:
    try:
        connection.ask("BEGIN")
        connection.ask("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK, MIGRATION_LOCK))
        connection.ask("SAVEPOINT looked")
        done = 0
        try:
            done = read_version(connection)
        finally:
            connection.ask("ROLLBACK TO SAVEPOINT looked")
        for script in scripts()[done:]:
            connection.ask(script.read_text(encoding="utf-8"))
        if done < NEWEST:
            connection.ask(
                "INSERT INTO tidegate.about"
                " (version, oldest_reader, state_id, moved_to, system_id, timeline)"
                f" SELECT %s, %s, %s, %s, {SYSTEM}, {TIMELINE} ON CONFLICT (one) DO UPDATE"
                " SET version = excluded.version,"
                " oldest_reader = greatest(about.oldest_reader, excluded.oldest_reader)",
                (NEWEST, OLDEST_READER, os.urandom(16).hex(), moved_to),
            )
        connection.ask("COMMIT")
    except errors.InsufficientPrivilege as error:
        raise may_not_make() from error


def may_not_make() -> TidegateError:
    """The refusal of an account that may not make the tables."""
    return TidegateError(
        Code.STATE_FAILED,
        "The account of the state may not make the schema `tidegate` in its database.",
        hint="GRANT CREATE ON DATABASE ... TO the account, once.",
    )
