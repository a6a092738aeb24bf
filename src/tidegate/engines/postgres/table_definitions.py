"""The statements that make a table or view of PostgreSQL, with the types and sequences it needs.

PostgreSQL keeps no text of a table, so its DDL is composed of the parts that the server itself
prints: with an empty search path, so that every name has its schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.types import Rows
from tidegate.engines.postgres.user_types import TYPES, UserTypes
from tidegate.model.sources import Identity

QUALIFIED = b"SELECT pg_catalog.set_config('search_path', '', true)"

# What one table is made of, for its DDL. `$1` is its oid. Names come quoted.

DDL_TABLE = b"""
SELECT c.relkind::text, pg_catalog.format('%I.%I', n.nspname, c.relname), c.relpersistence::text,
  pg_catalog.pg_get_partkeydef(c.oid), pg_catalog.pg_get_expr(c.relpartbound, c.oid),
  pg_catalog.array_to_string(c.reloptions, ', '), c.relrowsecurity,
  ARRAY(SELECT pg_catalog.format('%I.%I', m.nspname, p.relname) FROM pg_catalog.pg_inherits AS h
    JOIN pg_catalog.pg_class AS p ON p.oid = h.inhparent
    JOIN pg_catalog.pg_namespace AS m ON m.oid = p.relnamespace
    WHERE h.inhrelid = c.oid ORDER BY h.inhseqno),
  pg_catalog.quote_ident(s.srvname),
  CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid, true) END,
  CASE WHEN n.nspname <> 'public' THEN pg_catalog.quote_ident(n.nspname) END
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_foreign_table AS f ON f.ftrelid = c.oid
LEFT JOIN pg_catalog.pg_foreign_server AS s ON s.oid = f.ftserver
WHERE c.oid = $1::oid"""

DDL_COLUMNS = b"""
SELECT pg_catalog.quote_ident(a.attname), pg_catalog.format_type(a.atttypid, a.atttypmod),
  CASE WHEN a.attcollation <> t.typcollation THEN (SELECT
    pg_catalog.format('%I.%I', m.nspname, k.collname) FROM pg_catalog.pg_namespace AS m
    WHERE m.oid = k.collnamespace) END,
  CASE WHEN a.atthasdef THEN pg_catalog.pg_get_expr(d.adbin, d.adrelid) END,
  a.attnotnull, a.attidentity::text, a.attgenerated::text
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_catalog.pg_collation AS k ON k.oid = a.attcollation
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

DDL_CONSTRAINTS = b"""
SELECT pg_catalog.format('CONSTRAINT %I %s', conname, pg_catalog.pg_get_constraintdef(oid, true))
FROM pg_catalog.pg_constraint
WHERE conrelid = $1::oid AND contype IN ('p', 'u', 'f', 'c', 'x') AND conislocal
ORDER BY pg_catalog.array_position(ARRAY['p', 'u', 'f', 'c', 'x'], contype::text), conname"""

DDL_BEHIND = b"""
(SELECT pg_catalog.pg_get_indexdef(i.indexrelid) FROM pg_catalog.pg_index AS i
WHERE i.indrelid = $1::oid AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conindid = i.indexrelid
    AND k.contype IN ('p', 'u', 'x'))
ORDER BY i.indexrelid)
UNION ALL
SELECT pg_catalog.pg_get_triggerdef(oid, true) FROM pg_catalog.pg_trigger
WHERE tgrelid = $1::oid AND NOT tgisinternal
UNION ALL
SELECT pg_catalog.format('COMMENT ON %s %s%s IS %L',
  CASE WHEN d.objsubid > 0 THEN 'COLUMN' ELSE CASE c.relkind WHEN 'v' THEN 'VIEW'
    WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END END,
  pg_catalog.format('%I.%I', n.nspname, c.relname),
  CASE WHEN d.objsubid > 0 THEN '.' || pg_catalog.quote_ident(a.attname) END, d.description)
FROM pg_catalog.pg_description AS d
JOIN pg_catalog.pg_class AS c ON c.oid = d.objoid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = d.objsubid
WHERE d.classoid = 'pg_catalog.pg_class'::regclass AND d.objoid = $1::oid"""

DDL_TYPES = b"""
SELECT DISTINCT a.atttypid FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1"""

DDL_SEQUENCES = b"""
SELECT pg_catalog.quote_ident(a.attname), d.deptype::text,
  pg_catalog.format('%I.%I', n.nspname, c.relname),
  n.oid = t.relnamespace AND c.relname = pg_catalog.concat(t.relname, '_', a.attname, '_seq'),
  pg_catalog.format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, s.seqmax,
  s.seqcache, s.seqcycle,
  CASE WHEN n.nspname <> 'public' THEN pg_catalog.quote_ident(n.nspname) END
FROM (SELECT objid, refobjsubid AS at, deptype FROM pg_catalog.pg_depend
    WHERE classid = 'pg_catalog.pg_class'::regclass AND deptype IN ('a', 'i')
      AND refclassid = 'pg_catalog.pg_class'::regclass AND refobjid = $1::oid
  UNION ALL SELECT u.refobjid, f.adnum, 'n' FROM pg_catalog.pg_attrdef AS f
    JOIN pg_catalog.pg_depend AS u ON u.objid = f.oid
      AND u.classid = 'pg_catalog.pg_attrdef'::regclass
      AND u.refclassid = 'pg_catalog.pg_class'::regclass
    WHERE f.adrelid = $1::oid AND u.refobjid <> $1::oid AND NOT EXISTS (
      SELECT FROM pg_catalog.pg_depend AS o WHERE o.objid = u.refobjid
        AND o.classid = 'pg_catalog.pg_class'::regclass AND o.deptype IN ('a', 'i')
        AND o.refobjid = $1::oid)) AS d
JOIN pg_catalog.pg_class AS c ON c.oid = d.objid AND c.relkind = 'S'
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_sequence AS s ON s.seqrelid = c.oid
JOIN pg_catalog.pg_class AS t ON t.oid = $1::oid
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = d.at
ORDER BY d.at"""
"""Those of a table's columns: `i` of an identity, `a` owned by it, `n` only used by a default."""

