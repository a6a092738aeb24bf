"""The history on the Data page: the operator's own statements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidegate.model.replies import HistoryEntry, HistoryFound
from tidegate.model.requests import SearchHistory
from tidegate.products.console.data_calls import Caller, DataCalls, decode

MOST_WORDS = 1_000


class Wanted(msgspec.Struct, frozen=True):
    """The fields of `history`."""

    q: Annotated[str, Meta(max_length=MOST_WORDS)] = ""
    source: str = ""
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    before: Annotated[float, Meta(gt=0, lt=1e12)] | None = None


class DataHistory:
    """What the operator has run, on sources that it may still see."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls

    async def find(self, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """A page of the operator's statements, newest first."""
        given = {name: value for name, value in query.items() if value}
        wanted = decode(given, Wanted)
        until = None if wanted.before is None else math.nextafter(wanted.before, 0.0)
        request = SearchHistory(wanted.q, until=until, limit=wanted.limit, own=True)
        source = wanted.source or None
        found, _ = await self._calls.ask(caller, request, source, HistoryFound)
        entries = found.entries
        more = str(entries[-1].at) if len(entries) == wanted.limit else None
        return {"entries": [_entry(each) for each in entries], "next": more}


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    return {
        "statement": entry.text,
        "source": entry.source,
        "database": entry.database,
        "at": entry.at,
        "ok": entry.success,
        "message": entry.error,
        "rows": entry.row_count,
        "ms": round(entry.elapsed_ms, 1),
    }
