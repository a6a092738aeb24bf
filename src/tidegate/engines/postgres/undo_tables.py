"""The tables whose rows are kept, as the catalog has them, and the queries that read their rows.

Values are read and written as the texts of their types' input and output functions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from psycopg.pq.abc import PGresult

from tidegate.engines.common.undo_rows import FoundTable, UndoTable, found_table, reading_rows
from tidegate.engines.postgres.command_protocol import Params
from tidegate.engines.postgres.internal_queries import array_of, rows_of
from tidegate.engines.postgres.parameters import dump
from tidegate.model.changes import ImageColumn, TableImage
from tidegate.sql.change_outline import ChangeOutline
from tidegate.sql.dialects import find

_quote = find("postgres").quote


_RETURNS_OLD = 180000


_OLD_AND_NEW = frozenset({"old", "new"})


_LOOK = """
SELECT c.oid::text, n.nspname, c.relname,
  c.relkind = 'r' AND c.oid >= 16384 AND NOT c.relhassubclass AND NOT c.relispartition
    AND c.relpersistence = 'p',
  c.relhasrules OR c.relrowsecurity,
  EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.confrelid = c.oid AND k.contype = 'f'
    AND k.confdeltype NOT IN ('a', 'r')),
  EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.confrelid = c.oid AND k.contype = 'f'
    AND k.confupdtype NOT IN ('a', 'r')),
  pg_catalog.has_table_privilege(c.oid, 'SELECT')
    AND pg_catalog.has_table_privilege(c.oid, 'UPDATE'),
  EXISTS (SELECT FROM pg_catalog.pg_proc AS p WHERE p.provolatile = 'v'
    AND (p.proname = ANY ($2::name[]) OR (p.proname = ANY ($3::name[])
      AND p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace))),
  (SELECT pg_catalog.json_agg(t.tgname ORDER BY t.tgname) FROM pg_catalog.pg_trigger AS t
    WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D')::text,
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(a.attname,
      CASE WHEN y.typnamespace = 'pg_catalog'::pg_catalog.regnamespace
        THEN pg_catalog.format_type(a.atttypid, a.atttypmod)
        ELSE pg_catalog.quote_ident(s.nspname) || '.' || pg_catalog.quote_ident(y.typname) END,
      a.attidentity) ORDER BY a.attnum)
    FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS y ON y.oid = a.atttypid
      JOIN pg_catalog.pg_namespace AS s ON s.oid = y.typnamespace
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      AND a.attgenerated = '')::text,
  (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
    WHERE i.indrelid = c.oid AND i.indisprimary)::text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = """


_BY_NAME = f"{_LOOK}pg_catalog.to_regclass($1)".encode()


BY_PLACE = (
    f"{_LOOK}(SELECT o.oid FROM pg_catalog.pg_class AS o JOIN pg_catalog.pg_namespace AS m"
    " ON m.oid = o.relnamespace WHERE o.relname = $1 AND m.nspname = $4 LIMIT 1)"
).encode()


VERSION = ", t.ctid::text"
"""Where the row is: each update writes it to another place, also one that changes no value."""


def look_by_name(outline: ChangeOutline) -> tuple[bytes, Params]:
    name = ".".join(_quote(part) if given else part for part, given in outline.name)
    calls = [array_of(sorted(names)).encode() for names in (outline.row_calls, outline.calls)]
    return _BY_NAME, [name.encode(), *calls]


def look_at(kept: TableImage) -> tuple[bytes, Params]:
    return BY_PLACE, [kept.table.encode(), b"{}", b"{}", kept.schema.encode()]


def found_in(look: PGresult, outline: ChangeOutline, version: int) -> FoundTable | str:
    rows = rows_of(look)
    if not rows:
        return "its table was not found"
    row = rows[0]
    table = table_of(row)
    plain, rules, deletes_follow, updates_follow, may_lock, volatile = row[3:9]
    if plain is not True:
        return FoundTable(table, f"{table.name} is not an ordinary table with a log")
    deletes = outline.verb in ("delete", "merge")
    updates = outline.verb == "update" or outline.upserts
    shown = outline.returning.lower()
    objections = (
        (rules, f"{table.name} has rules or row security"),
        (
            deletes_follow and deletes,
            f"rows of other tables follow those of {table.name} that are deleted",
        ),
        (
            updates_follow and updates,
            f"rows of other tables follow changes of keys of {table.name}",
        ),
        (not may_lock, f"this account may not lock rows of {table.name}"),
        (volatile, "it calls a function that may do more than compute"),
        (
            outline.upserts and version < _RETURNS_OLD,
            "before version 18 PostgreSQL does not show the rows that ON CONFLICT DO UPDATE or"
            " MERGE changes as they were",
        ),
        (
            outline.upserts and not _OLD_AND_NEW.isdisjoint({outline.alias.lower(), table.name}),
            "its table is called like the states of a row, old and new",
        ),
        (shown.lstrip().startswith("with"), "its RETURNING gives the states of a row other names"),
    )
    return found_table(outline, table, objections)


def table_of(row: Sequence[Any]) -> UndoTable:
    oid, schema, name = row[:3]
    listed: list[list[str]] = json.loads(row[10] or "[]")
    columns = tuple([ImageColumn(each[0], each[1]) for each in listed])
    key: tuple[str, ...] = tuple(json.loads(row[11] or "[]"))
    shape = json.dumps([oid, listed, list(key)])
    if not {column.name for column in columns}.issuperset(key):
        key = ()  # a part of it is computed, and no value that is kept or written
    return UndoTable(
        schema,
        name,
        columns,
        key,
        shape,
        frozenset([each[0] for each in listed if each[2] == "a"]),
        tuple(json.loads(row[9] or "[]")),
    )


def locking(
    outline: ChangeOutline, table: UndoTable, params: Sequence[bytes | None], most: int
) -> tuple[bytes, Params]:
    shown = _texts(table.names, f"{outline.alias}.")
    shown = f"{shown}, {outline.alias}.ctid::text"
    text = f"{reading_rows(outline, shown)} LIMIT {most} FOR UPDATE OF {outline.alias}"
    return text.encode(), [params[place] for place in outline.rows.params]


def shown_of_added(outline: ChangeOutline, table: UndoTable) -> str:
    """What an INSERT or MERGE shows of its rows: as they were and as they are, or these alone."""
    if not outline.upserts:
        return _texts(table.names)
    return f"{_texts(table.names, 'old.')}, {_texts(table.names, 'new.')}"


def reading_by_keys(
    table: UndoTable, keys: Sequence[Sequence[Any]], more: str, *, locks: bool = False
) -> tuple[bytes, Params]:
    """Reads the rows with these keys, as texts."""
    source, params = unnest(table, table.key_places, keys)
    shown = ", ".join(f"t.{_quote(name)}::text" for name in table.names)
    lock = " FOR UPDATE OF t" if locks else ""
    condition = key_join_condition(table)
    text = f"SELECT {shown}{more} FROM {place_of(table)} AS t, {source} WHERE {condition}{lock}"
    return text.encode(), params


def unnest(
    table: UndoTable, places: Sequence[int], rows: Sequence[Sequence[Any]]
) -> tuple[str, Params]:
    """Rows of texts as a table `v` with the columns c0, c1, ..., and the parameters it takes."""
    names = ", ".join(f"c{at}" for at in range(len(places)))
    arrays = ", ".join(f"pg_catalog.unnest(${at + 1}::text[])" for at in range(len(places)))
    columns = [[row[at] for row in rows] for at in range(len(places))]
    return f"ROWS FROM ({arrays}) AS v({names})", dump(columns)


def key_join_condition(table: UndoTable) -> str:
    """That a row `t` has the key in the first columns of `v`."""
    places = table.key_places
    return " AND ".join(
        f"t.{_quote(table.names[place])} = v.c{at}::{table.columns[place].type}"
        for at, place in enumerate(places)
    )


def _texts(names: Sequence[str], of: str = "") -> str:
    return ", ".join(f"{of}{_quote(name)}::text" for name in names)


def place_of(table: UndoTable) -> str:
    return f"{_quote(table.schema)}.{_quote(table.name)}"
