"""MCP over Streamable HTTP: the requests to the kernel of one endpoint.

A reply is plain JSON. It becomes an event stream when something has to be sent before it (progress,
a log message, a question to the client), or when it takes longer than proxies wait. A client that
disconnects cancels its call, but in the revision that can resume a stream only when it stays away.
Source: specification, `basic/transports`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from tidegate.edges.http.active_request import ActiveRequest
from tidegate.edges.http.endpoint import Endpoint
from tidegate.edges.http.reply_body import JsonBody
from tidegate.edges.http.request_body import read_body
from tidegate.edges.http.responses import PREFLIGHT, HttpRefusal, reply
from tidegate.edges.http.resumption import (
    KEEP_ALIVES,
    SESSION_NOT_FOUND,
    LostStream,
    StreamPlace,
    closer_of,
    finish,
    misdirected,
    place_of,
    replay,
)
from tidegate.edges.http.sse import KEEP_ALIVE_S, EventStream
from tidegate.edges.http.worker_relay import WorkerWay
from tidegate.edges.http1.request import IncomingRequest, block_of
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor
from tidegate.protocol.jsonrpc import NO_ID, find_id
from tidegate.protocol.repeated_calls import RepeatedCalls
from tidegate.protocol.revisions import MODERN
from tidegate.protocol.session import Session, Stream
from tidegate.protocol.transport import Answer, ServedElsewhere, TransportContext

Authenticate = Callable[[str | None, str], Actor | Awaitable[Actor]]
"""Turns (bearer token or None, client address) into an actor. Raises: TidegateError AUTH_*."""

_MODERN = frozenset(name.encode() for name in MODERN)
_PREFLIGHT = block_of(PREFLIGHT)


class ParsedHead:
    """What the head of a request says by itself: the same for each request with that head."""

    __slots__ = (
        "address",
        "bearer",
        "block",
        "endpoint",
        "finishes",
        "generation",
        "kernel",
        "modern",
        "repeated",
        "takes_events",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        headers: Mapping[bytes, bytes],
        block: bytes,
        address: str,
        generation: int,
    ) -> None:
        """`block` are the headers of every response to such a request, `address` is the client's:
        a head is never used for another connection. `generation` is that of the proxies by which
        the address was found."""
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        self.endpoint = endpoint
        self.kernel = endpoint.kernel
        self.bearer = token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None
        self.modern = headers.get(b"mcp-protocol-version") in _MODERN
        self.block = block
        self.address = address
        self.generation = generation
        self.finishes = endpoint.conventions.finishes
        self.repeated: RepeatedCalls | None = None
        """Made when the head comes again: of many clients it never does."""
        self.takes_events: bool | None = None
        """None until the media types were checked, which happens after authentication."""


class McpHandler:
    """Serves MCP frames. `active` holds every request that is being answered."""

    def __init__(
        self,
        authenticate: Authenticate,
        active: set[ActiveRequest],
        body_limit: int,
        keep_alive_s: float = KEEP_ALIVE_S,
    ) -> None:
        self._authenticate = authenticate
        self._active = active
        self._body_limit = body_limit
        self._keep_alive_s = keep_alive_s
        self._resume_s = KEEP_ALIVES * keep_alive_s
        self._watching = False
        self.way: WorkerWay | None = None
        """The way to the other workers, if there are some."""
        self.place = StreamPlace()
        """Where streams of this process are."""

    async def serve(self, request: IncomingRequest, parsed: ParsedHead) -> None:
        """Answer a request. Raises: HttpRefusal."""
        method, conventions = request.head.method, parsed.endpoint.conventions
        if method == "OPTIONS":
            request.respond(204, parsed.block + _PREFLIGHT)
            return
        try:
            found = self._authenticate(parsed.bearer, parsed.address)
            actor = found if isinstance(found, Actor) else await found
        except TidegateError as error:
            raise conventions.refusal_of(error) from None
        way = self.way
        if way is not None and parsed.endpoint.keeps_choices and not request.passed_on:
            owner = way.owner_of(actor.id)
            if owner != way.number:
                await way.pass_on(request, owner)
                return
        if method == "POST" and method in conventions.methods:
            await self._post(request, parsed, actor)
        elif method not in conventions.methods or parsed.modern:
            with_sessions = not parsed.modern and "GET" in conventions.methods
            allow = b"GET, POST, DELETE, OPTIONS" if with_sessions else b"POST"
            raise HttpRefusal(405, f"{method} is not served here", headers=[(b"allow", allow)])
        elif method == "GET":
            await self._get(request, parsed, actor)
        else:
            session = await self._session(parsed, actor, request.head.headers)
            try:
                await parsed.kernel.sessions.end_kept(session)
            except TidegateError as error:
                raise conventions.refusal_of(error) from None
            request.respond(204, parsed.block)

    # POST: one frame in, one reply out

    async def _post(self, request: IncomingRequest, parsed: ParsedHead, actor: Actor) -> None:
        if parsed.takes_events is None:
            parsed.takes_events = parsed.endpoint.conventions.takes_events(request.head.headers)
        elif parsed.modern and parsed.repeated is None:
            parsed.repeated = RepeatedCalls()
        # Before the body has come: the token may be revoked while it does.
        call = ActiveRequest(request=request, actor=actor, active=self._active)
        self._active.add(call)
        try:
            frame = request.body
            if frame is None or len(frame) > self._body_limit:
                frame = await read_body(request, self._body_limit)
            await self._serve(request, parsed, call, frame)
        finally:
            call.end()

    async def _serve(
        self, request: IncomingRequest, parsed: ParsedHead, call: ActiveRequest, frame: bytes
    ) -> None:
        actor, kernel, headers, session = call.actor, parsed.kernel, request.head.headers, None
        if not parsed.modern and b"mcp-session-id" in headers:
            session = await self._session(parsed, actor, headers, frame)
        events = EventStream(
            request,
            parsed.block,
            open=bool(parsed.takes_events),
            on_start=call.watch,
            keep_alive_s=self._keep_alive_s,
        )
        if session is not None and session.revision is not None and session.revision.priming:
            events.stream = Stream(self.place.prefix)
            lost = LostStream(session, events, call, self._resume_s)
            call.on_left, events.on_start = lost.lose, lost.begin
        if events.open:
            call.on_silence = events.begin_silence
            if not self._watching:
                self._watch_silence()
        conventions = parsed.endpoint.conventions
        body = None
        if conventions.streams_json and conventions.takes_json(headers):
            body = JsonBody(request, parsed.block, events, call)
        transport = TransportContext(
            actor,
            events,
            session=session,
            headers=headers,
            address=parsed.address,
            cancellation=call,
            closer=closer_of(events, session, call) if events.stream is not None else None,
            body=body,
            repeated=parsed.repeated,
            early=partial(self._answer_early, events, session, call, parsed),
            passes_on=0 if self.way is None or request.passed_on else self.way.workers,
        )
        try:
            answer = await kernel.serve(frame, transport)
        except ServedElsewhere as there:
            await self._pass_on(request, events, call, there)
            return
        if call.answered_early:
            return
        if body is not None and body.started:
            body.finish(b"" if answer is None else answer.frame)
            return
        if events.started:
            finish(events, answer, session, self._resume_s)
            return
        events.on_start = None
        block = parsed.block
        if answer is not None and parsed.finishes:
            answer = parsed.endpoint.conventions.finish(answer, actor)
        if session is None and transport.session is not None:
            block += block_of([(b"mcp-session-id", transport.session.id.encode())])
        reply(request, answer, block)

    async def _pass_on(
        self,
        request: IncomingRequest,
        events: EventStream,
        call: ActiveRequest,
        there: ServedElsewhere,
    ) -> None:
        """Have the worker answer that has the task which a request is about."""
        call.on_left = call.on_silence = None  # that one begins the stream, and ends the call
        events.on_start, events.open = None, False
        if there.lasts:
            call.endless = True
            call.listen(request.abort)
        if self.way is not None:
            await self.way.pass_on(request, there.worker)

    def _answer_early(
        self,
        events: EventStream,
        session: Session | None,
        call: ActiveRequest,
        parsed: ParsedHead,
        answer: Answer,
    ) -> None:
        """Give the reply to a call that goes on: its connection serves others, and its client may
        go. The call is still one that is being answered, for those who end calls."""
        request = call.request
        call.answered_early = call.detached = True
        call.on_left = call.on_silence = None
        request.when_gone(None)
        if events.started:
            finish(events, answer, session, self._resume_s)
        else:
            events.on_start = None
            if parsed.finishes:
                answer = parsed.endpoint.conventions.finish(answer, call.actor)
            reply(request, answer, parsed.block)
        events.open = False  # nothing is sent, or asked, after the reply
        events.lose()

    def _watch_silence(self) -> None:
        """Look after the calls that are not answered at once, as long as there are any."""
        self._watching = True
        asyncio.get_running_loop().call_later(self._keep_alive_s / 2, self._check_silence)

    def _check_silence(self) -> None:
        """Begin the response of each call that was there at the check before."""
        self._watching = False
        waiting = [call for call in self._active if call.on_silence is not None]
        for call in waiting:
            call.checks += 1
            if call.checks == 2 and call.on_silence is not None and not call.request.begun:
                call.on_silence()
        if waiting:
            self._watch_silence()

    # GET: a session's own stream, or the rest of one that was cut off

    async def _get(self, request: IncomingRequest, parsed: ParsedHead, actor: Actor) -> None:
        headers = request.head.headers
        accept = headers.get(b"accept", b"*/*")
        if b"text/event-stream" not in accept and b"*/*" not in accept:
            raise HttpRefusal(406, "Accept must include text/event-stream")
        last_seen = headers.get(b"last-event-id")
        if last_seen is not None and await self._resume_elsewhere(request, last_seen):
            return
        session = await self._session(parsed, actor, headers)
        if last_seen is not None and place_of(last_seen).gate not in ("", self.place.gate):
            raise misdirected(place_of(last_seen))
        events = EventStream(request, parsed.block, keep_alive_s=self._keep_alive_s)
        call = ActiveRequest(request=request, actor=actor, active=self._active)
        self._active.add(call)
        try:
            request.when_gone(events.lose)
            if last_seen is not None:
                replay(session, last_seen, events)
            else:
                events.start()
                if isinstance(session.sender, EventStream):
                    session.sender.stop()
                session.attach(events)
            call.endless = True
            call.listen(events.stop)
            await events.drained()
        finally:
            session.detach(events)
            call.end()

    async def _resume_elsewhere(self, request: IncomingRequest, last_seen: bytes) -> bool:
        """Have the worker of this gate answer that has the events; False if this one does."""
        place, way = place_of(last_seen), self.way
        if way is None or request.passed_on or place.gate != self.place.gate:
            return False
        if place.worker == way.number or not 0 < place.worker <= way.workers:
            return False
        await way.pass_on(request, place.worker)
        return True

    async def _session(
        self, parsed: ParsedHead, actor: Actor, headers: Mapping[bytes, bytes], frame: bytes = b""
    ) -> Session:
        """The session that the headers name. Raises: HttpRefusal, with the id of `frame`."""
        id = headers.get(b"mcp-session-id")
        if id is None:
            raise HttpRefusal(400, "Missing Mcp-Session-Id header")
        sessions, name = parsed.kernel.sessions, id.decode("latin-1")
        session = sessions.find(name, actor)
        if session is None:
            try:
                session = await sessions.bring(name, actor)
            except TidegateError as error:
                raise parsed.endpoint.conventions.refusal_of(error) from None
        if session is None:
            known = find_id(frame)
            asked = None if known == NO_ID else known
            raise HttpRefusal(404, "Session not found", SESSION_NOT_FOUND, id=asked)
        return session
