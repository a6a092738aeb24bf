"""Counts the rows that a transaction has changed, those of triggers and foreign keys included.

The server keeps these numbers for each transaction, whatever changed the rows: the difference of
two readings within one transaction is what was changed in between. Work that a savepoint undid
counts as well; rows of foreign tables, and what TRUNCATE in a trigger removes, do not.
"""

from __future__ import annotations

from psycopg.pq.abc import PGresult

from tidegate.engines.common.row_images import check_count
from tidegate.engines.postgres.command_protocol import FAILED
from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.errors import translate
from tidegate.errors import Code, TidegateError
from tidegate.model.decisions import Permit

COUNT = b"""SELECT pg_catalog.sum(pg_catalog.pg_stat_get_xact_tuples_inserted(c.oid)
  + pg_catalog.pg_stat_get_xact_tuples_updated(c.oid)
  + pg_catalog.pg_stat_get_xact_tuples_deleted(c.oid))::text
FROM pg_catalog.pg_class AS c WHERE c.relkind = 'r' AND c.oid >= 16384
  AND pg_catalog.current_setting('track_counts') = 'on'"""

UNCOUNTED = b"""SELECT (pg_catalog.current_setting('track_counts') <> 'on')::text,
  (EXISTS (SELECT FROM pg_catalog.pg_foreign_table)
    AND EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE NOT tgisinternal))::text,
  EXISTS (SELECT FROM pg_catalog.pg_foreign_table)::text"""

AT_ONCE = b"SET CONSTRAINTS ALL IMMEDIATE"
"""Does what is deferred until COMMIT: a trigger may change rows then."""


class RowCounter:
    """Counts from one reading in a transaction to the next."""

    def __init__(self, permit: Permit) -> None:
        self.permit = permit
        self._before = 0

    def begin(self, reading: PGresult) -> None:
        """Take the reading of COUNT before the statement. Raises: TidegateError."""
        self._before = _number(reading)

    async def end(self, session: PostgresSession, own: int, *, deferred: bool) -> int:
        """How many rows the statement has changed: at least its `own`. With `deferred`, what waits
        for the COMMIT is done before.

        Raises: TidegateError LIMIT_CHANGES, and what the database says to what was deferred.
        """
        check_count(self.permit, own)
        if deferred:
            await session.run_own(AT_ONCE)
        rows = max(own, _number(await session.run_own(COUNT)) - self._before)
        check_count(self.permit, rows, followers=True)
        return rows


def counter_of(permit: Permit | None) -> RowCounter | None:
    """A counter for a change of limited size; None if nothing limits it."""
    return None if permit is None or permit.max_rows_changed is None else RowCounter(permit)


def _number(reading: PGresult) -> int:
    if reading.status in FAILED:
        raise translate(reading)
    value = reading.get_value(0, 0)
    if value is None:
        raise TidegateError(
            Code.LIMIT_CHANGES,
            "The rows of changes are limited, and this server counts none: `track_counts` is off."
            " Nothing was changed.",
            hint="Ask the operator to set track_counts = on, or to remove max_rows_changed.",
        )
    return int(value)
