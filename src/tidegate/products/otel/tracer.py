"""Makes spans of what the kernel tells, and counts durations.

The span of a request is the parent of those of its statements; both are made by the SDK. A request
that is not traced makes none. Whatever names there are come from closed sets: see `conventions`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    format_trace_id,
    set_span_in_context,
)
from opentelemetry.trace import Tracer as SdkTracer

from tidegate.errors import TidegateError
from tidegate.gateway.source_labels import SourceLabels
from tidegate.products.otel import conventions as names
from tidegate.products.otel.sampling import Limit
from tidegate.products.otel.trace_context import Given, read_contexts
from tidegate.tracing import ServedRequest, Statement

if TYPE_CHECKING:
    from tidegate.products.otel.durations import Durations

_FAILED = Status(StatusCode.ERROR)
_NO_CONTEXT = Context()
_UNSENT = Given(None, None)
Attributes = dict[str, "str | tuple[str, ...]"]


class OtelTracer:
    """A `tidegate.tracing.Tracer`."""

    def __init__(
        self, spans: SdkTracer, limit: Limit, durations: Durations, labels: SourceLabels
    ) -> None:
        self.spans = spans
        self.limit = limit
        self.durations = durations
        self.labels = labels

    def begin_request(
        self, method: str, meta: Mapping[str, object], headers: Mapping[bytes, bytes] | None
    ) -> RequestTrace:
        return RequestTrace(self, method, read_contexts(meta, headers), {})

    def count_session(self, revision: str, seconds: float, *, over_http: bool) -> None:
        self.durations.of_session(revision, over_http).count(seconds)

    def begin_call(self, surface: str, kind: str) -> RequestTrace:
        about: Attributes = {names.SURFACE: surface, names.REQUEST: kind}
        return RequestTrace(self, f"{surface} {kind}", _UNSENT, about)


class RequestTrace:
    """A `tidegate.tracing.Trace`. `about` is what is known at once."""

    __slots__ = (
        "_about",
        "_began",
        "_calls",
        "_code",
        "_context",
        "_failed",
        "_span",
        "_tool_failed",
        "_tracer",
        "ended",
        "trace_id",
    )

    def __init__(self, tracer: OtelTracer, name: str, given: Given, about: Attributes) -> None:
        self._tracer = tracer
        self._about = about
        self._calls: list[str] = []
        self._code = ""
        self._failed = False
        self._tool_failed = False
        self.ended = False
        self._span: Span | None = None
        self._context = _NO_CONTEXT
        parent = given.parent
        if tracer.limit.admits(parent):
            self._span = tracer.spans.start_span(
                name,
                _NO_CONTEXT if parent is None else _context_of(parent),
                SpanKind.SERVER,
                links=None if given.link is None else (Link(given.link),),
            )
            own = self._span.get_span_context()
            self.trace_id = format_trace_id(own.trace_id)
            self._context = set_span_in_context(self._span, _NO_CONTEXT)
        else:
            self.trace_id = "" if parent is None else format_trace_id(parent.trace_id)
        self._began = time.perf_counter()

    def note_call(self, call_id: str) -> None:
        if len(self._calls) < names.MOST_CALLS:
            self._calls.append(call_id)

    def note_failure(self, call_id: str, code: str) -> None:
        self._code = code
        # What the gate sends for itself, within a call, may fail without harm to that.
        self._failed = self._failed or call_id == self._calls[0]

    def note_tool_error(self, code: str) -> None:
        self._tool_failed = True
        self._code = code or self._code

    def begin_statement(self, statement: Statement) -> StatementTrace:
        return StatementTrace(self._tracer, self._span, self._context, statement)

    def end_request(self, served: ServedRequest) -> None:
        self.ended = True
        error = self._error_of(served)
        series = self._tracer.durations.of_request(served, error)
        series.count(time.perf_counter() - self._began)
        if self._span is None:
            return
        about: Attributes = {**series.about}
        if served.number:
            about[names.REQUEST_ID] = served.number
        self._end(self._span, series.name, about, failed=bool(error))

    def end_call(self) -> None:
        self.ended = True
        if self._span is None:
            return
        if self._failed:
            self._about[names.ERROR] = self._code
        self._end(self._span, "", self._about, failed=self._failed)

    def _error_of(self, served: ServedRequest) -> str:
        if served.rpc_error is not None:
            return str(served.rpc_error)
        if self._tool_failed:
            return names.TOOL_ERROR
        return names.CANCELLED if served.cancelled else ""

    def _end(self, span: Span, name: str, about: Attributes, *, failed: bool) -> None:
        if self._calls:
            about[names.CALL_ID] = self._calls[0]
            if len(self._calls) > 1:
                about[names.CALL_IDS] = tuple(self._calls)
        if failed:
            if self._code:
                about[names.CODE] = self._code
            span.set_status(_FAILED)
        if name:
            span.update_name(name)
        span.set_attributes(about)
        span.end()


class StatementTrace:
    """A `tidegate.tracing.StatementTrace`: its span is made when it has ended."""

    __slots__ = ("_began", "_context", "_parent", "_started", "_statement", "_tracer")

    def __init__(
        self, tracer: OtelTracer, parent: Span | None, context: Context, statement: Statement
    ) -> None:
        self._tracer = tracer
        self._parent = parent
        self._context = context
        self._statement = statement
        self._started = time.time_ns()
        self._began = time.perf_counter()

    def end(self, error: BaseException | None) -> None:
        seconds = time.perf_counter() - self._began
        statement = self._statement
        failure = ""
        if error is not None:
            failure = error.code.value if isinstance(error, TidegateError) else names.FAULT
        series = self._tracer.durations.of_statement(
            statement.dialect,
            names.operation_of(statement.operation),
            self._tracer.labels.label(statement.source),
            failure,
        )
        series.count(seconds)
        if self._parent is None:
            return
        span = self._tracer.spans.start_span(
            series.name,
            self._context,
            SpanKind.CLIENT,
            {**series.about, names.CALL_ID: statement.call_id},
            start_time=self._started,
        )
        if error is not None:
            span.set_status(_FAILED)
        span.end(self._started + int(seconds * 1e9))


def _context_of(parent: SpanContext) -> Context:
    return set_span_in_context(NonRecordingSpan(parent), _NO_CONTEXT)
