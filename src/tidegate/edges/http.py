"""MCP over Streamable HTTP, as an ASGI application without a framework.

One path for each surface. A reply is plain JSON; it becomes an event stream when something is to
be said before it (progress, a log message, a question to the client). A client that goes away
cancels its call. Source: specification, `basic/transports`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

import msgspec

from tidegate.edges.guards import Guard
from tidegate.edges.sse import EventStream, HeaderList, Send
from tidegate.errors import Code, GateError
from tidegate.protocol.frames import NO_ID, error_frame, salvage_id
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.link import Answer, Link
from tidegate.protocol.model import INVALID_REQUEST, PARSE_ERROR
from tidegate.protocol.revisions import MODERN
from tidegate.protocol.session import Session, Stream
from tidegate.types import Actor, Cancellation

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Identify = Callable[[str | None, str], Actor]
"""Turns (bearer token or None, client address) into an actor. Raises: GateError AUTH_*."""

BODY_LIMIT = 10 * 1024 * 1024
MOST_STREAMS = 64
SESSION_NOT_FOUND = -32001
PAYLOAD_TOO_LARGE = -32005

_JSON = (b"content-type", b"application/json")
_MODERN = frozenset(name.encode() for name in MODERN)
_EXPOSED = b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"
_ONCE = frozenset(
    {b"host", b"origin", b"authorization", b"content-type", b"content-length", b"last-event-id"}
)


class Refusal(Exception):
    """A request that never reaches the protocol: the answer and its HTTP status.

    The answer has no id where the request's is not known (`basic/transports`).
    """

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        headers: HeaderList | None = None,
        *,
        id: bytes | None = None,
    ) -> None:
        super().__init__(message)
        self.answer = Answer(error_frame(id, code, message), status, headers or ())


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
        realm: str = "tidegate",
    ) -> None:
        self._kernels = kernels
        self._identify = identify
        self._guard = guard or Guard()
        self._body_limit = body_limit
        self._health = health
        self._realm = realm
        self._watched: set[_Call] = set()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        headers: dict[bytes, bytes] = {
            name: value.strip(b" \t") for name, value in scope["headers"]
        }
        try:
            if len(headers) != len(scope["headers"]):
                _refuse_twice(scope["headers"])
            await self._route(scope, headers, receive, send)
        except Refusal as refusal:
            await _reply(send, refusal.answer, self._cors(headers))

    def close(self) -> None:
        """End sessions and streams; running calls are cancelled."""
        for kernel in self._kernels.values():
            kernel.close()
        for call in list(self._watched):
            call.cancel("the server is stopping")

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
            status, body = self._outside(path)
            await _send_json(send, status, body, self._cors(headers))
            return
        if method == "OPTIONS":
            await _send_json(send, 204, None, [*self._cors(headers), *_PREFLIGHT])
            return
        actor = self._identify_actor(scope, headers)
        modern = headers.get(b"mcp-protocol-version") in _MODERN
        if method == "POST":
            await self._post(kernel, actor, headers, receive, send, modern)
        elif method not in ("GET", "DELETE") or modern:
            allow = b"POST" if modern else b"GET, POST, DELETE, OPTIONS"
            raise Refusal(405, INVALID_REQUEST, f"{method} is not served here", [(b"allow", allow)])
        elif method == "GET":
            await self._get(kernel, actor, headers, receive, send)
        else:
            kernel.sessions.end(self._session(kernel, actor, headers))
            await _send_json(send, 204, None, self._cors(headers))

    def _outside(self, path: str) -> tuple[int, Mapping[str, Any]]:
        if path == "/health":
            return 200, self._health()
        return 404, {"error": "not_found", "message": f"Nothing is served at {path}"}

    def _identify_actor(
        self, scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes]
    ) -> Actor:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        bearer = token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None
        client = scope.get("client")
        try:
            return self._identify(bearer, client[0] if client else "")
        except GateError as error:
            raise self._challenge(error) from None

    def _challenge(self, error: GateError) -> Refusal:
        challenge = f'Bearer realm="{self._realm}"'
        if error.code is Code.AUTH_EXPIRED:
            challenge += ', error="invalid_token", error_description="token_expired"'
        elif error.code is Code.AUTH_INVALID:
            challenge += ', error="invalid_token"'
        headers: HeaderList = []
        if error.fate.http == 401:
            headers.append((b"www-authenticate", challenge.encode()))
        if error.retry_after_s is not None:
            headers.append((b"retry-after", str(round(error.retry_after_s)).encode()))
        message = f"{error.message}. {error.hint}" if error.hint else error.message
        return Refusal(error.fate.http, error.fate.rpc, message, headers)

    # POST: one frame in, one reply out

    async def _post(
        self,
        kernel: Kernel,
        actor: Actor,
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
        modern: bool,
    ) -> None:
        takes_events = _check_media(headers)
        frame = await self._read_body(headers, receive)
        session = None
        if not modern and b"mcp-session-id" in headers:
            session = self._session(kernel, actor, headers, frame)
        cors = self._cors(headers)
        call = _Call(receive, self._watched)
        events = EventStream(send, cors, allowed=takes_events, started=call.watch)
        if session is not None and session.revision is not None and session.revision.priming:
            events.stream = Stream()
        link = Link(
            actor,
            events,
            session=session,
            headers=headers,
            cancellation=call,
            closer=_closer(events, session, call) if events.stream is not None else None,
        )
        try:
            answer = await kernel.serve(frame, link)
            if events.started:
                await _finish(events, answer, session)
            else:
                await _reply(send, answer, cors + _session_header(session, link))
        finally:
            call.end()

    async def _read_body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        declared = headers.get(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > self._body_limit:
            raise self._too_large()
        event = await receive()
        body: bytes = event.get("body", b"")
        if event.get("more_body"):
            parts, size = [body], len(body)
            while event.get("more_body"):
                event = await receive()
                parts.append(event.get("body", b""))
                size += len(parts[-1])
                if size > self._body_limit:
                    raise self._too_large()
            body = b"".join(parts)
        if event["type"] == "http.disconnect":
            raise Refusal(400, PARSE_ERROR, "The request was cut off")
        return body

    def _too_large(self) -> Refusal:
        text = f"Payload too large: the limit is {self._body_limit} bytes"
        return Refusal(413, PAYLOAD_TOO_LARGE, text, [(b"connection", b"close")])

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
        call = _Call(receive, self._watched)
        call.listen(events.stop)
        last_seen = headers.get(b"last-event-id")
        if last_seen is not None:
            _replay(session, last_seen, events)
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
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"Origin"),
        ]


_PREFLIGHT: HeaderList = [
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, "
        b"MCP-Protocol-Version, Mcp-Method, Mcp-Name",
    ),
    (b"access-control-max-age", b"600"),
]


class _Call(Cancellation):
    """Watches whether the client of one request is still there, once somebody wants to know.

    `watched` holds the calls that are watched: those that run for longer.
    """

    __slots__ = ("_receive", "_task", "_watched", "detached")

    def __init__(self, receive: Receive, watched: set[_Call]) -> None:
        super().__init__()
        self._receive = receive
        self._watched = watched
        self._task: asyncio.Task[None] | None = None
        self.detached = False

    def watch(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._wait_for_end())
            self._watched.add(self)

    async def _wait_for_end(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.detached:
            self.cancel("the client disconnected")

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._watched.discard(self)


def _closer(
    events: EventStream, session: Session | None, call: _Call
) -> Callable[[int | None], Awaitable[None]]:
    async def close(retry_ms: int | None) -> None:
        """End the response; what follows waits in the session for the client to come back."""
        if session is None or events.stream is None:
            return
        _keep(session, events.stream)
        events.start()
        if retry_ms is not None:
            events.put(f"retry: {retry_ms}\n\n".encode())
        call.detached = True
        await events.finish()

    return close


def _keep(session: Session, stream: Stream) -> None:
    session.streams[stream.id] = stream
    while len(session.streams) > MOST_STREAMS:
        del session.streams[next(iter(session.streams))]


def _replay(session: Session, last_seen: bytes, events: EventStream) -> None:
    id, _, count = last_seen.decode("latin-1").partition(".")
    stream = session.streams.get(id)
    if stream is None or not count.isdigit():
        raise Refusal(404, SESSION_NOT_FOUND, "Nothing is kept after this Last-Event-ID")
    events.start()
    for event_id, message in stream.after(int(count)):
        events.send_event(event_id, message)
    if stream.finished:
        events.stop()
    else:
        stream.sink = events


async def _finish(events: EventStream, answer: Answer | None, session: Session | None) -> None:
    if answer is not None:
        events.send(answer.frame)
    if events.stream is not None:
        events.stream.finish()
    await events.finish()


def _refuse_twice(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a header that decides something and is given twice: who looked before us may have
    taken the other one. Raises: Refusal."""
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and (name in _ONCE or name.startswith(b"mcp-")):
            raise Refusal(
                400, INVALID_REQUEST, f"The header {name.decode('latin-1')} is sent twice"
            )
        seen.add(name)


