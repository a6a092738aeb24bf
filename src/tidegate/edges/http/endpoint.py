"""An endpoint: a path, what is served there, and the conventions of its document.

Conventions say how a product's document wants HTTP used: which methods and media types are taken,
how a 401, a 404 or any other refusal looks, and the realm of the challenge. The default is MCP's
Streamable HTTP (`basic/transports`). A surface with another document subclasses `HttpConventions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.router import Router
from tidegate.edges.http.sse import HeaderList
from tidegate.edges.http.www_authenticate import Challenge
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor
from tidegate.protocol.jsonrpc import error_frame
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.transport import Answer


class HttpConventions:
    """MCP's own conventions: refusals are JSON-RPC errors."""

    methods = frozenset({"GET", "POST", "DELETE"})
    """Those that are served, in addition to OPTIONS."""

    @property
    def finishes(self) -> bool:
        """Whether `finish` changes any answer."""
        return bool(self.challenge.scopes)

    shares = True
    """Whether pages of other origins that the settings allow may read the answers (CORS)."""

    streams_json = False
    """Whether a large reply may be sent as JSON while it is produced."""

    def __init__(self, challenge: Challenge | None = None) -> None:
        self.challenge = challenge or Challenge()

    names_requests = True
    """Whether a refusal names the request by its JSON-RPC id."""

    def takes_events(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether the client of a POST accepts an event stream. Raises: HttpRefusal 406, 415 for
        media types that are not served."""
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise HttpRefusal(415, "Content-Type must be application/json")
        accept = headers.get(b"accept", b"*/*")
        if b"*/*" in accept:
            return True
        events = b"text/event-stream" in accept
        if not events and b"application/json" not in accept and b"application/*" not in accept:
            raise HttpRefusal(406, "Accept must include application/json and text/event-stream")
        return events

    def takes_json(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether the client of a POST takes a reply that is JSON, as far as it says."""
        accept = headers.get(b"accept", b"*/*")
        return any(kind in accept for kind in (b"*/*", b"application/json", b"application/*"))

    def refusal_of(self, error: TidegateError) -> HttpRefusal:
        """The refusal that an error becomes: of a caller that could not be authenticated, or of
        a route's handler."""
        error = error.without_secrets()
        data: dict[str, Any] = {"code": error.code.value, "hint": error.hint}
        headers: HeaderList = []
        value = self.challenge.to(error)
        if value is not None:
            headers.append((b"www-authenticate", value))
        if error.retry_after_s is not None:
            wait_s = max(1, round(error.retry_after_s))
            headers.append((b"retry-after", str(wait_s).encode()))
            data["retry_after_s"] = wait_s
        message = f"{error.message.rstrip('.')}. {error.hint}" if error.hint else error.message
        status, code = error.mapping.http, error.mapping.rpc
        return HttpRefusal(status, message, code, headers=headers, data=data)

    def refuse(self, refusal: HttpRefusal) -> Answer:
        """The body, as JSON, and the status of a refusal."""
        frame = error_frame(refusal.id, refusal.code, refusal.message, refusal.data)
        return Answer(frame, refusal.status, refusal.headers)

    def finish(self, answer: Answer, actor: Actor) -> Answer:
        """The kernel's answer as it leaves: here with a challenge, if the actor could get a token
        that allows more."""
        value = self.challenge.step_up(actor, answer.frame)
        if value is None:
            return answer
        return Answer(answer.frame, 403, [*answer.headers, (b"www-authenticate", value)])


_ERROR_NAMES = {
    400: "bad_request",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "payload_too_large",
    415: "unsupported_media_type",
}


class JsonConventions(HttpConventions):
    """The conventions of pages other than MCP: refusals are `{"error": NAME, "message": TEXT}`."""

    names_requests = False

    def refusal_of(self, error: TidegateError) -> HttpRefusal:
        refusal = super().refusal_of(error)
        refusal.name = error.code.value
        return refusal

    def refuse(self, refusal: HttpRefusal) -> Answer:
        name = refusal.name or _ERROR_NAMES.get(refusal.status, "refused")
        body = {"error": name, "message": refusal.message}
        return Answer(msgspec.json.encode(body), refusal.status, refusal.headers)


class Endpoint:
    """What is served at a path: a kernel exactly there, or the routes of a router, whose patterns
    are whole paths.

    A kernel may be given as a function, which is called once, by the first request: a surface that
    is not used is not loaded.
    """

    def __init__(
        self,
        path: str,
        served: Kernel | Callable[[], Kernel] | Router,
        conventions: HttpConventions,
        *,
        keeps_choices: bool = False,
    ) -> None:
        """`keeps_choices`: of several workers one answers all calls of an actor here."""
        self.path = path
        self.keeps_choices = keeps_choices
        self.router = served if isinstance(served, Router) else None
        self.conventions = conventions
        self._kernel = served if isinstance(served, Kernel) else None
        self._make = served if callable(served) else None

    @property
    def kernel(self) -> Kernel:
        """The kernel, made now if need be. Raises: TypeError on an endpoint with a router."""
        if self._kernel is None:
            if self._make is None:
                raise TypeError("this endpoint serves routes")
            self._kernel = self._make()
        return self._kernel

    @property
    def made_kernel(self) -> Kernel | None:
        """The kernel, if there is one by now."""
        return self._kernel
