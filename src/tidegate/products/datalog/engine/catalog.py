"""The schema of a Datalog database as the gate describes databases: a namespace of attributes is a
table, an attribute a column. An attribute without a namespace is a table of its own, as for the
rules that hide data (`datalog/data_rules.py`)."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Index, Table
from tidegate.products.datalog.requests import TUPLE


class Attribute(msgspec.Struct, frozen=True):
    """One attribute; `count` is how many facts have it (None: that is not known), `refers` are
    attributes of some of the entities that it refers to."""

    attribute: str
    properties: dict[str, Any]
    count: int | None
    refers: list[str] = []


def catalog_of(attributes: list[Attribute], database: str, version: str) -> Catalog:
    """The attributes that users defined, or that a fact has."""
    tables: dict[str, list[Attribute]] = {}
    for attribute in attributes:
        space, name = split(attribute.attribute)
        if space == "db" or space.startswith("db."):
            continue
        tables.setdefault(space or name, []).append(attribute)
    described = [_table(space, members) for space, members in sorted(tables.items())]
    return Catalog(database, "", ("",), tuple(described), version)


def split(attribute: str) -> tuple[str, str]:
    """The namespace of an attribute, empty if it has none, and its name."""
    space, slash, name = attribute.removeprefix(":").partition("/")
    return (space, name) if slash else ("", space)


def _table(space: str, members: list[Attribute]) -> Table:
    columns = [_column(member) for member in members]
    unique = [
        Index(member.attribute, (member.attribute,), unique=True)
        for member in members
        if ":db/unique" in member.properties
    ]
    # Entities are not counted: they are as many as have the commonest attribute of one value.
    most = max([member.count or 0 for member in members if not _is_many(member)], default=0)
    return Table(
        "",
        space,
        "table",
        tuple(columns),
        tuple(unique),
        tuple([key for member in members if (key := _reference(member)) is not None]),
        approximate_rows=most or None,
    )


def _is_many(member: Attribute) -> bool:
    return member.properties.get(":db/cardinality") == ":db.cardinality/many"


def _reference(member: Attribute) -> ForeignKey | None:
    """Where an attribute refers to, if the entities that were read are of one namespace."""
    tables = {space or name for space, name in map(split, member.refers)}
    if len(tables) != 1:
        return None
    return ForeignKey(member.attribute, (member.attribute,), tables.pop(), ())


def _column(member: Attribute) -> ColumnInfo:
    properties = member.properties
    components = properties.get(":db/tupleAttrs")
    kind = str(properties.get(":db/valueType", "any")).removeprefix(":db.type/")
    if isinstance(components, list):
        kind = "tuple"
    notes = [
        "many" if _is_many(member) else "",
        f"unique {str(properties[':db/unique']).rpartition('/')[2]}"
        if ":db/unique" in properties
        else "",
        "full text" if properties.get(":db/fulltext") is True else "",
        "component" if properties.get(":db/isComponent") is True else "",
        f"{member.count} facts" if member.count is not None else "",
        f"{TUPLE}{' '.join(map(str, cast('list[Any]', components)))}" if components else "",
    ]
    return ColumnInfo(member.attribute, kind, extra=", ".join(filter(None, notes)))
