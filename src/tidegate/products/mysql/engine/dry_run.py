"""Runs a change of an InnoDB table and rolls it back; refuses those that cannot be rolled back.

A trigger or a stored function may write to a table without transactions. Triggers are visible only
with the privilege TRIGGER, so without it no dry run takes place.
"""

from __future__ import annotations

from tidegate.engines.common import dry_run as shared
from tidegate.engines.common.dry_run import MOST_CHARS, MOST_COLUMNS, MOST_TOUCHED
from tidegate.model.statements import DryRun
from tidegate.products.mysql.engine.catalog import sees_triggers
from tidegate.products.mysql.engine.connection import ROLLBACK, MysqlSession
from tidegate.products.mysql.engine.packets import Rows
from tidegate.sql.dialects import find
from tidegate.sql.dml_parser import DmlStatement

_quote = find("mysql").quote

_WAIT = b"SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"
_TABLE = b"""SELECT engine, table_type FROM information_schema.tables
  WHERE table_schema = ? AND table_name = ?"""
_TRIGGERS = b"""SELECT count(*) FROM information_schema.triggers
  WHERE event_object_schema = ? AND event_object_table = ?"""
_FOLLOWERS = b"""SELECT count(*) FROM information_schema.referential_constraints
  WHERE unique_constraint_schema = ? AND referenced_table_name = ?
  AND NOT (delete_rule IN ('RESTRICT', 'NO ACTION') AND update_rule IN ('RESTRICT', 'NO ACTION'))"""
_COLUMNS = b"""SELECT column_name, column_key, extra, column_default FROM information_schema.columns
  WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position"""
_NO_CALLS = frozenset(
    """
    and or not in where set between like when then else case values select from join on using as
    exists union all distinct having by
    """.split()  # noqa: SIM905 - a paragraph of words is easier to read and to change
)
"""Reserved words: no function has such a name unquoted."""

MOST_RETURNED = 1_000
"""What an INSERT adds is sent to us whole, so of more rows none is shown."""


async def run_dry(
    session: MysqlSession,
    text: bytes,
    params: tuple[object, ...],
    outline: DmlStatement,
    database: str | None,
    max_rows: int,
) -> DryRun:
    """Try it, and leave no transaction open. The caller ends the session if this raises.

    Raises: ServerError, TidegateError.
    """
    name = outline.name[-1][0]
    schema = outline.name[0][0] if len(outline.name) > 1 else database
    if schema is None or len(outline.name) > 2:
        return DryRun(reason="its database is not known.")
    session.needs_reset = True
    await session.query_internal(_WAIT)
    changed = text.decode()
    if outline.where.text:
        changed = changed[: changed.rfind(outline.where.text)]
    reason = await _objection(session, changed, outline, schema, name)
    if reason:
        return DryRun(reason=reason)
    await session.open_transaction()
    try:
        if outline.verb == "insert":
            return await _insert(session, params, outline, schema, name, max_rows)
        return await _try(session, text, params, outline, schema, name, max_rows)
    finally:
        await session.end(ROLLBACK)


async def _objection(
    session: MysqlSession, text: str, outline: DmlStatement, schema: str, name: str
) -> str:
    known = {function.lower() for function in find("mysql").functions} | _NO_CALLS
    if outline.qualified or not {call.lower() for call in outline.calls} <= known:
        return "it calls a function that may do more than compute."
    if not sees_triggers(
        [str(row[0]) for row in await session.query_internal(b"SHOW GRANTS")], schema
    ):
        return "the account lacks TRIGGER, and so cannot see whether its table has triggers."
    tables = await session.query_internal(_TABLE, schema, name)
    if [tuple(map(str, row)) for row in tables] != [("InnoDB", "BASE TABLE")]:
        return "it is not about an InnoDB table."
    if (await session.query_internal(_TRIGGERS, schema, name))[0][0]:
        return "its table has triggers."
    if (await session.query_internal(_FOLLOWERS, schema, name))[0][0]:
        return "other tables follow changes of its keys."
    if outline.verb == "delete":
        return ""
    adds = outline.verb == "insert"
    for column, _, extra, default in await session.query_internal(_COLUMNS, schema, name):
        numbers = "auto_increment" in str(extra).lower()
        if numbers and (adds or str(column).lower() in text.lower()):
            return "it may use up numbers of its table, which a rollback does not give back."
        if adds and "nextval" in str(default).lower():
            return "it may take a number from a sequence, which a rollback does not give back."
    return ""


async def _try(
    session: MysqlSession,
    text: bytes,
    params: tuple[object, ...],
    outline: DmlStatement,
    schema: str,
    name: str,
    max_rows: int,
) -> DryRun:
    found = await session.query_internal(_COLUMNS, schema, name)
    columns, shown = _shown(found)
    key = [str(row[0]) for row in found if row[1] == "PRI"]
    keys = [_quote(each) for each in key]
    if await _touched(session, outline, params) > MOST_TOUCHED:
        return shared.TOO_MANY
    sampling = shared.sampling(outline, shown, keys, max_rows)
    before = await session.query_internal(sampling.text.encode(), *shared.taken(sampling, params))
    await session.query_internal(text, *params)
    affected = session.line.affected
    if outline.verb == "delete":
        return shared.dry_run_of(affected, columns, before, None)
    if before and not key:
        return DryRun(affected, reason="its table has no primary key to find the rows by.")
    if before and shared.rekeys(outline, key):
        return DryRun(affected, reason=shared.REKEYED)
    condition = " AND ".join(f"{each} = ?" for each in keys)
    again = f"SELECT {', '.join([*shown, *keys])} FROM {_quote(schema)}.{_quote(name)}"
    after: Rows = []
    for row in before:
        after += await session.query_internal(
            f"{again} WHERE {condition}".encode(), *row[len(columns) :]
        )
    return shared.dry_run_of(affected, columns, before, after)


async def _insert(
    session: MysqlSession,
    params: tuple[object, ...],
    outline: DmlStatement,
    schema: str,
    name: str,
    max_rows: int,
) -> DryRun:
    columns, shown = _shown(await session.query_internal(_COLUMNS, schema, name))
    touched = await _touched(session, outline, params)
    if touched > MOST_TOUCHED:
        return shared.TOO_MANY
    if session.setting.mariadb and touched <= MOST_RETURNED:
        rows = await session.query_internal(shared.returning(outline, shown).encode(), *params)
        return shared.added(len(rows), columns, rows[:max_rows])
    await session.query_internal(outline.body.encode(), *params)
    return DryRun(session.line.affected, reason="the rows that it adds cannot be shown here.")


async def _touched(session: MysqlSession, outline: DmlStatement, params: tuple[object, ...]) -> int:
    counting = shared.counting(outline)
    if not counting.text:
        return 0
    ((touched,),) = await session.query_internal(
        counting.text.encode(), *shared.taken(counting, params)
    )
    return int(touched)


def _shown(found: Rows) -> tuple[list[str], list[str]]:
    """The columns that are shown, and the expressions that show them."""
    columns = [str(row[0]) for row in found][:MOST_COLUMNS]
    return columns, [
        f"LEFT(CONVERT({_quote(each)} USING utf8mb4), {MOST_CHARS})" for each in columns
    ]
