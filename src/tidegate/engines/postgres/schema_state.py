"""Finds out cheaply whether a database's schema has changed: by its snapshot, and if that is
another one by the rows of its catalog."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tidegate.errors import Code, TidegateError

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
    ("pg_type", "oid"),
    ("pg_enum", "enumtypid"),
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
"""Changes when anything has changed that `inspect.py` reads."""

RULES_CHANGED = "tidegate_rules_changed"
"""What the server says where a transaction sees another `RULES_STATE` than the one expected."""

_GUARD = b"""SELECT CASE
  WHEN pg_catalog.txid_current_snapshot()::text OPERATOR(pg_catalog.=) $%d THEN NULL
  WHEN (%b) OPERATOR(pg_catalog.=) $%d THEN pg_catalog.txid_current_snapshot()::text
  ELSE pg_catalog.concat(pg_catalog.txid_current_snapshot()::text, '%b')::int4::text END, """


_QUICK_GUARD = b"""SELECT CASE
  WHEN pg_catalog.txid_current_snapshot()::text OPERATOR(pg_catalog.=) $%d THEN NULL
  ELSE pg_catalog.concat(pg_catalog.txid_current_snapshot()::text, '%b')::int4::text END, """
"""A third of the time: it opens no table of the catalog."""


@lru_cache(256)
def guarded(settings: bytes, parameters: int, *, quick: bool = False) -> bytes:
    """The first query of a transaction, with a first column that makes it fail, and so keeps what
    follows from running, unless the rules of the catalog are those expected: the snapshot and the
    state that are two more parameters. The column is the snapshot if that is another one.
    `quick` takes the snapshot alone, and fails with another one."""
    changed = RULES_CHANGED.encode()
    rest = settings.removeprefix(b"SELECT ")
    if quick:
        return _QUICK_GUARD % (parameters + 1, changed) + rest
    return _GUARD % (parameters + 1, RULES_STATE, parameters + 2, changed) + rest


SAME_RULES = (
    b"SELECT pg_catalog.txid_current_snapshot()::text OPERATOR(pg_catalog.=) $1"
    b" OR (%b) OPERATOR(pg_catalog.=) $2" % RULES_STATE
)
"""Whether the rules of the catalog are those expected, by the snapshot or else by the state."""


class RulesChangedError(TidegateError):
    """The catalog has other rules than those by which a statement was judged. It has not run."""

    def __init__(self) -> None:
        super().__init__(
            Code.SOURCE_BUSY,
            "The database's functions, views or policies change all the time.",
            hint="Send the statement again.",
        )


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
            ((snapshot,),) = await session.query_internal(SNAPSHOT)
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
