"""Types that users of PostgreSQL made: enums, domains, composites and ranges; what they consist of
in words, and the statements that make them.

The server writes every part. It qualifies names by the session's search path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import NamedTuple

from tidegate.engines.postgres.types import Rows

MOST_LABELS = 100
"""Labels of an enum that a description shows; the definition of a table has all."""

TYPES = b"""
SELECT t.oid, t.typarray, (pg_catalog.to_jsonb(r) ->> 'rngmultitypid')::oid, t.typtype::text,
  pg_catalog.format_type(t.oid, NULL), pg_catalog.format('%I.%I', n.nspname, t.typname),
  CASE WHEN n.nspname <> 'public' THEN pg_catalog.quote_ident(n.nspname) END,
  (SELECT pg_catalog.format('%I WITH SCHEMA %I', x.extname, m.nspname)
    FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS x ON x.oid = d.refobjid
    JOIN pg_catalog.pg_namespace AS m ON m.oid = x.extnamespace
    WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
      AND d.refclassid = 'pg_catalog.pg_extension'::regclass),
  CASE t.typtype WHEN 'e' THEN ARRAY(SELECT v.enumlabel::text FROM pg_catalog.pg_enum AS v
    WHERE v.enumtypid = t.oid ORDER BY v.enumsortorder) END,
  CASE t.typtype WHEN 'd' THEN ARRAY[pg_catalog.format_type(t.typbasetype, t.typtypmod)]
    WHEN 'r' THEN ARRAY[pg_catalog.format_type(r.rngsubtype, NULL)]
    WHEN 'c' THEN ARRAY(SELECT pg_catalog.quote_ident(a.attname) || ' '
      || pg_catalog.format_type(a.atttypid, a.atttypmod)
      FROM pg_catalog.pg_attribute AS a
      WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) END,
  CASE t.typtype WHEN 'd' THEN ARRAY[t.typbasetype] WHEN 'r' THEN ARRAY[r.rngsubtype]
    WHEN 'c' THEN ARRAY(SELECT a.atttypid FROM pg_catalog.pg_attribute AS a
      WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) END,
  CASE t.typtype WHEN 'd' THEN ARRAY[(SELECT
      pg_catalog.format(' COLLATE %I.%I', m.nspname, k.collname)
      FROM pg_catalog.pg_type AS b, pg_catalog.pg_collation AS k
      JOIN pg_catalog.pg_namespace AS m ON m.oid = k.collnamespace
      WHERE b.oid = t.typbasetype AND k.oid = t.typcollation AND b.typcollation <> k.oid)]
    WHEN 'c' THEN ARRAY(SELECT (SELECT pg_catalog.format(' COLLATE %I.%I', m.nspname, k.collname)
        FROM pg_catalog.pg_type AS b, pg_catalog.pg_collation AS k
        JOIN pg_catalog.pg_namespace AS m ON m.oid = k.collnamespace
        WHERE b.oid = a.atttypid AND k.oid = a.attcollation AND b.typcollation <> k.oid)
      FROM pg_catalog.pg_attribute AS a
      WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) END,
  CASE t.typtype WHEN 'd' THEN pg_catalog.concat(
    ' DEFAULT ' || pg_catalog.pg_get_expr(t.typdefaultbin, 'pg_catalog.pg_type'::regclass),
    CASE WHEN t.typnotnull THEN ' NOT NULL' END)
    WHEN 'r' THEN pg_catalog.concat_ws(', ', (SELECT pg_catalog.format('subtype_opclass = %I.%I',
        m.nspname, o.opcname) FROM pg_catalog.pg_opclass AS o
        JOIN pg_catalog.pg_namespace AS m ON m.oid = o.opcnamespace
        WHERE o.oid = r.rngsubopc AND NOT o.opcdefault),
      (SELECT pg_catalog.format('collation = %I.%I', m.nspname, k.collname)
        FROM pg_catalog.pg_type AS b, pg_catalog.pg_collation AS k
        JOIN pg_catalog.pg_namespace AS m ON m.oid = k.collnamespace
        WHERE b.oid = r.rngsubtype AND k.oid = r.rngcollation AND b.typcollation <> k.oid),
      'canonical = ' || nullif(r.rngcanonical::text, '-'),
      'subtype_diff = ' || nullif(r.rngsubdiff::text, '-'),
      (SELECT 'multirange_type_name = ' || pg_catalog.format('%I.%I', m.nspname, u.typname)
        FROM pg_catalog.pg_type AS u JOIN pg_catalog.pg_namespace AS m ON m.oid = u.typnamespace
        WHERE u.oid = (pg_catalog.to_jsonb(r) ->> 'rngmultitypid')::oid)) END,
  CASE t.typtype WHEN 'd' THEN ARRAY(SELECT CASE WHEN conname = t.typname || '_check' THEN ''
      ELSE pg_catalog.format('CONSTRAINT %I ', conname) END
      || pg_catalog.pg_get_constraintdef(k.oid, true)
    FROM pg_catalog.pg_constraint AS k
    WHERE k.contypid = t.oid AND k.contype = 'c' ORDER BY k.conname) END,
  ARRAY(SELECT pg_catalog.format('COMMENT ON %s %I.%I%s IS %L',
      CASE WHEN d.objsubid > 0 THEN 'COLUMN' WHEN t.typtype = 'd' THEN 'DOMAIN' ELSE 'TYPE' END,
      n.nspname, t.typname,
      (SELECT '.' || pg_catalog.quote_ident(a.attname) FROM pg_catalog.pg_attribute AS a
        WHERE d.objsubid > 0 AND a.attrelid = t.typrelid AND a.attnum = d.objsubid), d.description)
    FROM pg_catalog.pg_description AS d
    WHERE d.classoid = 'pg_catalog.pg_type'::regclass AND d.objoid = t.oid
      OR t.typtype = 'c' AND d.classoid = 'pg_catalog.pg_class'::regclass AND d.objoid = t.typrelid
    ORDER BY d.objsubid)
