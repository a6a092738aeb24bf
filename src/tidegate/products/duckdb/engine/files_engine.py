"""A folder of files as an engine: DuckDB with a table for each file, read only.

Nothing here writes, and neither can a worker: DuckDB may open no file but those that were found,
and every statement runs in a transaction that only reads.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import structs

from tidegate.engines.api import Capabilities, Cursor
from tidegate.engines.registry import resolve_options
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect
from tidegate.products.duckdb.engine.engine import DuckdbEngine
from tidegate.products.duckdb.engine.messages import Definition
from tidegate.products.duckdb.engine.url import FolderUrl


class FilesEngine(DuckdbEngine):
    """One folder, and the folders in it."""

    base_capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=False,
        writes=False,
        inspects=True,
        explains_changes=False,
        primary_keys=False,
        foreign_keys=False,
        prepares=True,
    )

    wait_s: ClassVar[float] = 60.0
    """The first worker looks into every file."""

    @classmethod
    async def open(cls, source: Source) -> FilesEngine:
        engine = await cls._opened(FolderUrl(source.url, resolve_options(source)), source)
        try:
            await engine._learn()
        except BaseException:
            await engine.close()
            raise
        return engine

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        return await super().run(structs.replace(permit, effect=Effect.READ), cancellation)

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        raise TidegateError(Code.UNSUPPORTED, "A folder of files is only read.")

    async def _learn(self) -> None:
        """Keep what the first worker found out of the files, for those that start later."""
        known = await self._ask("known", None, dict[str, Definition])
        folder = self._url.setup.folder
        if folder is not None:
            setup = structs.replace(self._url.setup, folder=structs.replace(folder, known=known))
            self._url.setup = setup
