"""The history of statements: what was run where, findable by words.

A search gets the sources that its caller may see. Entries may be lost with the process;
the record that is not is the audit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from functools import partial

import msgspec

from tidegate.model.language import Language
from tidegate.model.replies import HistoryEntry, HistoryFound
from tidegate.model.requests import Call, SearchHistory
from tidegate.model.sources import Source
from tidegate.policy.data_rules import hides_something
from tidegate.secrets.redaction import cut_and_redact, redact
from tidegate.store.api import HistoryStore
from tidegate.store.write_behind import WriteBehind

KEEP_ENTRIES = 10_000
KEEP_DAYS = 90
MAX_TEXT_CHARS = 16_384
MAX_ERROR_CHARS = 1_024

_TRIM_EVERY = 500
_DAY_S = 86_400


class History(WriteBehind[tuple[HistoryEntry, Language | None]]):
    """Adds to and searches the history that `store` keeps: 10,000 entries, 90 days.

    `add` takes an entry, kept without its secrets, and the language that finds these in its text
    (None: as in any text). `flush` raises TidegateError STATE_FAILED. The store stays open."""

    def __init__(self, store: HistoryStore, clock: Callable[[], float] = time.time) -> None:
        super().__init__(self._write_entries)
        self._store = store
        self._clock = clock
        self._until_trim = 0

    def search(
        self,
        query: str = "",
        *,
        sources: Collection[str] | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 50,
        actor: str | None = None,
    ) -> list[HistoryEntry]:
        """Entries that hold a word starting with each word of `query`, newest first.

        Sees everything added before. No character of `query` is an operator. Times are Unix
        seconds and inclusive. `sources` None means every source, `actor` None every actor. Takes
        milliseconds: from an event loop, call it in a thread. Raises: TidegateError STATE_FAILED.
        """
        self.flush()
        return self._store.search(
            query.split(), sources=sources, since=since, until=until, limit=limit, actor=actor
        )

    async def answer(self, call: Call, sources: tuple[Source, ...]) -> HistoryFound:
        """Answer the call's `SearchHistory` within `sources` (`gateway.Keeper`). Where something is
        hidden from the caller it is shown its own statements alone: others' may spell it out."""
        request = call.request
        if not isinstance(request, SearchHistory):
            raise TypeError(f"no search of the history: {type(request).__name__}")
        free: list[str] = []
        bound: list[str] = []
        for source in sources:
            is_bound = request.own or hides_something(call.actor, source)
            (bound if is_bound else free).append(source.name)
        found = await self._recall(request, free, None) if free or not bound else []
        if bound:
            found += await self._recall(request, bound, call.actor.id)
            found = sorted(found, key=lambda entry: -entry.at)[: request.limit]
        return HistoryFound(tuple(found))

    async def _recall(
        self, request: SearchHistory, sources: list[str], actor: str | None
    ) -> list[HistoryEntry]:
        search = partial(
            self.search,
            request.words,
            sources=sources,
            since=request.since,
            until=request.until,
            limit=request.limit,
            actor=actor,
        )
        return await asyncio.to_thread(search)

    def _write_entries(self, entries: list[tuple[HistoryEntry, Language | None]]) -> None:
        self._store.add([_without_secrets(entry, language) for entry, language in entries])
        self._until_trim -= len(entries)
        if self._until_trim < 0:
            self._store.trim(KEEP_ENTRIES, self._clock() - KEEP_DAYS * _DAY_S)
            self._until_trim = _TRIM_EVERY


def _without_secrets(entry: HistoryEntry, language: Language | None) -> HistoryEntry:
    kept, redacted = cut_and_redact(entry.text, MAX_TEXT_CHARS, language, entry.dialect)
    if len(entry.text) > MAX_TEXT_CHARS:
        kept += f"... ({len(entry.text):,} characters)"
    error = entry.error
    if error:
        # A database quotes the statement in its errors, and out of context no secret shows.
        error = "" if redacted else redact(error[:MAX_ERROR_CHARS])
    database = redact(entry.database)
    if (kept, error, database) == (entry.text, entry.error, entry.database):
        return entry
    return msgspec.structs.replace(entry, text=kept, error=error, database=database)
