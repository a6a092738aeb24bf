"""The rows of a statement that runs on the backing server, for the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from psycopg.pq.abc import PGresult

from tidegate.engines.api import Row, RowCollector
from tidegate.engines.common.errors import stopped
from tidegate.errors import Code
from tidegate.model.results import Column, SkippedCall, Truncation, UpstreamUse
from tidegate.products.cloud.proxy.connection import BackingConnection, Notices, is_good, is_rows
from tidegate.products.cloud.proxy.errors import translate
from tidegate.products.cloud.proxy.values import RowReader
from tidegate.typed_values import decode_json

_CUT: Final = "01004"
_PARTIAL: Final = "01000"
_GRACE_S: Final = 3.0
"""How much later than the server this side ends a statement that takes too long."""

Release = Callable[[BackingConnection, bool], Awaitable[None]]
"""Takes the connection back, and whether it can be used again."""


class BackingCursor:
    """One statement. `release` is called once, when it has ended."""

    def __init__(
        self,
        connection: BackingConnection,
        place: str,
        timeout_s: float,
        release: Release,
        *,
        writing: bool,
    ) -> None:
        self._connection = connection
        self._place = place
        self._ends_at = asyncio.get_running_loop().time() + timeout_s + _GRACE_S
        self._release = release
        self._writing = writing
        self._reader: RowReader | None = None
        self._rows: list[Row] = []
        self._ended = False
        self._released = False
        self.on_close: Callable[[], None] = _nothing
        """Called when the statement has ended."""
        self.columns: tuple[Column, ...] = ()
        self.affected = 0
        self.truncations: tuple[Truncation, ...] = ()
        self.upstream = UpstreamUse(0, 0)

    async def begin(self, text: str, *, alone: bool) -> None:
        """Send the statement and read up to its first rows. Raises: TidegateError."""
        async with self._within():
            self._connection.send(text, alone=alone)
            await self._connection.flush()
            await self._read()

    async def fetch(self, max_rows: int) -> list[Row]:
        while len(self._rows) < max_rows and not self._ended:
            async with self._within():
                await self._read()
        taken, self._rows = self._rows[:max_rows], self._rows[max_rows:]
        return taken

    async def fetch_into(self, sink: RowCollector) -> None:
        while wanted := sink.remaining:
            rows = await self.fetch(wanted)
            sink.write(rows)
            if len(rows) < wanted:
                if rows:
                    sink.write([])
                return

    async def close(self) -> None:
        if self._released:
            return
        self._released = True
        self._rows = []
        self.on_close()
        usable = await self._connection.settled() if self._ended else await self._drained()
        await self._release(self._connection, usable)

    async def _drained(self) -> bool:
        return self._connection.is_open and await self._connection.drain()

    def _within(self) -> Any:
        left = self._ends_at - asyncio.get_running_loop().time()
        return self._connection.within(max(left, 0.001), writing=self._writing)

    async def _read(self) -> None:
        """Take the next result. Raises: TidegateError, with all that came read."""
        result = await self._connection.result()
        if result is None:
            self._finish()
            return
        if not is_good(result):
            failure = translate(result, self._place, writing=self._writing)
            if failure.code is Code.LIMIT_TIME and self._connection.cancelled:
                failure = stopped(self._connection.cancelled)
            while await self._connection.result() is not None:
                pass
            self._ended = True
            raise failure
        if is_rows(result):
            if self._reader is None:
                self._reader = RowReader(result)
                self.columns = self._reader.columns
            self._rows += self._reader.rows(result)
        self.affected = _affected(result) or self.affected

    def _finish(self) -> None:
        self._ended = True
        self.truncations, self.upstream = read_notices(self._connection.notices)
        if not self._writing:
            self.affected = 0


def _nothing() -> None:
    pass


def _affected(result: PGresult) -> int:
    return result.command_tuples or 0


def read_notices(notices: Notices) -> tuple[tuple[Truncation, ...], UpstreamUse]:
    """How a result was cut, and what was sent to providers for it."""
    cuts: list[Truncation] = []
    upstream = UpstreamUse(0, 0)
    skipped: tuple[SkippedCall, ...] = ()
    for sqlstate, detail in notices:
        try:
            if sqlstate == _PARTIAL:
                skipped = decode_json(detail, tuple[SkippedCall, ...])
                continue
            if sqlstate == _CUT:
                cuts.append(decode_json(detail, Truncation))
            upstream = decode_json(detail, UpstreamUse)
        except (msgspec.DecodeError, RecursionError):
            continue  # the backing server says something else
    return tuple(cuts), msgspec.structs.replace(upstream, skipped=skipped)
