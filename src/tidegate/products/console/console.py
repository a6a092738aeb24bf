"""The routes of the console, below `/console`.

The page itself is a shell without data, which anyone who reaches the server may load. All else
needs a session, and comes from the page alone. What reads the state or hashes runs on a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from tidegate.approvals.approvals import Approvals
from tidegate.audit.activity import ActivityIndex
from tidegate.audit.proof import Prover
from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.router import (
    HttpRequest,
    HttpResponse,
    HttpStream,
    Router,
    json_response,
    read_json,
)
from tidegate.errors import TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.identity.operators import Note, Operators, SignedIn
from tidegate.model.sources import Source
from tidegate.products.console.access_routes import AccessRoutes
from tidegate.products.console.activity import Activity
from tidegate.products.console.cards import color_of
from tidegate.products.console.changes import Changes, Undo
from tidegate.products.console.conventions import DATA, PROTECTION
from tidegate.products.console.downloads import Downloads
from tidegate.products.console.inbox import Allow, Deny, Inbox
from tidegate.products.console.live import LiveFeed
from tidegate.products.console.now import Now
from tidegate.products.console.page_files import INDEX, PageFile, PageFiles, accepts_gzip
from tidegate.products.console.request_checks import RequestChecks
from tidegate.products.console.sign_in import (
    PATH,
    Resume,
    Sessions,
    SignIn,
    SignOut,
    actor_of,
)
from tidegate.store.supervision import ChangeStore
from tidegate.webhook.sender import WebhookHealth

BODY_LIMIT = 16_384
_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
    *DATA,
]


class ExportTicket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `activity/export-ticket`: what is to be downloaded."""

    format: Literal["jsonl", "csv"]
    filters: dict[str, str] = {}


class EmptyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of what needs no more than its path."""


Answer = Callable[[HttpRequest, SignedIn], Awaitable[HttpResponse | HttpStream]]
MakeAccess = Callable[[Callable[[], Sequence[Source]], Inbox, asyncio.Lock], AccessRoutes]
"""Makes the routes of Access of the sources, the inbox, and the lock of what takes a passphrase."""


class Console:
    """The console of one server. `secret` gives the installation's secret for its pages, `note`
    puts on record what leaves by an export, which is made in `directory`, `webhook` says how its
    messages go, `now` what is under way."""

    def __init__(
        self,
        gateway: Gateway,
        approvals: Approvals,
        operators: Operators,
        sources: Callable[[], Sequence[Source]],
        secret: Callable[[], bytes],
        checks: RequestChecks,
        *,
        access: MakeAccess,
        changes: ChangeStore,
        index: ActivityIndex,
        prover: Prover,
        note: Note,
        directory: Path,
        secure: bool,
        webhook: Callable[[], WebhookHealth],
        now: Now,
        files: PageFiles | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._approvals = approvals
        self._sources = sources
        self._checks = checks
        self._files = files or PageFiles()
        self._clock = clock
        # One at a time: a hash takes 32 MB and 0.1 s of a processor.
        self._hashing = asyncio.Lock()
        self._sessions = Sessions(operators, secret, self._describe, secure=secure, clock=clock)
        self._inbox = Inbox(approvals, operators, sources, changes.find, clock)
        self._changes = Changes(gateway, changes, approvals, operators, self._hashing)
        self._activity = Activity(index, prover, sources)
        self._access = access(sources, self._inbox, self._hashing)
        self._webhook = webhook
        self._now = now
        self._directory = directory
        self._downloads = Downloads(note, sources, time.monotonic)
        self.feed = LiveFeed(
            *(approvals, operators, self._inbox, lambda: self._files.build, self._activity.newest),
            newest_line=self._activity.newest_for,
            pairings=self._access.pairings,
            now=now,
            clock=clock,
        )

    def routes(self) -> Router:
        """All routes, as whole paths."""
        router = Router()
        router.add("GET", PATH, self._index)
        router.add("GET", f"{PATH}/assets/{{build}}/{{name}}", self._asset)
        api = f"{PATH}/api"
        router.add("POST", f"{api}/session", self._session)
        router.add("POST", f"{api}/sign-in", self._sign_in)
        for method, pattern, answer in (
            ("POST", "sign-out", self._sign_out),
            ("GET", "inbox", self._list),
            ("GET", "inbox/{id}", self._card),
            ("POST", "inbox/{id}/allow", self._allow),
            ("POST", "inbox/{id}/deny", self._deny),
            ("POST", "inbox/{id}/revoke", self._revoke),
            ("GET", "changes/{id}", self._describe_undo),
            ("POST", "changes/{id}/undo", self._undo),
            ("GET", "activity", self._find),
            ("GET", "activity/recent", self._recent),
            ("GET", "activity/sessions", self._agent_sessions),
            ("GET", "activity/story", self._story),
            ("GET", "activity/lines/{n}", self._line),
            ("GET", "activity/proof", self._proof),
            ("POST", "activity/export-ticket", self._ticket),
            *self._access.routes(),
            ("GET", "now", self._show_now),
            ("POST", "now/calls/{id}/cancel", self._cancel),
            ("GET", "events", self._events),
        ):
            router.add(method, f"{api}/{pattern}", partial(self._signed_in, answer))
        router.add("GET", f"{api}/activity/export", self.guard_download(self._export))
        return router

    def guard(self, answer: Answer) -> Callable[[HttpRequest], Awaitable[Any]]:
        """The handler of requests that a page of a session sends."""
        return partial(self._signed_in, answer)

    def guard_download(self, answer: Answer) -> Callable[[HttpRequest], Awaitable[Any]]:
        """The handler of downloads of a session, which come without the page's header."""
        return partial(self._signed_in, answer, with_page=False)

    # The page

    async def _index(self, request: HttpRequest) -> HttpResponse:
        return await self._file(request, INDEX, b"no-cache")

    async def _asset(self, request: HttpRequest) -> HttpResponse:
        build = await asyncio.to_thread(lambda: self._files.build)
        name = request.parameters["name"]
        if request.parameters["build"] != build or name == INDEX:
            raise HttpRefusal(404, "The console has no such file now: load the page again")
        return await self._file(request, name, b"public, max-age=31536000, immutable")

    async def _file(self, request: HttpRequest, name: str, kept: bytes) -> HttpResponse:
        self._checks.check_page(request.headers)
        files: Mapping[str, PageFile] = await asyncio.to_thread(lambda: self._files.files)
        found = files.get(name)
        if found is None:
            raise HttpRefusal(404, "The console has no such file")
        headers = [
            (b"content-type", found.content_type.encode()),
            (b"etag", found.etag),
            (b"cache-control", kept),
            (b"vary", b"accept-encoding"),
            *PROTECTION,
        ]
        if request.headers.get(b"if-none-match") == found.etag:
            return HttpResponse(304, b"", headers)
        if accepts_gzip(request.headers.get(b"accept-encoding", b"")):
            # These files hold no data, so their size tells nothing.
            return HttpResponse(200, found.compressed, [*headers, (b"content-encoding", b"gzip")])
        return HttpResponse(200, found.content, headers)

    # Sessions

    async def _session(self, request: HttpRequest) -> HttpResponse:
        self._checks.check("POST", request.headers)
        body = await read_json(request, Resume, BODY_LIMIT)
        described = await asyncio.to_thread(self._sessions.resume, request, body)
        return _protected(json_response(200, described))

    async def _sign_in(self, request: HttpRequest) -> HttpResponse:
        self._checks.check("POST", request.headers)
        body = await read_json(request, SignIn, BODY_LIMIT)
        async with self._hashing:
            return _protected(await asyncio.to_thread(self._sessions.begin, request, body))

    async def _sign_out(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, SignOut, BODY_LIMIT)
        return await asyncio.to_thread(self._sessions.end, signed_in, body)

    def _describe(self, signed_in: SignedIn) -> dict[str, Any]:
        visible = [each for each in self._sources() if signed_in.may("viewer", each.name)]
        return {
            "build": self._files.build,
            "invited": not signed_in.operator.hash,
            "four_eyes": self._approvals.settings.four_eyes,
            "sources": [
                {
                    "name": each.name,
                    "engine": each.engine,
                    "dialect": each.dialect,
                    "color": color_of(each.name),
                }
                for each in visible
            ],
        }

    async def _signed_in(
        self, answer: Answer, request: HttpRequest, *, with_page: bool = True
    ) -> HttpResponse | HttpStream:
        """The answer to a request of a session, with what protects it."""
        self._checks.check(request.method, request.headers)
        identify = partial(self._sessions.identify, request, with_page=with_page)
        signed_in = await asyncio.to_thread(identify)
        response = await answer(request, signed_in)
        return _protected(response) if isinstance(response, HttpResponse) else response

    # The inbox

    async def _list(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        found = await asyncio.to_thread(self._inbox.list, signed_in)
        recent = await asyncio.to_thread(self._seen_of_late, signed_in)
        health = msgspec.to_builtins(self._webhook())
        seq = self.feed.sequence
        return json_response(200, {**found, **recent, "webhook": health, "seq": seq})

    async def _card(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        def find() -> dict[str, Any]:
            question = self._inbox.find(request.parameters["id"], signed_in)
            return self._inbox.card(question, signed_in)

        return json_response(200, await asyncio.to_thread(find))

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

        return json_response(200, await asyncio.to_thread(deny))

    async def _revoke(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        def revoke() -> dict[str, Any]:
            question = self._inbox.revoke(request.parameters["id"], signed_in, request.address)
            return self._inbox.card(question, signed_in)

        return json_response(200, await asyncio.to_thread(revoke))

    # Changes

    async def _describe_undo(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        id = request.parameters["id"]
        return json_response(200, await self._changes.describe(id, signed_in, request.address))

    async def _undo(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body, id = await read_json(request, Undo, BODY_LIMIT), request.parameters["id"]
        return json_response(200, await self._changes.undo(id, body, signed_in, request.address))

    # Activity

    async def _find(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        found = await asyncio.to_thread(self._activity.find, request.query, signed_in)
        return json_response(200, {**found, "seq": self.feed.sequence})

    async def _recent(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return json_response(200, await asyncio.to_thread(self._seen_of_late, signed_in))

    def _seen_of_late(self, signed_in: SignedIn) -> dict[str, Any]:
        """What an empty inbox shows: agents, their calls, and what is still to be set up."""
        recent = self._activity.recent(signed_in)
        steps = {
            "source": any(signed_in.may("viewer", each.name) for each in self._sources()),
            "token": self._access.has_token(),
            "client": bool(recent["calls"]),
        }
        return {**recent, "steps": steps}

    async def _agent_sessions(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        found = await asyncio.to_thread(self._activity.sessions, request.query, signed_in)
        return json_response(200, found)

    async def _story(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        found = await asyncio.to_thread(self._activity.story, request.query, signed_in)
        return json_response(200, found)

    async def _line(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        def find() -> dict[str, Any]:
            shown, line = self._activity.line(request.parameters["n"], signed_in)
            card = None
            if line.approval:
                with suppress(TidegateError):  # it was removed since
                    question = self._inbox.find(line.approval, signed_in)
                    card = self._inbox.card(question, signed_in)
            change = self._changes.of_call(line.call_id, signed_in)
            return {**shown, "approval": card, "change": change}

        return json_response(200, await asyncio.to_thread(find))

    async def _proof(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        again = request.query.get("again") == "1"
        return json_response(
            200, await asyncio.to_thread(partial(self._activity.proof, signed_in, again=again))
        )

    async def _ticket(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, ExportTicket, BODY_LIMIT)
        query = {**body.filters, "format": body.format}
        standing = self._downloads.standing(signed_in)
        export = partial(self._activity.export, query, signed_in, self._directory)
        made = await asyncio.to_thread(export)
        return json_response(200, self._downloads.offer(made, signed_in, standing))

    async def _export(self, request: HttpRequest, signed_in: SignedIn) -> HttpStream:
        """A download, which the browser asks for without the page's header: by a ticket, once."""
        return await self._downloads.take(request, signed_in, DATA)

    # Now

    async def _show_now(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        found = await self._now.show(dict(request.query), signed_in)
        return json_response(200, {**found, "seq": self.feed.sequence, "now": self._clock()})

    async def _cancel(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        await read_json(request, EmptyBody, BODY_LIMIT)
        id = request.parameters["id"]
        return json_response(200, self._now.cancel(id, signed_in, request.address))

    # What is live

    async def _events(self, request: HttpRequest, signed_in: SignedIn) -> HttpStream:
        self.feed.check_room(signed_in)
        after = request.query.get("after", "")
        actor = actor_of(signed_in)
        return HttpStream(
            actor,
            partial(self.feed.serve, signed_in=signed_in, after=after),
            _STREAM,
        )


def _protected(response: HttpResponse) -> HttpResponse:
    return response._replace(headers=[*response.headers, *DATA])
