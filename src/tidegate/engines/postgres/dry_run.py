"""Runs a change of a PostgreSQL table and rolls it back; refuses those that cannot be rolled back.

ROLLBACK does not undo sequences, notifications, or the outside effects of user functions. So a dry
run takes place only if the catalog shows that the statement can reach no such thing.
"""

from __future__ import annotations

import json

from psycopg.pq.abc import PGresult

from tidegate.engines.common import dry_run as shared
from tidegate.engines.common.dry_run import (
    LOCK_WAIT_MS,
    MOST_CHARS,
    MOST_COLUMNS,
    MOST_TOUCHED,
)
from tidegate.engines.postgres.command_protocol import Params
from tidegate.engines.postgres.connection import BEGIN_WRITE, ROLLBACK, PostgresSession
from tidegate.engines.postgres.internal_queries import array_of, rows_of, send_queries
from tidegate.engines.postgres.transaction import TransactionSettings, settings_query
from tidegate.model.statements import DryRun
from tidegate.sql.dialects import find
from tidegate.sql.dml_parser import DmlStatement, Part

_quote = find("postgres").quote
_literal = find("postgres").text_literal

LOCK_WAIT = f"SELECT pg_catalog.set_config('lock_timeout', '{LOCK_WAIT_MS}', true)".encode()

_TREES = """
  SELECT k.conbin::text AS tree FROM pg_catalog.pg_constraint AS k
    WHERE k.conrelid = c.oid AND k.conbin IS NOT NULL
  UNION ALL SELECT d.adbin::text FROM pg_catalog.pg_attrdef AS d
    JOIN pg_catalog.pg_attribute AS g ON g.attrelid = d.adrelid AND g.attnum = d.adnum
    WHERE d.adrelid = c.oid AND g.attgenerated <> ''
  UNION ALL SELECT coalesce(i.indexprs::text, '') || coalesce(i.indpred::text, '')
    FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid"""

LOOK = rf"""
SELECT c.relkind <> 'r' OR c.oid < 16384 OR c.relhassubclass OR c.relispartition,
  c.relhasrules OR c.relrowsecurity,
  EXISTS (SELECT FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
  EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.confrelid = c.oid AND k.contype = 'f'
    AND (k.confdeltype NOT IN ('a', 'r') OR k.confupdtype NOT IN ('a', 'r'))),
  EXISTS (SELECT FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS y
    ON y.oid = a.atttypid JOIN pg_catalog.pg_type AS e ON e.oid IN (y.oid, y.typelem)
    WHERE a.attrelid = c.oid AND a.attnum > 0
    AND (e.typtype IN ('c', 'd') OR e.typtype IN ('r', 'm') AND e.oid >= 16384)),
  EXISTS (SELECT FROM ({_TREES}) AS trees,
    pg_catalog.regexp_matches(tree, ':(funcid|opfuncid|opno|aggfnoid) (\d+)', 'g') AS m
    LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = m[2]::oid AND m[1] <> 'opno'
    WHERE m[2]::bigint >= 16384 OR p.provolatile = 'v'),
  EXISTS (SELECT FROM pg_catalog.pg_proc AS p WHERE p.proname = ANY ($2::name[])
    AND (p.provolatile = 'v' OR p.oid >= 16384)),
  EXISTS (SELECT FROM pg_catalog.pg_proc AS p WHERE p.oid >= 16384 AND p.prolang NOT IN (
    SELECT l.oid FROM pg_catalog.pg_language AS l WHERE l.lanname IN ('internal', 'c')) AND (
    p.proargtypes[0] = c.reltype OR EXISTS (
      SELECT FROM pg_catalog.pg_operator AS o WHERE o.oprcode = p.oid) OR EXISTS (
      SELECT FROM pg_catalog.pg_cast AS s WHERE s.castfunc = p.oid) OR EXISTS (
      SELECT FROM pg_catalog.pg_amproc AS u WHERE u.amproc = p.oid))),
  (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)::text,
  (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
    WHERE i.indrelid = c.oid AND i.indisprimary)::text
FROM pg_catalog.pg_class AS c WHERE c.oid = pg_catalog.to_regclass($1)""".encode()

_HARMLESS = "'gen_random_uuid', 'uuidv4', 'uuidv7', 'random', 'clock_timestamp', 'timeofday'"

DEFAULTS = rf"""
SELECT bool_or(a.attidentity <> ''
    OR m[2] = 'pg_catalog.nextval(regclass)'::regprocedure::oid::text),
  bool_or(m[2]::bigint >= 16384 OR p.provolatile = 'v' AND p.proname NOT IN ({_HARMLESS}))
FROM pg_catalog.pg_attribute AS a
  LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN LATERAL pg_catalog.regexp_matches(
    d.adbin::text, ':(funcid|opfuncid|opno|aggfnoid) (\d+)', 'g') AS m ON true
  LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = m[2]::oid AND m[1] <> 'opno'
WHERE a.attrelid = pg_catalog.to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
  AND a.attgenerated = '' AND a.attname <> ALL ($2::name[])""".encode()
