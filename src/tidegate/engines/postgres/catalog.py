"""Schemas, tables, columns and keys, from PostgreSQL's catalog.

A fixed number of statements in one read transaction, however many tables there are.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from itertools import starmap
from time import monotonic

import msgspec

from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.schema_state import SCHEMA_STATE, version_of
from tidegate.engines.postgres.table_definitions import read_definition
from tidegate.engines.postgres.types import Rows
from tidegate.engines.postgres.user_types import TYPES, UserTypes
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.schema import (
    Catalog,
    ColumnInfo,
    Counts,
    Databases,
    Ddl,
    Description,
    ForeignKey,
    Index,
    Table,
    Uniqueness,
)
from tidegate.model.sources import Identity
from tidegate.sql.dialects import find
from tidegate.typed_values import json_decoder

_quote = find("postgres").quote

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

_CALLS = r"""tree ~ '[{]COERCETODOMAIN ' OR EXISTS (SELECT FROM
pg_catalog.regexp_matches(tree, ':(funcid|opfuncid|opno|aggfnoid|winfnoid) (\d+)', 'g') AS m
LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = m[2]::oid AND m[1] <> 'opno'
WHERE m[2]::bigint >= 16384 OR p.proname ~ '_to_xml|^ts_(stat|rewrite)$')"""
"""Whether a tree calls a function of users, or one of the server's that runs a query given as text.
Domains that it casts to are not looked into."""

_OF_USERS = """p.oid >= 16384 AND p.prolang NOT IN (
  SELECT l.oid FROM pg_catalog.pg_language AS l WHERE l.lanname IN ('internal', 'c'))"""

_MAY_CALL = f"""
c.relkind IN ('r', 'p') AND (c.oid IN (
  SELECT of FROM (
    SELECT d.adrelid, d.adbin::text FROM pg_catalog.pg_attrdef AS d
    UNION ALL SELECT k.conrelid, k.conbin::text FROM pg_catalog.pg_constraint AS k
      WHERE k.conbin IS NOT NULL
    UNION ALL SELECT i.indrelid, pg_catalog.concat(i.indexprs::text, i.indpred::text)
      FROM pg_catalog.pg_index AS i WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
    UNION ALL SELECT k.partrelid, k.partexprs::text FROM pg_catalog.pg_partitioned_table AS k
      WHERE k.partexprs IS NOT NULL
    UNION ALL SELECT x.stxrelid, pg_catalog.to_jsonb(x)->>'stxexprs'
      FROM pg_catalog.pg_statistic_ext AS x
  ) AS trees (of, tree) WHERE {_CALLS})
  OR c.oid IN (SELECT o.polrelid FROM pg_catalog.pg_policy AS o,
    pg_catalog.concat(o.polqual::text, o.polwithcheck::text) AS tree
    WHERE tree ~ '[{{]SUBLINK ' OR {_CALLS})
  OR c.oid IN (SELECT a.attrelid FROM pg_catalog.pg_attribute AS a
    JOIN pg_catalog.pg_type AS y ON y.oid = a.atttypid
    LEFT JOIN pg_catalog.pg_type AS e ON e.oid = y.typelem AND y.typcategory = 'A'
    WHERE a.atttypid >= 16384 AND a.attnum > 0 AND NOT a.attisdropped AND (
      coalesce(e.typtype, y.typtype) IN ('c', 'r', 'm')
      OR coalesce(e.typtype, y.typtype) = 'd' AND (
        coalesce(e.typbasetype, y.typbasetype) >= 16384
        OR EXISTS (SELECT FROM pg_catalog.pg_constraint AS k, LATERAL (
          SELECT k.conbin::text AS tree) AS t
          WHERE k.contypid = coalesce(e.oid, y.oid) AND ({_CALLS})))))
  OR c.oid IN (SELECT i.indrelid FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_opclass AS s ON s.oid = ANY (i.indclass) AND s.oid >= 16384
    JOIN pg_catalog.pg_amproc AS u ON u.amprocfamily = s.opcfamily
    JOIN pg_catalog.pg_proc AS p ON p.oid = u.amproc WHERE {_OF_USERS})
  OR EXISTS (SELECT FROM pg_catalog.pg_proc AS p WHERE {_OF_USERS} AND (
    EXISTS (SELECT FROM pg_catalog.pg_cast AS s WHERE s.castfunc = p.oid)
    OR EXISTS (SELECT FROM pg_catalog.pg_operator AS o WHERE o.oprcode = p.oid))))"""
"""Whether the contents of a table, or a type, operator or cast that its change can meet, runs what
users wrote. Rows and ranges of users, and domains over other types
of theirs, are not looked into."""

RELATIONS = f"""
SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, d.description,
  CASE WHEN c.relkind IN ('r', 'm', 'p', 'f') AND c.reltuples >= 0 THEN c.reltuples::bigint END,
  CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid) END,
  (SELECT pg_catalog.array_agg(h.inhparent)::int8[] FROM pg_catalog.pg_inherits AS h
    WHERE h.inhrelid = c.oid),
  c.relkind IN ('r', 'p') AND (c.relhasrules OR EXISTS (
    SELECT FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal)),
  {_MAY_CALL},
  CASE WHEN c.relkind = 'p' THEN ARRAY(
    SELECT a.attname::text FROM pg_catalog.pg_partition_tree(c.oid) AS r
    JOIN pg_catalog.pg_partitioned_table AS k ON k.partrelid = r.relid
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = r.relid AND a.attnum > 0
      AND NOT a.attisdropped AND (k.partexprs IS NOT NULL OR a.attnum = ANY (k.partattrs)))
  WHEN c.relkind = 'v' AND EXISTS (SELECT FROM pg_catalog.pg_partitioned_table) THEN ARRAY(
    SELECT a.attname::text FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = c.oid AND a.attnum > 0) END
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_description AS d
  ON d.objoid = c.oid AND d.classoid = 'pg_catalog.pg_class'::regclass AND d.objsubid = 0
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {OUR_SCHEMAS}
ORDER BY 2, 3""".encode()

_OF_RELATIONS = f"""c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {OUR_SCHEMAS}
  AND ($2::oid IS NULL OR c.oid = $2)"""

COLUMNS = f"""
SELECT a.attrelid, pg_catalog.string_agg(a.attnum::text, ' ' ORDER BY a.attnum),
  pg_catalog.json_agg(pg_catalog.json_build_array(
    a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
    CASE WHEN a.atthasdef THEN pg_catalog.pg_get_expr(f.adbin, f.adrelid) END,
    CASE WHEN a.attnum = ANY (k.indkey)
      AND pg_catalog.array_position(k.indkey::int2[], a.attnum) < k.indnkeyatts
      THEN pg_catalog.array_position(k.indkey::int2[], a.attnum) + 1 ELSE 0 END,
    d.description,
    CASE WHEN a.attidentity = 'a' THEN 'identity always'
      WHEN a.attidentity = 'd' THEN 'identity by default'
      WHEN a.attgenerated = 's' THEN 'generated stored'
      WHEN a.attgenerated = 'v' THEN 'generated virtual' END
  ) ORDER BY a.attnum)::text,
  pg_catalog.string_agg(a.attnum || ' ' || a.atttypid, ' ' ORDER BY a.attnum)
    FILTER (WHERE a.atttypid >= 16384)
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
LEFT JOIN pg_catalog.pg_index AS k ON k.indrelid = c.oid AND k.indisprimary
LEFT JOIN pg_catalog.pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
LEFT JOIN pg_catalog.pg_description AS d
  ON d.objoid = c.oid AND d.classoid = 'pg_catalog.pg_class'::regclass AND d.objsubid = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND {_OF_RELATIONS}
