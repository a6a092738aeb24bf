"""The diagram of a schema, or of a table and its neighbours: tables, declared keys and guessed
ones (decisions 40, 109).

All of it comes from the catalog as the caller may see it, so that a table which is hidden from the
caller is in no diagram, and no key to it either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.model.profiles import Join, Profiles, TableProfile
from tidegate.model.requests import ReadProfiles
from tidegate.model.schema import Catalog, Table
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.search.joins import Joins
from tidegate.search.words import PerCatalog

MOST_TABLES = 300
"""Tables of one diagram."""
MOST_NAMES = 5_000
"""Tables that a person chooses from."""
MOST_COMPARED = 40
"""Tables of which values are compared for one diagram."""

Name = tuple[str, str]
"""A table, by its schema and its name."""


class DiagramOf(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `diagram`. `table`: it and its neighbours. `tables`: these of the schema alone.
    `compare`: have values decide on the guessed keys."""

    table: str = ""
    tables: Annotated[list[tuple[str, str]], Meta(max_length=MOST_TABLES)] | None = None
    compare: bool = False


class Link(NamedTuple):
    """A key of one table that refers to another; a guessed one may be confirmed by values."""

    table: Name
    columns: tuple[str, ...]
    to: Name
    references: tuple[str, ...]
    name: str = ""
    guessed: bool = False
    confirmed: bool = False


class Links:
    """The keys among the tables of a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.tables = {(each.schema, each.name): each for each in catalog.tables}
        self.declared = [link for each in catalog.tables for link in self._declared(each)]
        # A key from one schema to another says that the two have to do with each other.
        pairs = {(link.table[0], link.to[0]) for link in self.declared}
        self._related = pairs | {(to, schema) for schema, to in pairs}
        self.joins = Joins(catalog.tables)
        self.guessed = [link for each in catalog.tables for link in self._guessed(each)]

    def _declared(self, table: Table) -> Iterator[Link]:
        for key in table.foreign_keys:
            to = key.schema or table.schema, key.table
            if to in self.tables:
                yield Link((table.schema, table.name), key.columns, to, key.references, key.name)

    def _guessed(self, table: Table) -> Iterator[Link]:
        for join in self.joins.of(table).values():
            link = self.link_of(table, join)
            if link is not None:
                yield link

    def link_of(self, table: Table, join: Join) -> Link | None:
        """A guessed key as a link, unless it is of two schemas that nothing declared joins."""
        to = join.schema, join.table
        near = table.schema == to[0] or (table.schema, to[0]) in self._related
        if not near or to not in self.tables:
            return None
        name = table.schema, table.name
        return Link(name, (join.column,), to, (join.key,), "", True, join.confirmed)


class DataDiagrams:
    """Diagrams, as one operator may see them."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls
        self._links: PerCatalog[Links] = PerCatalog(Links, most=16)
        self._reading = asyncio.Lock()

    async def read(self, wanted: DiagramOf, caller: Caller) -> dict[str, Any]:
        """The tables and keys. With more tables than fit, the names to choose from. Raises:
        TidegateError TABLE_UNKNOWN, ARGUMENT_INVALID, and what reading the catalog raises."""
        catalog = await self._calls.catalog(caller, wanted)
        schema = catalog.default_schema if wanted.schema is None else wanted.schema
        async with self._reading:  # `PerCatalog` is of one thread at a time
            links = await asyncio.to_thread(self._links.of, catalog)
        chosen = self._chosen(wanted, schema, links)
        whole = {"database": catalog.database, "schema": schema, "total": len(chosen)}
        if len(chosen) > MOST_TABLES:
            return {**whole, "tables": [], "links": [], "choose": _names(chosen, links)}
        guessed, comparing = links.guessed, False
        if wanted.compare:
            guessed, comparing = await self._compared(wanted, caller, links, chosen)
        return {
            **whole,
            "tables": [_table(links.tables[name]) for name in chosen],
            "links": _links((*links.declared, *guessed), chosen),
            "choose": None,
            "comparing": comparing,
        }

    def _chosen(self, wanted: DiagramOf, schema: str, links: Links) -> list[Name]:
        if wanted.tables is not None:
            listed = set(wanted.tables)
            return [name for name in links.tables if name in listed]
        if not wanted.table:
            return [name for name in links.tables if name[0] == schema]
        middle = schema, wanted.table
        if middle not in links.tables:
            raise TidegateError(
                Code.TABLE_UNKNOWN,
                f"Table not found: {wanted.table[:200]}",
                hint="It may have been dropped: reload the list of tables.",
            )
        near = {middle}
        for link in (*links.declared, *links.guessed):
            if middle in (link.table, link.to):
                near |= {link.table, link.to}
        return [name for name in links.tables if name in near]

    async def _compared(
        self, wanted: DiagramOf, caller: Caller, links: Links, chosen: Sequence[Name]
    ) -> tuple[list[Link], bool]:
        """The guessed keys as the values have them, and whether more is to come."""
        compared: list[Table] = []
        targets: dict[Name, Table] = {}
        for name in chosen:
            guesses = links.joins.to_compare(links.tables[name])
            if guesses and len(compared) < MOST_COMPARED:
                compared.append(links.tables[name])
                ends = [
                    (each.comparison.join.schema, each.comparison.join.table) for each in guesses
                ]
                targets |= {end: links.tables[end] for end in ends}
        others = tuple([each for each in targets.values() if each not in compared])
        request = ReadProfiles(tuple(compared), len(compared), joined=True, others=others)
        found, _ = await self._calls.ask(caller, request, wanted.source, Profiles)
        decided = _decided(compared, found.tables)
        names = {(each.schema, each.name) for each in compared}
        undecided = [
            link
            for link in links.guessed
            if link.table in names and (link.table, link.columns[0]) not in decided
        ]
        return _as_decided(links, decided), bool(undecided)


