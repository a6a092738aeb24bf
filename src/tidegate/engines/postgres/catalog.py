"""Decides what is told of a schema. A fixed number of statements in one read transaction, however
many tables there are."""

from __future__ import annotations

import difflib
from collections import defaultdict
from time import monotonic
from typing import Any, NamedTuple

from tidegate.calls import Browse
from tidegate.engines.postgres import ddl, queries
from tidegate.engines.postgres.session import Session
from tidegate.engines.postgres.values import Rows
from tidegate.errors import Code, GateError
from tidegate.metadata import (
    Catalog,
    ColumnInfo,
    Counts,
    Databases,
    Ddl,
    Description,
    ForeignKey,
    Index,
    Table,
)
from tidegate.sources import Identity

_KINDS = {
    "r": "table",
    "p": "table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
}
_IDENTITIES = {"a": "identity always", "d": "identity by default"}
_GENERATED = {"s": "generated stored", "v": "generated virtual"}
_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
_SYSTEM = ("pg_catalog", "information_schema")


class Relation(NamedTuple):
    """One line of the list of tables."""

    oid: int
    schema: str
    name: str
    kind: str
    comment: str | None
    rows: int | None
    definition: str | None
    parents: list[int]


async def describe(
    session: Session, request: Browse, timeout_ms: int, identity: Identity | None
) -> Description:
    """Answer a Browse that needs the database. What shows data does it as `identity`; what is
    kept for all callers is seen by the source's account.

    Raises: GateError TABLE_UNKNOWN, LIMIT_TIME, POLICY_IDENTITY.
    """
    if request.aspect == "databases":
        (rows,) = await session.ask(queries.DATABASES, timeout_ms=timeout_ms)
        return Databases(tuple([name for (name,) in rows]))
    if request.aspect == "catalog" and request.table is None:
        return await _catalog(session, request, None, timeout_ms)
    relations = await _relations(session, request, timeout_ms)
    if request.table is not None:
        relations = _named(relations, request.table, session.setting.schema)
    if request.aspect == "counts":
        return await _counts(session, relations, timeout_ms, identity)
    if request.aspect == "ddl":
        return await _ddl(session, relations, timeout_ms, identity)
    return await _catalog(session, request, relations, timeout_ms)


async def stamp(session: Session, timeout_ms: int) -> tuple[str, str]:
    """(snapshot, stamp): while the snapshot's text is the same, so is the stamp."""
    (moment,), (state,) = await session.ask(
        queries.SNAPSHOT, queries.SCHEMA_STATE, timeout_ms=timeout_ms
    )
    return moment[0], f"{session.setting.database}.{hash_of(state[0])}"


