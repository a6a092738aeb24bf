"""Requests and responses outside MCP, and the router that finds the handler of a path.

A small router for pages: path parameters (`/sources/{name}`), any bytes as a body, cookies, and
files that are held in memory. Source for cookies: RFC 6265.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec

from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.sse import HeaderList
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.typed_values import decode_json

_COOKIE_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_COOKIE_VALUE = re.compile(r"[A-Za-z0-9!#$%&'()*+./:<=>?@^_`{|}~\[\]-]*")
_PARAMETER = re.compile(r"\{([a-z_]+)\}")
_MOST_FIELDS = 100

Body = TypeVar("Body", bound=msgspec.Struct)


def _never_leaves(actor: Actor) -> Cancellation:
    return Cancellation()


class HttpRequest(NamedTuple):
    """A request to a route. `address` is the client's IP address,
    also behind a trusted proxy.

    `read(limit)` returns the body and raises HttpRefusal 413 beyond `limit` bytes. `parameters`
    are those of the path, decoded. `leaving(actor)` is a cancellation of work for this actor: when
    the client leaves, the server stops, or the actor's access ends.
    """

    method: str
    path: str
    headers: Mapping[bytes, bytes]
    address: str
    read: Callable[[int], Awaitable[bytes]]
    query_text: str = ""
    parameters: Mapping[str, str] = {}
    leaving: Callable[[Actor], Cancellation] = _never_leaves

    @property
    def query(self) -> dict[str, str]:
        """The fields after the `?`; the last of those with the same name.

        Raises: HttpRefusal 400 if there are over 100.
        """
        try:
            pairs = parse_qsl(self.query_text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise HttpRefusal(400, "The query string has too many fields") from None
        return dict(pairs)

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies that the client sent; the first of those with the same name, which is the
        one with the longest path."""
        found: dict[str, str] = {}
        for pair in self.headers.get(b"cookie", b"").decode("latin-1").split(";"):
            name, sign, value = pair.strip().partition("=")
            if sign and name not in found:
                found[name] = value.removeprefix('"').removesuffix('"')
        return found


class HttpResponse(NamedTuple):
    """A whole response: status, body and headers (with the content type, if there is a body)."""

    status: int
    body: bytes = b""
    headers: HeaderList = []  # noqa: RUF012 - never changed


class Sender(Protocol):
    """The way to the client of a stream. Sending never blocks and never raises."""

    @property
    def backlog(self) -> int:
        """Bytes that the client has not taken yet."""
        ...

    def push(self, part: bytes) -> None:
        """Send a part, which must not be empty."""
        ...

    def abort(self) -> None:
        """Give the client up."""
        ...


class HttpStream(NamedTuple):
    """A response that goes on: `write` sends its parts until it returns or the cancellation ends
    it, which it is when the client leaves or the server stops. `actor` is who reads it."""

    actor: Actor
    write: Callable[[Sender, Cancellation], Awaitable[None]]
    headers: HeaderList


WholeHandler = Callable[[HttpRequest], Awaitable[HttpResponse]]
Handler = Callable[[HttpRequest], Awaitable[HttpResponse | HttpStream]]
"""Answers a request. Raises: HttpRefusal, TidegateError; the endpoint's conventions render both."""


async def read_json(request: HttpRequest, model: type[Body], limit: int) -> Body:
    """The body, of up to `limit` bytes, as this model. Raises: TidegateError ARGUMENT_INVALID."""
    try:
        return decode_json(await request.read(limit), model)
    except HttpRefusal:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The body has over {limit} bytes, or was cut off"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TidegateError(Code.ARGUMENT_INVALID, f"The body is not valid: {error}") from None


def json_response(status: int, value: Any, headers: HeaderList | None = None) -> HttpResponse:
    """A response with `value` as JSON."""
    kind = (b"content-type", b"application/json")
    return HttpResponse(status, msgspec.json.encode(value), [kind, *(headers or [])])


