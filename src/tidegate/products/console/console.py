"""The page of the console and its sessions, below `/console`, and the guard of its other routes.

The page itself is a shell without data, which anyone who reaches the server may load. All else
needs a session, and comes from the page alone. What reads the state or hashes runs on a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from tidegate.approvals.approvals import Approvals
from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.router import (
    Handler,
    HttpRequest,
    HttpResponse,
    HttpStream,
    Router,
    json_response,
    read_json,
)
from tidegate.identity.operators import SignedIn
from tidegate.model.sources import Source
from tidegate.products.console.cards import source_fields
from tidegate.products.console.conventions import DATA, PROTECTION
from tidegate.products.console.home_gate import AnswerT, HomeGate, without_hops
from tidegate.products.console.page_files import INDEX, PageFile, PageFiles, accepts_gzip
from tidegate.products.console.request_checks import RequestChecks
from tidegate.products.console.sign_in import (
    PATH,
    Resume,
    Sessions,
    SignIn,
    SignOut,
)
from tidegate.store.calls import change_state, read_state

API = f"{PATH}/api"
BODY_LIMIT = 16_384

Answer = Callable[[HttpRequest, SignedIn], Awaitable[HttpResponse | HttpStream]]
Guard = Callable[[Answer], Handler]
"""Makes a handler of an answer: it checks where a request comes from, and who is signed in."""


class RouteGroup(Protocol):
    """Routes of one part of the console."""

    def routes(self) -> Iterator[tuple[str, str, Answer]]:
        """(method, path below the API's, what answers)."""
        ...


class Console:
    """The page and the sessions of one server's console, and what every route of it keeps to.
    `hashing` is the lock of what takes a passphrase."""

    def __init__(
        self,
        checks: RequestChecks,
        sessions: Sessions,
        files: PageFiles,
        hashing: asyncio.Lock,
        check_sight: Callable[[], None] = lambda: None,
        home: HomeGate | None = None,
    ) -> None:
        """`check_sight` raises TidegateError while the state cannot be seen: then nothing is
        answered. `home` sends requests on where several gates share the state."""
        self._home = home
        self._check_sight = check_sight
        self._checks = checks
        self._sessions = sessions
        self._files = files
        self._hashing = hashing

    def routes(self, groups: Iterable[RouteGroup]) -> Router:
        """Its own routes and those of the groups, as whole paths."""
        router = Router()
        router.add("GET", PATH, self._index)
        router.add("GET", f"{PATH}/assets/{{build}}/{{name}}", self._asset)
        router.add("POST", f"{API}/session", self._session)
        router.add("POST", f"{API}/sign-in", self._sign_in)
        # A session ends wherever that is asked for.
        router.add("POST", f"{API}/sign-out", partial(self._signed_in, self._sign_out, here=True))
        for group in groups:
            for method, pattern, answer in group.routes():
                router.add(method, f"{API}/{pattern}", self.guard(answer))
        return router

    def guard(self, answer: Answer) -> Callable[[HttpRequest], Awaitable[Any]]:
        """The handler of requests that a page of a session sends."""
        return partial(self._signed_in, answer)

    def guard_download(self, answer: Answer) -> Callable[[HttpRequest], Awaitable[Any]]:
        """The handler of downloads of a session, which come without the page's header."""
        return partial(self._signed_in, answer, with_page=False)

    # The page

    async def _index(self, request: HttpRequest) -> HttpResponse:
        self._checks.check_page(request.headers)
        if (sent := await self._send_on(request, begins=True)) is not None:
            return sent
        return await self._mark(request, await self._file(request, INDEX, b"no-cache"))

    async def _asset(self, request: HttpRequest) -> HttpResponse:
        build = await asyncio.to_thread(lambda: self._files.build)
        name = request.parameters["name"]
        if request.parameters["build"] != build or name == INDEX:
            # Of another version is the page that another gate has given to its browser.
            if (sent := await self._send_on(request)) is not None:
                return sent
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
        self._check_sight()
        if (sent := await self._send_on(request, begins=True)) is not None:
            return sent
        body = await read_json(request, Resume, BODY_LIMIT)
        described = await asyncio.to_thread(self._sessions.resume, request, body)
        return await self._mark(request, _protected(json_response(200, described)))

    async def _sign_in(self, request: HttpRequest) -> HttpResponse:
        self._checks.check("POST", request.headers)
        self._check_sight()
        if (sent := await self._send_on(request, begins=True)) is not None:
            return sent
        body = await read_json(request, SignIn, BODY_LIMIT)
        async with self._hashing:
            begun = await asyncio.to_thread(self._sessions.begin, request, body)
        return await self._mark(request, _protected(begun))

    async def _sign_out(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, SignOut, BODY_LIMIT)
        return await change_state(self._sessions.end, signed_in, body)

    async def _signed_in(
        self, answer: Answer, request: HttpRequest, *, with_page: bool = True, here: bool = False
    ) -> HttpResponse | HttpStream:
        """The answer to a request of a session, with what protects it. `here`: it is not sent on to
        another gate."""
        self._checks.check(request.method, request.headers)
        self._check_sight()
        identify = partial(self._sessions.identify, request, with_page=with_page)
        signed_in = await read_state(identify)
        if not here and (sent := await self._send_on(request)) is not None:
            return sent
        response = await answer(without_hops(request), signed_in)
        if isinstance(response, HttpResponse):
            response = _protected(response)
        return await self._mark(request, response)

    # Other gates

    async def _send_on(self, request: HttpRequest, *, begins: bool = False) -> HttpResponse | None:
        if self._home is None:
            return None
        sent = await self._home.send_on(request, begins=begins)
        return None if sent is None else _protected(sent)

    async def _mark(self, request: HttpRequest, response: AnswerT) -> AnswerT:
        return response if self._home is None else await self._home.mark(request, response)


def _protected(response: HttpResponse) -> HttpResponse:
    return response._replace(headers=[*response.headers, *DATA])


def describe_server(
    approvals: Approvals,
    sources: Callable[[], Sequence[Source]],
    files: PageFiles,
    signed_in: SignedIn,
) -> dict[str, Any]:
    """What a page gets to know of the server (`sign_in.Sessions`)."""
    visible = [each for each in sources() if signed_in.may("viewer", each.name)]
    return {
        "build": files.build,
        "invited": not signed_in.operator.hash,
        "four_eyes": approvals.settings.four_eyes,
        "sources": [
            {
                **source_fields(each.name, each),
                "engine": each.engine,
                "dialect": each.dialect,
            }
            for each in visible
        ],
    }
