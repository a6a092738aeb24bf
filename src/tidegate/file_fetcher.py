"""Downloads files by the rule of `http_client`: over https, or http on loopback.

Redirects are followed, and the environment names proxies (HTTPS_PROXY, NO_PROXY), as for other
programs. Blocks: run it on a thread.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import BinaryIO, NamedTuple

from tidegate.config.addresses import HttpUrl, is_this_machine, parse_http_url
from tidegate.errors import Code, TidegateError
from tidegate.http_client.client import HttpClient
from tidegate.http_client.connections import tls_context
from tidegate.http_client.rules import ClientRules, HttpRequest, RequestFailed

_SILENT_S = 20.0
"""How long a repository may say nothing."""
_LONGEST_S = 900.0
"""How long one file may take."""
_MOST_REDIRECTS = 5


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
    """The address that files are downloaded below, taken apart. `name` is the setting that errors
    name, `purpose` what would be downloaded.

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
        if access.ca_file is not None:
            tls_context(access.ca_file, origin.ca_setting)

    @property
    def host(self) -> str:
        return self._parts.host

    @property
    def is_local(self) -> bool:
        return is_this_machine(self._parts.host)

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
        rules = ClientRules(
            max_bytes=most_bytes,
            total_s=_LONGEST_S,
            silent_s=_SILENT_S,
            unpacks=False,
            max_redirects=_MOST_REDIRECTS,
            proxies=self._access.proxies,
            ca_file=self._access.ca_file,
            ca_setting=self._origin.ca_setting,
        )
        login = self._access.login
        request = HttpRequest(
            url=f"{self._base}/{path}",
            credentials=() if login is None else (("Authorization", login.header),),
            name=self._origin.name,
            networks=None,  # the operator names the host
        )

        def write(part: bytes) -> None:
            self._check_stop()
            target.write(part)

        self._check_stop()
        try:
            status = HttpClient(rules).send_blocking(request, write).status
        except RequestFailed as failure:
            hint = self._origin.proxy_hint if failure.proxy_status == 407 else failure.advice
            text = f"{failure.message.removesuffix('.')}, for {path}."
            raise TidegateError(self._origin.code, text, hint=hint) from None
        if status in (404, 410):
            return False
        if status != 200:
            hint = self._origin.login_hint if status in (401, 403) else None
            text = f"{self._origin.name} at {self._parts.origin} answered with HTTP status {status}"
            raise TidegateError(self._origin.code, f"{text}, for {path}.", hint=hint)
        return True

    def _check_stop(self) -> None:
        if self._stop():
            raise TidegateError(Code.CALL_CANCELLED, "The download was cancelled.")
