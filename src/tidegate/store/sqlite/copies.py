"""A copy of the state file at one moment, the beginning of a new life of such a copy, and what is
read of a file that is left as it is."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.secrets.cluster_key import ClusterKey
from tidegate.store.gates import GateEntry
from tidegate.store.seal_memory import FILE as SEALS_FILE
from tidegate.store.seal_memory import SealMemory
from tidegate.store.sealed_lists import MEANING
from tidegate.store.seals import Seals
from tidegate.store.source_rows import COLUMNS, source_of
from tidegate.store.sqlite.connection import (
    DIALECT,
    connect,
    connect_for_reading,
    failures,
    prepare,
    read_version,
    reading,
    transaction,
)
from tidegate.store.sqlite.gates import list_gates

_ENDS = (
    "DELETE FROM operator_sessions",
    "DELETE FROM operator_links",
    "DELETE FROM pairings",
    "DELETE FROM tasks",
    "DELETE FROM webhook_messages",
    "DELETE FROM messages",
    "UPDATE approvals SET state = 'expired', ended_at = ?1, waits_until = NULL"
    " WHERE state IN ('pending', 'allowed')",
    # What was sealed with these belongs to calls and pages of the former life.
    "DELETE FROM shared_secrets",
    "DELETE FROM shipping_destinations",
)


def copy_state(path: Path, target: Path) -> None:
    """Write the state of this moment into a new file, while others write. The directory of `target`
    is for this account alone. Raises: TidegateError STATE_FAILED."""
    with failures():
        connection = connect(path)
        try:
            connection.execute("VACUUM INTO ?", (os.fspath(target),))
        finally:
            connection.close()


def begin_again(
    path: Path, now: float, was: str, place: str, key: ClusterKey | None = None
) -> None:
    """End what belongs to the former life: sessions, links, requests for tokens, tasks, messages,
    questions that wait and grants that were not used. References to passwords that are kept in the
    directory `was` lead to `place`. Sealed rows must have their seals, and get new ones: with
    them begins another life. Raises: TidegateError STATE_FAILED."""
    with failures():
        prepare(path)
        connection = connect(path)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            with transaction(connection):
                seals = _check_seals(connection, key)
                for statement in _ENDS:
                    connection.execute(statement, (now,) if "?1" in statement else ())
                for column, before, after in (
                    ("url", was, place),
                    ("rules", json.dumps(was)[1:-1], json.dumps(place)[1:-1]),
                ):
                    connection.execute(
                        f"UPDATE sources SET {column} = replace({column}, ?1, ?2)"
                        f" WHERE instr({column}, ?1)",
                        (f"{before}/passwords/", f"{after}/passwords/"),
                    )
                if seals is not None:
                    seals.seal_all(connection)
        finally:
            connection.close()


def read_gates(path: Path) -> tuple[GateEntry, ...]:
    """The gates that a copy knows. Raises: TidegateError STATE_FAILED."""
    with failures():
        prepare(path)
        connection = connect(path)
        try:
            return list_gates(connection)
        finally:
            connection.close()


def read_sources(path: Path) -> tuple[Source, ...]:
    """The saved sources of a state file, whether a gate has sealed them or not: none of them may be
    opened. Raises: TidegateError STATE_FAILED."""
    with failures():
        connection = connect(path)
        try:
            rows: Any = connection.execute(f"SELECT {COLUMNS} FROM sources ORDER BY name")
            return tuple(map(source_of, rows.fetchall()))
        finally:
            connection.close()


def check(path: Path, key: ClusterKey | None) -> None:
    """Whether a process with this key could use a state file, once it is brought up to date. The
    file is only read. Raises: TidegateError STATE_FAILED for one that is foreign, of a newer
    version, or whose state has moved; as `SealLives.open`."""
    with failures():
        connection = connect_for_reading(path)
        try:
            with reading(connection):
                if read_version(connection, path):
                    rows: Any = connection.execute("SELECT name FROM sqlite_schema")
                    memory = SealMemory.as_kept(path.with_name(SEALS_FILE))
                    tables = {name for (name,) in rows.fetchall()}
                    Seals(DIALECT, key, memory).check(connection, tables)
        finally:
            connection.close()


def _check_seals(connection: apsw.Connection, key: ClusterKey | None) -> Seals | None:
    """The seals of a copy, all of whose rows have theirs; None if it is not sealed. Raises:
    TidegateError STATE_FAILED for another key, and for rows that no gate has sealed."""
    if not connection.execute("SELECT count(*) FROM seals").get:
        return None
    seals = Seals(DIALECT, key, SealMemory(None))
    given = partial(nullcontext, connection)
    seals.open(given, given)
    for area, columns in MEANING.items():
        seals.select(connection, area, columns[0], "", is_whole=True)
    if found := (*seals.concerns(), *seals.stamps.missing(connection)):
        raise TidegateError(
            Code.STATE_FAILED,
            f"This copy was changed past the gates: {found[0]}.",
            hint="Restore an earlier backup.",
        )
    return seals
