"""Rows that were not shown yet, for a caller whose next call comes to another process.

The process that has read them has them in memory (`result_cache.py`). Where others may get the
call, they are in the state as well, encrypted: a first part says what they are and under which
rights they were read, each other part has some of the rows. Of more than `MOST_BYTES` there is the
first part alone, which says where the rest is.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.gateway.result_cache import (
    LIFETIME_S,
    AppliedRules,
    CachedResult,
    RowBuffer,
    split_handle,
)
from tidegate.model.requests import Query
from tidegate.model.results import Cells, Column, Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.store.calls import change_state, read_state
from tidegate.store.carried import CarriedValues, decode_carried
from tidegate.typed_values import msgpack_decoder

MOST_BYTES = 1_048_576
_MOST_PARTS = 64

_decode_rows = msgspec.json.Decoder(list[list[Any]]).decode


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """What the rows are. `begins` has the number of the first row of each part after this one, and
    the number of all rows at its end. `where` names the process that has them, if they are only
    there."""

    actor: str
    under: bytes
    columns: tuple[Column, ...]
    cells: Cells
    max_bytes: int
    timeout_s: float
    complete: bool
    begins: tuple[int, ...]
    where: str = ""


class CarriedResults:
    """Keeps results for other processes, and reads theirs. `place` names this process, for
    people."""

    def __init__(self, values: CarriedValues, place: str) -> None:
        self._values = values
        self._place = place
        self._decoder = msgpack_decoder(_Head)

    async def keep(self, cached: CachedResult) -> None:
        """Keep what is left of a result under its handle, if the state takes it: otherwise this
        process alone has it."""
        if cached.source.temporary:
            return  # it is of one process itself
        is_small = cached.size <= MOST_BYTES and len(cached.chunks) <= _MOST_PARTS
        chunks: Sequence[bytes] = cached.chunks if is_small else ()
        where = "" if is_small else self._place
        begins = [0]
        for chunk in chunks:
            begins.append(begins[-1] + len(_decode_rows(chunk)))
        query = cached.query
        head = _Head(
            *(cached.actor_id, _digest(cached.source, cached.rights), cached.columns, query.cells),
            *(query.limits.max_bytes, query.limits.timeout_s, cached.complete, tuple(begins)),
            where,
        )
        parts = [msgspec.msgpack.encode(head), *chunks]
        with suppress(TidegateError):
            await change_state(self._values.put, cached.handle, cached.actor_id, parts, LIFETIME_S)

    async def read(
        self, handle: str, actor_id: str, source: Source, rights: AppliedRules, max_rows: int
    ) -> tuple[CachedResult, int] | None:
        """The next rows of a result that any process has read for this actor, at least one more
        than `max_rows` if there are so many, and how many there were to show at all. None if no
        process knows of such a result.

        Raises: TidegateError RESULT_GONE if another process alone has them, or they were read under
        other rights or settings, or kept by another release; STATE_FAILED.
        """
        split = split_handle(handle)
        head = None if split is None else await self._read_head(split[0])
        if split is None or head is None or head.actor != actor_id:
            return None
        result, shown = split
        if head.under != _digest(source, rights):
            raise TidegateError(
                Code.RESULT_GONE,
                f"The result {handle!r} was read with other rights than this caller has now, or"
                " with other settings of its source",
            )
        if head.where:
            raise TidegateError(
                Code.RESULT_GONE,
                f"The result {handle!r} is too large for other servers, and was read by"
                f" {head.where}",
            )
        total = head.begins[-1]
        if shown >= total:
            return None
        first = bisect_right(head.begins, shown)
        last = min(len(head.begins) - 1, bisect_right(head.begins, shown + max_rows))
        chunks = await read_state(self._values.read, result, first, last)
        if len(chunks) <= last - first:
            return None  # it has ended meanwhile
        limits = Limits(max_rows, head.max_bytes, head.timeout_s)
        query = Query(Statement(""), cells=head.cells, limits=limits)
        rest = RowBuffer(query)
        rest.chunks, rest.complete = chunks, head.complete
        found = CachedResult(actor_id, source, query, head.columns, rest, rights)
        found.handle = result
        found.take(shown - head.begins[first - 1])
        found.shown = shown
        return found, total

    async def _read_head(self, result: str) -> _Head | None:
        """Raises: TidegateError RESULT_GONE if it is of another release; STATE_FAILED."""
        found = await read_state(self._values.read, result)
        if not found:
            return None
        return decode_carried(self._decoder.decode, found[0], f"The result {result!r}")


def _digest(source: Source, rights: AppliedRules) -> bytes:
    """Of what the rows were read under. Equal wherever it is made."""
    encoded = msgspec.msgpack.encode((source, *rights), order="deterministic")
    return hashlib.sha256(encoded).digest()
