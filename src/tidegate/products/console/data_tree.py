"""The tree of the Data page: sources, schemas and tables, and the search over all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog, Databases, Table
from tidegate.model.sources import Source
from tidegate.products.console.cards import source_fields
from tidegate.products.console.data_calls import (
    Caller,
    DataCalls,
    Place,
    decode,
    lists_by_schema,
    speaks_sql,
)
from tidegate.search.words import PerCatalog
from tidegate.store.records import OperatorEntry

MOST_TABLES = 1_000
MOST_MATCHES = 200
PATIENCE_S = 2.0
"""How long a search waits for a source whose tables were not read yet."""


class Page(msgspec.Struct, frozen=True):
    """The fields of `tables` besides its place."""

    q: str = ""
    after: str = ""
    limit: int = 200


class Wanted(msgspec.Struct, frozen=True):
    """The fields of `search`."""

    q: str = ""
    source: str = ""
    limit: int = 50


class _Name(NamedTuple):
    """A name that is searched for: of a table, or of one of its columns."""

    text: str
    words: tuple[str, ...]
    table: Table
    column: int | None = None


class _Names:
    """The names of a catalog, in small letters."""

    def __init__(self, catalog: Catalog) -> None:
        self.tables: list[_Name] = []
        self.columns: list[_Name] = []
        for table in catalog.tables:
            self.tables.append(_Name(table.name.casefold(), _words(table.name), table))
            self.columns += [
                _Name(each.name.casefold(), _words(each.name), table, place)
                for place, each in enumerate(table.columns)
            ]


class _Match(NamedTuple):
    rank: tuple[int, int, str]
    name: _Name
    source: str
    database: str


class DataTree:
    """The schema tree as one operator may see it."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls
        self._names: PerCatalog[_Names] = PerCatalog(_Names, most=256)
        self._reading: dict[tuple[OperatorEntry, str], asyncio.Task[Catalog]] = {}

    @property
    def is_reading(self) -> bool:
        """Whether the tables of a source are being read for a search."""
        return bool(self._reading)

    async def sources(self, caller: Caller) -> dict[str, Any]:
        """All sources that the operator may read."""
        entries = await self._calls.sources(caller)
        return {"sources": [_source(e.source, e.state, caller.signed_in) for e in entries]}

    async def schemas(self, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """The databases of a source, if it has several, and the schemas of one."""
        place = Place.of(query)
        databases: tuple[str, ...] | None = None
        try:
            found, _ = await self._calls.ask(caller, Browse("databases"), place.source, Databases)
            databases = found.names
        except TidegateError as error:
            if error.code not in (Code.UNSUPPORTED, Code.POLICY_TABLE):
                raise
        catalog = await self._calls.catalog(caller, place)
        counts: dict[str, int] = {}
        for table in catalog.tables:
            counts[table.schema] = counts.get(table.schema, 0) + 1
        names = dict.fromkeys((*catalog.schemas, *counts))
        by_schema = lists_by_schema(self._calls.source(caller, place.source))
        return {
            "databases": None if databases is None or len(databases) < 2 else list(databases),
            "schemas": [
                {
                    "database": catalog.database,
                    "name": name,
                    "tables": None if by_schema else counts.get(name, 0),
                    "current": name == catalog.default_schema,
                }
                for name in names
            ],
        }

    async def tables(self, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """A page of the tables of a schema by name, those that match `q`."""
        place, page = Place.of(query), decode(dict(query), Page)
        catalog = await self._calls.catalog(caller, place)
        schema = catalog.default_schema if place.schema is None else place.schema
        terms = page.q.casefold().split()
        tables = [
            table
            for table in catalog.tables
            if table.schema == schema and all(term in table.name.casefold() for term in terms)
        ]
        tables.sort(key=lambda table: (table.name.casefold(), table.name))
        start = int(page.after) if page.after.isascii() and page.after.isdigit() else 0
        end = start + max(1, min(page.limit, MOST_TABLES))
        return {
            "tables": [_table(table, catalog.database) for table in tables[start:end]],
            "next": str(end) if end < len(tables) else None,
            "total": len(tables),
        }

    async def search(self, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """Tables and columns of all sources whose names have every word of `q`, the best first. A
        source that takes long is left out this time, and said to be."""
        wanted = decode(dict(query), Wanted)
        terms = wanted.q.casefold().split()[:8]
        most = max(1, min(wanted.limit, MOST_MATCHES))
        sources = [each for each in self._calls.visible(caller) if wanted.source in ("", each.name)]
        if not terms or not sources:
            return {"matches": [], "more": False, "unread": []}
        tasks = [self._read(caller, each.name) for each in sources]
        await asyncio.wait(tasks, timeout=PATIENCE_S)
        matches: list[_Match] = []
        unread: list[dict[str, str]] = []
        for source, task in zip(sources, tasks, strict=True):
            name = source.name
            if not task.done():
                unread.append({"source": name, "reason": "Its tables are still being read."})
            elif (fault := task.exception()) is not None:
                unread.append({"source": name, "reason": _reason(fault)})
            else:
                catalog = task.result()
                if lists_by_schema(source):
                    unread.append({"source": name, "reason": "It lists tables by schema alone."})
                matches += _matches(self._names.of(catalog), terms, name, catalog.database)
        matches.sort(key=lambda match: (match.rank, match.source))
        return {
            "matches": [_match(match) for match in matches[:most]],
            "more": len(matches) > most,
            "unread": unread,
        }

    def _read(self, caller: Caller, source: str) -> asyncio.Task[Catalog]:
        """The reading of a source's tables, the one that goes on if there is one."""
        key = caller.signed_in.operator, source  # as it is now, with its roles
        task = self._reading.get(key)
        if task is None:
            work = self._calls.catalog(caller, Place(source))
            task = asyncio.get_running_loop().create_task(work)
            self._reading[key] = task

            def ended(task: asyncio.Task[Catalog]) -> None:
                self._reading.pop(key, None)
                if not task.cancelled():
                    task.exception()  # the search may have answered without it

            task.add_done_callback(ended)
        return task


def _source(source: Source, state: ConnectionState, signed_in: SignedIn) -> dict[str, Any]:
    admin = signed_in.may("admin", source.name)
    refuses = not source.writable or source.changes == "deny"
    why_not = ""
    if not admin:
        why_not = f"You may read {source.name}, but not change it."
    elif refuses:
        why_not = f"{source.name} is read-only."
    words = {"connected": "open", "connecting": "idle", "disconnected": "idle", "error": "failed"}
    return {
        **source_fields(source.name, source),
        "engine": source.engine,
        "dialect": source.dialect,
        "state": words[state.status],
        "message": state.error or "",
        "language": "sql" if speaks_sql(source) else source.dialect,
        "saved": not source.ephemeral,
        "may": {"read": True, "write": not why_not, "why_not": why_not},
    }


def _table(table: Table, database: str) -> dict[str, Any]:
    return {
        "name": table.name,
        "schema": table.schema,
        "database": database,
        "kind": table.kind,
        "rows": table.approximate_rows,
        "comment": table.comment or "",
    }


def _words(name: str) -> tuple[str, ...]:
    """The words of a name: `OrderLines`, `order_lines` and `order lines` have the same two."""
    parts: list[str] = []
    word = ""
    for before, sign in zip(f" {name}", name, strict=False):
        begins = not sign.isalnum() or (sign.isupper() and before.islower())
        if begins and word:
            parts.append(word.casefold())
            word = ""
        word += sign if sign.isalnum() else ""
    return (*parts, word.casefold()) if word else tuple(parts)


def _matches(names: _Names, terms: Sequence[str], source: str, database: str) -> Iterator[_Match]:
    for of_column, group in enumerate((names.tables, names.columns)):
        for name in group:
            if all(term in name.text for term in terms):
                rank = _rank(name, terms)
            elif len(terms) > 1 and _in_place(name, terms):
                rank = 4
            else:
                continue
            yield _Match((rank + 5 * of_column, len(name.text), name.text), name, source, database)


def _rank(name: _Name, terms: Sequence[str]) -> int:
    if name.text == " ".join(terms):
        return 0
    if name.text.startswith(terms[0]):
        return 1
    if all(any(word.startswith(term) for word in name.words) for term in terms):
        return 2
    return 3


def _in_place(name: _Name, terms: Sequence[str]) -> bool:
    """Whether the words are spread over a column's name, its table's and the schema's."""
    place = f"{name.table.schema} {name.table.name}".casefold()
    return any(term in name.text for term in terms) and all(
        term in name.text or term in place for term in terms
    )


def _match(match: _Match) -> dict[str, Any]:
    table, place = match.name.table, match.name.column
    column = None if place is None else table.columns[place]
    return {
        "source": match.source,
        "database": match.database,
        "schema": table.schema,
        "table": table.name,
        "kind": table.kind,
        "column": None if column is None else column.name,
        "type": None if column is None else column.type,
    }


def _reason(fault: BaseException) -> str:
    return fault.without_secrets().message if isinstance(fault, TidegateError) else "It failed."