"""What the columns that an INSERT leaves out are filled with."""

OBJECTIONS = (
    "it is not about a plain table.",
    "its table has rules or row security.",
    "its table has triggers.",
    "other tables follow changes of its keys.",
    "its table has columns of a domain, or of rows or ranges that users defined.",
    "its table calls functions of users.",
    "it calls a function that may do more than compute.",
    "operators, indexes, casts or rows use functions of users.",
)


async def run_dry(
    session: PostgresSession,
    text: bytes,
    params: list[bytes | None],
    outline: DmlStatement,
    settings: TransactionSettings,
    max_rows: int,
) -> DryRun:
    """Try it, and leave no transaction open. The caller ends the session if this raises.

    Raises: TidegateError.
    """
    name = _name(outline)
    calls = array_of(sorted(outline.calls))
    look = (LOOK, [name.encode(), calls.encode()])
    results = await send_queries(
        session, (BEGIN_WRITE, None), settings_query(settings), (LOCK_WAIT, None), look
    )
    try:
        return await _try(session, text, params, outline, results[-1], max_rows)
    finally:
        await session.end(ROLLBACK)
        await session.settle()


async def _try(
    session: PostgresSession,
    text: bytes,
    params: list[bytes | None],
    outline: DmlStatement,
    look: PGresult,
    max_rows: int,
) -> DryRun:
    found = rows_of(look)
    if not found:
        return DryRun(reason="its table was not found.")
    *flags, columns_text, key_text = found[0]
    for objection, flag in zip(OBJECTIONS, flags, strict=True):
        if flag is not False:
            return DryRun(reason=objection)
    columns: list[str] = json.loads(columns_text or "[]")[:MOST_COLUMNS]
    key: list[str] = json.loads(key_text or "[]")
    shown = [f"pg_catalog.left({_quote(each)}::text, {MOST_CHARS})" for each in columns]
    keys = [f"{_quote(each)}::text" for each in key]
    counting = shared.counting(outline)
    if counting.text:
        (counted,) = await send_queries(session, _query(counting, params))
        if rows_of(counted)[0][0] > MOST_TOUCHED:
            return shared.TOO_MANY
    if outline.verb == "insert":
        return await _insert(session, params, outline, columns, shown, max_rows)
    sampling = shared.sampling(outline, shown, keys, max_rows)
    (sampled,) = await send_queries(session, _query(sampling, params))
    before = rows_of(sampled)
    (done,) = await send_queries(session, (text, params))
    affected = int(done.command_tuples or 0)
    deletes = outline.verb == "delete"
    if deletes or not before:
        return shared.dry_run_of(affected, columns, before, None if deletes else [])
    if not key:
        return DryRun(affected, reason="its table has no primary key to find the rows by.")
    if shared.rekeys(outline, key):
        return DryRun(affected, reason=shared.REKEYED)
    left = ", ".join(_quote(each) for each in key)
    values = ", ".join(
        "(" + ", ".join(_literal(value) for value in row[len(columns) :]) + ")" for row in before
    )
    again = f"SELECT {', '.join([*shown, *keys])} FROM {_name(outline)}"
    again += f" WHERE ({left}) IN ({values})"
    (after,) = await send_queries(session, (again.encode(), None))
    return shared.dry_run_of(affected, columns, before, rows_of(after))


async def _insert(
    session: PostgresSession,
    params: list[bytes | None],
    outline: DmlStatement,
    columns: list[str],
    shown: list[str],
    max_rows: int,
) -> DryRun:
    given = [name if exact else name.lower() for name, exact in outline.columns or ()]
    listed = array_of(given)
    (found,) = await send_queries(session, (DEFAULTS, [_name(outline).encode(), listed.encode()]))
    counts, computes = (rows_of(found) or [(None, None)])[0]
    if counts:
        return DryRun(
            reason="it would take a number from a sequence, which a rollback does not give back."
        )
    if computes:
        return DryRun(reason="a default of its table may do more than compute.")
    names = [f"c{place}" for place in range(len(shown))]
    text = (
        f"WITH added ({', '.join(names)}) AS (\n{shared.returning(outline, shown)}\n)"
        f" SELECT pg_catalog.count(*) OVER (), {', '.join(names)} FROM added LIMIT {max_rows}"
    )
    (added,) = await send_queries(session, (text.encode(), params))
    rows = rows_of(added)
    return shared.added(rows[0][0] if rows else 0, columns, [row[1:] for row in rows])


def _query(part: Part, params: list[bytes | None]) -> tuple[bytes, Params]:
    return part.text.encode(), shared.taken(part, params)


def _name(outline: DmlStatement) -> str:
    """The table's name alone, as a statement names it."""
    return ".".join(_quote(part) if given else part for part, given in outline.name)
