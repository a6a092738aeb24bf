"""PostgreSQL's catalogs for one session, kept while the catalog of the source stays the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from msgspec import structs

from tidegate.edges.pgwire.catalog.database import CatalogDatabase
from tidegate.edges.pgwire.catalog.schema_names import named_schemas
from tidegate.edges.pgwire.catalog.tables import catalog_rows, shown_schema
from tidegate.edges.pgwire.catalog.translation import CatalogQuery, translate
from tidegate.edges.pgwire.errors import not_emulated
from tidegate.edges.pgwire.reading import Reading
from tidegate.edges.pgwire.settings import SessionSettings
from tidegate.gateway.concurrency import ConcurrencyLimiter
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Browse, ListSources, Request
from tidegate.model.results import Column
from tidegate.model.schema import Catalog, Table
from tidegate.model.sources import Source

SHOWN_SOURCES = 1_000
MOST_SCHEMAS = 50
"""Schemas whose tables one query reads, where the source lists them schema by schema."""
_KEPT_SCHEMAS = 200
_AT_ONCE = 4
"""Queries on catalogs that run at a time, on threads that nothing else of the server waits for."""

_WAIT_S = 30.0
"""How long a query waits for others of its caller."""

Ask = Callable[[Request], Awaitable[Any]]
"""Sends a request through the gate, and gives the payload of its reply."""
Answer = tuple[tuple[Column, ...], list[tuple[Any, ...]]]


class SystemCatalogs:
    """Answers queries on PostgreSQL's catalogs from what the gate shows to the caller.

    A source with very many tables lists those of a schema only when it is asked for them by name:
    so does a query here, and what it has read stays for the session."""

    def __init__(
        self,
        ask: Ask,
        reading: Reading,
        source: Source,
        settings: SessionSettings,
        user: str,
        *,
        caller: str,
        turns: ConcurrencyLimiter,
    ) -> None:
        """`turns` are those of all sessions, by the id of the `caller`."""
        self._caller = caller
        self._turns = turns
        self._running: Cancellation | None = None
        self._ask = ask
        self._reading = reading
        self._source = source
        self._settings = settings
        self._user = user
        self._catalog: Catalog | None = None
        self._more: dict[str, tuple[Table, ...]] = {}
        """The tables of schemas that are listed by themselves."""
        self._database: CatalogDatabase | None = None
        self._lock = asyncio.Lock()

    async def run(self, text: str, parameters: Sequence[Any]) -> Answer:
        """The columns and rows of a query on the catalogs. Raises: TidegateError."""
        async with self._lock:
            query = await self._reading.compute(text, translate, text)
            database = await self._current(query, parameters)
            loop = asyncio.get_running_loop()
            cancellation = self._running = Cancellation()
            try:
                await self._turns.acquire(self._caller, _WAIT_S, cancellation)
                try:
                    return await loop.run_in_executor(
                        _threads(), database.run, query, parameters, cancellation
                    )
                finally:
                    self._turns.release(self._caller)
            finally:
                self._running = None

    def cancel(self, reason: str) -> None:
        """End the query that runs now, or waits for its turn."""
        if self._running is not None:
            self._running.cancel(reason)

    async def describe(self, text: str) -> tuple[tuple[Column, ...], tuple[str, ...]]:
        """The columns of a query, and the types of its parameters. Raises: TidegateError."""
        async with self._lock:
            query = await self._reading.compute(text, translate, text)
            database = await self._current(query, ())
            loop = asyncio.get_running_loop()
            columns = await loop.run_in_executor(_threads(), database.describe, query)
            most = max(query.parameters, default=0)
            names = [query.parameters.get(at, "text") for at in range(1, most + 1)]
            return columns, tuple(names)

    async def _current(self, query: CatalogQuery, parameters: Sequence[Any]) -> CatalogDatabase:
        catalog = await self._browse(None)
        if self._catalog is None or catalog.version != self._catalog.version:
            self._catalog, self._more = catalog, {}
            self.close()
        database = self._database or await self._rebuild()
        named = named_schemas(database.schemas, query.constants, parameters)
        if self._settings.schema is not None:
            named.append(self._settings.schema)
        listed = {shown_schema(table.schema) for table in self._catalog.tables}
        known = {shown_schema(name): name for name in self._catalog.schemas}
        missing = [known[name] for name in named if name in known and name not in listed]
        missing = [name for name in dict.fromkeys(missing) if name not in self._more]
        if missing:
            await self._read(missing)
            database = await self._rebuild()
        database.session = self._session()
        return database

    async def _read(self, schemas: Sequence[str]) -> None:
        if len(schemas) > MOST_SCHEMAS:
            raise not_emulated(
                "54000",
                f"The query is about {len(schemas)} schemas, and {MOST_SCHEMAS} are read at a"
                " time. Name one of them.",
            )
        if len(self._more) + len(schemas) > _KEPT_SCHEMAS:
            self._more = {}
        for schema in schemas:
            self._more[schema] = (await self._browse(schema)).tables

    async def _browse(self, schema: str | None) -> Catalog:
        catalog = await self._ask(Browse(aspect="catalog", schema=schema))
        if not isinstance(catalog, Catalog):
            raise TypeError(type(catalog).__name__)
        return catalog

    async def _rebuild(self) -> CatalogDatabase:
        if self._catalog is None:
            raise AssertionError("no catalog")
        entries = await self._ask(ListSources(limit=SHOWN_SOURCES))
        names = [entry.source.name for entry in entries]
        tables = [*self._catalog.tables, *[each for more in self._more.values() for each in more]]
        catalog = structs.replace(self._catalog, tables=tuple(tables))
        settings = self._settings.items()
        rows = catalog_rows(catalog, names, self._source.name, self._user, settings)
        self.close()
        database = await asyncio.to_thread(CatalogDatabase, rows, self._session())
        self._database = database
        return database

    def _session(self) -> dict[str, str]:
        """What functions of the session give."""
        settings = self._settings
        default = "" if self._catalog is None else self._catalog.default_schema
        return {
            "current_database": self._source.name,
            "current_schema": settings.schema or shown_schema(default),
            "current_user": self._user,
            "version": f"PostgreSQL {settings.get('server_version')} (Tidegate,"
            f" {self._source.dialect} source)",
            **{f"setting {name}": value for name, value in settings.items()},
        }

    def close(self) -> None:
        """Forget the emulation."""
        database, self._database = self._database, None
        if database is not None:
            database.close()


def catalog_turns() -> ConcurrencyLimiter:
    """Who may run a query on catalogs: one caller has half of the threads at most."""
    turns = ConcurrencyLimiter(_AT_ONCE // 2, place="asking PostgreSQL's catalogs")
    turns.share(_AT_ONCE)
    return turns


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "tidegate-catalogs")
