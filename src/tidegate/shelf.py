"""Rows that were read but not yet shown, for a caller who asks for more of the same result.

A shelved result is a snapshot: nothing runs again. It belongs to the actor who got it, is bounded
in number and size, and is forgotten after ten minutes or when room is needed. Rows are kept as
the JSON that they will be shown as: it is small, and its size is known.
"""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tidegate.calls import Query
from tidegate.engines.api import Row
from tidegate.errors import Code, GateError
from tidegate.pages import Column, Limits
from tidegate.results.types import encode_rows
from tidegate.sources import Source

LIFETIME_S = 600.0
MOST_RESULTS = 64
SHELVED_ROWS = 5_000
SHELVED_BYTES = 8_388_608
SHELF_BYTES = 67_108_864
CHUNK_ROWS = 128

_decode = msgspec.json.Decoder(list[list[Any]]).decode


class Rest:
    """Takes the rows of a result that are not shown now (`engines.api.Sink`).

    `complete` turns True at the end of the result, False again for rows that found no room.
    """

    def __init__(self, query: Query, rows: Sequence[Row] = ()) -> None:
        self.complete = False
        self.chunks: list[bytes] = []
        self.size = 0
        self._as_text = query.cells == "text"
        self._count = 0
        self._full = False
        if rows:
            self.add(rows)

    @property
    def wanted(self) -> int:
        """How many rows to add next; 0: enough."""
        if self._full or self.complete:
            return 0
        return max(0, min(CHUNK_ROWS, SHELVED_ROWS - self._count))

    def add(self, rows: Sequence[Row]) -> None:
        """Take rows; none means that the result has ended."""
        if not rows:
            self.complete = not self._full
            return
        chunk = encode_rows(rows, as_text=self._as_text)
        if self.size + len(chunk) > SHELVED_BYTES:
            self._full = True
            return
        self.chunks.append(chunk)
        self.size += len(chunk)
        self._count += len(rows)


class Shelved:
    """What is left of one result. `complete` False: the database had more than was read."""

    __slots__ = ("_chunks", "_front", "actor_id", "columns", "complete", "expires_at", "query",
                 "size", "source")  # fmt: skip

    def __init__(
        self, actor_id: str, source: Source, query: Query, columns: tuple[Column, ...], rest: Rest
    ) -> None:
        self.actor_id = actor_id
        self.source = source
        self.query = query
        self.columns = columns
        self.complete = rest.complete
        self.expires_at = 0.0
        self.size = rest.size
        self._chunks = rest.chunks[::-1]
        self._front: Sequence[Row] = ()

    def limits(self, max_rows: int) -> Limits:
        return Limits(max_rows, self.query.limits.max_bytes, self.query.limits.timeout_s)

    @property
    def is_empty(self) -> bool:
        return not self._chunks and not self._front

    def take(self, max_rows: int) -> Sequence[Row]:
        """Up to `max_rows` of the next rows, none at the end."""
        if not self._front and self._chunks:
            chunk = self._chunks.pop()
            self.size -= len(chunk)
            self._front = _decode(chunk)
        taken, self._front = self._front[:max_rows], self._front[max_rows:]
        return taken

    def put_back(self, rows: Sequence[Row]) -> None:
        """Return rows that were taken last, and fold up what is loose."""
        loose = [*rows, *self._front]
        self._front = ()
        if loose:
            self._chunks.append(encode_rows(loose))
            self.size += len(self._chunks[-1])


class Shelf:
    """Shelved results by handle."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._results: OrderedDict[str, Shelved] = OrderedDict()
        self._size = 0

    def put(self, shelved: Shelved) -> str:
        """Shelve what is left and return its handle."""
        now = self._clock()
        for handle, result in list(self._results.items()):
            room = self._size + shelved.size <= SHELF_BYTES
            if result.expires_at > now and len(self._results) < MOST_RESULTS and room:
                break
            self._remove(handle)
        shelved.expires_at = now + LIFETIME_S
        handle = urlsafe_b64encode(os.urandom(12)).decode()
        self._results[handle] = shelved
        self._size += shelved.size
        return handle

    def take(self, handle: str, actor_id: str, source: Source) -> Shelved:
        """Take a result of this actor and source off the shelf.

        Raises: GateError RESULT_GONE, also if the source's settings have changed since.
        """
        shelved = self._results.get(handle)
        if shelved is None or (shelved.actor_id, shelved.source) != (actor_id, source):
            raise GateError(Code.RESULT_GONE, f"There is no result {handle[:80]!r}")
        self._remove(handle)
        if self._clock() >= shelved.expires_at:
            raise GateError(Code.RESULT_GONE, f"The result {handle!r} has expired")
        return shelved

    def _remove(self, handle: str) -> None:
        self._size -= self._results.pop(handle).size
