"""Whether two URLs lead to the same database of the same server, after names are resolved."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from ipaddress import ip_address
from typing import NamedTuple

from tidegate.engines.registry import locate

_LOCAL = frozenset({"127.0.0.1", "::1"})


class ServerPlace(NamedTuple):
    """Where a URL leads. `addresses` are those of the host now: of a socket, this machine's own;
    empty where the host has none."""

    host: str
    port: int
    database: str
    addresses: frozenset[str]

    def is_same(self, other: ServerPlace) -> bool:
        """Whether both are one database. A name that cannot be resolved is compared as it is."""
        if (self.port, self.database) != (other.port, other.database):
            return False
        return self.host == other.host or bool(self.addresses & other.addresses)


async def place_of(
    url: str, default_port: int, may_look_up: Collection[str] | None = None
) -> ServerPlace:
    """Where a server's URL leads. The database is the user's name where the URL names none, as
    for libpq.

    Of a URL that a caller wrote, only hosts in `may_look_up` are looked up, and addresses: a name
    that is asked for reaches the name server of its owner, with all that it says.
    """
    location = locate(url)
    host = location.host.lower()
    database = location.database or location.user
    if not host or host.startswith(("/", "@")):
        return ServerPlace(host, location.port or default_port, database, _LOCAL)
    found: set[str] = set()
    for name in host.split(","):
        if may_look_up is None or name in may_look_up or _is_address(name):
            found |= await _addresses(name)
    return ServerPlace(host, location.port or default_port, database, frozenset(found))


def host_of(url: str) -> str:
    """The host that a server's URL names, in lower case."""
    return locate(url).host.lower()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


async def _addresses(host: str) -> frozenset[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return frozenset()
    return frozenset(str(address[0]) for *_, address in found)