GROUP BY a.attrelid""".encode()
"""For each table the numbers of its columns; the columns as JSON: the fields of `ColumnInfo` in
their order; the numbers and types of those that have a user's type. A row for each column would
cost us three times as much, in objects."""

INDEXES = f"""
SELECT i.indrelid, x.relname::text, i.indisunique, i.indisprimary, m.amname::text,
  pg_catalog.array_to_string((i.indkey::int2[])[0:i.indnkeyatts - 1], ' '),
  CASE WHEN 0 = ANY (i.indkey) THEN ARRAY(
    SELECT pg_catalog.pg_get_indexdef(i.indexrelid, k, true)
    FROM pg_catalog.generate_series(1, i.indnkeyatts) AS k) END,
  CASE WHEN m.amname <> 'btree' THEN ARRAY(
    SELECT o.opcname::text FROM pg_catalog.unnest(i.indclass) WITH ORDINALITY AS u(oid, place)
    JOIN pg_catalog.pg_opclass AS o ON o.oid = u.oid ORDER BY u.place) END,
  CASE WHEN m.amname <> 'btree' THEN x.reloptions END, i.indisvalid AND i.indpred IS NULL,
  pg_catalog.array_to_string((i.indkey::int2[])[i.indnkeyatts:i.indnatts - 1], ' '),
  CASE WHEN i.indisexclusion OR i.indisunique AND NOT i.indisprimary AND (
      i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
      OR (pg_catalog.to_jsonb(i) ->> 'indnullsnotdistinct')::boolean)
    THEN pg_catalog.array_to_string(ARRAY(
      SELECT DISTINCT r[1] FROM pg_catalog.regexp_matches(
        pg_catalog.concat(i.indexprs::text, i.indpred::text), ':varattno (-?[0-9]+)', 'g') AS r
      UNION SELECT k::text FROM pg_catalog.unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) AS k
        WHERE k <> 0
      UNION SELECT '0' FROM pg_catalog.pg_depend AS e
        WHERE e.classid = 'pg_catalog.pg_class'::regclass AND e.objid = i.indexrelid
          AND e.refclassid IN ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass)
          AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_depend AS o WHERE o.classid = e.refclassid
              AND o.objid = e.refobjid AND o.deptype = 'e')), ' ') END,
  i.indisunique AND NOT i.indisexclusion OR i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE {_OF_RELATIONS}
