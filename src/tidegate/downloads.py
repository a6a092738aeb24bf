"""Downloads files over HTTP: https, or http on loopback; bounded in size and time.

A redirect is followed to the same scheme only, and takes a login along to the same place only. The
environment names proxies (HTTPS_PROXY, NO_PROXY) and certificate authorities (SSL_CERT_FILE), as
for other programs. Blocks: run it on a thread.
"""

from __future__ import annotations

import base64
import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urljoin

from tidegate.config.addresses import LOOPBACK, HttpUrl, parse_http_url
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand

_CHUNK = 262_144
_SILENT_S = 20.0
"""How long a repository may say nothing."""
_LONGEST_S = 900.0
"""How long one file may take."""
_MOST_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Login(NamedTuple):
    """The account at a repository; neither part is ever shown."""

    user: str
    password: str

    @property
    def header(self) -> str:
        pair = f"{self.user}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


class Access(NamedTuple):
    """How a repository is reached. `proxies` are by scheme; None takes those of the environment.
    `ca_file` has certificate authorities that are trusted in addition."""

    login: Login | None = None
    proxies: Mapping[str, str] | None = None
    ca_file: str | None = None


class Origin(NamedTuple):
    """What files come from, for errors: `name` begins a sentence, the hints say what to do when it
    asks for a login or its proxy does, `ca_setting` is the setting of `Access.ca_file`."""

    name: str
    code: Code
    login_hint: str
    proxy_hint: str
    ca_setting: str


Stop = Callable[[], bool]


def never() -> bool:
    return False


def check_download_url(url: str, name: str, purpose: str) -> HttpUrl:
    """The address that files are downloaded below, taken apart. `name` says in errors where it
    stands, `purpose` what would come from it.

    Raises: TidegateError CONFIG_INVALID for one that is neither https nor on loopback, or that has
    a login or a query.
    """
    try:
        parts = parse_http_url(url)
    except ValueError:
        parts = None
    if parts is None or not parts.is_plain:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"`{name}` is not the address of a repository.",
            hint="Write it like https://files.example.com/path; a login is set on its own.",
        )
    if not parts.is_private:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"`{name}` is an address without encryption, and {purpose} would come from there.",
            hint="Use https; http works for this machine alone.",
        )
    return parts


