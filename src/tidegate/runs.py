"""What happens under a permit: a statement is run and its rows become a page; metadata is read;
the rest of a result is kept for its owner. Decides nothing and records nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import structs

from tidegate.calls import Call, Explain, More, Query
from tidegate.connections import Connection
from tidegate.engines.api import Cursor, Engine, Row
from tidegate.metadata import Catalog, Description
from tidegate.pages import Page, Truncation
from tidegate.permits import Permit
from tidegate.results.page import PageBuilder
from tidegate.results.transcript import Transcript
from tidegate.shelf import SHELVED_ROWS, Rest, Shelf, Shelved
from tidegate.sources import Source
from tidegate.statements import Effect


class Runs:
    """The runs of one gateway, and the results that are shown page by page."""

    def __init__(self) -> None:
        self._shelf = Shelf()

    async def page(
        self, call: Call, request: Query | Explain, permit: Permit, engine: Engine
    ) -> Page:
        """Run the permit's statement. Raises: GateError, what the engine raises."""
        began = time.perf_counter()
        cursor = await engine.run(permit, call.cancellation)
        more = None
        try:
            if isinstance(request, Query) and request.writer is not None:
                sheet = Transcript(cursor.columns, permit.limits, request.writer)
            else:
                cells = request.cells if isinstance(request, Query) else "json"
                sheet = PageBuilder(cursor.columns, permit.limits, cells)
            await cursor.pour(sheet)
            report(call, 0.8, "Formatting result")
            if isinstance(sheet, PageBuilder) and isinstance(request, Query) and request.shelve:
                more = await self._shelve(permit, request, cursor, sheet)
            if permit.effect > Effect.READ:
                # What a change returns is read to its end: only then is it committed.
                await cursor.pour(_Nowhere())
        finally:
            await cursor.close()
        elapsed_ms = (time.perf_counter() - began) * 1000
        page = sheet.page(affected=cursor.affected, elapsed_ms=elapsed_ms)
        return page if more is None else structs.replace(page, more=more)

    def more(self, call: Call, request: More, source: Source) -> Page:
        """Show more of a result that was read under a permit of its own.

        Raises: GateError RESULT_GONE, also once the source's settings are no longer those that
        it was read under.
        """
        shelved = self._shelf.take(request.handle, call.actor.id, source)
        builder = PageBuilder(
            shelved.columns, shelved.limits(request.max_rows), shelved.query.cells
        )
        while wanted := builder.wanted:
            builder.add(shelved.take(wanted))
        shelved.put_back(builder.rest)
        more = None if shelved.is_empty else self._shelf.put(shelved)
        page = builder.page(more=more)
        if more is None and not shelved.complete:
            cut = Truncation("rows", SHELVED_ROWS, page.row_count)
            page = structs.replace(page, truncations=(*page.truncations, cut))
        return page

    async def describe(
        self, call: Call, permit: Permit, engine: Engine, connection: Connection
    ) -> Description:
        """Answer the permit's Browse; a catalog that still holds is not read again."""
        request = permit.request
        if isinstance(request, (Query, Explain)) or request.aspect != "catalog":
            return await engine.describe(permit, call.cancellation)
        if request.database is not None or request.table is not None:
            return await engine.describe(permit, call.cancellation)
        kept = connection.catalog
        if kept is not None and kept.stamp == await engine.stamp():
            return kept
        description = await engine.describe(permit, call.cancellation)
        connection.catalog = description if isinstance(description, Catalog) else None
        return description

    async def _shelve(
        self, permit: Permit, request: Query, cursor: Cursor, builder: PageBuilder
    ) -> str | None:
        """Read on, within bounds, and keep what was not shown; None if everything was."""
        if not builder.rest:
            return None
        rest = Rest(request, builder.rest)
        await cursor.pour(rest)
        if not rest.chunks:
            return None
        shelved = Shelved(permit.actor.id, permit.source, request, cursor.columns, rest)
        return self._shelf.put(shelved)


class _Nowhere:
    """Takes rows that nobody asked for (`engines.api.Sink`)."""

    wanted = 128

    def add(self, rows: Sequence[Row]) -> None:
        if not rows:
            self.wanted = 0


def report(call: Call, share: float, stage: str) -> None:
    """Tell the caller how far its call has come, if it wants to know."""
    if call.progress is not None:
        call.progress(share, stage)