FROM pg_catalog.pg_type AS t
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_range AS r ON r.rngtypid = t.oid
LEFT JOIN pg_catalog.pg_class AS c ON c.oid = t.typrelid
WHERE t.oid >= 16384 AND (t.typtype IN ('e', 'd', 'r') OR t.typtype = 'c' AND c.relkind = 'c'
  OR t.typtype = 'b' AND t.typcategory <> 'A')
ORDER BY t.oid"""
"""All of them (smaller numbers are the server's own). Tables are types too, and are not among
these."""


class UserType(NamedTuple):
    """A row of `TYPES`. `parts` are what it is made of: fields, the base of a domain, the subtype
    of a range; `uses` their types, and `collations` theirs where they are not the types' own."""

    oid: int
    array: int
    multirange: int | None
    kind: str
    shown: str
    name: str
    schema: str | None
    extension: str | None
    labels: list[str] | None
    parts: list[str] | None
    uses: list[int] | None
    collations: list[str | None] | None
    rest: str | None
    checks: list[str] | None
    comments: list[str]


class UserTypes:
    """The types of a database, by their own numbers and those of their arrays and multiranges."""

    def __init__(self, rows: Rows) -> None:
        self._by_oid: dict[int, UserType] = {}
        for found in starmap(UserType, rows):
            for oid in (found.oid, found.array, found.multirange):
                if oid:
                    self._by_oid[oid] = found

    def labels(self, oid: int) -> tuple[str, ...]:
        """What a column of the type may hold: the labels of an enum, also under a domain."""
        found, seen = self._by_oid.get(oid), 0
        while found is not None and found.oid == oid and seen < len(self._by_oid):
            if found.labels is not None:
                return tuple(found.labels)
            if found.kind != "d" or not found.uses:
                break
            oid, seen = found.uses[0], seen + 1
            found = self._by_oid.get(oid)
        return ()

    def definition(self, oid: int) -> str | None:
        """What the type, or the one of its elements, consists of; None if it is not one of
        these."""
        found = self._by_oid.get(oid)
        return None if found is None else self._described(found, set()) or None

    def _described(self, found: UserType, known: set[int]) -> str:
        """In words; each type once, further down its name alone."""
        known.add(found.oid)
        if found.kind == "e":
            labels = found.labels or []
            shown = [_literal(label) for label in labels[:MOST_LABELS]]
            if len(labels) > MOST_LABELS:
                shown.append(f"… {len(labels) - MOST_LABELS} more")
            return f"enum({', '.join(shown)})"
        parts = [
            self._part(part, oid, known)
            for part, oid in zip(found.parts or (), found.uses or (), strict=True)
        ]
        if found.kind == "d":
            checks = "".join([f" {check}" for check in found.checks or ()])
            return f"domain over {parts[0]}{found.rest or ''}{checks}"
        if found.kind == "r":
            return f"range of {parts[0]}"
        return f"composite ({', '.join(parts)})" if found.kind == "c" else ""

    def _part(self, text: str, oid: int, known: set[int]) -> str:
        inner = self._by_oid.get(oid)
        if inner is None or inner.oid in known:
            return text
        described = self._described(inner, known)
        return f"{text} {described}" if described else text

    def statements(self, oids: Iterable[int], schemas: Iterable[str | None]) -> list[str]:
        """What makes these types in an empty database, in an order in which each finds those that
        it needs; before them their schemas, with those that are given."""
        needed: dict[int, UserType] = {}
        for oid in oids:
            self._collect(oid, needed, set())
        extensions = dict.fromkeys([each.extension for each in needed.values() if each.extension])
        places = dict.fromkeys([*schemas, *(each.schema for each in needed.values())])
        places |= dict.fromkeys([text.partition(" WITH SCHEMA ")[2] for text in extensions])
        made = [f"CREATE SCHEMA IF NOT EXISTS {place}" for place in places if place not in _THERE]
        made += [f"CREATE EXTENSION IF NOT EXISTS {text}" for text in extensions]
        for each in needed.values():
            if not each.extension and each.kind != "b":
                made += _statements(each)
        return made

    def _collect(self, oid: int, needed: dict[int, UserType], waiting: set[int]) -> None:
        found = self._by_oid.get(oid)
        if found is None or found.oid in needed or found.oid in waiting:
            return
        waiting.add(found.oid)
        if not found.extension:
            for other in found.uses or ():
                self._collect(other, needed, waiting)
        needed[found.oid] = found


_THERE: Mapping[str | None, None] = dict.fromkeys([None, "", "public", "pg_catalog"])


def _statements(made: UserType) -> list[str]:
    collations = made.collations or [None] * len(made.parts or ())
    parts = [
        text + (collation or "")
        for text, collation in zip(made.parts or (), collations, strict=True)
    ]
    late: list[str] = []
    if made.kind == "e":
        text = f"CREATE TYPE {made.name} AS ENUM ({', '.join(map(_literal, made.labels or ()))})"
    elif made.kind == "c":
        text = f"CREATE TYPE {made.name} AS ({', '.join(parts)})"
    elif made.kind == "r":
        options = f", {made.rest}" if made.rest else ""
        text = f"CREATE TYPE {made.name} AS RANGE (subtype = {parts[0]}{options})"
    else:
        text = f"CREATE DOMAIN {made.name} AS {parts[0]}{made.rest or ''}"
        for check in made.checks or ():
            if check.endswith(" NOT VALID"):
                late.append(f"ALTER DOMAIN {made.name} ADD {check}")
            else:
                text += f" {check}"
    return [text, *late, *made.comments]


def _literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''") + "'"
    return f"E{quoted}".replace("\\", "\\\\") if "\\" in text else quoted
