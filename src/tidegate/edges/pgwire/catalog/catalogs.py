"""PostgreSQL's catalogs for one session, kept while the catalog of the source stays the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from tidegate.edges.pgwire.catalog.database import CatalogDatabase
from tidegate.edges.pgwire.catalog.tables import catalog_rows, shown_schema
from tidegate.edges.pgwire.catalog.translation import translate
from tidegate.edges.pgwire.settings import SessionSettings
from tidegate.judging_thread import compute
from tidegate.model.requests import Browse, ListSources, Request
from tidegate.model.results import Column
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source

SHOWN_SOURCES = 1_000
_AT_ONCE = 4
"""Queries on catalogs that run at a time, on threads that nothing else of the server waits for."""

Ask = Callable[[Request], Awaitable[Any]]
"""Sends a request through the gate, and gives the payload of its reply."""


class SystemCatalogs:
    """Answers queries on PostgreSQL's catalogs from what the gate shows to the caller."""

    def __init__(self, ask: Ask, source: Source, settings: SessionSettings, user: str) -> None:
        self._ask = ask
        self._source = source
        self._settings = settings
        self._user = user
        self._version = ""
        self._database: CatalogDatabase | None = None
        self._lock = asyncio.Lock()

    async def run(
        self, text: str, parameters: Sequence[Any]
    ) -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
        """The columns and rows of a query on the catalogs. Raises: TidegateError."""
        async with self._lock:
            query = await compute(text, translate, text)
            catalog = await self._ask(Browse(aspect="catalog"))
            if not isinstance(catalog, Catalog):
                raise TypeError(type(catalog).__name__)
            if self._database is None or catalog.version != self._version:
                await self._rebuild(catalog)
            database = self._database
            if database is None:
                raise AssertionError("no catalogs")
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(_threads(), database.run, query, parameters)

    async def _rebuild(self, catalog: Catalog) -> None:
        entries = await self._ask(ListSources(limit=SHOWN_SOURCES))
        names = [entry.source.name for entry in entries]
        settings = self._settings
        rows = catalog_rows(catalog, names, self._source.name, self._user, settings.items())
        session = {
            "current_database": self._source.name,
            "current_schema": settings.schema or shown_schema(catalog.default_schema),
            "current_user": self._user,
            "version": f"PostgreSQL {settings.get('server_version')} (Tidegate,"
            f" {self._source.dialect} source)",
            **{f"setting {name}": value for name, value in settings.items()},
        }
        self.close()
        self._database = await asyncio.to_thread(CatalogDatabase, rows, session)
        self._version = catalog.version

    def close(self) -> None:
        """Forget the emulation."""
        database, self._database = self._database, None
        if database is not None:
            database.close()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "tidegate-catalogs")