ORDER BY i.indrelid, i.indisprimary DESC, x.relname""".encode()
"""The last but one: the numbers of the columns that a `Uniqueness` depends on. 0 is the row as a
whole, which its expressions can name, or what a user's function or operator reads besides its
arguments. The catalog's dependencies do not tell of whole rows: the expressions do."""

FOREIGN_KEYS = f"""
SELECT k.conrelid, k.conname::text, pg_catalog.array_to_string(k.conkey, ' '), p.relname::text,
  q.nspname::text,
  (SELECT a.attname::text FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = k.confrelid AND a.attnum = k.confkey[1]),
  CASE WHEN pg_catalog.cardinality(k.confkey) > 1 THEN ARRAY(
    SELECT a.attname::text FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY AS u(at, place)
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = u.at
    ORDER BY u.place) END,
  k.confupdtype::text, k.confdeltype::text
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS p ON p.oid = k.confrelid
JOIN pg_catalog.pg_namespace AS q ON q.oid = p.relnamespace
JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE k.contype = 'f' AND {_OF_RELATIONS}
ORDER BY k.conrelid, k.conname""".encode()


_KINDS = {
    "r": "table",
    "p": "table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
}
_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
_SYSTEM = ("pg_catalog", "information_schema")


class Relation(msgspec.Struct, frozen=True):
    """One line of the list of tables."""

    oid: int
    schema: str
    name: str
    kind: str
    comment: str | None
    rows: int | None
    definition: str | None
    parents: list[int] | None
    may_react: bool
    may_call: bool
    parted_by: list[str] | None


async def describe(
    session: PostgresSession, request: Browse, timeout_ms: int, identity: Identity | None
) -> Description:
    """Answer a Browse that needs the database. What shows data does it as `identity`; what is
    kept for all callers is seen by the source's account.

    Raises: TidegateError TABLE_UNKNOWN, LIMIT_TIME, POLICY_IDENTITY.
    """
    if request.aspect == "databases":
        (rows,) = await session.ask(DATABASES, timeout_ms=timeout_ms)
        return Databases(tuple([name for (name,) in rows]))
    if request.aspect == "catalog" and request.table is None:
        return await _catalog(session, request, None, timeout_ms)
    relations = await _relations(session, request, timeout_ms)
    if request.table is not None:
        relations = _named(relations, request.table, session.setting.schema)
    if request.aspect == "counts":
        return await _counts(session, relations, timeout_ms, identity)
    if request.aspect == "ddl":
        return Ddl(
            "\n\n".join(
                [
                    await read_definition(session, relation.oid, timeout_ms, identity)
                    for relation in relations
                ]
            )
        )
    return await _catalog(session, request, relations, timeout_ms)


