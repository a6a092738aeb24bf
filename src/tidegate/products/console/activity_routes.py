"""The routes of Activity, below `/console/api/activity`: the lines of the log, and their export."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from tidegate.edges.http.router import (
    HttpRequest,
    HttpResponse,
    HttpStream,
    json_response,
    read_json,
)
from tidegate.errors import TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.products.console.all_activity import AllActivity
from tidegate.products.console.changes import Changes
from tidegate.products.console.console import BODY_LIMIT, Answer
from tidegate.products.console.conventions import DATA
from tidegate.products.console.downloads import Downloads
from tidegate.products.console.inbox import Inbox
from tidegate.products.console.live import LiveFeed


class ExportTicket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `activity/export-ticket`: what to download."""

    format: Literal["jsonl", "csv"]
    filters: dict[str, str] = {}


class ActivityRoutes:
    """The routes, and what answers them. An export is made in `directory`, and waits among the
    `downloads`."""

    def __init__(
        self,
        all_activity: AllActivity,
        inbox: Inbox,
        changes: Changes,
        feed: LiveFeed,
        downloads: Downloads,
        directory: Path,
    ) -> None:
        self._all = all_activity
        self._inbox = inbox
        self._changes = changes
        self._feed = feed
        self._downloads = downloads
        self._directory = directory

    def routes(self) -> Iterator[tuple[str, str, Answer]]:
        """(method, path below the API's, what answers)."""
        yield "GET", "activity", self._find
        yield "GET", "activity/sessions", self._agent_sessions
        yield "GET", "activity/story", self._story
        yield "GET", "activity/lines/{n}", self._line
        yield "GET", "activity/proof", self._proof
        yield "POST", "activity/export-ticket", self._ticket

    async def _find(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        found = await self._all.find(request.query, signed_in)
        return json_response(200, {**found, "seq": self._feed.sequence})

    async def _agent_sessions(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return json_response(200, await self._all.sessions(request.query, signed_in))

    async def _story(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return json_response(200, await self._all.story(request.query, signed_in))

    async def _line(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        shown = await self._all.line(request.parameters["n"], signed_in)

        def find() -> dict[str, Any]:
            line, card = shown["line"], None
            if line["approval"]:
                with suppress(TidegateError):  # it was removed since
                    question = self._inbox.find(line["approval"], signed_in)
                    card = self._inbox.card(question, signed_in)
            change = self._changes.of_call(line["call_id"], signed_in)
            return {**shown, "approval": card, "change": change}

        return json_response(200, await asyncio.to_thread(find))

    async def _proof(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        again = request.query.get("again") == "1"
        return json_response(200, await self._all.proof(signed_in, again=again))

    async def _ticket(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, ExportTicket, BODY_LIMIT)
        query = {**body.filters, "format": body.format}
        standing = self._downloads.standing(signed_in)
        made = await self._all.export(query, signed_in, self._directory)
        return json_response(200, self._downloads.offer(made, signed_in, standing))

    async def export(self, request: HttpRequest, signed_in: SignedIn) -> HttpStream:
        """A download, which the browser asks for without the page's header: by a ticket, once."""
        return await self._downloads.take(request, signed_in, DATA)
