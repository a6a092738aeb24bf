"""The server of a source, for the Data page: what it is busy with, and cancelling a session.

The slowest statements come from our own history first: the database's need settings that are off by
default. Decision 110.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, structs

from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.errors import Code, TidegateError
from tidegate.model.replies import HistoryFound
from tidegate.model.requests import SearchHistory
from tidegate.model.results import Page
from tidegate.model.server_requests import CancelSession, Panel, ReadServer
from tidegate.model.sources import Source
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.sql.dialects import find

MOST_SEARCHED, MOST_SLOW = 500, 30
PANELS: tuple[Panel, ...] = ("rights", "sessions", "blocking", "statements", "sizes", "memory")
_ROWS = msgspec.json.Decoder(list[list[str | None]])
_NOT_THERE = frozenset({Code.SQL_FAILED, Code.TABLE_UNKNOWN})
_OF_ALL = frozenset({Code.POLICY_SOURCE, Code.SOURCE_UNKNOWN, Code.POLICY_BLOCKED})
"""What is wrong with the source and not with one panel."""


class CancelOf(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `server/cancel`."""

    session: Annotated[str, Meta(max_length=40)]
    started: Annotated[str, Meta(max_length=300)]
    reason: Annotated[str, Meta(max_length=500)] = ""


class ServerPanels:
    """What the servers of sources are busy with, as one operator may see it."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls

    async def read(self, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """All panels, each with its rows or with the reason why it has none. Raises: TidegateError
        POLICY_SOURCE."""
        place = Place.of(query)
        source = self._calls.source(caller, place.source)
        admin = caller.signed_in.may("admin", source.name)
        panels = {name: await self._panel(name, place, source, caller) for name in PANELS}
        return {
            "source": source.name,
            "engine": source.engine,
            "panels": panels,
            "slow": await self._slow(source, caller, own=not admin),
            "may_cancel": admin and source.writable and bool(find(source.dialect).cancel_session),
        }

    async def _panel(
        self, name: Panel, place: Place, source: Source, caller: Caller
    ) -> dict[str, Any]:
        dialect = find(source.dialect)
        if name not in dialect.server_panels and name not in dialect.server_texts:
            return _without(f"{source.engine} has no such view.")
        texts = name in dialect.server_texts
        without = ""
        while True:
            request = ReadServer(panel=name, texts=texts, database=place.database)
            try:
                page, _ = await self._calls.ask(caller, request, source.name, Page)
            except TidegateError as error:
                if error.code in _OF_ALL:
                    raise
                plain = error.without_secrets()
                refused = error.details.get("rule") == "server.texts"
                if error.code in _NOT_THERE and name == "statements":
                    return _without("The server keeps no statistics of statements: see its rights.")
                if not (refused and texts and name in dialect.server_panels):
                    return _without(" ".join(filter(None, (plain.message, plain.hint))))
                texts, without = False, plain.message
            else:
                return {**_table(page), "reason": "", "without_texts": without}

    async def _slow(self, source: Source, caller: Caller, *, own: bool) -> dict[str, Any]:
        """The slowest of the newest statements that ran through here."""
        request = SearchHistory(limit=MOST_SEARCHED, own=own)
        found, _ = await self._calls.ask(caller, request, source.name, HistoryFound)
        slowest = sorted(found.entries, key=lambda each: -each.elapsed_ms)[:MOST_SLOW]
        return {
            "own": own,
            "searched": len(found.entries),
            "statements": [
                {"statement": each.text, "at": each.at, "ms": round(each.elapsed_ms, 1)}
                for each in slowest
            ],
        }

    async def cancel(self, body: CancelOf, caller: Caller) -> dict[str, Any]:
        """Cancel what a session runs, once a person has said yes. Raises: TidegateError."""
        request = CancelSession(session=body.session, started=body.started, database=body.database)
        call = self._calls.call(caller, request, body.source)
        try:
            reply = await self._calls.handle(structs.replace(call, reason=body.reason))
        except ApprovalNeeded as needed:
            return {"state": "asked", "approval": needed.question.id}
        page: Page = reply.payload
        rows = _ROWS.decode(page.rows) if page.columns else [["true"]]
        return {"state": "cancelled" if rows == [["true"]] else "gone", "approval": None}


def _without(reason: str) -> dict[str, Any]:
    return {"columns": [], "rows": [], "reason": reason, "without_texts": ""}


def _table(page: Page) -> dict[str, Any]:
    return {
        "columns": [column.name for column in page.columns],
        "rows": _ROWS.decode(page.rows),
    }
