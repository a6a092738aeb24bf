"""MCP over Streamable HTTP, as an ASGI application without a framework.

One path for each surface. A reply is plain JSON; it becomes an event stream when something is to
be said before it (progress, a log message, a question to the client). A client that goes away
cancels its call. Source: specification, `basic/transports`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, MutableMapping
from functools import partial
from types import MappingProxyType
from typing import Any

from tidegate.actors import Actor
from tidegate.edges.admission import check_media, refuse_twice
from tidegate.edges.challenge import Challenge
from tidegate.edges.guards import Guard
from tidegate.edges.pages import Serve, Visit
from tidegate.edges.presence import Presence, Receive
from tidegate.edges.replies import EXPOSED, PREFLIGHT, Refusal, reply, send_json
from tidegate.edges.resumption import SESSION_NOT_FOUND, closer_of, finish, replay
from tidegate.edges.sse import EventStream, HeaderList, Send
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


class HttpEdge:
    """The ASGI application. `kernels` maps a path such as `/mcp/core` to what is served there."""

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

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        headers: dict[bytes, bytes] = {
            name: value.strip(b" \t") for name, value in scope["headers"]
        }
        try:
            if len(headers) != len(scope["headers"]):
                refuse_twice(scope["headers"])
            await self._route(scope, headers, receive, send)
        except Refusal as refusal:
            await reply(send, refusal.answer, self._cors(headers))

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

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            await send({"type": f"{event['type']}.complete"})
            if event["type"] == "lifespan.shutdown":
                return

    async def _route(
        self,
        scope: MutableMapping[str, Any],
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
    ) -> None:
        path: str = scope["path"]
        method: str = scope["method"]
        if not self._guard.admits_host(headers.get(b"host")):
            raise Refusal(421, INVALID_REQUEST, "Host is not allowed here")
        if not self._guard.admits_origin(headers.get(b"origin")):
            raise Refusal(403, INVALID_REQUEST, "Origin is not allowed here")
        kernel = self._kernels.get(path) or self._kernels.get(path.rstrip("/"))
        if kernel is None:
            await self._serve_page(path, method, scope, headers, receive, send)
            return
        if method == "OPTIONS":
            await send_json(send, 204, None, [*self._cors(headers), *PREFLIGHT])
            return
        challenge = self._challenges.get(path.rstrip("/"), _PLAIN)
        actor = await self._identify_actor(scope, headers, challenge)
        modern = headers.get(b"mcp-protocol-version") in _MODERN
        if method == "POST":
            await self._post(kernel, actor, headers, receive, send, modern, challenge)
        elif method not in ("GET", "DELETE") or modern:
            allow = b"POST" if modern else b"GET, POST, DELETE, OPTIONS"
            raise Refusal(405, INVALID_REQUEST, f"{method} is not served here", [(b"allow", allow)])
        elif method == "GET":
            await self._get(kernel, actor, headers, receive, send)
        else:
            kernel.sessions.end(self._session(kernel, actor, headers))
            await send_json(send, 204, None, self._cors(headers))

    async def _serve_page(
        self,
        path: str,
        method: str,
        scope: MutableMapping[str, Any],
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
    ) -> None:
        serve = self._pages.get(path)
        cors = self._cors(headers)
        if serve is None:
            status, body = self._outside(path)
            await send_json(send, status, body, cors)
        elif method == "OPTIONS":
            await send_json(send, 204, None, [*cors, *PREFLIGHT])
        else:
            read = partial(self._read_body, headers, receive)
            page = await serve(Visit(method, headers, _address(scope), read))
            await send_json(send, page.status, page.body, [*cors, *page.headers])

    def _outside(self, path: str) -> tuple[int, Mapping[str, Any]]:
        if path == "/health":
            return 200, self._health()
        served = ", ".join(self._kernels)
        message = f"Nothing is served at {path}. MCP is at {served}."
        return 404, {"error": "not_found", "message": message}

    async def _identify_actor(
        self,
        scope: MutableMapping[str, Any],
        headers: Mapping[bytes, bytes],
        challenge: Challenge,
    ) -> Actor:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        bearer = token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None
        try:
            found = self._identify(bearer, _address(scope))
            return found if isinstance(found, Actor) else await found
        except GateError as error:
            raise _turned_away(error, challenge) from None

    # POST: one frame in, one reply out

    async def _post(
        self,
        kernel: Kernel,
        actor: Actor,
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
        modern: bool,
        challenge: Challenge,
    ) -> None:
        takes_events = check_media(headers)
        # From here on, and not after the body has come: a token may be revoked while it does.
        call = Presence(receive, actor, self._present)
        try:
            frame = await self._read_body(headers, receive)
            await self._serve(kernel, call, frame, headers, send, modern, takes_events, challenge)
        finally:
            call.end()

    async def _serve(
        self,
        kernel: Kernel,
        call: Presence,
        frame: bytes,
        headers: dict[bytes, bytes],
        send: Send,
        modern: bool,
        takes_events: bool,
        challenge: Challenge,
    ) -> None:
        actor, session = call.actor, None
        if not modern and b"mcp-session-id" in headers:
            session = self._session(kernel, actor, headers, frame)
        cors = self._cors(headers)
        events = EventStream(send, cors, allowed=takes_events, started=call.watch)
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
            await finish(events, answer, session)
        else:
            if answer is not None and (step := challenge.step_up(actor, answer.frame)) is not None:
                answer = Answer(answer.frame, 403, [*answer.headers, (b"www-authenticate", step)])
            await reply(send, answer, cors + _session_header(session, link))

    async def _read_body(
        self, headers: Mapping[bytes, bytes], receive: Receive, limit: int | None = None
    ) -> bytes:
        limit = self._body_limit if limit is None else limit
        declared = headers.get(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        event = await receive()
        body: bytes = event.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        if event.get("more_body"):
            parts, size = [body], len(body)
            while event.get("more_body"):
                event = await receive()
                parts.append(event.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise _too_large(limit)
            body = b"".join(parts)
        if event["type"] == "http.disconnect":
            raise Refusal(400, PARSE_ERROR, "The request was cut off")
        return body

    # GET: a session's own stream, or the rest of one that was cut off

    async def _get(
        self,
        kernel: Kernel,
        actor: Actor,
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
    ) -> None:
        accept = headers.get(b"accept", b"*/*")
        if b"text/event-stream" not in accept and b"*/*" not in accept:
            raise Refusal(406, INVALID_REQUEST, "Accept must include text/event-stream")
        session = self._session(kernel, actor, headers)
        events = EventStream(send, self._cors(headers))
        call = Presence(receive, actor, self._present)
        call.listen(events.stop)
        last_seen = headers.get(b"last-event-id")
        if last_seen is not None:
            replay(session, last_seen, events)
        else:
            events.start()
            if isinstance(session.outlet, EventStream):
                session.outlet.stop()
            session.attach(events)
        try:
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


def _too_large(limit: int) -> Refusal:
    text = f"Payload too large: the limit is {limit} bytes"
    return Refusal(413, PAYLOAD_TOO_LARGE, text, [(b"connection", b"close")])


def _address(scope: MutableMapping[str, Any]) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _session_header(session: Session | None, link: Link) -> HeaderList:
    if session is None and link.session is not None:
        return [(b"mcp-session-id", link.session.id.encode())]
    return []
