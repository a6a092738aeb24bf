"""The routes of the inbox and of the changes that are kept, below `/console/api`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from tidegate.edges.http.router import HttpRequest, HttpResponse, json_response, read_json
from tidegate.identity.operators import SignedIn
from tidegate.model.sources import Source
from tidegate.products.console.activity import Activity
from tidegate.products.console.all_activity import AllActivity, shown_calls
from tidegate.products.console.changes import Changes, Undo
from tidegate.products.console.console import BODY_LIMIT, Answer
from tidegate.products.console.inbox import Allow, Deny, Inbox
from tidegate.products.console.live import LiveFeed
from tidegate.products.console.token_forms import TokenForms
from tidegate.store.calls import change_state, read_state
from tidegate.webhook.sender import WebhookHealth


class RecentCalls:
    """What an empty inbox shows: agents, their calls, and what is still to be set up."""

    def __init__(
        self,
        activity: Activity,
        all_activity: AllActivity,
        sources: Callable[[], Sequence[Source]],
        forms: TokenForms,
    ) -> None:
        self._activity = activity
        self._all = all_activity
        self._sources = sources
        self._forms = forms

    def show_own(self, signed_in: SignedIn) -> dict[str, Any]:
        """What the record of this gate has of it, which is there at once: questions wait for no
        other gate. Reads the state."""
        recent = shown_calls({self._all.own: self._activity.last_calls(signed_in)})
        return {**recent, "whole": self._all.is_alone, "steps": self._steps(recent, signed_in)}

    async def show(self, signed_in: SignedIn) -> dict[str, Any]:
        """What the records of all gates have of it. Raises: TidegateError STATE_FAILED."""
        recent = await self._all.recent(signed_in)
        steps = await asyncio.to_thread(self._steps, recent, signed_in)
        return {**recent, "whole": True, "steps": steps}

    def _steps(self, recent: dict[str, Any], signed_in: SignedIn) -> dict[str, bool]:
        return {
            "source": any(signed_in.may("viewer", each.name) for each in self._sources()),
            "token": self._forms.has_token(),
            "client": bool(recent["calls"]),
        }


class InboxRoutes:
    """The routes, and what answers them. `webhook` says how the messages of the webhook go, and
    `hashing` is the lock of what takes a passphrase."""

    def __init__(
        self,
        inbox: Inbox,
        changes: Changes,
        recent: RecentCalls,
        feed: LiveFeed,
        webhook: Callable[[], WebhookHealth],
        hashing: asyncio.Lock,
    ) -> None:
        self._inbox = inbox
        self._changes = changes
        self._recent = recent
        self._feed = feed
        self._webhook = webhook
        self._hashing = hashing

    def routes(self) -> Iterator[tuple[str, str, Answer]]:
        """(method, path below the API's, what answers)."""
        yield "GET", "inbox", self._list
        yield "GET", "inbox/{id}", self._card
        yield "POST", "inbox/{id}/allow", self._allow
        yield "POST", "inbox/{id}/deny", self._deny
        yield "POST", "inbox/{id}/revoke", self._revoke
        yield "GET", "changes/{id}", self._describe_undo
        yield "POST", "changes/{id}/undo", self._undo
        yield "GET", "activity/recent", self._show_recent

    async def _list(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        found = await read_state(self._inbox.list, signed_in)
        recent = await asyncio.to_thread(self._recent.show_own, signed_in)
        health = msgspec.to_builtins(self._webhook())
        seq = self._feed.sequence
        return json_response(200, {**found, **recent, "webhook": health, "seq": seq})

    async def _card(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        def find() -> dict[str, Any]:
            question = self._inbox.find(request.parameters["id"], signed_in)
            return self._inbox.card(question, signed_in)

        return json_response(200, await read_state(find))

    async def _allow(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Allow, BODY_LIMIT)

        def allow() -> dict[str, Any]:
            id, address = request.parameters["id"], request.address
            question = self._inbox.allow(id, body, signed_in, address)
            return self._inbox.card(question, signed_in)

        async with self._hashing:
            return json_response(200, await asyncio.to_thread(allow))

    async def _deny(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Deny, BODY_LIMIT)

        def deny() -> dict[str, Any]:
            question = self._inbox.deny(request.parameters["id"], body, signed_in, request.address)
            return self._inbox.card(question, signed_in)

        return json_response(200, await change_state(deny))

    async def _revoke(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        def revoke() -> dict[str, Any]:
            question = self._inbox.revoke(request.parameters["id"], signed_in, request.address)
            return self._inbox.card(question, signed_in)

        return json_response(200, await change_state(revoke))

    # Changes

    async def _describe_undo(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        id = request.parameters["id"]
        return json_response(200, await self._changes.describe(id, signed_in, request.address))

    async def _undo(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body, id = await read_json(request, Undo, BODY_LIMIT), request.parameters["id"]
        return json_response(200, await self._changes.undo(id, body, signed_in, request.address))

    # What an empty inbox shows

    async def _show_recent(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return json_response(200, await self._recent.show(signed_in))
