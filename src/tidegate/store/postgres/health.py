"""How the state's database is, for people, and whether a gate could use it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import psycopg

from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.opening import SEEN_SERVER
from tidegate.store.postgres.connection import StateConnection, failed, standby
from tidegate.store.postgres.database import DIALECT, Database, connect_once
from tidegate.store.postgres.epochs import Epochs
from tidegate.store.postgres.schema import may_not_make, read_version
from tidegate.store.seal_memory import FILE as SEALS_FILE
from tidegate.store.seal_memory import SealMemory
from tidegate.store.seals import Seals

_STANDBYS = (
    "SELECT count(*), current_setting('synchronous_standby_names') FROM pg_stat_replication"
    " WHERE application_name IS DISTINCT FROM 'pg_basebackup'"
)
_LIMIT = (
    "SELECT current_setting('max_connections')::int"
    " - current_setting('superuser_reserved_connections')::int"
)
_LOOSE = (
    "standbys of the state's database follow without synchronous replication: a right that was"
    " taken away comes back if one is promoted before it knows; set synchronous_standby_names"
)


_MAY_MAKE = "SELECT has_database_privilege(pg_catalog.current_database(), 'CREATE')::int"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'tidegate'"


class Health(NamedTuple):
    """The server's version, that of the tables (0: there are none), and what may lose changes."""

    server: str
    tables: int
    concerns: tuple[str, ...]


def check(url: str, directory: Path, key: ClusterKey | None) -> None:
    """Whether the gate in a directory, with this key, could use the state in the database of a URL,
    once that is brought up to date. Nothing is made or changed. Raises: TidegateError STATE_FAILED
    as `schema.prepare`, and for a server that was replaced or is a standby; as `SealLives.open`."""
    try:
        with connect_once(url) as connection:
            version = read_version(connection)
            if connection.number("SELECT pg_is_in_recovery()::int"):
                raise standby()
            if not version:
                if not connection.number(_MAY_MAKE):
                    raise may_not_make()
                return
            database = Database(url)
            state_id = connection.row("SELECT state_id FROM tidegate.about")
            database.identity = "" if state_id is None else str(state_id[0])
            Epochs(database, directory / SEEN_SERVER).inspect(connection)
            tables = {name for (name,) in connection.ask(_TABLES).fetchall()}
            memory = SealMemory.as_kept(directory / SEALS_FILE)
            Seals(DIALECT, key, memory).check(connection, tables)
    except psycopg.Error as error:
        raise failed(error) from error


def read_health(url: str) -> Health:
    """See how the database of a URL is; nothing is made. Raises: TidegateError STATE_FAILED."""
    try:
        with connect_once(url) as connection:
            server = connection.row("SHOW server_version")
            there = connection.number(
                "SELECT count(*) FROM pg_class WHERE oid = to_regclass('tidegate.about')"
            )
            tables = connection.number("SELECT version FROM tidegate.about") if there else 0
            return Health(str(server[0]) if server else "", tables, concerns_of(connection))
    except psycopg.Error as error:
        raise failed(error) from error


def read_connection_limit(url: str) -> int:
    """How many connections the server of a URL admits. Raises: TidegateError STATE_FAILED."""
    try:
        with connect_once(url) as connection:
            return connection.number(_LIMIT)
    except psycopg.Error as error:
        raise failed(error) from error


def concerns_of(connection: StateConnection) -> tuple[str, ...]:
    """What may lose changes that were kept. Raises: psycopg.Error."""
    standbys, names = connection.row(_STANDBYS) or (0, "")
    return (_LOOSE,) if standbys and not names else ()