def cookie(
    name: str,
    value: str,
    *,
    path: str = "/",
    max_age_s: int | None = None,
    secure: bool = True,
    same_site: Literal["Strict", "Lax"] = "Strict",
) -> tuple[bytes, bytes]:
    """A `Set-Cookie` header, hidden from scripts (HttpOnly). `max_age_s` 0 removes the cookie,
    None keeps it until the browser ends.

    Raises: ValueError for a character that a cookie cannot hold.
    """
    if not _COOKIE_NAME.fullmatch(name) or not _COOKIE_VALUE.fullmatch(value + path):
        raise ValueError("a cookie cannot hold this name, value or path")
    parts = [f"{name}={value}", f"Path={path}", "HttpOnly", f"SameSite={same_site}"]
    if max_age_s is not None:
        parts.append(f"Max-Age={max_age_s}")
    if secure:
        parts.append("Secure")
    return b"set-cookie", "; ".join(parts).encode("ascii")


class _Route:
    """The handlers by method of one pattern such as `/sources/{name}`."""

    def __init__(self, pattern: str) -> None:
        self.segments = pattern.split("/")
        self.handlers: dict[str, Handler] = {}

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """The path's parameters; None if the path is another. A parameter is never empty."""
        if len(segments) != len(self.segments):
            return None
        found: dict[str, str] = {}
        for wanted, given in zip(self.segments, segments, strict=True):
            parameter = _PARAMETER.fullmatch(wanted)
            if parameter is None:
                if wanted != given:
                    return None
            elif not given:
                return None
            else:
                found[parameter[1]] = given
        return found

    @property
    def allowed(self) -> bytes:
        """The value of `Allow`."""
        return ", ".join(self.handlers).encode()


class Match(NamedTuple):
    """A handler and the parameters of the path."""

    handle: Handler
    parameters: Mapping[str, str]


class Router:
    """Handlers by method and path. A fixed path is preferred to one with parameters, then the one
    that was added first."""

    def __init__(self) -> None:
        self._fixed: dict[str, _Route] = {}
        self._patterns: dict[str, _Route] = {}

    @property
    def paths(self) -> list[str]:
        """Every path and pattern."""
        return [*self._fixed, *self._patterns]

    def add(self, method: str, pattern: str, handler: Handler) -> None:
        """Have `handler` answer `method` on a path. A GET handler answers HEAD, too."""
        routes = self._patterns if _PARAMETER.search(pattern) else self._fixed
        routes.setdefault(pattern, _Route(pattern)).handlers[method] = handler

    def include(self, other: Router) -> None:
        """Take over the routes of another router."""
        self._fixed |= other._fixed
        self._patterns |= other._patterns

    def allowed(self, raw_path: str) -> bytes | None:
        """The methods of a path for `Allow`; None if nothing is served there."""
        found = self._find(raw_path)
        return None if found is None else found[0].allowed

    def match(self, method: str, raw_path: str) -> Match:
        """The handler of a request. `raw_path` is the path as sent: an escaped slash belongs to
        its segment. Raises: HttpRefusal 404, 405."""
        found = self._find(raw_path)
        if found is None:
            raise HttpRefusal(404, f"Nothing is served at {raw_path[:200]}")
        route, parameters = found
        handler = route.handlers.get("GET" if method == "HEAD" else method)
        if handler is None:
            allowed = route.allowed
            raise HttpRefusal(405, f"Send {allowed.decode()}", headers=[(b"allow", allowed)])
        return Match(handler, parameters)

    def _find(self, raw_path: str) -> tuple[_Route, Mapping[str, str]] | None:
        route = self._fixed.get(raw_path)
        if route is not None:
            return route, {}
        segments = [unquote(segment) for segment in raw_path.split("/")]
        for route in (*self._fixed.values(), *self._patterns.values()):
            parameters = route.match(segments)
            if parameters is not None:
                return route, parameters
        return None