Decided = Mapping[tuple[Name, str], Sequence[Join]]
"""By table and column, the key that values confirm; none where they contradict all."""


def _decided(compared: Sequence[Table], profiles: Mapping[Name, TableProfile]) -> Decided:
    return {
        (name, column): profile.joins
        for name in [(each.schema, each.name) for each in compared]
        for column, profile in profiles.get(name, {}).items()
        if profile.joins is not None
    }


def _as_decided(links: Links, decided: Decided) -> list[Link]:
    """The guessed keys, as values have them where they have decided."""
    found = [link for link in links.guessed if (link.table, link.columns[0]) not in decided]
    for (name, _), joins in decided.items():
        for join in joins:
            link = links.link_of(links.tables[name], join)
            if link is not None:
                found.append(link)
    return found


def _names(chosen: Sequence[Name], links: Links) -> list[tuple[str, str, int]]:
    """Each table with the number of its keys, both ways."""
    counts: dict[Name, int] = {}
    for link in (*links.declared, *links.guessed):
        for name in {link.table, link.to}:
            counts[name] = counts.get(name, 0) + 1
    return [(*name, counts.get(name, 0)) for name in sorted(chosen)[:MOST_NAMES]]


def _links(links: Sequence[Link], chosen: Collection[Name]) -> list[dict[str, Any]]:
    places = {name: place for place, name in enumerate(chosen)}
    return [
        {
            "from": places[link.table],
            "columns": link.columns,
            "to": places[link.to],
            "references": link.references,
            "name": link.name,
            "guessed": link.guessed,
            "confirmed": link.confirmed,
        }
        for link in links
        if link.table in places and link.to in places
    ]


def _table(table: Table) -> dict[str, Any]:
    refers = {name for key in table.foreign_keys for name in key.columns}
    return {
        "schema": table.schema,
        "name": table.name,
        "kind": table.kind,
        "comment": table.comment or "",
        "columns": [
            {
                "name": each.name,
                "type": each.type,
                "key": each.key,
                "refers": each.name in refers,
                "nullable": each.nullable,
                "masked": each.masked is not None,
            }
            for each in table.columns
        ],
    }
