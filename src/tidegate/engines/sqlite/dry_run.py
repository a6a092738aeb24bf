"""Runs a change of a SQLite table and rolls it back; refuses those that cannot be rolled back.

All that a statement of SQLite does is in its transaction, except what virtual tables do. Other
writers wait meanwhile, so the transaction is short.
"""

from __future__ import annotations

import re
from contextlib import suppress

import apsw

from tidegate.engines.common import dry_run as shared
from tidegate.engines.common.dry_run import MOST_CHARS, MOST_COLUMNS, MOST_TOUCHED
from tidegate.engines.sqlite.apsw_types import Rows
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.inspect import Mode
from tidegate.model.statements import DryRun, Statement
from tidegate.sql.dialects import find
from tidegate.sql.dml_parser import DmlStatement, Part

_quote = find("sqlite").quote

_REPLACES = re.compile(r"\bON\s+CONFLICT\s+REPLACE\b", re.IGNORECASE)

_TRIGGERS = "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' LIMIT 1"
_OWN_TRIGGERS = (
    "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE LIMIT 1"
)
_FOLLOWERS = """
SELECT 1 FROM pragma_table_list AS t, pragma_foreign_key_list(t.name) AS f
WHERE t.schema = 'main' AND t.type = 'table' AND f."table" = ?1 COLLATE NOCASE LIMIT 1"""

_ROWIDS = ("rowid", "oid", "_rowid_")


def run_dry(
    session: SqliteSession,
    progress_handler: ProgressHandler,
    statement: Statement,
    outline: DmlStatement,
    max_rows: int,
) -> DryRun:
    """Try it in the session's thread. Raises: TidegateError."""
    name = outline.name[-1][0]
    if len(outline.name) > 1 and outline.name[0][0].lower() != "main":
        return DryRun(reason="its table is in another schema.")
    connection = session.connection
    with session.stepping(progress_handler):
        try:
            with session.own():
                connection.execute("BEGIN IMMEDIATE", can_cache=False)
            reason = _objection(session, name)
            if reason:
                return DryRun(reason=reason)
            columns, key, keys = _columns(session, name)
            shown = [_expression(column) for column in columns]
            params = statement.params
            counting = shared.counting(outline)
            if counting.text and _read_part(session, counting, params)[0][0] > MOST_TOUCHED:
                return shared.TOO_MANY
            if outline.verb == "insert":
                rows: Rows = []
                affected = 0
                with session.mode(Mode.WRITE):
                    text = shared.returning(outline, shown)
                    for row in connection.execute(text, params, can_cache=False):
                        affected += 1
                        if affected <= max_rows:
                            rows.append(row)
                return shared.added(affected, columns, rows)
            before = _read_part(session, shared.sampling(outline, shown, keys, max_rows), params)
            made = connection.total_changes()
            with session.mode(Mode.WRITE):
                connection.execute(statement.text, params, can_cache=False).fetchall()
            affected = connection.changes()
            if connection.total_changes() - made > affected:
                return DryRun(affected, reason="foreign keys would change other rows as well.")
            after = None
            if outline.verb == "update":
                if before and shared.rekeys(outline, key):
                    return DryRun(affected, reason=shared.REKEYED)
                if before and not keys:
                    return DryRun(affected, reason="there is no key to find the rows by.")
                after = _again(session, name, shown, keys, before)
            return shared.dry_run_of(affected, columns, before, after)
        finally:
            with session.own(), suppress(apsw.Error):
                if not connection.get_autocommit():
                    connection.execute("ROLLBACK", can_cache=False)


def _read(session: SqliteSession, text: str, values: tuple[object, ...] = ()) -> Rows:
    return session.connection.execute(text, values, can_cache=False).fetchall()


def _read_part(session: SqliteSession, part: Part, params: tuple[object, ...] | None) -> Rows:
    return _read(session, part.text, tuple(shared.taken(part, params)))


def _objection(session: SqliteSession, name: str) -> str:
    rows = _read(
        session,
        "SELECT type, sql FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE AND type <> 'index'",
        (name,),
    )
    if len(rows) != 1 or rows[0][0] != "table":
        return "it is not about a base table."
    if (rows[0][1] or "").lstrip()[:14].upper().startswith("CREATE VIRTUAL"):
        return "its table is a virtual one."
    if _REPLACES.search(rows[0][1] or ""):
        return "its table replaces other rows on a conflict."
    if _read(session, _OWN_TRIGGERS, (name,)):
        return "its table has triggers."
    if _read(session, _TRIGGERS) and _read(session, _FOLLOWERS, (name,)):
        return "rows of other tables follow its rows, and the database has triggers."
    return ""


def _columns(session: SqliteSession, name: str) -> tuple[list[str], list[str], list[str]]:
    """The columns that are shown, the names of the key, and the expressions that tell a row: its
    rowid under a name that no column has, since a primary key may hold NULL more than once."""
    rows = _read(session, f"PRAGMA table_info({_quote(name)})")
    columns = [str(row[1]) for row in rows]
    key = [str(row[1]) for row in sorted(rows, key=lambda row: row[5]) if row[5]]
    listed = _read(session, f"PRAGMA table_list({_quote(name)})")
    if any(row[0] == "main" and row[4] for row in listed):  # WITHOUT ROWID
        return columns[:MOST_COLUMNS], key, [_quote(each) for each in key]
    taken = {column.lower() for column in columns}
    free = [alias for alias in _ROWIDS if alias not in taken]
    return columns[:MOST_COLUMNS], [*key, *free], free[:1]


def _expression(column: str) -> str:
    name = _quote(column)
    return (
        f"CASE typeof({name}) WHEN 'blob' THEN 'x' || hex(substr({name}, 1, {MOST_CHARS // 4}))"
        f" ELSE substr({name}, 1, {MOST_CHARS}) END"
    )


def _again(
    session: SqliteSession, name: str, shown: list[str], keys: list[str], before: Rows
) -> Rows:
    """The same rows by their keys."""
    found: Rows = []
    condition = " AND ".join(f"{key} IS ?" for key in keys)
    text = f"SELECT {', '.join([*shown, *keys])} FROM {_quote(name)} WHERE {condition}"
    for row in before:
        found += _read(session, text, tuple(row[len(shown) :]))
    return found
