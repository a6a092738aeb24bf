"""What a product that traces calls learns of them, and which trace a call belongs to.

The kernel knows no library of traces. While a product traces, `Tracing.tracer` is set, and the
trace of the request that is being served is in a context variable, so that what the request sends
through the gate, and what is logged meanwhile, belongs to it. Otherwise a call reads one
attribute more.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import NamedTuple, Protocol

OTHER = "other"
"""In the place of a name that the gate does not know: no text of a caller goes into a trace."""


class ServedRequest(NamedTuple):
    """What became of a request of MCP. Names that the server does not have are `OTHER`."""

    method: str
    tool: str = ""
    prompt: str = ""
    revision: str = ""
    number: str = ""
    """The id of the request, if it is a number."""
    over_http: bool = False
    rpc_error: int | None = None
    """The code of the error of JSON-RPC that was the answer."""
    cancelled: bool = False


class Statement(NamedTuple):
    """What runs on a database, without anything that it says."""

    call_id: str
    source: str
    dialect: str
    operation: str
    """What it does, in one word."""


class StatementTrace(Protocol):
    """One statement under way."""

    def end(self, error: BaseException | None) -> None:
        """It has ended, with this error."""
        ...


class Trace(Protocol):
    """One request under way, or one call that came by no request of MCP. Never raises."""

    trace_id: str
    """The trace as records and logs name it, 32 hexadecimal digits; empty where no span of this
    request will be anywhere."""
    ended: bool

    def note_call(self, call_id: str) -> None:
        """The request has sent a call through the gate."""
        ...

    def note_failure(self, call_id: str, code: str) -> None:
        """The call has failed, or was refused."""
        ...

    def note_tool_error(self, code: str) -> None:
        """The tool answers with an error, of this code if it has one."""
        ...

    def begin_statement(self, statement: Statement) -> StatementTrace:
        """A database begins to run what the call asks for."""
        ...

    def end_request(self, served: ServedRequest) -> None:
        """The request of MCP was answered."""
        ...

    def end_call(self) -> None:
        """The call that came by no request of MCP has ended."""
        ...


class Tracer(Protocol):
    """Begins traces. Quick, since every call pays for it; never raises."""

    def begin_request(
        self, method: str, meta: Mapping[str, object], headers: Mapping[bytes, bytes] | None
    ) -> Trace:
        """A request of MCP has come, with this `_meta` and, over HTTP, these headers. A method that
        the server does not have is `OTHER`."""
        ...

    def count_session(self, revision: str, seconds: float, *, over_http: bool) -> None:
        """A session of MCP that began here has ended here."""
        ...

    def begin_call(self, surface: str, kind: str) -> Trace:
        """A call has come by no request of MCP; `kind` is what it asks for."""
        ...


class Tracing:
    """Holds the tracer while there is one: a product sets it when the server has begun."""

    __slots__ = ("tracer",)

    def __init__(self) -> None:
        self.tracer: Tracer | None = None


CURRENT: ContextVar[Trace | None] = ContextVar("tidegate.trace", default=None)


def current_trace() -> Trace | None:
    """The trace of what is being served here; None for work that outlives its request."""
    trace = CURRENT.get()
    return None if trace is None or trace.ended else trace


def note_tool_error(code: str = "") -> None:
    """Tell the trace, if there is one, that the tool answers with an error, and its code."""
    trace = current_trace()
    if trace is not None:
        trace.note_tool_error(code)