def hash_of(text: str) -> str:
    """A short name for a long text."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:20]


async def _relations(session: Session, request: Browse, timeout_ms: int) -> list[Relation]:
    schema = None if request.schema is None else request.schema.encode()
    schemas, rows = await session.ask(
        queries.SCHEMAS, (queries.RELATIONS, [schema]), timeout_ms=timeout_ms
    )
    _check_schema(request.schema, schemas)
    return [Relation(*row) for row in rows]


def _check_schema(name: str | None, schemas: Rows) -> None:
    known = [str(schema) for (schema,) in schemas]
    if name is None or name in known or name in _SYSTEM:
        return
    near = difflib.get_close_matches(name, known, 3)
    hint = f"Did you mean {', '.join(near)}?" if near else f"Known: {', '.join(known[:10])}."
    raise GateError(Code.TABLE_UNKNOWN, f"There is no schema `{name}`.", hint=hint)


async def _catalog(
    session: Session, request: Browse, chosen: list[Relation] | None, timeout_ms: int
) -> Catalog:
    schema = None if request.schema is None else request.schema.encode()
    one = b"%d" % chosen[0].oid if chosen is not None and len(chosen) == 1 else None
    narrow = [schema, one]
    state, schemas, listed, columns, indexes, keys = await session.ask(
        queries.SCHEMA_STATE,
        queries.SCHEMAS,
        (queries.RELATIONS, [schema]),
        (queries.COLUMNS, narrow),
        (queries.INDEXES, narrow),
        (queries.FOREIGN_KEYS, narrow),
        timeout_ms=timeout_ms,
    )
    _check_schema(request.schema, schemas)
    relations = [Relation(*row) for row in listed]
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
        _tables(relations, columns, indexes, keys, places),
        f"{setting.database}.{hash_of(state[0][0])}",
    )


def _tables(
    relations: list[Relation],
    columns: Rows,
    indexes: Rows,
    keys: Rows,
    places: dict[int, tuple[str, str]],
) -> tuple[Table, ...]:
    names = _column_names(columns)
    primary, by_table = _indexes(indexes, names)
    fields = _columns(columns, primary)
    foreign = _foreign_keys(keys, names)
    return tuple(
        [
            Table(
                schema=relation.schema,
                name=relation.name,
                kind=_KINDS[relation.kind],
                columns=tuple(fields.get(relation.oid, ())),
                indexes=tuple(by_table.get(relation.oid, ())),
                foreign_keys=tuple(foreign.get(relation.oid, ())),
                comment=relation.comment,
                approximate_rows=relation.rows,
                definition=relation.definition,
                reads=tuple([places[oid] for oid in relation.parents if oid in places]),
            )
            for relation in relations
        ]
    )


def _column_names(columns: Rows) -> dict[int, dict[int, str]]:
    names: dict[int, dict[int, str]] = defaultdict(dict)
    for table, number, name, *_ in columns:
        names[table][number] = name
    return names


def _columns(columns: Rows, primary: dict[int, dict[int, int]]) -> dict[int, list[ColumnInfo]]:
    fields: dict[int, list[ColumnInfo]] = defaultdict(list)
    nowhere: dict[int, int] = {}
    for table, number, name, kind, not_null, default, identity, generated, comment in columns:
        key = primary.get(table, nowhere).get(number, 0)
        extra = _IDENTITIES.get(identity) or _GENERATED.get(generated)
        fields[table].append(ColumnInfo(name, kind, not not_null, default, key, comment, extra))
    return fields


def _indexes(
    indexes: Rows, names: dict[int, dict[int, str]]
) -> tuple[dict[int, dict[int, int]], dict[int, list[Index]]]:
    """The places of columns in primary keys, and the indexes, by table."""
    primary: dict[int, dict[int, int]] = {}
    by_table: dict[int, list[Index]] = defaultdict(list)
    for table, name, unique, is_primary, kind, key, size, expressions in indexes:
        numbers = [int(number) for number in key.split()[:size]]
        known = names[table]
        columns = expressions or [known.get(number, "") for number in numbers]
        by_table[table].append(Index(name, tuple(columns), unique, is_primary, kind))
        if is_primary:
            primary[table] = {number: place + 1 for place, number in enumerate(numbers)}
    return primary, by_table


def _foreign_keys(keys: Rows, names: dict[int, dict[int, str]]) -> dict[int, list[ForeignKey]]:
    by_table: dict[int, list[ForeignKey]] = defaultdict(list)
    for table, name, numbers, parent, schema, references, on_update, on_delete in keys:
        known = names[table]
        by_table[table].append(
            ForeignKey(
                name=name,
                columns=tuple([known.get(number, "") for number in numbers]),
                table=parent,
                references=tuple(references),
                schema=schema,
                on_update=_ACTIONS[on_update],
                on_delete=_ACTIONS[on_delete],
            )
        )
    return by_table


def _named(relations: list[Relation], name: str, schema: str | None) -> list[Relation]:
    """The tables of a name: as it is written, else in any case, also with its schema before it;
    those of the default schema if there are any. Raises: GateError TABLE_UNKNOWN."""
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
    raise GateError(Code.TABLE_UNKNOWN, f"There is no table `{name}`.", hint=hint)


async def _ddl(
    session: Session, relations: list[Relation], timeout_ms: int, identity: Identity | None
) -> Ddl:
    texts: list[str] = []
    for relation in relations:
        oid: list[Any] = [b"%d" % relation.oid]
        parts = await session.ask(
            (queries.DDL_TABLE, oid),
            (queries.DDL_COLUMNS, oid),
            (queries.DDL_CONSTRAINTS, oid),
            (queries.DDL_BEHIND, oid),
            timeout_ms=timeout_ms,
            identity=identity,
        )
        texts.append(ddl.compose(*parts))
    return Ddl("\n\n".join(texts))


async def _counts(
    session: Session, relations: list[Relation], timeout_ms: int, identity: Identity | None
) -> Counts:
    """Count every table that is not a view, as far as the time goes and the account may."""
    until = monotonic() + timeout_ms / 1000
    counts: dict[tuple[str, str], int] = {}
    only = len(relations) == 1
    for relation in relations:
        if relation.kind == "v" and not only:
            continue
        left = round((until - monotonic()) * 1000)
        query = f"SELECT count(*) FROM {_quoted(relation.schema)}.{_quoted(relation.name)}"
        try:
            ((count,),) = (
                await session.ask(query.encode(), timeout_ms=max(1, left), identity=identity)
            )[0]
        except GateError as error:
            if error.code not in (Code.SQL_FAILED, Code.LIMIT_TIME, Code.CALL_CANCELLED) or only:
                raise
            if error.code is not Code.SQL_FAILED:
                break  # out of time: what was counted is still right
            continue
        counts[relation.schema, relation.name] = count
    return Counts(counts)


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