async def _relations(session: PostgresSession, request: Browse, timeout_ms: int) -> list[Relation]:
    schema = None if request.schema is None else request.schema.encode()
    schemas, rows = await session.ask(SCHEMAS, (RELATIONS, [schema]), timeout_ms=timeout_ms)
    _check_schema(request.schema, schemas)
    return list(starmap(Relation, rows))


def _check_schema(name: str | None, schemas: Rows) -> None:
    known = [str(schema) for (schema,) in schemas]
    if name is None or name in known or name in _SYSTEM:
        return
    near = difflib.get_close_matches(name, known, 3)
    hint = f"Did you mean {', '.join(near)}?" if near else f"Known: {', '.join(known[:10])}."
    raise TidegateError(Code.TABLE_UNKNOWN, f"There is no schema `{name}`.", hint=hint)


async def _catalog(
    session: PostgresSession, request: Browse, chosen: list[Relation] | None, timeout_ms: int
) -> Catalog:
    schema = None if request.schema is None else request.schema.encode()
    one = b"%d" % chosen[0].oid if chosen is not None and len(chosen) == 1 else None
    narrow = [schema, one]
    # The longest answer comes first: its rows are read while the server works on the others.
    columns, state, schemas, listed, indexes, keys, types = await session.ask(
        (COLUMNS, narrow),
        SCHEMA_STATE,
        SCHEMAS,
        (RELATIONS, [schema]),
        (INDEXES, narrow),
        (FOREIGN_KEYS, narrow),
        TYPES,
        timeout_ms=timeout_ms,
    )
    _check_schema(request.schema, schemas)
    relations = list(starmap(Relation, listed))
    places = {relation.oid: (relation.schema, relation.name) for relation in relations}
    if chosen is not None:
        wanted = {relation.oid for relation in chosen}
        relations = [relation for relation in relations if relation.oid in wanted]
    setting = session.setting
    names = tuple([str(name) for (name,) in schemas])
    return Catalog(
        setting.database,
        setting.schema or (names[0] if names else "public"),
        names,
        _tables(relations, columns, indexes, keys, UserTypes(types), places),
        version_of(setting.database, state[0][0]),
    )


def _tables(
    relations: list[Relation],
    columns: Rows,
    indexes: Rows,
    keys: Rows,
    types: UserTypes,
    places: dict[int, tuple[str, str]],
) -> tuple[Table, ...]:
    fields: dict[int, tuple[ColumnInfo, ...]] = {}
    names: dict[int, _Names] = {}
    for table, numbers, json, typed in columns:
        known = _decode_columns(json)
        fields[table] = _with_types(known, numbers, typed, types) if typed else known
        names[table] = _Names(numbers, known)
    by_table = _indexes(indexes, names)
    unique = _uniqueness(indexes, names)
    foreign = _foreign_keys(keys, names)
    return tuple(
        [
            Table(
                schema=relation.schema,
                name=relation.name,
                kind=_KINDS[relation.kind],
                columns=fields.get(relation.oid, ()),
                indexes=tuple(by_table.get(relation.oid, ())),
                foreign_keys=tuple(foreign.get(relation.oid, ())),
                comment=relation.comment,
                approximate_rows=relation.rows,
                definition=relation.definition,
                reads=tuple([places[oid] for oid in relation.parents or () if oid in places]),
                may_react=relation.may_react,
                may_call=relation.may_call,
                parted_by=tuple(relation.parted_by or ()),
                uniqueness=tuple(unique.get(relation.oid, ())),
            )
            for relation in relations
        ]
    )


_decode_columns = json_decoder(tuple[ColumnInfo, ...]).decode


def _with_types(
    columns: tuple[ColumnInfo, ...], numbers: str, typed: str, types: UserTypes
) -> tuple[ColumnInfo, ...]:
    """The columns with what their types consist of; `typed` has pairs of a number and a type."""
    pairs = typed.split(" ")
    of = dict(zip(pairs[::2], map(int, pairs[1::2]), strict=True))
    return tuple(
        [
            msgspec.structs.replace(
                column,
                type_definition=types.definition(of[number]),
                labels=types.labels(of[number]),
            )
            if number in of
            else column
            for number, column in zip(numbers.split(" "), columns, strict=True)
        ]
    )


