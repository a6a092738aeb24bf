"""Which requests reach the protocol at all: Host and Origin, against DNS rebinding.

A server on loopback answers only to loopback names unless the operator names others; a browser
page of another origin is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


class Guard:
    """Decides on Host and Origin. Names are compared without port, in lower case."""

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        self._origins = {origin.lower().rstrip("/") for origin in origins}
        self._good_hosts: set[bytes] = set()

    def admits_host(self, host: bytes | None) -> bool:
        if host in self._good_hosts:
            return True
        if host is None or _without_port(host.decode("latin-1").lower()) not in self._hosts:
            return False
        if len(self._good_hosts) < 64:
            self._good_hosts.add(host)
        return True

    def admits_origin(self, origin: bytes | None) -> bool:
        """True without an Origin: only browsers send one."""
        if origin is None:
            return True
        text = origin.decode("latin-1").lower().rstrip("/")
        if text in self._origins:
            return True
        scheme, separator, host = text.partition("://")
        return bool(separator) and scheme in ("http", "https") and _without_port(host) in LOOPBACK


def _without_port(host: str) -> str:
    """The host without its port; as it is if what follows the name is no port."""
    if host.startswith("["):
        name, bracket, rest = host.partition("]")
        port = rest.removeprefix(":")
        return name + bracket if not rest or (port != rest and _is_port(port)) else host
    name, _, port = host.rpartition(":")
    return name if name and _is_port(port) and ":" not in name else host


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit()
