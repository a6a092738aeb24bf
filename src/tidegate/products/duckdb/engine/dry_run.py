"""Runs a change of a DuckDB table and rolls it back; refuses those that cannot be rolled back. Runs
in the worker.

DuckDB reaches nothing outside the file here: all that a statement does is in its transaction,
except the numbers that it takes from sequences. Rows that triggers change would not be shown.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import duckdb

from tidegate.engines.common import dry_run as shared
from tidegate.engines.common.dry_run import MOST_CHARS, MOST_COLUMNS, MOST_TOUCHED, UNREAD
from tidegate.model.statements import DryRun, Effect
from tidegate.products.duckdb.dialect import DIALECT
from tidegate.products.duckdb.engine.connection import DuckdbSession
from tidegate.products.duckdb.engine.inspect import explained, read
from tidegate.products.duckdb.engine.messages import Run
from tidegate.products.duckdb.engine.transaction import check_effect
from tidegate.sql.dialects import find
from tidegate.sql.dml_parser import DmlStatement, Part, parse_dml

_quote = find("duckdb").quote

Rows = list[tuple[Any, ...]]

_NO_CALLS = frozenset(
    """
    and or not in where set between like when then else case values select from join on using as
    exists union all distinct having by
    """.split()  # noqa: SIM905 - a paragraph of words is easier to read and to change
)

_LOOK = """
WITH made AS (
  SELECT system.main.lower(function_name) AS name FROM system.main.duckdb_functions()
  WHERE NOT internal)
SELECT contains(lower(t.sql), 'nextval'),
  EXISTS (FROM made WHERE contains(lower(t.sql), name) OR list_contains($3, name)
    OR EXISTS (FROM duckdb_indexes() AS i WHERE i.table_oid = t.table_oid
      AND contains(lower(i.sql), name))),
  EXISTS (FROM duckdb_triggers())
FROM duckdb_tables() AS t
WHERE NOT t.internal AND NOT t.temporary AND t.database_name = current_database()
  AND lower(t.schema_name) = lower($1) AND lower(t.table_name) = lower($2)"""

_COLUMNS = """
SELECT column_name FROM duckdb_columns() WHERE database_name = current_database()
  AND lower(schema_name) = lower($1) AND lower(table_name) = lower($2) ORDER BY column_index"""

_KEY = """
SELECT unnest(constraint_column_names) FROM duckdb_constraints()
WHERE database_name = current_database() AND lower(schema_name) = lower($1)
  AND lower(table_name) = lower($2) AND constraint_type = 'PRIMARY KEY'"""


def run_dry(session: DuckdbSession, run: Run) -> DryRun:
    """Try it. Raises: TidegateError POLICY_* if it does more than `run.effect`; duckdb.Error."""
    found = parse_dml(run.text, "duckdb")
    if isinstance(found, str):
        return DryRun(reason=found)
    refused = shared.unsupported(found, run.params)
    if refused is not None:
        return refused
    check_effect(read(run.text), run)
    known = {function.lower() for function in DIALECT.functions} | _NO_CALLS
    if found.qualified or not {call.lower() for call in found.calls} <= known:
        return DryRun(reason="it calls a function that may do more than compute.")
    if len(found.name) > 2:
        return DryRun(reason="its database is not known.")
    if found.query.text and not _only_reads(session, run.version, found.query.text):
        return UNREAD
    cursor = session.cursor(run.version, writes=True)
    try:
        return _try(cursor, run, found)
    finally:
        with suppress(duckdb.Error):
            cursor.execute("ROLLBACK")
        session.drop(cursor)


def _only_reads(session: DuckdbSession, version: str, query: str) -> bool:
    cursor = session.cursor(version)
    try:
        return explained(read(query), cursor).effect is Effect.READ
    finally:
        session.drop(cursor)


def _try(cursor: duckdb.DuckDBPyConnection, run: Run, found: DmlStatement) -> DryRun:
    name = found.name[-1][0]
    schema = found.name[0][0] if len(found.name) > 1 else run.schema or "main"
    looked = _ask(cursor, _LOOK, [schema, name, sorted(found.calls)])
    if len(looked) != 1:
        return DryRun(reason="it is not about a plain table.")
    counts, calls, triggers = looked[0]
    if triggers:
        return DryRun(reason="the database has triggers.")
    if counts:
        return DryRun(
            reason="it may take a number from a sequence, which a rollback does not give back."
        )
    if calls:
        return DryRun(reason="it calls functions of users.")
    every = [str(row[0]) for row in _ask(cursor, _COLUMNS, [schema, name])]
    columns = every[:MOST_COLUMNS]
    shown = [f"left(CAST({_quote(each)} AS VARCHAR), {MOST_CHARS})" for each in columns]
    known = [str(row[0]) for row in _ask(cursor, _KEY, [schema, name])]
    key = list(map(_quote, known)) or ["rowid"]
    counting = shared.counting(found)
    if counting.text and _ask_part(cursor, counting, run.params)[0][0] > MOST_TOUCHED:
        return shared.TOO_MANY
    if found.verb == "insert":
        rows = _ask(cursor, shared.returning(found, shown), run.params)
        return shared.added(len(rows), columns, rows[: run.max_rows])
    sampling = shared.sampling(found, shown, key, run.max_rows)
    before = _ask_part(cursor, sampling, run.params)
    ((affected,),) = _ask(cursor, run.text, run.params)
    if found.verb == "delete":
        return shared.dry_run_of(affected, columns, before, None)
    if before and shared.rekeys(found, known):
        return DryRun(affected, reason=shared.REKEYED)
    if before and not known and "rowid" in map(str.lower, every):
        return DryRun(affected, reason="its table has no primary key to find the rows by.")
    again = f"SELECT {', '.join([*shown, *key])} FROM {_quote(schema)}.{_quote(name)} WHERE "
    again += " AND ".join(f"{each} = ${place}" for place, each in enumerate(key, 1))
    after: Rows = []
    for row in before:
        after += _ask(cursor, again, list(row[len(columns) :]))
    return shared.dry_run_of(affected, columns, before, after)


def _ask_part(cursor: duckdb.DuckDBPyConnection, part: Part, params: list[Any] | None) -> Rows:
    return _ask(cursor, part.text, shared.taken(part, params))


def _ask(cursor: duckdb.DuckDBPyConnection, text: str, params: list[Any] | None) -> Rows:
    return cursor.execute(text, params or None).fetchall()
