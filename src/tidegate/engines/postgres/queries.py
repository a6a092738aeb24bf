"""The catalogue queries: texts only. A fixed number of them, however many tables there are."""

from __future__ import annotations

OUR_SCHEMAS = """n.nspname !~ '^pg_(toast|temp)' AND CASE WHEN $1::text IS NULL
  THEN n.nspname NOT IN ('pg_catalog', 'information_schema') ELSE n.nspname = $1 END"""
"""`$1`: the one schema that is asked for, or null for all but the system's."""

SCHEMAS = b"""
SELECT nspname::text FROM pg_catalog.pg_namespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1"""

DATABASES = b"""
SELECT datname::text FROM pg_catalog.pg_database
WHERE datallowconn AND NOT datistemplate
  AND pg_catalog.has_database_privilege(oid, 'CONNECT') ORDER BY 1"""

RELATIONS = f"""
SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, d.description,
  CASE WHEN c.relkind IN ('r', 'm', 'p', 'f') AND c.reltuples >= 0 THEN c.reltuples::bigint END,
  CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid) END,
  ARRAY(SELECT h.inhparent FROM pg_catalog.pg_inherits AS h WHERE h.inhrelid = c.oid)::int8[]
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_description AS d
  ON d.objoid = c.oid AND d.classoid = 'pg_catalog.pg_class'::regclass AND d.objsubid = 0
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {OUR_SCHEMAS}
ORDER BY 2, 3""".encode()

_OF_RELATIONS = f"""c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {OUR_SCHEMAS}
  AND ($2::oid IS NULL OR c.oid = $2)"""

COLUMNS = f"""
SELECT a.attrelid, a.attnum::int, a.attname::text,
  pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,
  CASE WHEN a.atthasdef THEN pg_catalog.pg_get_expr(f.adbin, f.adrelid) END,
  a.attidentity::text, a.attgenerated::text, d.description
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
LEFT JOIN pg_catalog.pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
LEFT JOIN pg_catalog.pg_description AS d
  ON d.objoid = c.oid AND d.classoid = 'pg_catalog.pg_class'::regclass AND d.objsubid = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND {_OF_RELATIONS}
ORDER BY a.attrelid, a.attnum""".encode()

INDEXES = f"""
SELECT i.indrelid, x.relname::text, i.indisunique, i.indisprimary, m.amname::text,
  i.indkey::text, i.indnkeyatts::int,
  CASE WHEN 0 = ANY (i.indkey) THEN ARRAY(
    SELECT pg_catalog.pg_get_indexdef(i.indexrelid, k, true)
    FROM pg_catalog.generate_series(1, i.indnkeyatts) AS k) END
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE {_OF_RELATIONS}
ORDER BY i.indrelid, i.indisprimary DESC, x.relname""".encode()

FOREIGN_KEYS = f"""
SELECT k.conrelid, k.conname::text, k.conkey::int[], p.relname::text, q.nspname::text,
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY AS u(at, place)
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = u.at
    ORDER BY u.place),
  k.confupdtype::text, k.confdeltype::text
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS p ON p.oid = k.confrelid
JOIN pg_catalog.pg_namespace AS q ON q.oid = p.relnamespace
JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE k.contype = 'f' AND {_OF_RELATIONS}
ORDER BY k.conrelid, k.conname""".encode()

SNAPSHOT = b"SELECT pg_catalog.txid_current_snapshot()::text"
"""Equal texts: no transaction that wrote anything has ended in between."""


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
)
"""Changes when anything that a catalog tells has changed, except row counts."""

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
"""Changes when anything has changed that `hazards.py` looks at."""

# What one table is made of, for its DDL. `$1` is its oid. Names come quoted.

DDL_TABLE = b"""
SELECT c.relkind::text, pg_catalog.format('%I.%I', n.nspname, c.relname), c.relpersistence::text,
  pg_catalog.pg_get_partkeydef(c.oid), pg_catalog.pg_get_expr(c.relpartbound, c.oid),
  pg_catalog.array_to_string(c.reloptions, ', '), c.relrowsecurity,
  ARRAY(SELECT pg_catalog.format('%I.%I', m.nspname, p.relname) FROM pg_catalog.pg_inherits AS h
    JOIN pg_catalog.pg_class AS p ON p.oid = h.inhparent
    JOIN pg_catalog.pg_namespace AS m ON m.oid = p.relnamespace
    WHERE h.inhrelid = c.oid ORDER BY h.inhseqno),
  s.srvname::text,
  CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid, true) END
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_foreign_table AS f ON f.ftrelid = c.oid
LEFT JOIN pg_catalog.pg_foreign_server AS s ON s.oid = f.ftserver
WHERE c.oid = $1::oid"""

DDL_COLUMNS = b"""
SELECT pg_catalog.quote_ident(a.attname), pg_catalog.format_type(a.atttypid, a.atttypmod),
  CASE WHEN a.attcollation <> t.typcollation THEN pg_catalog.quote_ident(k.collname) END,
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
SELECT pg_catalog.pg_get_indexdef(i.indexrelid) FROM pg_catalog.pg_index AS i
WHERE i.indrelid = $1::oid AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conindid = i.indexrelid
    AND k.contype IN ('p', 'u', 'x'))
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
