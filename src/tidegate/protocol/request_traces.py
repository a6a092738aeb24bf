"""The trace of one request of MCP: where it comes from, and what is said of it at its end."""

from __future__ import annotations

import time

import msgspec

from tidegate.protocol import params as p
from tidegate.protocol.jsonrpc import Message
from tidegate.protocol.model import RpcError
from tidegate.protocol.repeated_calls import OpenedCall
from tidegate.protocol.request import NOTHING, McpRequest
from tidegate.protocol.served_server import ServedServer
from tidegate.protocol.transport import TransportContext
from tidegate.tracing import CURRENT, OTHER, ServedRequest, Trace, Tracer

_MOST_DIGITS = 20
"""Of the id of a request that is passed on: a longer one is a text in digits."""


class RequestSpan:
    """The trace of a request that is being served."""

    __slots__ = (
        "_message",
        "_method",
        "_served",
        "_trace",
        "_transport",
        "cancelled",
        "rpc_error",
    )

    def __init__(
        self,
        trace: Trace,
        served: ServedServer,
        message: Message,
        method: str,
        transport: TransportContext,
    ) -> None:
        self._trace = trace
        self._served = served
        self._message = message
        self._method = method
        self._transport = transport
        CURRENT.set(trace)
        self.rpc_error: int | None = None
        """The code of the error that is the answer."""
        self.cancelled = False

    def end(self, request: McpRequest | None, params: p.Params | None) -> None:
        """The request has its answer; None: it was not opened, or not read."""
        CURRENT.set(None)
        tool = prompt = ""
        if isinstance(params, p.CallTool):
            is_known = request is not None and self._served.has_tool(request, params.name)
            tool = params.name if is_known else OTHER
        elif isinstance(params, p.GetPrompt):
            prompts = () if request is None else self._served.server.prompts(request)
            prompt = params.name if any(each.name == params.name for each in prompts) else OTHER
        id = self._message.id or b""
        self._trace.end_request(
            ServedRequest(
                self._method,
                tool,
                prompt,
                self._revision(request),
                id.decode() if id.isdigit() and len(id) <= _MOST_DIGITS else "",
                over_http=self._transport.headers is not None,
                rpc_error=self.rpc_error,
                cancelled=self.cancelled,
            )
        )

    def _revision(self, request: McpRequest | None) -> str:
        if request is not None:
            return request.revision
        session = self._transport.session
        return "" if session is None or session.revision is None else session.revision.name


def begin_span(
    tracer: Tracer,
    served: ServedServer,
    message: Message,
    transport: TransportContext,
    call: OpenedCall | None,
    *,
    known: bool,
) -> RequestSpan:
    """Begin the trace of a request. `call` is there if it was read before; `known`: the server has
    its method."""
    method = (message.method or OTHER) if known else OTHER
    trace = tracer.begin_request(method, _meta_of(message, call), transport.headers)
    return RequestSpan(trace, served, message, method, transport)


def follow_session(tracer: Tracer, transport: TransportContext) -> None:
    """Have the tracer know, when a session that has just begun ends, how long it was."""
    session = transport.session
    if session is None or session.revision is None:
        return
    revision, over_http, began = (
        *(session.revision.name, transport.headers is not None),
        time.monotonic(),
    )

    def count() -> None:
        tracer.count_session(revision, time.monotonic() - began, over_http=over_http)

    session.note_end = count


def _meta_of(message: Message, call: OpenedCall | None) -> dict[str, object]:
    if call is not None:
        return call.params.meta or dict(NOTHING)
    if message.params is None:
        return {}
    try:
        return p.read(p.Params, message.params).meta or {}
    except (RpcError, msgspec.DecodeError, RecursionError):  # for which the request is refused
        return {}
