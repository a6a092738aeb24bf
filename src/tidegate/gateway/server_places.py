"""Whether two URLs lead to the same database of the same server, after names are resolved."""

from __future__ import annotations

import asyncio
import socket
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


async def place_of(url: str, default_port: int) -> ServerPlace:
    """Where a server's URL leads. The database is the user's name where the URL names none, as
    for libpq."""
    location = locate(url)
    host = location.host.lower()
    database = location.database or location.user
    if not host or host.startswith(("/", "@")):
        return ServerPlace(host, location.port or default_port, database, _LOCAL)
    found: set[str] = set()
    for name in host.split(","):
        found |= await _addresses(name)
    return ServerPlace(host, location.port or default_port, database, frozenset(found))


async def _addresses(host: str) -> frozenset[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return frozenset()
    return frozenset(str(address[0]) for *_, address in found)