class _Names:
    """The names of a table's columns by their numbers."""

    __slots__ = ("_columns", "_numbers")

    def __init__(self, numbers: str, columns: tuple[ColumnInfo, ...]) -> None:
        self._numbers = numbers.split(" ")
        self._columns = columns

    def of(self, numbers: str) -> tuple[str, ...]:
        """Of those that a text lists, with spaces between them; empty for system columns."""
        known, columns = self._numbers, self._columns
        return tuple(
            [
                columns[known.index(number)].name if number in known else ""
                for number in numbers.split(" ")
            ]
        )


def _indexes(indexes: Rows, names: dict[int, _Names]) -> dict[int, list[Index]]:
    by_table: dict[int, list[Index]] = defaultdict(list)
    for table, name, unique, primary, kind, numbers, expressions, *others in indexes:
        operators, options, usable, included, _, _ = others
        columns = tuple(expressions) if expressions else names[table].of(numbers)
        by_table[table].append(
            Index(
                *(name, columns, unique, primary, kind),
                *(tuple(operators or ()), tuple(options or ()), usable),
                names[table].of(included) if included else (),
            )
        )
    return by_table


def _uniqueness(indexes: Rows, names: dict[int, _Names]) -> dict[int, list[Uniqueness]]:
    by_table: dict[int, list[Uniqueness]] = defaultdict(list)
    for table, name, *_, numbers, with_null in indexes:
        if numbers is not None:
            columns = names[table].of(numbers)
            known = None if "" in columns else columns
            by_table[table].append(Uniqueness(name, known, with_null))
    return by_table


def _foreign_keys(keys: Rows, names: dict[int, _Names]) -> dict[int, list[ForeignKey]]:
    by_table: dict[int, list[ForeignKey]] = defaultdict(list)
    for table, name, numbers, parent, schema, first, references, on_update, on_delete in keys:
        by_table[table].append(
            ForeignKey(
                name=name,
                columns=names[table].of(numbers),
                table=parent,
                references=tuple(references) if references else (first,),
                schema=schema,
                on_update=_ACTIONS[on_update],
                on_delete=_ACTIONS[on_delete],
            )
        )
    return by_table


def _named(relations: list[Relation], name: str, schema: str | None) -> list[Relation]:
    """The tables of a name: as it is written, else in any case, also with its schema before it;
    those of the default schema if there are any. Raises: TidegateError TABLE_UNKNOWN."""
    lower = name.lower()
    for matches in (
        [one for one in relations if one.name == name],
        [one for one in relations if one.name.lower() == lower],
        [one for one in relations if f"{one.schema}.{one.name}".lower() == lower],
    ):
        if matches:
            return [one for one in matches if one.schema == schema] or matches
    near = difflib.get_close_matches(lower, [one.name.lower() for one in relations], 3)
    hint = f"Did you mean {', '.join(dict.fromkeys(near))}?" if near else None
    raise TidegateError(Code.TABLE_UNKNOWN, f"There is no table `{name}`.", hint=hint)


async def _counts(
    session: PostgresSession, relations: list[Relation], timeout_ms: int, identity: Identity | None
) -> Counts:
    """Count every table that is not a view, as far as the time goes and the account may."""
    until = monotonic() + timeout_ms / 1000
    counts: dict[tuple[str, str], int] = {}
    only = len(relations) == 1
    for relation in relations:
        if relation.kind == "v" and not only:
            continue
        left = round((until - monotonic()) * 1000)
        query = f"SELECT count(*) FROM {_quote(relation.schema)}.{_quote(relation.name)}"
        try:
            ((count,),) = (
                await session.ask(query.encode(), timeout_ms=max(1, left), identity=identity)
            )[0]
        except TidegateError as error:
            if error.code not in (Code.SQL_FAILED, Code.LIMIT_TIME, Code.CALL_CANCELLED) or only:
                raise
            if error.code is not Code.SQL_FAILED:
                break  # out of time: what was counted is still right
            continue
        counts[relation.schema, relation.name] = count
    return Counts(counts)
