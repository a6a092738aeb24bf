"""A running statement of the memory engine, which ends at its time limit or when cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from tidegate.engines.api import Row, RowCollector
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.results import Column


class MemoryCursor:
    """A running statement: an asynchronous generator of rows, with a time limit."""

    def __init__(
        self,
        running: set[MemoryCursor],
        columns: tuple[Column, ...],
        rows: AsyncGenerator[Row],
        permit: Permit,
        cancellation: Cancellation,
        affected: int = 0,
    ) -> None:
        self.columns = columns
        self.affected = affected
        self._rows = rows
        self._running = running
        self._cancellation = cancellation
        self._error: TidegateError | None = None
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        seconds = permit.limits.timeout_s
        self._alarm = asyncio.get_running_loop().call_later(
            seconds, self.stop, Code.LIMIT_TIME, f"The statement was stopped after {seconds:g} s."
        )
        running.add(self)
        cancellation.listen(self._cancelled)

    async def fetch(self, max_rows: int) -> list[Row]:
        coming = asyncio.ensure_future(self._collect(max_rows))
        try:
            await asyncio.wait({coming, self._stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not coming.done():
                coming.cancel()
                await asyncio.wait({coming})
        if self._error is not None:
            raise self._error
        return coming.result()

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            sink.write(await self.fetch(wanted))

    async def close(self) -> None:
        self._alarm.cancel()
        self._cancellation.forget(self._cancelled)
        self._running.discard(self)
        await self._rows.aclose()

    def stop(self, code: Code, message: str) -> None:
        """End the statement: the next fetch raises this error."""
        if self._error is None:
            self._error = TidegateError(code, message)
            self._stopped.set_result(None)

    def _cancelled(self) -> None:
        self.stop(Code.CALL_CANCELLED, "The call was cancelled.")

    async def _collect(self, max_rows: int) -> list[Row]:
        rows: list[Row] = []
        while len(rows) < max_rows and (row := await anext(self._rows, None)) is not None:
            rows.append(row)
        return rows
