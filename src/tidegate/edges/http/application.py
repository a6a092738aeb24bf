"""The HTTP application: which endpoint answers a request, and who may reach one at all.

Order of the checks: `/health` and `/ready`, headers that are given twice, Host, Origin, endpoint,
the rate of the address, then the endpoint's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

import msgspec

from tidegate.edges.http.active_request import ActiveRequest
from tidegate.edges.http.endpoint import Endpoint, HttpConventions, JsonConventions
from tidegate.edges.http.forwarded import TrustedProxies
from tidegate.edges.http.mcp import Authenticate, McpHandler, ParsedHead
from tidegate.edges.http.origin_checks import HOST_REFUSED, OriginChecks
from tidegate.edges.http.request_body import RefusedRequests, read_body
from tidegate.edges.http.responses import EXPOSED, PREFLIGHT, HttpRefusal, reply
from tidegate.edges.http.resumption import StreamPlace
from tidegate.edges.http.router import HttpRequest, HttpStream
from tidegate.edges.http.sse import KEEP_ALIVE_S, HeaderList
from tidegate.edges.http.worker_relay import WorkerWay
from tidegate.edges.http1.head import Head
from tidegate.edges.http1.request import IncomingRequest, block_of
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.protocol.kernel import Kernel

BODY_LIMIT = 10 * 1024 * 1024

Tried = Callable[[], Awaitable[Mapping[str, TidegateError]]]
"""By part of the server, what keeps it from its work; empty if it can do it."""
Degraded = Callable[[], Mapping[str, str]]
"""What does not work beside that, with the reason."""

CountRequest = Callable[[str], None]
"""Counts a request of a client's address. Raises: TidegateError LIMIT_RATE for one too many."""

_ONCE = frozenset(
    {
        b"host", b"origin", b"authorization", b"cookie", b"content-type", b"content-length",
        b"last-event-id", b"sec-fetch-site", b"x-tidegate-page", b"content-encoding",
    }
)  # fmt: skip
_JSON = block_of([(b"content-type", b"application/json"), (b"cache-control", b"no-store")])
_PAGES = JsonConventions()


async def _nothing_fails() -> Mapping[str, TidegateError]:
    return {}


class HealthChecks(msgspec.Struct, frozen=True):
    """What `/ready` asks: `tried` for what keeps the server from its work, and `degraded` for what
    does not work beside it."""

    tried: Tried = _nothing_fails
    degraded: Degraded = dict


class HttpLimits(msgspec.Struct, frozen=True):
    """The most bytes of a request's body, and after how many seconds of silence a stream gets a
    comment that keeps it open."""

    body_bytes: int = BODY_LIMIT
    keep_alive_s: float = KEEP_ALIVE_S


_HEALTHY = HealthChecks()
_LIMITS = HttpLimits()


