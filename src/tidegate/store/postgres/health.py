"""How the state's database is, for people."""

from __future__ import annotations

from typing import NamedTuple

import psycopg

from tidegate.store.postgres.connection import StateConnection, failed
from tidegate.store.postgres.database import connect_once

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


class Health(NamedTuple):
    """The server's version, that of the tables (0: there are none), and what may lose changes."""

    server: str
    tables: int
    concerns: tuple[str, ...]


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
