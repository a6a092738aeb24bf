"""Finds out cheaply whether a database's schema has changed: by its snapshot, and if that is
another one by the rows of its catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tidegate.engines.postgres.connection import PostgresSession

SNAPSHOT_COLUMN = b"pg_catalog.txid_current_snapshot()::text"
"""Equal texts: no transaction that wrote anything has ended in between."""

SNAPSHOT = b"SELECT " + SNAPSHOT_COLUMN


def _state(*tables: tuple[str, str]) -> bytes:
    """A row whose values change with any row of the tables that users made (oids from 16384 on):
    a row that is changed gets a new xmin. The sum of their distances does not move with time."""
    sums = ", ".join(
        f"(SELECT pg_catalog.concat(pg_catalog.count(*), '.', pg_catalog.sum("
        f"pg_catalog.age('3'::xid)::int8 - pg_catalog.age(xmin)))"
        f" FROM pg_catalog.{table} WHERE {key} >= 16384)"
        for table, key in tables
    )
    return f"SELECT pg_catalog.concat_ws(' ', {sums})".encode()


SCHEMA_STATE = _state(
    ("pg_class", "oid"),
    ("pg_attribute", "attrelid"),
    ("pg_attrdef", "oid"),
    ("pg_constraint", "oid"),
    ("pg_namespace", "oid"),
    ("pg_description", "objoid"),
    ("pg_rewrite", "oid"),
    ("pg_inherits", "inhrelid"),
    ("pg_trigger", "oid"),
)
"""Changes when anything that a catalog shows has changed, except row counts."""

RULES_STATE = _state(
    ("pg_proc", "oid"),
    ("pg_rewrite", "oid"),
    ("pg_policy", "oid"),
    ("pg_operator", "oid"),
    ("pg_cast", "oid"),
    ("pg_extension", "oid"),
    ("pg_constraint", "oid"),
    ("pg_foreign_table", "ftrelid"),
)
"""Changes when anything has changed that `inspect.py` looks at."""

NAMES_STATE = _state(
    ("pg_class", "oid"),
    ("pg_namespace", "oid"),
    ("pg_proc", "oid"),
    ("pg_operator", "oid"),
    ("pg_cast", "oid"),
    ("pg_type", "oid"),
)
"""Changes when a name, an operator or a cast may mean something else."""


def version_of(database: str, state: str) -> str:
    """A short text for a row of `SCHEMA_STATE`."""
    import hashlib

    return f"{database}.{hashlib.sha256(state.encode()).hexdigest()[:20]}"


class SchemaVersion:
    """The version of one database's schema, and the snapshot in which it was last seen.

    `moving`: whether other snapshots come all the time, so that the catalog is asked at once.
    """

    __slots__ = ("_snapshot", "_version", "moving")

    def __init__(self) -> None:
        self._snapshot: str | None = None
        self._version: str | None = None
        self.moving = False

    async def current(self, session: PostgresSession, timeout_ms: int) -> str:
        """The version now. Raises: TidegateError."""
        if self._version is not None:
            ((snapshot,),) = await session.own(SNAPSHOT)
            if snapshot == self._snapshot:
                return self._version
        found = await session.ask(SNAPSHOT, SCHEMA_STATE, timeout_ms=timeout_ms)
        ((snapshot,),), ((state,),) = found
        return self.note(snapshot, version_of(session.setting.database, state))

    def note(self, snapshot: str, version: str) -> str:
        """The version as a transaction has seen it."""
        self.moving = snapshot != self._snapshot
        self._snapshot, self._version = snapshot, version
        return version

    def at(self, snapshot: str) -> str | None:
        """The version in a snapshot; None if the catalog has to be asked."""
        if snapshot == self._snapshot:
            return self._version
        self.moving = True
        return None


class PinnedSchema(NamedTuple):
    """The version that a read needs; what it gives is not shown under another one."""

    version: SchemaVersion
    wanted: str