def _check_media(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the client takes an event stream. Raises: Refusal on other media types."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refusal(415, INVALID_REQUEST, "Content-Type must be application/json")
    accept = headers.get(b"accept", b"*/*")
    if b"*/*" in accept:
        return True
    takes_events = b"text/event-stream" in accept
    if not takes_events and b"application/json" not in accept and b"application/*" not in accept:
        raise Refusal(
            406, INVALID_REQUEST, "Accept must include application/json and text/event-stream"
        )
    return takes_events


def _session_header(session: Session | None, link: Link) -> HeaderList:
    if session is None and link.session is not None:
        return [(b"mcp-session-id", link.session.id.encode())]
    return []


async def _reply(send: Send, answer: Answer | None, headers: HeaderList) -> None:
    if answer is None:
        await _send(send, 202, b"", headers)
    else:
        await _send(send, answer.status, answer.frame, [_JSON, *headers, *answer.headers])


async def _send_json(send: Send, status: int, body: Any, headers: HeaderList) -> None:
    encoded = b"" if body is None else msgspec.json.encode(body)
    await _send(send, status, encoded, [_JSON, *headers] if encoded else headers)


async def _send(send: Send, status: int, body: bytes, headers: HeaderList) -> None:
    length = (b"content-length", str(len(body)).encode())
    all_headers = headers if status == 204 else [length, *headers]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})
