"""The dispatcher: which request is served how, in which era, and with which answer.

Two eras live on one server. A request whose `_meta` names a revision since 2026-07-28 is served
statelessly; `initialize` opens a session of the handshake era. Everything that can be wrong with a
frame is answered here with the code the specification gives it, and the connection lives on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from tidegate.protocol import frames, headers, render
from tidegate.protocol import params as p
from tidegate.protocol.exchange import NOTHING, Exchange, InputRequired
from tidegate.protocol.frames import Message, Unreadable
from tidegate.protocol.headers import Headers
from tidegate.protocol.methods import METHODS, Method
from tidegate.protocol.model import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Info,
    RpcError,
    Server,
    Settings,
)
from tidegate.protocol.revisions import MODERN, REVISIONS, negotiate
from tidegate.protocol.seal import Seal, bind
from tidegate.protocol.session import Outlet, Session
from tidegate.protocol.sessions import Sessions
from tidegate.protocol.subscriptions import follow
from tidegate.types import Actor, Cancellation

logger = logging.getLogger("tidegate.protocol")

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

UNKNOWN_CLIENT = Info("unknown", "0")

MOST_MEMBERS = 64
"""Messages in one batch: their replies are kept until the last one is there."""

MOST_ABOUT_CLIENT = 8_192
"""Bytes of the parameters of `initialize`, which are kept as long as the session."""


class Answer(NamedTuple):
    """A reply frame and, for HTTP, its status and further headers."""

    frame: bytes
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()


class Link:
    """How one frame reached us: who sent it, over what, and where messages back go.

    `headers` are given over HTTP only. `session` is the client's session, if it has one; the
    kernel sets it when the frame opens one.
    """

    __slots__ = ("actor", "cancellation", "closer", "headers", "outlet", "session")

    def __init__(
        self,
        actor: Actor,
        outlet: Outlet,
        *,
        session: Session | None = None,
        headers: Headers | None = None,
        cancellation: Cancellation | None = None,
        closer: Callable[[int | None], Awaitable[None]] | None = None,
    ) -> None:
        self.actor = actor
        self.outlet = outlet
        self.session = session
        self.headers = headers
        self.cancellation = cancellation if cancellation is not None else Cancellation()
        self.closer = closer


class Kernel:
    """Serves one `Server` to every client, over every transport."""

    def __init__(self, server: Server, settings: Settings, seal: Seal | None = None) -> None:
        self.server = server
        self.settings = settings
        self.sessions = Sessions()
        self.server_meta = frames.encode({SERVER_KEY: server.info})
        self.lists: dict[tuple[str, str, int], tuple[Sequence[Any], bytes]] = {}
        self.listening: set[Callable[[], None]] = set()
        self._seal = seal or Seal()
        self._marked: tuple[Sequence[Any], dict[str, dict[str, str]]] = ((), {})

    async def serve(self, frame: bytes, link: Link) -> Answer | None:
        """Answer one frame; None if nothing is owed (a notification or a response)."""
        try:
            if frames.is_batch(frame):
                return await self._serve_batch(frame, link)
            return await self.serve_message(frames.decode(frame), link)
        except Unreadable as error:
            id = None if error.id == frames.NO_ID and _leaves_ids_out(link) else error.id
            return Answer(frames.error_frame(id, error.code, error.message), 400)

    async def serve_message(self, message: Message, link: Link) -> Answer | None:
        """Answer one decoded message."""
        if message.id is None:
            self._hear(message, link)
            return None
        if message.method is None:
            self._accept(message, link)
            return None
        exchange: Exchange | None = None
        try:
            if message.method == "initialize" and not _names_version(message, link):
                return self._initialize(message, link)
            method = METHODS.get(message.method)
            params = self._read(message, method, link)
            exchange = self._open(message, params, link)
            return await self._run(message, method, params, exchange, link)
        except RpcError as error:
            return self._refuse(message.id, error, exchange)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("fault while serving %s", message.method)
            fault = RpcError(INTERNAL_ERROR, "Internal error", status=500)
            return self._refuse(message.id, fault, exchange)

    def close(self) -> None:
        """End every session and listen stream; running calls are cancelled."""
        self.end_listening()
        self.sessions.close()

    def end_listening(self) -> None:
        """End the listen streams, which would never end by themselves."""
        for end in list(self.listening):
            end()

    async def _serve_batch(self, frame: bytes, link: Link) -> Answer | None:
        revision = link.session.revision if link.session is not None else None
        if revision is None or not revision.batches:
            raise Unreadable(
                INVALID_REQUEST, "Invalid Request: batches are not part of this revision"
            )
        members = frames.split_batch(frame)
        if len(members) > MOST_MEMBERS:
            raise Unreadable(
                INVALID_REQUEST,
                f"Invalid Request: a batch has at most {MOST_MEMBERS} messages",
            )
        answers = await asyncio.gather(*(self._serve_member(member, link) for member in members))
        replies = [answer.frame for answer in answers if answer is not None]
        return Answer(b"[" + b",".join(replies) + b"]") if replies else None

    async def _serve_member(self, frame: bytes, link: Link) -> Answer | None:
        try:
            message = frames.decode(frame)
            if message.method == "initialize":
                raise Unreadable(
                    INVALID_REQUEST, "Invalid Request: initialize must not be in a batch",
                    message.id or frames.NO_ID,
                )  # fmt: skip
        except Unreadable as error:
            return Answer(frames.error_frame(error.id, error.code, error.message))
        # Each is cancelled by its own id, and all of them if their client goes.
        member = Link(link.actor, link.outlet, session=link.session, headers=link.headers)

        def end() -> None:
            member.cancellation.cancel(link.cancellation.reason or "cancelled")

        link.cancellation.listen(end)
        try:
            return await self.serve_message(message, member)
        finally:
            link.cancellation.forget(end)

    # Opening an exchange

    def _read(self, message: Message, method: Method | None, link: Link) -> p.Params:
        try:
            return p.read(method.params if method is not None else p.Params, message.params)
        except RpcError as error:
            if _modern_header(link):
                error.status = 400
            self._check_envelope(message, method, link)
            raise

    def _check_envelope(self, message: Message, method: Method | None, link: Link) -> None:
        """Raise what weighs more than wrong parameters: a wrong session, version or method."""
        try:
            envelope = p.read(p.Params, message.params)
        except RpcError:
            return
        self._find(message, method, self._open(message, envelope, link))

    def _open(self, message: Message, params: p.Params, link: Link) -> Exchange:
        if (params.meta and VERSION_KEY in params.meta) or _modern_header(link):
            return self._open_modern(message, params, link)
        return self._open_in_session(message, params, link)

    def _open_modern(self, message: Message, params: p.Params, link: Link) -> Exchange:
        meta = params.meta or NOTHING
        version = meta.get(VERSION_KEY)
        capabilities = meta.get(CAPABILITIES_KEY)
        if not isinstance(version, str):
            raise RpcError(INVALID_PARAMS, f"_meta must name {VERSION_KEY}", status=400)
        if link.session is not None:
            link.session.stateless = True
        if link.headers is not None:
            name = getattr(params, headers.NAMED.get(message.method or "", ""), None)
            headers.check_standard(link.headers, version, message.method or "", name)
        if version not in self.settings.revisions.accepted or version not in MODERN:
            supported = [v for v in self.settings.revisions.accepted if v in MODERN]
            raise RpcError(
                UNSUPPORTED_VERSION,
                f"Unsupported protocol version {version}",
                {"supported": supported, "requested": version},
                status=400,
            )
        if not isinstance(capabilities, dict):
            raise RpcError(INVALID_PARAMS, f"_meta must name {CAPABILITIES_KEY}", status=400)
        exchange = Exchange(
            link.actor,
            REVISIONS[version],
            link.outlet,
            id=message.id or frames.NO_ID,
            client=_read_client(meta.get(CLIENT_KEY)),
            client_capabilities=cast(Mapping[str, Any], capabilities),
            meta=meta,
            cancellation=link.cancellation,
        )
        if link.headers is not None and isinstance(params, p.CallTool):
            self._check_parameters(exchange, link.headers, params)
        return exchange

    def _check_parameters(self, exchange: Exchange, sent: Headers, params: p.CallTool) -> None:
        tools = self.server.tools(exchange)
        if self._marked[0] is not tools:
            marks = {tool.name: headers.marked_arguments(tool.input_schema) for tool in tools}
            self._marked = (tools, marks)
        marked = self._marked[1].get(params.name)
        if marked:
            headers.check_parameters(sent, marked, params.arguments or {})

    def _open_in_session(self, message: Message, params: p.Params, link: Link) -> Exchange:
        session = link.session
        if session is None:
            raise RpcError(
                INVALID_REQUEST, "Missing Mcp-Session-Id: the first request must be initialize",
                status=400,
            )  # fmt: skip
        revision = session.revision
        if revision is None:
            raise RpcError(INVALID_REQUEST, "The first request must be initialize", status=400)
        if link.headers is not None:
            named = link.headers.get(b"mcp-protocol-version")
            if named is not None and named != revision.name.encode():
                raise RpcError(
                    INVALID_REQUEST, f"MCP-Protocol-Version must be {revision.name}", status=400
                )
        if not session.ready and self.settings.strict_lifecycle and message.method != "ping":
            raise RpcError(
                INVALID_REQUEST, "Send notifications/initialized before other requests", status=400
            )
        return Exchange(
            link.actor,
            revision,
            link.outlet,
            id=message.id or frames.NO_ID,
            client=session.client,
            client_capabilities=session.capabilities,
            meta=params.meta or NOTHING,
            session=session,
            cancellation=link.cancellation,
            closer=link.closer,
        )

    # Running

    async def _run(
        self,
        message: Message,
        method: Method | None,
        params: p.Params,
        exchange: Exchange,
        link: Link,
    ) -> Answer | None:
        method = self._find(message, method, exchange)
        if exchange.wire.modern and isinstance(params, p.Answered):
            self._take_answers(message, params, exchange)
        running = link.session.running if link.session is not None else None
        if running is not None:
            if exchange.id in running:
                raise RpcError(INVALID_REQUEST, "This request id is in use", status=400)
            running[exchange.id] = exchange.cancellation
        withdrawn = False
        try:
            result = await method.handle(self, exchange, params)
        except InputRequired as required:
            result = self._require(message, params, exchange, required)
        finally:
            if running is not None:
                withdrawn = running.get(exchange.id) is not exchange.cancellation
                if not withdrawn:
                    del running[exchange.id]
        if withdrawn:
            return None  # who cancels a request gets no result; an error that says so may leave
        return Answer(frames.result_frame(exchange.id, result))

    def _find(self, message: Message, method: Method | None, exchange: Exchange) -> Method:
        if method is None or not self._has(method, exchange):
            raise RpcError(
                METHOD_NOT_FOUND,
                f"Method not found: {message.method}",
                status=404 if exchange.wire.modern else None,
            )
        return method

    def _has(self, method: Method, exchange: Exchange) -> bool:
        if method.era == ("handshake" if exchange.wire.modern else "modern"):
            return False
        if method.capability is None:
            return True
        name, _, part = method.capability.partition(".")
        capability = self.server.capabilities.get(name)
        return capability is not None and (not part or bool(capability.get(part)))

    def _take_answers(self, message: Message, params: p.Answered, exchange: Exchange) -> None:
        """Open the state of a retry. Without one nobody asked: such answers are volunteered."""
        given = params.input_responses or {}
        if params.request_state is None:
            exchange.volunteered = given
            return
        state = self._seal.open(params.request_state, _binding(message, params, exchange))
        fresh = {key: value for key, value in given.items() if key in state.asked}
        exchange.answers = {**state.answers, **fresh}

    def _require(
        self, message: Message, params: p.Params, exchange: Exchange, required: InputRequired
    ) -> bytes:
        state = self._seal.seal(
            _binding(message, params, exchange), tuple(required.asks), exchange.answers
        )
        asks = {
            key: {"method": ask.method, "params": ask.params} for key, ask in required.asks.items()
        }
        return frames.encode(
            {
                "resultType": "input_required",
                "inputRequests": asks,
                "requestState": state,
                "_meta": msgspec.Raw(self.server_meta),
            }
        )

    def _refuse(self, id: bytes, error: RpcError, exchange: Exchange | None) -> Answer:
        status = error.status
        if status is None and self.settings.error_status is not None:
            client = exchange.client if exchange is not None else UNKNOWN_CLIENT
            status = self.settings.error_status(error.code, client)
        code = error.code
        if code == RESOURCE_NOT_FOUND and exchange is not None and exchange.wire.modern:
            code = INVALID_PARAMS
        frame = frames.error_frame(id, code, error.message, error.data)
        return Answer(frame, status or 200, error.headers)

    # The handshake era's opening, notifications and responses

    def _initialize(self, message: Message, link: Link) -> Answer:
        session = link.session
        if session is not None and session.revision is not None:
            raise RpcError(INVALID_REQUEST, "The session is initialized already", status=400)
        if message.params is not None and len(message.params) > MOST_ABOUT_CLIENT:
            raise RpcError(
                INVALID_PARAMS, f"Invalid params: initialize takes {MOST_ABOUT_CLIENT} bytes",
                status=400,
            )  # fmt: skip
        params = p.read(p.Initialize, message.params)
        if session is None:
            session = link.session = self.sessions.open(link.actor)
        session.revision = negotiate(self.settings.revisions, params.protocol_version)
        session.client = params.client_info
        session.capabilities = params.capabilities
        follow(self, session)
        fields: dict[str, Any] = {
            "protocolVersion": session.revision.name,
            "capabilities": render.capabilities(self.server.capabilities, session.revision),
            "serverInfo": self._describe_self(session.revision.titles),
        }
        if self.server.instructions is not None:
            fields["instructions"] = self.server.instructions
        return Answer(frames.result_frame(message.id or frames.NO_ID, frames.encode(fields)))

    def _describe_self(self, titles: bool) -> Info:
        info = self.server.info
        return info if titles else Info(info.name, info.version)

    def _hear(self, message: Message, link: Link) -> None:
        """Take a notification; unknown ones are ignored, as JSON-RPC says."""
        session = link.session
        if session is None:
            return
        if message.method == "notifications/initialized":
            session.ready = session.revision is not None
        elif message.method == "notifications/cancelled":
            try:
                cancelled = p.read(p.Cancelled, message.params)
            except RpcError:
                return
            cancellation = session.running.pop(bytes(cancelled.request_id), None)
            if cancellation is not None:
                cancellation.cancel(cancelled.reason or "cancelled by the client")

    def _accept(self, message: Message, link: Link) -> None:
        """Take the client's answer to a request of ours."""
        if link.session is None or message.id is None:
            return
        if message.result is not None:
            try:
                result = msgspec.json.decode(message.result, type=dict[str, Any])
            except msgspec.ValidationError:
                link.session.accept(message.id, None, "its result is not an object")
            else:
                link.session.accept(message.id, result, None)
        else:
            link.session.accept(message.id, None, "it answered with an error")


def _modern_header(link: Link) -> bool:
    if link.headers is None:
        return False
    named = link.headers.get(b"mcp-protocol-version")
    return named is not None and named.decode("latin-1") in MODERN


def _leaves_ids_out(link: Link) -> bool:
    session = link.session
    if session is not None and session.revision is not None:
        return not session.revision.null_ids
    return _modern_header(link) or (session is not None and session.stateless)


def _names_version(message: Message, link: Link) -> bool:
    """Whether an `initialize` claims the stateless era, which does not have it."""
    if _modern_header(link):
        return True
    return message.params is not None and VERSION_KEY in (
        p.read(p.Params, message.params).meta or ()
    )


def _read_client(given: Any) -> Info:
    if given is None:
        return UNKNOWN_CLIENT
    try:
        return msgspec.convert(given, Info)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"_meta {CLIENT_KEY}: {error}", status=400) from None


def _binding(message: Message, params: p.Params, exchange: Exchange) -> bytes:
    method = message.method or ""
    name = getattr(params, headers.NAMED.get(method, ""), "")
    return bind(exchange.actor.id, method, name, getattr(params, "arguments", None))