_DDL_KINDS = {"r": "TABLE", "p": "TABLE", "f": "FOREIGN TABLE"}
_VIEWS = {"v": "VIEW", "m": "MATERIALIZED VIEW"}
_PERSISTENCE = {"u": "UNLOGGED ", "t": "TEMPORARY "}


async def read_definition(
    session: PostgresSession, oid: int, timeout_ms: int, identity: Identity | None
) -> str:
    """The statements that make one table or view. Raises: TidegateError."""
    place = [b"%d" % oid]
    _, *parts = await session.ask(
        QUALIFIED,
        (DDL_TABLE, place),
        (DDL_COLUMNS, place),
        (DDL_CONSTRAINTS, place),
        (DDL_BEHIND, place),
        (DDL_SEQUENCES, place),
        (DDL_TYPES, place),
        TYPES,
        timeout_ms=timeout_ms,
        identity=identity,
    )
    return compose(*parts)


def compose(
    table: Rows,
    columns: Rows,
    constraints: Rows,
    behind: Rows,
    sequences: Sequence[tuple[Any, ...]] = (),
    used: Sequence[tuple[Any, ...]] = (),
    types: Sequence[tuple[Any, ...]] = (),
) -> str:
    """The statements that make a table or view, each ending with a semicolon. What its columns
    need comes first; that of a view and of a part of another table is there with its tables."""
    kind, name, _, _, _, _, secured, parents, _, view, schema = table[0]
    if kind in _VIEWS:
        first = [f"CREATE {_VIEWS[kind]} {name} AS\n{view.strip().removesuffix(';')}"]
    else:
        numbered = {row[0]: _numbering(row) for row in sequences if row[1] == "i"}
        others = [row for row in sequences if row[1] != "i"]
        places = [] if parents else [schema, *(row[-1] for row in others)]
        oids = [] if parents else [oid for (oid,) in used]
        first = UserTypes(list(types)).statements(oids, places)
        first += [f"CREATE SEQUENCE IF NOT EXISTS {row[2]}{_options(row)}" for row in others]
        first.append(_table(table[0], columns, constraints, numbered))
        first += [
            f"ALTER SEQUENCE {row[2]} OWNED BY {name}.{row[0]}" for row in others if row[1] == "a"
        ]
    statements = [*first, *[str(row[0]) for row in behind]]
    if kind not in _VIEWS and secured:
        statements.append(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
    return "".join(f"{statement};\n" for statement in statements).rstrip("\n")


_LARGEST = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1}


def _options(row: tuple[Any, ...]) -> str:
    """The options of a sequence that are not the usual ones."""
    kind, start, step, least, most, cache, cycles = row[4:11]
    largest = _LARGEST.get(kind, 0)
    up = step > 0
    usual = (1, largest) if up else (-largest - 1, -1)
    text = "" if kind == "bigint" or row[1] == "i" else f" AS {kind}"
    text += "" if step == 1 else f" INCREMENT BY {step}"
    text += "" if least == usual[0] else f" MINVALUE {least}"
    text += "" if most == usual[1] else f" MAXVALUE {most}"
    text += "" if start == (least if up else most) else f" START WITH {start}"
    text += "" if cache == 1 else f" CACHE {cache}"
    return f"{text} CYCLE" if cycles else text


def _numbering(row: tuple[Any, ...]) -> str:
    """What follows AS IDENTITY; empty if nothing does."""
    name = "" if row[3] else f" SEQUENCE NAME {row[2]}"
    text = f"{name}{_options(row)}".strip()
    return f" ({text})" if text else ""


def _table(
    row: tuple[Any, ...], columns: Rows, constraints: Rows, numbered: Mapping[str, str]
) -> str:
    kind, name, persistence, partition_key, bound, options, _, parents, server, *_ = row
    parts = [f"  {_column(column, numbered)}" for column in columns]
    parts += [f"  {constraint}" for (constraint,) in constraints]
    text = f"CREATE {_PERSISTENCE.get(persistence, '')}{_DDL_KINDS[kind]} {name} (\n"
    text += ",\n".join(parts) + "\n)"
    if bound:
        return f"{text};\nALTER TABLE {parents[0]} ATTACH PARTITION {name} {bound}"
    if parents:
        text += f" INHERITS ({', '.join(parents)})"
    if partition_key:
        text += f" PARTITION BY {partition_key}"
    if server:
        text += f" SERVER {server}"
    if options:
        text += f" WITH ({options})"
    return text


def _column(column: tuple[Any, ...], numbered: Mapping[str, str]) -> str:
    name, type_, collation, default, not_null, identity, generated = column
    text = f"{name} {type_}"
    if collation:
        text += f" COLLATE {collation}"
    if generated:
        stored = " STORED" if generated == "s" else " VIRTUAL"
        text += f" GENERATED ALWAYS AS ({default}){stored}"
    elif identity:
        how = "ALWAYS" if identity == "a" else "BY DEFAULT"
        text += f" GENERATED {how} AS IDENTITY{numbered.get(name, '')}"
    elif default is not None:
        text += f" DEFAULT {default}"
    return f"{text} NOT NULL" if not_null else text
