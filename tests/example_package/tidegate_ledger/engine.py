"""Ledgers, read and written by Tidegate's own engine for SQLite."""

from __future__ import annotations

from msgspec import structs

from tidegate.engines.common.url import file_of
from tidegate.engines.sqlite import SqliteEngine
from tidegate.model.sources import Source


def path_of(url: str) -> str | None:
    """The file of a ledger."""
    return file_of(_as_sqlite(url))


def _as_sqlite(url: str) -> str:
    return "sqlite" + url[len("ledger") :]


class LedgerEngine(SqliteEngine):
    """One ledger."""

    @classmethod
    async def open(cls, source: Source) -> SqliteEngine:
        return await super().open(structs.replace(source, url=_as_sqlite(source.url)))
