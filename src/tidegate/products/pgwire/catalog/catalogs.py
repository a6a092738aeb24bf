"""PostgreSQL's catalogs for one session, kept while the catalog of the source stays the same. The
sessions of one caller share them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from msgspec import structs

from tidegate.gateway.concurrency import ConcurrencyLimiter
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Browse, ListSources, Request
from tidegate.model.results import Column
from tidegate.model.schema import Catalog
from tidegate.products.pgwire.catalog.database import CatalogDatabase
from tidegate.products.pgwire.catalog.schema_names import named_schemas
from tidegate.products.pgwire.catalog.shared import SharedCatalog, SharedCatalogs
from tidegate.products.pgwire.catalog.tables import catalog_rows, shown_schema
from tidegate.products.pgwire.catalog.translation import CatalogQuery, translate
from tidegate.products.pgwire.errors import not_emulated
from tidegate.products.pgwire.logins import Login
from tidegate.products.pgwire.reading import StatementReader
from tidegate.products.pgwire.session_settings import SessionSettings

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
    so does a query here, and what it has read stays for the caller's sessions."""

    def __init__(
        self,
        ask: Ask,
        reading: StatementReader,
        login: Login,
        settings: SessionSettings,
        *,
        turns: ConcurrencyLimiter,
        shared: SharedCatalogs,
    ) -> None:
        """`turns` and `shared` are those of all sessions, by the id of their caller."""
        self._key = (login.actor.id, login.source.id)
        self._turns = turns
        self._all = shared
        self._entered: SharedCatalog | None = None
        self._running: Cancellation | None = None
        self._ask = ask
        self._reading = reading
        self._source = login.source
        self._settings = settings
        self._user = login.actor.name

    async def run(self, text: str, parameters: Sequence[Any]) -> Answer:
        """The columns and rows of a query on the catalogs. Raises: TidegateError."""
        query = await self._reading.compute(text, translate, text)
        async with self._turn() as cancellation:
            shared, database = await self._current(query, parameters)
            loop = asyncio.get_running_loop()
            return await shared.begin(
                loop.run_in_executor(_threads(), database.run, query, parameters, cancellation)
            )

    async def describe(self, text: str) -> tuple[tuple[Column, ...], tuple[str, ...]]:
        """The columns of a query, and the types of its parameters. Raises: TidegateError."""
        query = await self._reading.compute(text, translate, text)
        async with self._turn():
            shared, database = await self._current(query, ())
            loop = asyncio.get_running_loop()
            columns = await shared.begin(loop.run_in_executor(_threads(), database.describe, query))
        most = max(query.parameters, default=0)
        names = [query.parameters.get(at, "text") for at in range(1, most + 1)]
        return columns, tuple(names)

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[Cancellation]:
        """The caller's turn, in which no other session of it uses what they share. Raises:
        TidegateError SOURCE_BUSY, CALL_CANCELLED."""
        cancellation = self._running = Cancellation()
        caller = self._key[0]
        try:
            await self._turns.acquire(caller, _WAIT_S, cancellation)
            try:
                yield cancellation
            finally:
                self._turns.release(caller)
        finally:
            self._running = None

    def cancel(self, reason: str) -> None:
        """End the query that runs now, or waits for its turn."""
        if self._running is not None:
            self._running.cancel(reason)

    async def _current(
        self, query: CatalogQuery, parameters: Sequence[Any]
    ) -> tuple[SharedCatalog, CatalogDatabase]:
        """What the gate shows to the caller now."""
        shared = self._entered
        if shared is None:
            shared = self._entered = self._all.enter(self._key)
        catalog = await self._browse(None)
        if shared.is_running:  # for a session that has gone
            shared.close()
        if shared.catalog is not catalog and shared.catalog != catalog:
            shared.close()
            shared.more = {}
        shared.catalog = catalog
        database = shared.database or await self._rebuild(shared, catalog)
        named = named_schemas(database.schemas, query.constants, parameters)
        if self._settings.schema is not None:
            named.append(self._settings.schema)
        listed = {shown_schema(table.schema) for table in catalog.tables}
        known = {shown_schema(name): name for name in catalog.schemas}
        missing = [known[name] for name in named if name in known and name not in listed]
        missing = [name for name in dict.fromkeys(missing) if name not in shared.more]
        if missing:
            await self._read(shared, missing)
            database = await self._rebuild(shared, catalog)
        database.session = self._session(catalog)
        self._all.note_use(self._key)
        return shared, database

    async def _read(self, shared: SharedCatalog, schemas: Sequence[str]) -> None:
        if len(schemas) > MOST_SCHEMAS:
            raise not_emulated(
                "54000",
                f"The query is about {len(schemas)} schemas, and {MOST_SCHEMAS} are read at a"
                " time. Name one of them.",
            )
        if len(shared.more) + len(schemas) > _KEPT_SCHEMAS:
            shared.more = {}
        for schema in schemas:
            shared.more[schema] = (await self._browse(schema)).tables

    async def _browse(self, schema: str | None) -> Catalog:
        catalog = await self._ask(Browse(aspect="catalog", schema=schema))
        if not isinstance(catalog, Catalog):
            raise TypeError(type(catalog).__name__)
        return catalog

    async def _rebuild(self, shared: SharedCatalog, catalog: Catalog) -> CatalogDatabase:
        entries = await self._ask(ListSources(limit=SHOWN_SOURCES))
        names = [entry.source.name for entry in entries]
        tables = [*catalog.tables, *[each for more in shared.more.values() for each in more]]
        whole = structs.replace(catalog, tables=tuple(tables))
        settings = self._settings.items()
        rows = catalog_rows(whole, names, self._source.name, self._user, settings)
        shared.close()
        shared.database = await asyncio.to_thread(CatalogDatabase, rows, self._session(catalog))
        return shared.database

    def _session(self, catalog: Catalog) -> dict[str, str]:
        """What functions of the session give."""
        settings = self._settings
        return {
            "current_database": self._source.name,
            "current_schema": settings.schema or shown_schema(catalog.default_schema),
            "current_user": self._user,
            "version": f"PostgreSQL {settings.get('server_version')} (Tidegate,"
            f" {self._source.dialect} source)",
            **{f"setting {name}": value for name, value in settings.items()},
        }

    def close(self) -> None:
        """The session has ended."""
        if self._entered is not None:
            self._entered = None
            self._all.leave(self._key)


def catalog_turns() -> ConcurrencyLimiter:
    """Who may run a query on catalogs: each caller one at a time."""
    return ConcurrencyLimiter(1, "asking PostgreSQL's catalogs")


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "tidegate-catalogs")