class Downloader:
    """Fetches files below one address."""

    def __init__(self, url: str, access: Access, origin: Origin, stop: Stop = never) -> None:
        """`stop` says whether the caller has gone away. Raises: TidegateError CONFIG_INVALID."""
        self._base = url.rstrip("/")
        self._parts = check_download_url(url, "the repository", "what is downloaded")
        self._access = access
        self._origin = origin
        self._stop = stop
        self._opener = self._make_opener()

    @property
    def host(self) -> str:
        return self._parts.host

    @property
    def is_local(self) -> bool:
        return self._parts.host in LOOPBACK

    def _make_opener(self) -> urllib.request.OpenerDirector:
        context = ssl.create_default_context()
        if self._access.ca_file:
            try:
                context.load_verify_locations(str(expand(self._access.ca_file)))
            except (OSError, ssl.SSLError):
                raise TidegateError(
                    Code.CONFIG_INVALID,
                    f"`{self._origin.ca_setting}` has no certificates: {self._access.ca_file}.",
                    hint="Name a file of certificates in PEM form.",
                    details={"path": self._access.ca_file},
                ) from None
        none: dict[str, str] = {}
        proxies = none if self.is_local else self._access.proxies
        return urllib.request.build_opener(
            urllib.request.ProxyHandler(None if proxies is None else dict(proxies)),
            urllib.request.HTTPSHandler(context=context),
            _NoRedirect(),
        )

    def get(self, path: str, most_bytes: int) -> bytes | None:
        """A small file; None if there is none. Raises: TidegateError with the origin's
        code."""
        from io import BytesIO

        target = BytesIO()
        return target.getvalue() if self.save(path, target, most_bytes) else None

    def save(self, path: str, target: BinaryIO, most_bytes: int) -> bool:
        """Write a file to `target`; False if there is none.

        Raises: TidegateError with the origin's code; OSError of `target`.
        """
        try:
            response = self._open(f"{self._base}/{path}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failed(_reason(error)) from None
        if response is None:
            return False
        with response:
            self._copy(response, target, path, most_bytes)
        return True

    def _open(self, url: str) -> Any:
        """The response with the status 200; None for a file that is not there."""
        for _ in range(_MOST_REDIRECTS + 1):
            request = urllib.request.Request(
                url, headers={"User-Agent": "tidegate", "Accept-Encoding": "identity"}
            )
            parts = parse_http_url(url)
            same = (parts.scheme, parts.host, parts.tcp_port) == self._place
            if self._access.login is not None and same:
                request.add_unredirected_header("Authorization", self._access.login.header)
            try:
                response = self._opener.open(request, timeout=_SILENT_S)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code in (404, 410):
                        return None
                    if error.code not in _REDIRECTS:
                        raise self._refused(error.code) from None
                    url = self._next(url, error.headers.get("Location"))
                continue
            if response.status != 200:
                with response:
                    raise self._refused(response.status)
            return response
        raise self._failed("it redirects too many times")

    @property
    def _place(self) -> tuple[str, str, int]:
        return self._parts.scheme, self._parts.host, self._parts.tcp_port

    def _next(self, url: str, location: str | None) -> str:
        """Where a redirect leads. Raises: TidegateError if it may not."""
        found = urljoin(url, location or "")
        try:
            parts = parse_http_url(found)
        except ValueError:
            raise self._failed("it redirects to what is not an address") from None
        if parts.scheme != self._parts.scheme or parts.login is not None or not parts.is_private:
            raise self._failed("it redirects to another scheme, which is not followed")
        return found

    def _copy(self, response: Any, target: BinaryIO, path: str, most_bytes: int) -> None:
        announced = response.headers.get("Content-Length")
        expected = int(announced) if announced and announced.isdecimal() else None
        deadline = time.monotonic() + _LONGEST_S
        size = 0
        while True:
            if max(size, expected or 0) > most_bytes:
                raise self._failed(f"{path} has more than {most_bytes:,} bytes")
            if self._stop():
                raise TidegateError(Code.CALL_CANCELLED, "The download was cancelled.")
            if time.monotonic() > deadline:
                raise self._failed(f"{path} took longer than {_LONGEST_S:g} s")
            try:
                chunk = response.read1(_CHUNK)
            except (OSError, http.client.HTTPException) as error:
                raise self._failed(_reason(error)) from None
            if not chunk:
                break
            size += len(chunk)
            target.write(chunk)
        if expected is not None and size != expected:
            raise self._failed(f"{path} ended after {size:,} of {expected:,} bytes")

    def _refused(self, status: int) -> TidegateError:
        hint = None
        if status in (401, 403):
            hint = self._origin.login_hint
        elif status == 407:
            hint = self._origin.proxy_hint
        return self._failed(f"it answered with HTTP status {status}", hint)

    def _failed(self, reason: str, hint: str | None = None) -> TidegateError:
        return TidegateError(
            self._origin.code,
            f"{self._origin.name} at {self._parts.origin} failed: {reason}.",
            hint=hint,
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to `Downloader._next`."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


def _reason(error: Exception) -> str:
    """Why a connection failed, in words without an address or a login."""
    cause: object = getattr(error, "reason", error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({cause.verify_message})"
    if isinstance(cause, TimeoutError):
        return f"it said nothing for {_SILENT_S:g} s"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    if isinstance(cause, OSError) and str(cause).startswith("Tunnel connection failed: "):
        return f"its proxy refused with HTTP status {str(cause)[26:29]}"
    return type(cause).__name__