class HttpApplication:
    """Answers requests (`http1.request.Application`) at `endpoints`, and owns their sessions
    (`identity.revocation.SessionOwner`)."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        authenticate: Authenticate,
        *,
        origin_checks: OriginChecks | None = None,
        proxies: TrustedProxies | None = None,
        limits: HttpLimits = _LIMITS,
        count_request: CountRequest | None = None,
        health: HealthChecks = _HEALTHY,
    ) -> None:
        self._kernels: dict[str, Endpoint] = {}
        self._routes: list[Endpoint] = []
        for endpoint in endpoints:
            if endpoint.router is None:
                self._kernels[endpoint.path] = endpoint
            else:
                self._routes.append(endpoint)
        self._routes.sort(key=lambda endpoint: len(endpoint.path), reverse=True)
        self._origin_checks = origin_checks or OriginChecks()
        self._proxies = proxies or TrustedProxies()
        self._body_limit = limits.body_bytes
        self._count_request = count_request
        self._health = health
        self._active: set[ActiveRequest] = set()
        self._refused = RefusedRequests()
        self._mcp = McpHandler(authenticate, self._active, limits.body_bytes, limits.keep_alive_s)

    def join(self, way: WorkerWay) -> None:
        """Pass on to other workers what belongs to them."""
        self._mcp.way = way
        self._mcp.place = StreamPlace(self._mcp.place.gate, way.number)

    def name_gate(self, id: str) -> None:
        """Say by the ids of events which gate has them."""
        self._mcp.place = StreamPlace(id, self._mcp.place.worker)

    async def __call__(self, request: IncomingRequest) -> None:
        parsed: ParsedHead | None = request.head.parsed
        conventions: HttpConventions = _PAGES
        proxies = self._proxies
        if proxies.refresh is not None:
            proxies.refresh()
        generation = proxies.generation
        try:
            if parsed is None or parsed.generation != generation:
                path = request.head.path
                if path in ("/health", "/ready"):
                    await self._report(request, ready=path == "/ready")
                    return
                endpoint = self._endpoint(path)
                if endpoint is not None:
                    conventions = endpoint.conventions
                self._check(request.head)
                if endpoint is None or endpoint.router is not None:
                    await self._serve_route(request, endpoint)
                    return
                head = request.head
                block = block_of(self._cors(head.headers))
                address = proxies.client_address(request.address, head.pairs)
                head.parsed = parsed = ParsedHead(
                    endpoint, head.headers, block, address, generation
                )
            conventions = parsed.endpoint.conventions
            if self._count_request is not None:
                self._count(parsed.address, conventions)
            await self._mcp.serve(request, parsed)
        except HttpRefusal as refusal:
            if not request.begun:
                if conventions.names_requests and refusal.id is None:
                    refusal.id = await self._refused.id_of(request)
                shared = self._cors(request.head.headers) if conventions.shares else []
                cors = block_of(shared)
                reply(request, conventions.refuse(refusal), cors, close=refusal.close)

    def end_streams(self) -> None:
        """End the streams that would never end by themselves; running calls go on."""
        for kernel in self._open_kernels():
            kernel.end_listening()
        for active in list(self._active):
            if active.endless:
                active.cancel("the server is stopping")

    def close(self) -> None:
        """End sessions and streams; running calls are cancelled."""
        for kernel in self._open_kernels():
            kernel.close()
        for active in list(self._active):
            active.cancel("the server is stopping")

    # What a session owner does

    def actors(self) -> Iterator[Actor]:
        """The owners of each session, stream and running call; one may come more than once."""
        for kernel in self._open_kernels():
            yield from kernel.sessions.actors()
        for active in self._active:
            yield active.actor

    def end_actors(self, ids: Collection[str], reason: str) -> None:
        """End the sessions, streams and running calls of these actors."""
        for active in list(self._active):
            if active.actor.id in ids:
                active.cancel(reason)
        for kernel in self._open_kernels():
            kernel.sessions.end_of(ids)

    def end_expired(self, now: float, reason: str) -> None:
        """End the streams and running calls of tokens that have expired by `now`, in seconds of
        the Unix clock."""
        for active in list(self._active):
            expires_at = active.actor.expires_at
            if expires_at is not None and now >= expires_at:
                active.cancel(reason)

    def _open_kernels(self) -> set[Kernel]:
        kernels = [endpoint.made_kernel for endpoint in self._kernels.values()]
        return {kernel for kernel in kernels if kernel is not None}

    # From the head of a request to its endpoint

    def _endpoint(self, path: str) -> Endpoint | None:
        found = self._kernels.get(path) or self._kernels.get(path.rstrip("/"))
        if found is not None:
            return found
        for endpoint in self._routes:
            base = endpoint.path.rstrip("/")
            if path == base or path.startswith(f"{base}/"):
                return endpoint
        return None

    def _check(self, head: Head) -> None:
        """Raises: HttpRefusal 400, 403, 415."""
        headers = head.headers
        if len(headers) != len(head.pairs):
            _refuse_repeated(head.pairs)
        self._origin_checks.check_host(headers.get(b"host"))
        if not self._origin_checks.admits_origin(headers.get(b"origin")):
            text = "This Origin is not allowed; see `allowed_origins`"
            raise HttpRefusal(403, text, data=HOST_REFUSED)
        _refuse_coding(headers.get(b"content-encoding"))

    async def _serve_route(self, request: IncomingRequest, endpoint: Endpoint | None) -> None:
        head = request.head
        router = None if endpoint is None else endpoint.router
        allowed = None if router is None else router.allowed(head.raw_path)
        if endpoint is None or router is None or allowed is None:
            served = ", ".join(self._kernels)
            raise HttpRefusal(404, f"Nothing is served at {head.path}. MCP is at {served}.")
        shares = endpoint.conventions.shares
        cors = self._cors(head.headers) if shares else []
        if head.method == "OPTIONS" and shares:
            request.respond(204, block_of([*cors, *PREFLIGHT]))
            return
        address = self._proxies.client_address(request.address, head.pairs)
        self._count(address, endpoint.conventions)
        handle, parameters = router.match(head.method, head.raw_path)
        begun: list[ActiveRequest] = []

        def leaving(actor: Actor) -> Cancellation:
            active = ActiveRequest(request=request, actor=actor, active=self._active)
            self._active.add(active)
            begun.append(active)
            active.watch()
            return active

        asked = HttpRequest(
            head.method,
            head.path,
            head.headers,
            address,
            partial(read_body, request),
            head.query,
            parameters,
            leaving,
        )
        try:
            response = await handle(asked)
        except TidegateError as error:
            raise endpoint.conventions.refusal_of(error) from error
        finally:
            for each in begun:
                each.end()
        if isinstance(response, HttpStream):
            await self._send_stream(request, response)
            return
        request.respond(response.status, block_of([*cors, *response.headers]), response.body)

    async def _send_stream(self, request: IncomingRequest, stream: HttpStream) -> None:
        active = ActiveRequest(
            request=request, actor=stream.actor, active=self._active, endless=True
        )
        self._active.add(active)
        active.watch()
        request.start(block_of(stream.headers))
        try:
            await stream.write(request, active)
        finally:
            active.end()
            request.finish()

    def _count(self, address: str, conventions: HttpConventions) -> None:
        """Raises: HttpRefusal 429."""
        if self._count_request is None:
            return
        try:
            self._count_request(address)
        except TidegateError as error:
            raise conventions.refusal_of(error) from None

    async def _report(self, request: IncomingRequest, *, ready: bool) -> None:
        """Answer `/health` (the process answers) or `/ready` (it can do its work). Load balancers
        ask by whatever name they know, so neither checks Host."""
        if request.head.method not in ("GET", "HEAD"):
            refusal = HttpRefusal(405, "Send GET", headers=[(b"allow", b"GET")])
            reply(request, _PAGES.refuse(refusal), b"")
            return
        failing = await (self._health.tried if ready else _nothing_fails)()
        body: dict[str, object] = {"status": "ready" if ready else "ok"}
        if failing:  # by codes: the caller has no token, and a message may name a path
            codes = {part: error.code.value for part, error in failing.items()}
            body = {"status": "not_ready", "failing": codes}
        elif ready and (degraded := self._health.degraded()):
            body["degraded"] = degraded
        request.respond(503 if failing else 200, _JSON, msgspec.json.encode(body))

    def _cors(self, headers: Mapping[bytes, bytes]) -> HeaderList:
        origin = headers.get(b"origin")
        if origin is None or not self._origin_checks.admits_origin(origin):
            return []
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED),
            (b"vary", b"Origin"),
        ]


def _refuse_repeated(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a header that decides something and is given twice: a proxy may have read the other
    one. Raises: HttpRefusal 400."""
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and (name in _ONCE or name.startswith(b"mcp-")):
            raise HttpRefusal(400, f"The header {name.decode('latin-1')} is sent twice")
        seen.add(name)


def _refuse_coding(coding: bytes | None) -> None:
    """Refuse a body that says it is compressed: bodies are read as they are sent, and a small one
    that unpacks to a large one would pass the limit of a body. Raises: HttpRefusal 415."""
    if coding is None or coding.strip().lower() in (b"", b"identity"):
        return
    raise HttpRefusal(
        415,
        "A body with a Content-Encoding is not read; send it without one",
        headers=[(b"accept-encoding", b"identity")],
        close=True,
    )
