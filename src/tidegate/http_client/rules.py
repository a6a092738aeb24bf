"""What a user of the HTTP client allows, what it sends, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tidegate.config.addresses import HttpUrl
from tidegate.errors import Code, TidegateError

Headers = Sequence[tuple[str, str]]
Sink = Callable[[bytes], None]


class ClientRules(msgspec.Struct, frozen=True, kw_only=True):
    """What one user of the client allows. Times are in seconds, sizes in bytes."""

    max_bytes: int
    """Of a body, as sent and as unpacked."""
    total_s: float
    """For the whole exchange, redirects included."""
    connect_s: float = 20.0
    """For the name, the connection and TLS."""
    silent_s: float | None = None
    """How long the server may say nothing; None: as long as `total_s`."""
    max_head_bytes: int = 65_536
    reads_body: bool = True
    """Whether more than the head of a reply is read."""
    unpacks: bool = True
    """Whether a body that was packed for its way (gzip, deflate) is unpacked."""
    max_redirects: int = 0
    proxies: Mapping[str, str] | None = msgspec.field(default_factory=dict[str, str])
    """By scheme; None: those of the environment (HTTPS_PROXY, NO_PROXY)."""
    ca_file: str | None = None
    """Certificate authorities that are trusted in addition, in PEM form."""
    ca_setting: str = ""
    """The setting of `ca_file`, for errors."""
    networks_setting: str = ""
    """The setting that lists private networks or hosts, for errors."""
    max_idle: int = 0
    """Connections to one origin that are kept for later GET and HEAD requests."""
    max_idle_s: float = 30.0
    """How long they are: what lies between forgets a connection without a word."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `credentials` are headers that go to the origin of `url` alone."""

    url: str
    verb: str = "GET"
    headers: Headers = ()
    credentials: Headers = ()
    body: bytes | None = None
    host: str = ""
    """The `Host` header, where it is not that of the URL."""
    name: str = ""
    """What errors call the server, before its host and port."""
    networks: Sequence[str] | None = ()
    """Private networks that may be reached; None: any address."""


class HttpResponse(NamedTuple):
    """A reply. Names of headers are in lower case; of one that comes twice the values have a comma
    between them."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    """Where it came from, without the query."""
    peer: str = ""
    """The address that was connected to; empty behind a proxy."""


class RequestFailed(TidegateError):
    """No whole reply came. `what` is a sentence without its subject, the server. `was_sent`: the
    server may have acted on the request nevertheless. `advice` is the hint, where it is not that of
    the code. `proxy_status` is how a proxy refused."""

    def __init__(
        self,
        code: Code,
        name: str,
        what: str,
        *,
        was_sent: bool = False,
        hint: str | None = None,
        proxy_status: int | None = None,
    ) -> None:
        super().__init__(code, f"{name} {what}.", hint=hint)
        self.what = what
        self.advice = hint
        self.was_sent = was_sent
        self.proxy_status = proxy_status


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def place(self) -> str:
        """Host and port, as in `Host` and in errors."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class Server(NamedTuple):
    """One that is asked, by which rules; `name` is what errors call it."""

    rules: ClientRules
    origin: Origin
    name: str

    def fail(self, code: Code, what: str, **given: Any) -> RequestFailed:
        return RequestFailed(code, self.name, what, **given)


def origin_of(url: HttpUrl) -> Origin:
    return Origin(url.scheme, url.host, url.tcp_port)
