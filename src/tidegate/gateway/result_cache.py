"""Rows that were read but not yet shown, for a caller who asks for more of the same result.

A cached result is a snapshot: nothing runs again. It belongs to the actor who got it, is bounded
in number and size, and is forgotten after ten minutes or when room is needed. Rows are kept as
the JSON that they will be shown as: it is small, and its size is known.
"""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from tidegate.engines.api import Row
from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.requests import Query
from tidegate.model.results import Column, Limits
from tidegate.model.sources import Identity, Source
from tidegate.results.json_values import encode_rows

LIFETIME_S = 600.0
MAX_RESULTS = 64
MAX_KEPT_ROWS = 5_000
MAX_KEPT_BYTES = 8_388_608
MAX_CACHE_BYTES = 67_108_864
CHUNK_ROWS = 128
_HANDLE_CHARS = 24
"""8 of this cache's own and 16 of the result. After a dot: how many of its rows were shown."""

_decode = msgspec.json.Decoder(list[list[Any]]).decode


class RowBuffer:
    """Takes the rows of a result that are not shown now (`engines.api.RowCollector`).

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
            self.write(rows)

    @property
    def remaining(self) -> int:
        """How many rows to add next; 0: enough."""
        if self._full or self.complete:
            return 0
        return max(0, min(CHUNK_ROWS, MAX_KEPT_ROWS - self._count))

    def write(self, rows: Sequence[Row]) -> None:
        """Take rows; none means that the result has ended."""
        if not rows:
            self.complete = not self._full
            return
        chunk = encode_rows(rows, as_text=self._as_text)
        if self.size + len(chunk) > MAX_KEPT_BYTES:
            self._full = True
            return
        self.chunks.append(chunk)
        self.size += len(chunk)
        self._count += len(rows)


class AppliedRules(NamedTuple):
    """What is hidden from a caller, and who it is to the database."""

    data_rules: DataRules | None
    identity: Identity | None


NO_RULES = AppliedRules(None, None)
"""Of a caller from whom nothing is hidden, and who has no database role of its own."""


class CachedResult:
    """What is left of one result. `complete` False: the database had more than was read.

    `rights` are those that the rows were read under: the same actor may have fewer by the time it
    asks for more. `handle` is that of the first time it was kept, and `shown` counts the rows that
    were taken since.
    """

    __slots__ = ("_chunks", "_front", "actor_id", "columns", "complete", "expires_at", "handle",
                 "query", "rights", "shown", "size", "source")  # fmt: skip

    def __init__(
        self,
        actor_id: str,
        source: Source,
        query: Query,
        columns: tuple[Column, ...],
        rest: RowBuffer,
        rights: AppliedRules = NO_RULES,
    ) -> None:
        self.rights = rights
        self.actor_id = actor_id
        self.source = source
        self.query = query
        self.columns = columns
        self.complete = rest.complete
        self.expires_at = 0.0
        self.handle = ""
        self.shown = 0
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
        self.shown += len(taken)
        return taken

    @property
    def chunks(self) -> Sequence[bytes]:
        """All that is left, in order, of a result of which nothing was taken."""
        return self._chunks[::-1]

    def put_back(self, rows: Sequence[Row]) -> None:
        """Return rows that were taken last, and fold up what is loose."""
        loose = [*rows, *self._front]
        self._front = ()
        self.shown -= len(rows)
        if loose:
            self._chunks.append(encode_rows(loose))
            self.size += len(self._chunks[-1])


class ResultCache:
    """Cached results by handle."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._id = urlsafe_b64encode(os.urandom(6)).decode()
        self._results: OrderedDict[str, CachedResult] = OrderedDict()
        self._size = 0

    def put(self, cached: CachedResult) -> str:
        """Cache what is left and return its handle."""
        now = self._clock()
        for handle, result in list(self._results.items()):
            room = self._size + cached.size <= MAX_CACHE_BYTES
            if result.expires_at > now and len(self._results) < MAX_RESULTS and room:
                break
            self._remove(handle)
        cached.expires_at = now + LIFETIME_S
        if not cached.handle:
            cached.handle = self._id + urlsafe_b64encode(os.urandom(12)).decode()
        handle = handle_at(cached.handle, cached.shown)
        self._results[handle] = cached
        self._size += cached.size
        return handle

    def take(
        self, handle: str, actor_id: str, source: Source, rights: AppliedRules = NO_RULES
    ) -> CachedResult:
        """Take a result of this actor and source out of the cache.

        Raises: TidegateError RESULT_GONE, also if the source's settings or the actor's rights have
        changed since: then the rows are dropped.
        """
        cached = self._results.get(handle)
        if _is_handle(handle) and not handle.startswith(self._id):
            raise TidegateError(
                Code.RESULT_GONE,
                f"The result {handle!r} was read by another server, or before this one started",
            )
        if cached is None or (cached.actor_id, cached.source) != (actor_id, source):
            raise TidegateError(Code.RESULT_GONE, f"There is no result {handle[:80]!r}")
        self._remove(handle)
        if self._clock() >= cached.expires_at:
            raise TidegateError(Code.RESULT_GONE, f"The result {handle!r} has expired")
        if cached.rights != rights:
            raise TidegateError(
                Code.RESULT_GONE,
                f"The result {handle!r} was read with other rights than this caller has now",
            )
        return cached

    def _remove(self, handle: str) -> None:
        self._size -= self._results.pop(handle).size


def handle_at(handle: str, shown: int) -> str:
    """The handle of a result of which so many rows were shown after the first page."""
    return f"{handle}.{shown}" if shown else handle


def split_handle(handle: str) -> tuple[str, int] | None:
    """The parts of what `handle_at` makes; None for any other text."""
    result, _, shown = handle.partition(".")
    if len(result) != _HANDLE_CHARS or not ((shown.isdecimal() and len(shown) < 7) or not shown):
        return None
    return result, int(shown or 0)


def _is_handle(text: str) -> bool:
    return split_handle(text) is not None
