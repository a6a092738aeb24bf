"""The attributes of a database as a resource, by the id of an open one or a saved source's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from tidegate.errors import TidegateError
from tidegate.model.profiles import ColumnProfile, Profiles
from tidegate.model.requests import Browse, ListSources, ReadProfiles
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.products.datalog.surface.handles import HandleTable
from tidegate.protocol.model import Resource
from tidegate.surfaces.resource import SurfaceResource
from tidegate.surfaces.tool_context import ToolContext

_URI = "datalevin://{database}/schema"
_MOST_LISTED = 500
_MOST_PROFILED = 50
"""Namespaces of which values are shown."""


class SchemaResource:
    """Reads and lists the schemas of databases."""

    def __init__(self, handles: HandleTable) -> None:
        self._handles = handles

    def family(self) -> SurfaceResource:
        return SurfaceResource(
            uri=_URI,
            name="schema",
            title="Schema",
            description="Attributes of a database, by its id or the name of a saved source: type,"
            " cardinality, uniqueness, references, number of facts, some values",
            read=self._read,
        )

    async def listed(self, context: ToolContext) -> list[Resource]:
        """The schemas of the saved Datalog sources that the caller may see."""
        return [
            Resource(
                uri=_URI.replace("{database}", entry.source.name),
                name=f"schema: {entry.source.name}",
                title=f"Schema: {entry.source.name}",
                mime_type="application/json",
            )
            for entry in await context.sources(ListSources(limit=_MOST_LISTED))
            if entry.source.engine == "datalevin" and not entry.temporary
        ]

    async def _read(self, context: ToolContext, variables: Mapping[str, str]) -> bytes:
        name = unquote(variables["database"])
        if name.startswith("database-"):
            source = (await self._handles.find(context, "database", name)).source
        else:
            source = name
        catalog = await context.handle(Browse("catalog"), source, Catalog)
        tables = catalog.tables[:_MOST_PROFILED]
        try:
            known = await context.handle(ReadProfiles(tables, len(tables)), source, Profiles)
        except TidegateError:  # the caller may see the schema, and no values
            known = Profiles()
        attributes = [
            _attribute(table, column, known.tables.get((table.schema, table.name), {}))
            for table in catalog.tables
            for column in table.columns
        ]
        return msgspec.json.encode({"database": name, "attributes": attributes})


def _attribute(
    table: Table, column: ColumnInfo, profile: Mapping[str, ColumnProfile]
) -> dict[str, Any]:
    """What is known of an attribute; what is not is left out."""
    notes = (column.extra or "").split(", ")
    unique = next((note.split()[-1] for note in notes if note.startswith("unique ")), None)
    facts = next((int(note.split()[0]) for note in notes if note.endswith(" facts")), None)
    refers = next((key.table for key in table.foreign_keys if key.columns == (column.name,)), None)
    values = profile[column.name].values if column.name in profile else ()
    shown: dict[str, Any] = {
        "attribute": column.name,
        "type": column.type,
        "cardinality": "many" if "many" in notes else "one",
        "unique": unique,
        "fulltext": True if "full text" in notes else None,
        "component": True if "component" in notes else None,
        "refersTo": refers,
        "facts": facts,
        "values": values or None,
        "masked": column.masked,
    }
    return {name: value for name, value in shown.items() if value is not None}
