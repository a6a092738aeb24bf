"""States in PostgreSQL for the tests: one database a server, emptied for each test."""

from __future__ import annotations

import functools

import support.postgres_server as postgres_server
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.postgres.state import PostgresState

_EMPTY = """
DO $$
DECLARE
    name text;
    found boolean;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR name IN SELECT format('tidegate.%I', tablename) FROM pg_tables
        WHERE schemaname = 'tidegate' AND tablename NOT IN ('about', 'generations')
    LOOP
        EXECUTE 'SELECT EXISTS (SELECT 1 FROM ' || name || ')' INTO found;
        IF found THEN
            EXECUTE 'DELETE FROM ' || name;
        END IF;
    END LOOP;
    IF to_regclass('tidegate.about') IS NOT NULL THEN
        EXECUTE 'UPDATE tidegate.about SET epoch_at = NULL WHERE epoch_at IS NOT NULL';
    END IF;
END $$
"""


KEY = ClusterKey("a key of the gates in tests, long enough")


def open_state(directory, kind="wheel", key=KEY):
    """The state of a kind of server, with the directory of a gate."""
    return PostgresState(state_url(kind), directory, key)


def empty_state(kind="wheel"):
    """Remove all that a test has left in it."""
    postgres_server.shared(kind).ask(_EMPTY, _database(kind))


def state_url(kind="wheel"):
    return postgres_server.shared(kind).url(_database(kind))


def ask(text, kind="wheel"):
    """Run SQL in the database of the state."""
    return postgres_server.shared(kind).ask(text, _database(kind))


@functools.cache
def _database(kind):
    """Not one of the server's `new_database`, which others may drop."""
    name = "tidegate_state"
    postgres_server.shared(kind).ask(f"CREATE DATABASE {name}")
    return name
