"""Decides who may have the file when: many readers, or one writer. Knows no database.

DuckDB lets one process write a file, or several read it; our workers are processes like any other.
"""

from __future__ import annotations

import asyncio
from collections import deque

from tidegate.errors import Code, GateError


class Turns:
    """A line for one file. A writer waits for those who read, later readers for the writer."""

    def __init__(self) -> None:
        self._readers = 0
        self._writing = False
        self._line: deque[tuple[bool, asyncio.Future[None]]] = deque()

    @property
    def quiet(self) -> bool:
        """Whether nobody has the file, or waits for it."""
        return not self._readers and not self._writing and not self._line

    async def begin(self, *, writes: bool, timeout_s: float) -> None:
        """Wait for a turn. Raises: GateError SOURCE_BUSY after `timeout_s`."""
        if not self._line and self._fits(writes):
            self._enter(writes)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((writes, turn))
        try:
            await asyncio.wait_for(turn, timeout_s)
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.end(writes=writes)
            else:
                self._advance()
            if isinstance(error, TimeoutError):
                raise GateError(
                    Code.SOURCE_BUSY, "Another statement of this source has the file."
                ) from None
            raise

    def end(self, *, writes: bool) -> None:
        """Give the turn back."""
        if writes:
            self._writing = False
        else:
            self._readers -= 1
        self._advance()

    def _fits(self, writes: bool) -> bool:
        return not self._writing and not (writes and self._readers)

    def _enter(self, writes: bool) -> None:
        if writes:
            self._writing = True
        else:
            self._readers += 1

    def _advance(self) -> None:
        while self._line:
            writes, turn = self._line[0]
            if not turn.done():
                if not self._fits(writes):
                    return
                self._enter(writes)
                turn.set_result(None)
            self._line.popleft()
