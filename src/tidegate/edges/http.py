"""MCP over Streamable HTTP, as an application of our own small server (`http1`).

One path for each surface. A reply is plain JSON; it becomes an event stream when something is to
be said before it (progress, a log message, a question to the client). A client that goes away
cancels its call. Source: specification, `basic/transports`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from tidegate.actors import Actor
from tidegate.edges.admission import check_media, refuse_twice
from tidegate.edges.challenge import Challenge
from tidegate.edges.guards import Guard
from tidegate.edges.http1.head import Head
from tidegate.edges.http1.request import CutOff, Request, TooLarge
from tidegate.edges.http1.response import block_of
from tidegate.edges.pages import Serve, Visit
from tidegate.edges.presence import Presence
from tidegate.edges.replies import EXPOSED, PREFLIGHT, Refusal, reply, send_json
from tidegate.edges.resumption import SESSION_NOT_FOUND, closer_of, finish, replay
from tidegate.edges.sse import EventStream, HeaderList
from tidegate.errors import GateError
from tidegate.protocol.frames import NO_ID, salvage_id
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.link import Answer, Link
from tidegate.protocol.model import INVALID_REQUEST, PARSE_ERROR
from tidegate.protocol.revisions import MODERN
from tidegate.protocol.session import Session, Stream

Identify = Callable[[str | None, str], Actor | Awaitable[Actor]]
"""Turns (bearer token or None, client address) into an actor. Raises: GateError AUTH_*."""

BODY_LIMIT = 10 * 1024 * 1024
PAYLOAD_TOO_LARGE = -32005

_PLAIN = Challenge()
_MODERN = frozenset(name.encode() for name in MODERN)
_PREFLIGHT = block_of(PREFLIGHT)


class _Plan:
    """What the head of a request says by itself: the same for each request with that head."""

    __slots__ = ("bearer", "block", "challenge", "kernel", "modern", "takes_events")

    def __init__(
        self, kernel: Kernel, challenge: Challenge, headers: Mapping[bytes, bytes], block: bytes
    ) -> None:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        self.kernel = kernel
        self.challenge = challenge
        self.bearer = token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None
        self.modern = headers.get(b"mcp-protocol-version") in _MODERN
        self.block = block
        self.takes_events: bool | None = None
        """None until the media types were looked at, which a caller must be let in for."""


class HttpEdge:
    """The application (`http1.request.Application`). `kernels` maps a path such as `/mcp/core` to
    what is served there."""

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        identify: Identify,
        *,
        guard: Guard | None = None,
        body_limit: int = BODY_LIMIT,
        health: Callable[[], Mapping[str, Any]] = lambda: {"status": "ok"},
        challenges: Mapping[str, Challenge] = MappingProxyType({}),
        pages: Mapping[str, Serve] = MappingProxyType({}),
    ) -> None:
        self._kernels = kernels
        self._identify = identify
        self._guard = guard or Guard()
        self._body_limit = body_limit
        self._health = health
        self._challenges = challenges
        self._pages = pages
        self._present: set[Presence] = set()

    async def __call__(self, request: Request) -> None:
        head = request.head
        try:
            plan: _Plan | None = head.plan
            if plan is None:
                plan = self._plan(head)
                if plan is None:
                    await self._serve_page(request)
                    return
                head.plan = plan
            await self._route(request, plan)
        except Refusal as refusal:
            if not request.begun:
                cors = block_of(self._cors(head.headers))
                reply(request, refusal.answer, cors, close=refusal.close)

    def close(self) -> None:
        """End sessions and streams; running calls are cancelled."""
        for kernel in self._kernels.values():
            kernel.close()
        for call in list(self._present):
            call.cancel("the server is stopping")

    def actors(self) -> Iterator[Actor]:
        """Who has a session, a stream or a running call; one may come more than once."""
        for kernel in self._each_kernel():
            yield from kernel.sessions.actors()
        for call in self._present:
            yield call.actor

    def end_actors(self, ids: Collection[str], reason: str) -> None:
        """End the sessions, streams and running calls of these actors."""
        for call in list(self._present):
            if call.actor.id in ids:
                call.cancel(reason)
        for kernel in self._each_kernel():
            kernel.sessions.end_of(ids)

    def end_expired(self, now: float, reason: str) -> None:
        """End the streams and running calls of tokens whose time is over."""
        for call in list(self._present):
            expires_at = call.actor.expires_at
            if expires_at is not None and now >= expires_at:
                call.cancel(reason)

    def _each_kernel(self) -> set[Kernel]:
        return set(self._kernels.values())

    def _plan(self, head: Head) -> _Plan | None:
        """What is asked for, None if it is no kernel. Raises: Refusal."""
        headers, path = head.headers, head.path
        if len(headers) != len(head.pairs):
            refuse_twice(head.pairs)
        if not self._guard.admits_host(headers.get(b"host")):
            raise Refusal(421, INVALID_REQUEST, "Host is not allowed here")
        if not self._guard.admits_origin(headers.get(b"origin")):
            raise Refusal(403, INVALID_REQUEST, "Origin is not allowed here")
        kernel = self._kernels.get(path) or self._kernels.get(path.rstrip("/"))
        if kernel is None:
            return None
        challenge = self._challenges.get(path.rstrip("/"), _PLAIN)
        return _Plan(kernel, challenge, headers, block_of(self._cors(headers)))

    async def _route(self, request: Request, plan: _Plan) -> None:
        method = request.head.method
        if method == "OPTIONS":
            request.respond(204, plan.block + _PREFLIGHT)
            return
        try:
            found = self._identify(plan.bearer, request.address)
            actor = found if isinstance(found, Actor) else await found
        except GateError as error:
            raise _turned_away(error, plan.challenge) from None
        if method == "POST":
            await self._post(request, plan, actor)
        elif method not in ("GET", "DELETE") or plan.modern:
            allow = b"POST" if plan.modern else b"GET, POST, DELETE, OPTIONS"
            raise Refusal(405, INVALID_REQUEST, f"{method} is not served here", [(b"allow", allow)])
        elif method == "GET":
            await self._get(request, plan, actor)
        else:
            kernel = plan.kernel
            kernel.sessions.end(self._session(kernel, actor, request.head.headers))
            request.respond(204, plan.block)

    async def _serve_page(self, request: Request) -> None:
        head = request.head
        cors = self._cors(head.headers)
        serve = self._pages.get(head.path)
        if serve is None:
            status, body = self._outside(head.path)
            send_json(request, status, body, cors)
        elif head.method == "OPTIONS":
            send_json(request, 204, None, [*cors, *PREFLIGHT])
        else:
            read = partial(_read_body, request)
            page = await serve(Visit(head.method, head.headers, request.address, read))
            send_json(request, page.status, page.body, [*cors, *page.headers])

    def _outside(self, path: str) -> tuple[int, Mapping[str, Any]]:
        if path == "/health":
            return 200, self._health()
        served = ", ".join(self._kernels)
        message = f"Nothing is served at {path}. MCP is at {served}."
        return 404, {"error": "not_found", "message": message}

    # POST: one frame in, one reply out

    async def _post(self, request: Request, plan: _Plan, actor: Actor) -> None:
        if plan.takes_events is None:
            plan.takes_events = check_media(request.head.headers)
        # From here on, and not after the body has come: a token may be revoked while it does.
        call = Presence(request, actor, self._present)
        try:
            frame = request.body
            if frame is None or len(frame) > self._body_limit:
                frame = await _read_body(request, self._body_limit)
            await self._serve(request, plan, call, frame, plan.takes_events)
        finally:
            call.end()

    async def _serve(
        self, request: Request, plan: _Plan, call: Presence, frame: bytes, takes_events: bool
    ) -> None:
        actor, kernel, headers, session = call.actor, plan.kernel, request.head.headers, None
        if not plan.modern and b"mcp-session-id" in headers:
            session = self._session(kernel, actor, headers, frame)
        events = EventStream(request, plan.block, allowed=takes_events, started=call.watch)
        if session is not None and session.revision is not None and session.revision.priming:
            events.stream = Stream()
        link = Link(
            actor,
            events,
            session=session,
            headers=headers,
            cancellation=call,
            closer=closer_of(events, session, call) if events.stream is not None else None,
        )
        answer = await kernel.serve(frame, link)
        if events.started:
            finish(events, answer, session)
            return
        block = plan.block
        if answer is not None and (step := plan.challenge.step_up(actor, answer.frame)) is not None:
            answer = Answer(answer.frame, 403, [*answer.headers, (b"www-authenticate", step)])
        if session is None and link.session is not None:
            block += block_of([(b"mcp-session-id", link.session.id.encode())])
        reply(request, answer, block)

    # GET: a session's own stream, or the rest of one that was cut off

    async def _get(self, request: Request, plan: _Plan, actor: Actor) -> None:
        headers = request.head.headers
        accept = headers.get(b"accept", b"*/*")
        if b"text/event-stream" not in accept and b"*/*" not in accept:
            raise Refusal(406, INVALID_REQUEST, "Accept must include text/event-stream")
        session = self._session(plan.kernel, actor, headers)
        events = EventStream(request, plan.block)
        call = Presence(request, actor, self._present)
        try:
            last_seen = headers.get(b"last-event-id")
            if last_seen is not None:
                replay(session, last_seen, events)
            else:
                events.start()
                if isinstance(session.outlet, EventStream):
                    session.outlet.stop()
                session.attach(events)
            call.listen(events.stop)
            await events.drained()
        finally:
            session.detach(events)
            call.end()

    def _session(
        self, kernel: Kernel, actor: Actor, headers: Mapping[bytes, bytes], frame: bytes = b""
    ) -> Session:
        """The session that the headers name. Raises: Refusal, with the id of `frame`."""
        id = headers.get(b"mcp-session-id")
        if id is None:
            raise Refusal(400, INVALID_REQUEST, "Missing Mcp-Session-Id header")
        session = kernel.sessions.find(id.decode("latin-1"), actor)
        if session is None:
            known = salvage_id(frame)
            asked = None if known == NO_ID else known
            raise Refusal(404, SESSION_NOT_FOUND, "Session not found", id=asked)
        return session

    def _cors(self, headers: Mapping[bytes, bytes]) -> HeaderList:
        origin = headers.get(b"origin")
        if origin is None or not self._guard.admits_origin(origin):
            return []
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED),
            (b"vary", b"Origin"),
        ]


def _turned_away(error: GateError, challenge: Challenge) -> Refusal:
    headers: HeaderList = []
    value = challenge.to(error)
    if value is not None:
        headers.append((b"www-authenticate", value))
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(error.retry_after_s))).encode()))
    message = f"{error.message.rstrip('.')}. {error.hint}" if error.hint else error.message
    return Refusal(error.fate.http, error.fate.rpc, message, headers)


async def _read_body(request: Request, limit: int) -> bytes:
    """Raises: Refusal if it is too large, or not all of it comes."""
    try:
        return await request.read(limit)
    except TooLarge:
        text = f"Payload too large: the limit is {limit} bytes"
        raise Refusal(413, PAYLOAD_TOO_LARGE, text, close=True) from None
    except CutOff:
        raise Refusal(400, PARSE_ERROR, "The request was cut off", close=True) from None
