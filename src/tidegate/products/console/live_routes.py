"""The routes of what is live, below `/console/api`: what is under way, and the stream of events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from tidegate.edges.http.router import (
    HttpRequest,
    HttpResponse,
    HttpStream,
    json_response,
    read_json,
)
from tidegate.identity.operators import SignedIn
from tidegate.products.console.console import BODY_LIMIT, Answer
from tidegate.products.console.conventions import DATA
from tidegate.products.console.live import LiveFeed
from tidegate.products.console.now import Now
from tidegate.products.console.sign_in import actor_of

_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
    *DATA,
]


class EmptyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of what needs no more than its path."""


class LiveRoutes:
    """The routes, and what answers them."""

    def __init__(self, now: Now, feed: LiveFeed, clock: Callable[[], float] = time.time) -> None:
        self._now = now
        self._feed = feed
        self._clock = clock

    def routes(self) -> Iterator[tuple[str, str, Answer]]:
        """(method, path below the API's, what answers)."""
        yield "GET", "now", self._show_now
        yield "POST", "now/calls/{id}/cancel", self._cancel
        yield "GET", "events", self._events

    async def _show_now(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        found = await self._now.show(dict(request.query), signed_in)
        return json_response(200, {**found, "seq": self._feed.sequence, "now": self._clock()})

    async def _cancel(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        await read_json(request, EmptyBody, BODY_LIMIT)
        id = request.parameters["id"]
        return json_response(200, await self._now.cancel(id, signed_in, request.address))

    async def _events(self, request: HttpRequest, signed_in: SignedIn) -> HttpStream:
        self._feed.check_room(signed_in)
        after = request.query.get("after", "")
        actor = actor_of(signed_in)
        return HttpStream(
            actor,
            partial(self._feed.serve, signed_in=signed_in, after=after),
            _STREAM,
        )
