"""Runs a change of a SQLite table and rolls it back; refuses those that cannot be rolled back.

All that a statement of SQLite does is in its transaction, triggers and foreign keys too, except
what virtual tables do. Other writers wait meanwhile, so the transaction is short. Rows are shown as
they are once all that follows the change is done; other rows that change with them are counted.
"""

from __future__ import annotations

import re
from contextlib import suppress

import apsw
from msgspec import structs

from tidegate.engines.common import dry_run as shared
from tidegate.engines.common.dry_run import MOST_CHARS, MOST_COLUMNS, MOST_TOUCHED
from tidegate.engines.sqlite.apsw_types import Rows
from tidegate.engines.sqlite.changes import changed_tables
from tidegate.engines.sqlite.connection import ProgressHandler, SqliteSession
from tidegate.engines.sqlite.inspect import Mode
from tidegate.model.statements import DryRun, Statement
from tidegate.sql.dialects import find
from tidegate.sql.dml_parser import DmlStatement, Part

_quote = find("sqlite").quote

_REPLACES = re.compile(r"\bON\s+CONFLICT\s+REPLACE\b", re.IGNORECASE)

_NO_KEY = "there is no key to find the rows by."
_REMOVED = "rows that are removed or get another key meanwhile are not shown."
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
            with session.guard_own():
                connection.execute("BEGIN IMMEDIATE", can_cache=False)
            followers = _followers(session, statement, name)
            reason = _objection(session, name) or _virtual(session, followers)
            if reason:
                return DryRun(reason=reason)
            columns, key, keys = _columns(session, name)
            shown = [_expression(column) for column in columns]
            params = statement.params
            counting = shared.counting(outline)
            if counting.text and _read_part(session, counting, params)[0][0] > MOST_TOUCHED:
                return shared.TOO_MANY
            before: Rows = []
            if outline.verb != "insert":
                sampling = shared.sampling(outline, shown, keys, max_rows)
                before = _read_part(session, sampling, params)
            made = connection.total_changes()
            results = shown if outline.verb == "insert" else []
            rows = _returned(session, outline, [*results, *(keys or ["1"])], params, max_rows)
            affected = connection.changes()
            more = connection.total_changes() - made - affected
            note = _also(more, followers or {name}) if more else ""
            width = len(columns)
            if outline.verb == "insert":
                if not more:
                    return shared.added(affected, columns, [row[:width] for row in rows])
                again = _again(session, name, shown, keys, rows[:max_rows], width)
                added = shared.added(affected, columns, [row[:width] for row in again])
                missing = len(again) < min(affected, max_rows)
                return _noted(structs.replace(added, reason=_REMOVED if missing else ""), note)
            if not keys and before:
                return DryRun(affected, reason=_NO_KEY)
            if outline.verb == "update" and before and shared.rekeys(outline, key):
                return DryRun(affected, reason=shared.REKEYED)
            touched = {tuple(row) for row in rows}
            before = [row for row in before if tuple(row[width:]) in touched]
            after = _again(session, name, shown, keys, before, width)
            return _noted(_pairs(outline, affected, columns, before, after), note)
        finally:
            with session.guard_own(), suppress(apsw.Error):
                if not connection.get_autocommit():
                    connection.execute("ROLLBACK", can_cache=False)


def _returned(
    session: SqliteSession,
    outline: DmlStatement,
    results: list[str],
    params: tuple[object, ...] | None,
    max_rows: int,
) -> Rows:
    """Run the change; what it returns of the rows that it makes, not what triggers do of them. Of
    added rows some, of others all: a trigger may have it pass over rows."""
    rows: Rows = []
    text = shared.returning(outline, results)
    with session.mode(Mode.WRITE):
        for row in session.connection.execute(text, params, can_cache=False):
            if len(rows) < max_rows or outline.verb != "insert":
                rows.append(row)
    return rows


def _followers(session: SqliteSession, statement: Statement, name: str) -> set[str]:
    """The tables of which triggers and foreign keys may change rows, by what SQLite asks its
    authorizer."""
    changed = changed_tables(session, statement)
    own = {each for each in changed if each.lower() == name.lower()}
    return (changed - own) | session.authorizer.reacting


def _virtual(session: SqliteSession, names: set[str]) -> str:
    """Why a change with these followers is not tried: a virtual table may keep things elsewhere."""
    for each in sorted(names):
        listed = _read(session, f"PRAGMA main.table_list({_quote(each)})")
        if any(row[2] == "virtual" for row in listed):
            return f"its triggers change the virtual table {each}."
    return ""


def _also(more: int, tables: set[str]) -> str:
    names = ", ".join(sorted(tables))
    return f"triggers or foreign keys would change other rows as well: {more:,}, of {names}"


def _noted(dry_run: DryRun, note: str) -> DryRun:
    if not note:
        return dry_run
    return structs.replace(
        dry_run, reason=f"{note}; {dry_run.reason}" if dry_run.reason else f"{note}."
    )


def _pairs(
    outline: DmlStatement, affected: int, columns: list[str], before: Rows, after: Rows
) -> DryRun:
    """The rows before and after by their keys; a deleted row that is there again shows as it is."""
    if outline.verb == "update":
        found = shared.dry_run_of(affected, columns, before, after)
        return structs.replace(found, reason=_REMOVED) if found.reason else found
    width = len(columns)
    there = {tuple(row[width:]): row for row in after}
    kept = [row for row in before if tuple(row[width:]) in there]
    gone = shared.dry_run_of(
        affected, columns, [row for row in before if tuple(row[width:]) not in there], None
    )
    if not kept:
        return gone
    back = shared.dry_run_of(affected, columns, kept, after)
    return structs.replace(
        gone, before=(*gone.before, *back.before), after=(*gone.after, *back.after)
    )


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
    session: SqliteSession,
    name: str,
    shown: list[str],
    keys: list[str],
    rows: Rows,
    width: int,
) -> Rows:
    """What is there now with the keys of these rows, which follow `width` columns."""
    found: Rows = []
    if not keys:
        return found
    condition = " AND ".join(f"{key} IS ?" for key in keys)
    text = f"SELECT {', '.join([*shown, *keys])} FROM {_quote(name)} WHERE {condition}"
    for row in rows:
        found += _read(session, text, tuple(row[width:]))
    return found
