"""Whether two URLs lead to the same database, after names of hosts and links are resolved."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import NamedTuple

from tidegate.engines.registry import find, locate
from tidegate.errors import TidegateError

_EMBEDDING = (IPv6Network("::/96"), IPv6Network("64:ff9b::/96"))
"""Networks whose addresses end with one of IPv4."""

_NUMBERS = re.compile(r"(?:0x[0-9a-f]+|[0-9]+)(?:\.(?:0x[0-9a-f]+|[0-9]+)){0,3}")
"""An IPv4 address as `inet_aton` reads it too: 127.1, 0x7f.1, 2130706433. No name server is asked
for it."""

_LOCAL = frozenset({"127.0.0.1"})
"""The identity of this machine, by whichever of its addresses it is reached."""


class DatabaseIdentity(NamedTuple):
    """Where a URL leads. `path` is the resolved path of a database file, or of a folder of files;
    None for a server or a database in memory. `addresses` are those of the host now: of a socket,
    this machine's own; empty where the host has none."""

    path: str | None
    host: str
    port: int
    database: str
    addresses: frozenset[str]

    def is_same(self, other: DatabaseIdentity) -> bool:
        """Whether both are one database of a server."""
        return self.database == other.database and self.is_same_server(other)

    def is_same_server(self, other: DatabaseIdentity) -> bool:
        """Whether both are on one server, in any of its databases. A name that cannot be resolved
        is compared as it is."""
        if not self.port or self.port != other.port:
            return False
        return self.host == other.host or bool(self.addresses & other.addresses)

    def shares_files(self, other: DatabaseIdentity) -> bool:
        """Whether both are one file, or one is a folder that the other is in."""
        if self.path is None or other.path is None:
            return False
        if os.path.commonpath([self.path, other.path]) in (self.path, other.path):
            return True
        with suppress(OSError):
            return Path(self.path).samefile(other.path)
        return False


async def place_of(url: str, may_look_up: Collection[str] | None = None) -> DatabaseIdentity:
    """Where a source's URL leads. The database is the user's name where the URL names none, as for
    libpq. Opens nothing.

    Of a URL that a caller wrote, only hosts in `may_look_up` are looked up, and addresses: a name
    that is asked for reaches the name server of its owner, with all that it says.
    """
    place = file_place_of(url)
    if place is not None:
        return place
    location = locate(url)
    host = ",".join(name.removesuffix(".") for name in location.host.lower().split(","))
    database = location.database or location.user
    if not host or host.startswith(("/", "@")):
        return DatabaseIdentity(None, host, location.port, database, _LOCAL)
    found: set[str] = set()
    for name in host.split(","):
        if may_look_up is None or name in may_look_up or _is_address(name):
            found |= await _addresses(name)
    return DatabaseIdentity(None, host, location.port, database, frozenset(found))


def file_place_of(url: str) -> DatabaseIdentity | None:
    """Where the URL of a file or folder leads; None for a server or a database in memory."""
    path = _path(url)
    return None if path is None else DatabaseIdentity(path, "", 0, "", frozenset())


def host_of(url: str) -> str:
    """The host that a server's URL names, in lower case."""
    return locate(url).host.lower()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return _is_localhost(host) or _NUMBERS.fullmatch(host) is not None
    return True


def _is_localhost(host: str) -> bool:
    """Whether a name is this machine's by definition (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


def _path(url: str) -> str | None:
    with suppress(TidegateError):  # it is not there, or cannot be read: then it is no other's
        entry = find(url)
        written = entry.path_of(url)
        return None if written is None else os.path.realpath(written)
    return None


async def _addresses(host: str) -> frozenset[str]:
    if _is_localhost(host):
        return _LOCAL
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return frozenset()
    return frozenset(each for *_, address in found for each in _meant(str(address[0])))


def _meant(address: str) -> frozenset[str]:
    """An address as it is compared: all of this machine's own are one, and an IPv4 address in a
    form of IPv6 (mapped, compatible, 6to4, NAT64) is that address."""
    plain = ip_address(address.partition("%")[0])
    if isinstance(plain, IPv6Address) and not (plain.is_loopback or plain.is_unspecified):
        embedded = plain.ipv4_mapped or plain.sixtofour
        if embedded is None and any(plain in network for network in _EMBEDDING):
            embedded = IPv4Address(int(plain) & 0xFFFFFFFF)
        plain = embedded or plain
    if plain.is_loopback or plain.is_unspecified or _is_own(str(plain)):
        return _LOCAL
    return frozenset({str(plain)})


def _is_own(address: str) -> bool:
    """Whether this machine has an address: then a socket can be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
