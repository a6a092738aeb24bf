"""The dispatcher: a frame in, an answer out, for every revision and transport.

Every error in a frame is answered here with the code that the specification gives it, and the
connection stays open.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from tidegate.protocol import initialization, jsonrpc
from tidegate.protocol import params as p
from tidegate.protocol.apps import SHOWING, shows_apps
from tidegate.protocol.jsonrpc import Message, Unreadable
from tidegate.protocol.long_calls import LongCalls
from tidegate.protocol.methods import METHODS, Method, bare
from tidegate.protocol.model import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    RpcError,
    Server,
    Settings,
)
from tidegate.protocol.multi_round_trip import MultiRoundTrip
from tidegate.protocol.repeated_calls import OpenedCall
from tidegate.protocol.request import InputRequired, McpRequest
from tidegate.protocol.request_context import (
    UNKNOWN_CLIENT,
    check_marked,
    declared_capabilities,
    names_version,
    open_request,
)
from tidegate.protocol.request_state import RequestState
from tidegate.protocol.request_traces import RequestSpan, begin_span, follow_session
from tidegate.protocol.served_server import ServedServer
from tidegate.protocol.session_ids import SessionIds
from tidegate.protocol.sessions import Sessions
from tidegate.protocol.tasks import Tasks
from tidegate.protocol.transport import Answer, ServedElsewhere, TransportContext
from tidegate.tracing import Tracing

logger = logging.getLogger("tidegate.protocol")

INITIALIZED = "notifications/initialized"
MOST_MEMBERS = 64
"""Messages in one batch: their replies are kept until the last one is there."""


class Kernel:
    """Serves one `Server` to every client, over every transport."""

    def __init__(
        self,
        server: Server,
        settings: Settings,
        seal: RequestState | None = None,
        tasks: Tasks | None = None,
        tracing: Tracing | None = None,
        session_ids: SessionIds | None = None,
    ) -> None:
        """With `tasks` a call that lasts is answered before it has ended. `tracing` has the tracer
        while a product traces. Any process that has the same `session_ids` serves a session."""
        self._tracing = tracing or Tracing()
        self.sessions = Sessions(ids=session_ids)
        self._served = ServedServer(server, settings, self.sessions.states)
        self.sessions.restore = partial(initialization.restore, self._served)
        if tasks is not None:
            meta = self._served.server_meta
            self._served.long_calls = LongCalls(server, meta, tasks, self._refuse)
        known = {name: bare(method) for name, method in server.methods.items()} | METHODS
        known = {
            name: method
            for name, method in known.items()
            if tasks is not None or not name.startswith("tasks/")
        }
        self._methods = self._served.methods_for(known, {})
        self._app_methods = self._served.methods_for(known, SHOWING)
        self._round_trips = MultiRoundTrip(seal or RequestState())

    async def serve(self, frame: bytes, transport: TransportContext) -> Answer | None:
        """Answer one frame; None if it needs no answer (a notification or a response). Raises:
        ServedElsewhere, where the transport passes on."""
        repeated = transport.repeated
        if repeated is not None:
            call = repeated.find(frame, transport)
            if call is not None:
                return await self.serve_message(call.message, transport, call=call)
        frame = frame.removeprefix(jsonrpc.BYTE_ORDER_MARK)
        try:
            if frame.lstrip()[:1] == b"[":
                return await self._serve_batch(frame, transport)
            document = self._served.settings.document_lifecycle
            message = jsonrpc.decode(frame, document=document)
            return await self.serve_message(message, transport, frame)
        except Unreadable as error:
            id = None if error.id == jsonrpc.NO_ID and transport.leaves_ids_out else error.id
            data = self._served.settings.error_data.get(error.code)
            return Answer(jsonrpc.error_frame(id, error.code, error.message, data), 400)

    async def serve_message(
        self,
        message: Message,
        transport: TransportContext,
        frame: bytes = b"",
        call: OpenedCall | None = None,
    ) -> Answer | None:
        """Answer one decoded message. `frame` is what it was decoded from, if the next one may be
        recognized by it; `call` is there if this one was, and so need not be read."""
        if message.id is None:
            initialization.on_notification(message, transport)
            return None
        if message.method is None:
            initialization.on_response(message, transport)
            return None
        if message.method == INITIALIZED and self._served.settings.document_lifecycle:
            initialization.on_notification(message, transport)
            return None
        request: McpRequest | None = None
        params: p.Params | None = None
        span = None if self._tracing.tracer is None else self._begin_span(message, transport, call)
        try:
            if message.method == "initialize" and not (
                self._served.knows_modern and names_version(message, transport)
            ):
                answer = initialization.initialize(self._served, self.sessions, message, transport)
                if self._tracing.tracer is not None:
                    follow_session(self._tracing.tracer, transport)
                return answer
            method = self._method_for(message, transport)
            if call is not None:
                params = call.params
                check_marked(self._served, params, call.request, transport)
                request = call.request
            else:
                params = self._read(message, method, transport)
                bare = message.method not in METHODS
                request = open_request(self._served, message, params, transport, bare=bare)
                if transport.repeated is not None and isinstance(params, p.CallTool):
                    transport.repeated.learn(frame, OpenedCall(message, params, request))
            return await self._run(message, method, params, request, transport)
        except RpcError as error:
            if span is not None:
                span.rpc_error = error.code
            return self._refuse(message.id, error, request)
        except asyncio.CancelledError:
            if span is not None:
                span.cancelled = True
            raise
        except ServedElsewhere:
            raise
        except Exception:
            logger.exception("fault while serving %s", message.method)
            fault = RpcError(INTERNAL_ERROR, "Internal error", status=500)
            if span is not None:
                span.rpc_error = fault.code
            return self._refuse(message.id, fault, request)
        finally:
            if span is not None:
                span.end(request, params)

    def _begin_span(
        self, message: Message, transport: TransportContext, call: OpenedCall | None
    ) -> RequestSpan | None:
        """Begin the trace of a request. Only while a product traces."""
        tracer = self._tracing.tracer
        if tracer is None:
            return None
        name = message.method or ""
        known = name == "initialize" or name in self._methods or name in self._app_methods
        return begin_span(tracer, self._served, message, transport, call, known=known)

    def close(self) -> None:
        """End every session and listen stream; running calls are cancelled."""
        self.end_listening()
        self.sessions.close()

    def end_listening(self) -> None:
        """End the listen streams, which would never end by themselves."""
        self._served.end_listening()

    async def _serve_batch(self, frame: bytes, transport: TransportContext) -> Answer | None:
        revision = transport.session.revision if transport.session is not None else None
        if self._served.settings.document_lifecycle:
            jsonrpc.split_batch(frame)  # what is no JSON is not refused as a batch
            revision = None
        if revision is None or not revision.batches:
            raise Unreadable(
                INVALID_REQUEST, "Invalid Request: batches are not part of this revision"
            )
        members = jsonrpc.split_batch(frame)
        if len(members) > MOST_MEMBERS:
            raise Unreadable(
                INVALID_REQUEST,
                f"Invalid Request: a batch has at most {MOST_MEMBERS} messages",
            )
        answers = await asyncio.gather(
            *(self._serve_member(member, transport) for member in members)
        )
        replies = [answer.frame for answer in answers if answer is not None]
        return Answer(b"[" + b",".join(replies) + b"]") if replies else None

    async def _serve_member(self, frame: bytes, transport: TransportContext) -> Answer | None:
        try:
            message = jsonrpc.decode(frame)
            if message.method == "initialize":
                raise Unreadable(
                    INVALID_REQUEST, "Invalid Request: initialize must not be in a batch",
                    message.id or jsonrpc.NO_ID,
                )  # fmt: skip
        except Unreadable as error:
            return Answer(jsonrpc.error_frame(error.id, error.code, error.message))
        # Each is cancelled by its own id, and all of them if the client disconnects.
        member = TransportContext(
            transport.actor,
            transport.sender,
            session=transport.session,
            headers=transport.headers,
            address=transport.address,
        )

        def end() -> None:
            member.cancellation.cancel(transport.cancellation.reason or "cancelled")

        transport.cancellation.listen(end)
        try:
            return await self.serve_message(message, member)
        finally:
            transport.cancellation.forget(end)

    def _method_for(self, message: Message, transport: TransportContext) -> Method | None:
        """The method, if this server has it for this client."""
        name = message.method or ""
        method = self._methods.get(name)
        if (
            method is None
            and name in self._app_methods
            and shows_apps(declared_capabilities(message, transport))
        ):
            return self._app_methods[name]
        return method

    def _read(
        self, message: Message, method: Method | None, transport: TransportContext
    ) -> p.Params:
        try:
            if method is not None and method.params is p.BareParams:
                return p.read_bare(message.params)
            return p.read(method.params if method is not None else p.Params, message.params)
        except RpcError as error:
            if transport.names_modern:
                error.status = 400
            self._check_envelope(message, method, transport)
            raise

    def _check_envelope(
        self, message: Message, method: Method | None, transport: TransportContext
    ) -> None:
        """Raise the errors that precede wrong parameters: a wrong session, version or method."""
        try:
            envelope = p.read(p.Params, message.params)
        except RpcError:
            return
        bare = message.method not in METHODS
        request = open_request(self._served, message, envelope, transport, bare=bare)
        self._find(message, method, request)

    async def _run(
        self,
        message: Message,
        method: Method | None,
        params: p.Params,
        request: McpRequest,
        transport: TransportContext,
    ) -> Answer | None:
        method = self._find(message, method, request)
        if isinstance(params, p.Answered) and request.wire.modern:
            if params.request_state is not None:
                await self._round_trips.take_answers(message, params, request)
            elif params.input_responses is not None:
                # Without a state there was no question: such answers are volunteered.
                request.volunteered = params.input_responses
        running = transport.session.running if transport.session is not None else None
        if running is not None:
            if request.id in running:
                raise RpcError(INVALID_REQUEST, "This request id is in use", status=400)
            running[request.id] = request.cancellation
            request.running = running
        withdrawn = False
        try:
            result = await method.handle(self._served, request, params)
        except InputRequired as required:
            meta = self._served.server_meta
            result = await self._round_trips.require(message, params, request, required, meta)
        finally:
            if running is not None:
                withdrawn = running.get(request.id) is not request.cancellation
                if not withdrawn:
                    del running[request.id]
        if withdrawn or request.task is not None:
            return None  # a cancelled request gets no result, and a task was answered before
        if request.stream is not None and request.stream.started:
            return Answer(result)
        return Answer(jsonrpc.result_frame(request.id, result))

    def _find(self, message: Message, method: Method | None, request: McpRequest) -> Method:
        """The method, if this era and this server have it. Raises: RpcError METHOD_NOT_FOUND."""
        other_era = "handshake" if request.wire.modern else "modern"
        if method is None or method.era == other_era:
            raise RpcError(
                METHOD_NOT_FOUND,
                f"Method not found: {message.method}",
                status=404 if request.wire.modern else None,
            )
        return method

    def _refuse(self, id: bytes, error: RpcError, request: McpRequest | None) -> Answer:
        if request is not None and request.stream is not None and request.stream.started:
            ending = f"\n\n{error.message}".encode()
            return Answer(request.stream.end(ending, is_error=True))
        status = error.status
        status_of = self._served.settings.error_status
        if status is None and status_of is not None:
            client, revision, agent = UNKNOWN_CLIENT, "", ""
            if request is not None:
                client, revision, agent = request.client, request.revision, request.user_agent
            status = status_of(error.code, client, revision, agent)
        code = error.code
        if code == RESOURCE_NOT_FOUND and request is not None and request.wire.modern:
            code = INVALID_PARAMS
        data = error.data or self._served.settings.error_data.get(code)
        frame = jsonrpc.error_frame(id, code, error.message, data)
        return Answer(frame, status or 200)
