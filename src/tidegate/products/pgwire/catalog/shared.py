"""The emulated catalogs that all sessions of one caller on one source use, one query at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from tidegate.model.schema import Catalog, Table
from tidegate.products.pgwire.catalog.database import CatalogDatabase

Result = TypeVar("Result")

KEPT = 16
"""Emulations that are kept at a time, of all callers: one of a thousand tables has about 10 MB."""
Key = tuple[str, str]


class SharedCatalog:
    """What the gate showed a caller of a source, and the database made of it. `more` are the tables
    of schemas that are listed by themselves."""

    def __init__(self) -> None:
        self.sessions = 0
        self.catalog: Catalog | None = None
        self.more: dict[str, tuple[Table, ...]] = {}
        self.database: CatalogDatabase | None = None
        self._running: asyncio.Future[Any] | None = None

    @property
    def is_running(self) -> bool:
        """Whether a thread uses the database, perhaps for a session that has gone."""
        return self._running is not None and not self._running.done()

    def begin(self, running: asyncio.Future[Result]) -> asyncio.Future[Result]:
        """A thread uses the database until this is done."""
        self._running = running
        return running

    def close(self) -> None:
        """Forget the database, once no thread uses it."""
        database, self.database = self.database, None
        if database is None:
            return
        if self._running is not None and not self._running.done():
            self._running.add_done_callback(_closing(database))
        else:
            database.close()


def _closing(database: CatalogDatabase) -> Callable[[object], None]:
    return lambda _: database.close()


class SharedCatalogs:
    """Those of a server, by caller and source. One goes with the last session that uses it."""

    def __init__(self) -> None:
        self._kept: dict[Key, SharedCatalog] = {}

    def enter(self, key: Key) -> SharedCatalog:
        """A session uses these from now on."""
        shared = self._kept.setdefault(key, SharedCatalog())
        shared.sessions += 1
        return shared

    def leave(self, key: Key) -> None:
        """A session uses these no longer."""
        shared = self._kept[key]
        shared.sessions -= 1
        if not shared.sessions:
            del self._kept[key]
            shared.close()

    def note_use(self, key: Key) -> None:
        """These were used last: of the others with a database, the oldest make room."""
        self._kept[key] = self._kept.pop(key)
        filled = [each for each in self._kept.values() if each.database is not None]
        for shared in filled[: max(0, len(filled) - KEPT)]:
            if not shared.is_running:
                shared.close()
