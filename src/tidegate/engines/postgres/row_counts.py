"""Counts the rows that a transaction has changed, those of triggers and foreign keys included.

The server keeps these numbers for each transaction, whatever changed the rows: the difference of
two readings within one transaction is what was changed in between. Work that a savepoint undid
counts as well; rows of foreign tables, and what TRUNCATE in a trigger removes, do not.
"""

from __future__ import annotations

from psycopg.pq.abc import PGresult

from tidegate.engines.common.row_images import check_count
from tidegate.engines.common.whole_changes import WholeChange, whole_change_of
from tidegate.engines.postgres.command_protocol import FAILED
from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.errors import translate
from tidegate.errors import Code, TidegateError
from tidegate.model.decisions import Permit

COUNT = b"""SELECT CASE WHEN pg_catalog.current_setting('track_counts') = 'on' THEN
  coalesce(pg_catalog.sum(pg_catalog.pg_stat_get_xact_tuples_inserted(c.oid)
  + pg_catalog.pg_stat_get_xact_tuples_updated(c.oid)
  + pg_catalog.pg_stat_get_xact_tuples_deleted(c.oid)), 0)::text END
FROM pg_catalog.pg_class AS c WHERE c.relkind = 'r' AND c.oid >= 16384"""
"""NULL where the server does not count; 0 in a database without tables."""

UNCOUNTED = b"""SELECT (pg_catalog.current_setting('track_counts') <> 'on')::text,
  (EXISTS (SELECT FROM pg_catalog.pg_foreign_table)
    AND EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE NOT tgisinternal))::text,
  EXISTS (SELECT FROM pg_catalog.pg_foreign_table)::text"""

AT_ONCE = b"SET CONSTRAINTS ALL IMMEDIATE"
"""Does what is deferred until COMMIT: a trigger may change rows then."""


class RowCounter:
    """Counts from one reading in a transaction to the next."""

    def __init__(self, permit: Permit, whole: WholeChange | None) -> None:
        self.permit = permit
        self._limited = permit.max_rows_changed is not None
        self._whole = whole
        self._counts = self._limited or (whole is not None and whole.nested)
        self._before = 0
        first = [COUNT.decode()] if self._counts else []
        rest = [] if whole is None else whole.counts_before
        self.before = _together([*first, *rest])
        """The query to ask before the statement; None if there is none."""

    async def start(self, session: PostgresSession) -> None:
        """Send the query that precedes the statement. Raises: TidegateError."""
        if self.before is not None:
            self.begin(await session.run_internal(self.before))

    def begin(self, reading: PGresult) -> None:
        """Take the reading of `before`. Raises: TidegateError."""
        if self._counts:
            self._before = _number(reading)
        if self._whole is not None:
            self._whole.begin(_numbers(reading)[self._counts :])

    async def end(self, session: PostgresSession, own: int, *, deferred: bool) -> int:
        """How many rows the statement has changed: at least its `own`. With `deferred`, what waits
        for the COMMIT is done before.

        Raises: TidegateError LIMIT_CHANGES, POLICY_CONFIRM, POLICY_DENIED, and what the database
        says to what was deferred.
        """
        nested = self._whole is not None and self._whole.nested
        if nested:
            own = 0  # the rows of the query around the change
        check_count(self.permit, own)
        rows = own
        if deferred and self._limited:
            await session.run_internal(AT_ONCE)
        if self._counts:
            rows = max(own, _number(await session.run_internal(COUNT)) - self._before)
        check_count(self.permit, rows, followers=True)
        if self._whole is not None:
            # A change within a query is counted with all others: no number tells which is whose.
            found = rows if nested else own
            query = _together(self._whole.counts_after(found))
            if query is not None:
                self._whole.end(found, _numbers(await session.run_internal(query)))
        return rows if self._limited or nested else own


def counter_of(permit: Permit | None) -> RowCounter | None:
    """A counter for a change of limited size, or one that may be about every row of its table and
    must not; None if there is nothing to count."""
    whole = whole_change_of(permit)
    if permit is None or (permit.max_rows_changed is None and whole is None):
        return None
    return RowCounter(permit, whole)


def _together(queries: list[str]) -> bytes | None:
    """One query of what several count."""
    return f"SELECT {', '.join(f'({query})' for query in queries)}".encode() if queries else None


def _numbers(reading: PGresult) -> list[int]:
    if reading.status in FAILED:
        raise translate(reading)
    return [int(reading.get_value(0, place) or 0) for place in range(reading.nfields)]


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
