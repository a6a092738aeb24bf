"""Host and Origin of a request, checked against DNS rebinding.

A server on loopback answers to loopback names unless the operator allows others, and only under
its own port: a page that was loaded from another port must not reach it by a name of its own. A
browser page of another origin is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.config.addresses import is_this_machine
from tidegate.edges.http.responses import HttpRefusal
from tidegate.errors import Code

_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
"""By which a server on loopback is reached. The other addresses of loopback are not all of them
ours: another server may listen at one of them, and have pages."""
HOST_REFUSED = {"code": Code.HOST_REFUSED.value}
_MOST_KEPT = 64


class OriginChecks:
    """Compares names in lower case.

    `hosts` are names, or names with a port, in addition to the loopback names. A name without a
    port admits every port, since a proxy may serve another than ours. A loopback name and `bound`,
    the address that this server is bound to, admit our own `port` only; None admits any.
    """

    def __init__(
        self,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        *,
        bound: str = "localhost",
        port: int | None = None,
    ) -> None:
        self._hosts = {host.lower() for host in hosts}
        self._own = _NAMES | {bound.lower(), f"[{bound.lower()}]"}
        self._of_this_machine = self._own if is_this_machine(bound) else _NAMES
        self._port = port
        self._origins = {origin.lower().rstrip("/") for origin in origins}
        self._good_hosts: set[bytes] = set()

    def check_host(self, host: bytes | None) -> None:
        """Raises: HttpRefusal 403 that says what to set."""
        if host in self._good_hosts:
            return
        text = "" if host is None else host.decode("latin-1").lower()
        if host is None or not self._admits(text):
            raise HttpRefusal(
                403,
                f"The Host {text[:100]!r} is not allowed. If callers reach this server by it, add "
                "it to `allowed_hosts` in the settings.",
                data=HOST_REFUSED,
            )
        if len(self._good_hosts) < _MOST_KEPT:
            self._good_hosts.add(host)

    def _admits(self, host: str) -> bool:
        name, port = _name_and_port(host)
        if host in self._hosts or name in self._hosts:
            return True
        return name in self._own and (port is None or self._port is None or port == self._port)

    def admits_origin(self, origin: bytes | None) -> bool:
        """True without an Origin: only browsers send one."""
        if origin is None:
            return True
        text = origin.decode("latin-1").lower().rstrip("/")
        if text in self._origins:
            return True
        scheme, separator, host = text.partition("://")
        return (
            bool(separator)
            and scheme in ("http", "https")
            and _name_and_port(host)[0] in self._of_this_machine
        )


def _name_and_port(host: str) -> tuple[str, int | None]:
    """Both parts; the whole text as a name if what follows the name is no port."""
    if host.startswith("["):
        name, bracket, rest = host.partition("]")
        if not rest:
            return name + bracket, None
        port = rest.removeprefix(":")
        return (name + bracket, int(port)) if port != rest and _is_port(port) else (host, None)
    name, _, port = host.rpartition(":")
    return (name, int(port)) if name and _is_port(port) and ":" not in name else (host, None)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5
