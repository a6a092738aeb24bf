"""Whether a request comes from the console's own page.

Cookies and SameSite know no ports, so a page on another port of this machine has the console's
cookie sent along. Hence each request must name exactly this server as its Host and, where a browser
says so, as its Origin, and say that the same origin sent it (Fetch Metadata, `Sec-Fetch-Site`).
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from tidegate.config.addresses import is_this_machine
from tidegate.edges.http.responses import HttpRefusal

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_WRITTEN = {"localhost": "127.0.0.1"}


class RequestChecks:
    """The origins of a console: that of the settings, and on loopback those of this machine."""

    def __init__(self, host: str, port: int, *, tls: bool, origin: str | None = None) -> None:
        scheme = "https" if tls else "http"
        self._origins: set[str] = set()
        self._address = "" if origin is None else origin.rstrip("/").lower()
        if origin is not None:
            self._origins.add(self._address)
        if is_this_machine(host):
            listens_at = _WRITTEN.get(host, f"[{host}]" if ":" in host else host)
            # At the names another server may be, where this one has an address of its own.
            names = _NAMES if listens_at in _NAMES else (listens_at,)
            self._origins |= {f"{scheme}://{name}:{port}" for name in names}
            self._address = f"{scheme}://{listens_at}:{port}"
        self._hosts = {urlsplit(each).netloc for each in self._origins}

    def check_page(self, headers: Mapping[bytes, bytes]) -> None:
        """For what holds no data: only the Host counts. Raises: HttpRefusal 403."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host not in self._hosts:
            raise HttpRefusal(
                403,
                f"The console is not at {host[:100]!r}; it is at {self.address}/console. If people"
                " reach it by that name, set `console.origin` to the address that they type.",
            )

    def check(self, method: str, headers: Mapping[bytes, bytes]) -> None:
        """For what reads or changes something. Raises: HttpRefusal 403, 415."""
        self.check_page(headers)
        origin = headers.get(b"origin")
        if origin is not None or method != "GET":
            text = (origin or b"").decode("latin-1").lower()
            if text not in self._origins or urlsplit(text).netloc != self._host(headers):
                raise HttpRefusal(403, "The console takes requests of its own page only")
        if headers.get(b"sec-fetch-site") != b"same-origin":
            raise HttpRefusal(403, "The console takes requests of its own page only")
        if method == "POST":
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind != b"application/json":
                raise HttpRefusal(415, "Content-Type must be application/json")

    @property
    def address(self) -> str:
        """Where the console is, without a path."""
        return self._address

    @staticmethod
    def _host(headers: Mapping[bytes, bytes]) -> str:
        return headers.get(b"host", b"").decode("latin-1").lower()
