"""Whose connection a balancer passes on: read from the socket before anything else, TLS included.

At a listener that expects it, a trusted proxy must send the header with each connection: one that
names no client would have all its clients share an address, and with it their lockouts. Anyone else
is a client that came directly, with the address of the connection. A header from there counts
nowhere: the protocol of the listener finds it instead of its own first byte, and ends.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable

from tidegate.config.addresses import is_loopback_address
from tidegate.edges.proxy_header import (
    FIXED_BYTES,
    SIGNATURE,
    Address,
    BadHeader,
    read_client,
    read_length,
)

logger = logging.getLogger("tidegate.listening")

HEADER_S = 5.0
"""How long a proxy may take for its header, which it sends before it has read from its client."""
WARNING_S = 60.0
"""Between warnings of one address."""
_MOST_WARNED = 256
_TELLING_BYTES = 4
"""Of the signature. No protocol that is served begins with two empty lines."""

Trusts = Callable[[str], bool]


class HeaderWarnings:
    """Says in the log why a connection was refused, of each address once in `WARNING_S`."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def refuse(self, address: str, error: BadHeader) -> None:
        """A trusted proxy was refused."""
        self._say(
            address,
            f"{error}. The address is one of `trusted_proxies`, and with `proxy_protocol` these"
            " send a header with each connection",
        )

    def note_unexpected(self, address: str, data: bytes) -> None:
        """A client was refused for what it sent first; say so if that was a header."""
        if data.startswith(SIGNATURE[:_TELLING_BYTES]):
            self._say(
                address,
                "it began with a header of the PROXY protocol, which counts only from one of"
                " `trusted_proxies`, at a listener with `proxy_protocol`",
            )

    def _say(self, address: str, reason: str) -> None:
        now = time.monotonic()
        if now - self._said.get(address, -WARNING_S) < WARNING_S:
            return
        if len(self._said) >= _MOST_WARNED:
            self._said.clear()
        self._said[address] = now
        logger.warning("refused a connection of %s: %s", address, reason)


class PassedOn:
    """Reads the headers of the proxies that `trusts` knows."""

    def __init__(self, trusts: Trusts, header_s: float = HEADER_S, listens_at: str = "") -> None:
        """`listens_at` is an address of this machine."""
        self.warnings = HeaderWarnings()
        self._trusts = trusts
        self._header_s = header_s
        self._listens_at = listens_at

    async def read_client(self, connection: socket.socket) -> str:
        """The address of the client of a connection from which nothing has been read; empty if it
        is refused. Raises: OSError."""
        peer = str(connection.getpeername()[0])
        if not self._trusts(peer):
            return peer
        try:
            async with asyncio.timeout(self._header_s):
                client = await _read_header(connection)
        except BadHeader as error:
            self.warnings.refuse(peer, error)
            return ""
        except TimeoutError:
            late = BadHeader(f"no whole header came within {self._header_s:g} seconds")
            self.warnings.refuse(peer, late)
            return ""
        # Loopback is another machine's own word for itself, and here it means this machine.
        if client is None or (self._is_here(str(client)) and not self._is_here(peer)):
            return peer
        return str(client)

    def _is_here(self, address: str) -> bool:
        """Whether an address means this machine."""
        return is_loopback_address(address) or address == self._listens_at != ""


async def _read_header(connection: socket.socket) -> Address | None:
    """The client that it names. Raises: BadHeader, OSError."""
    # A client of another protocol may wait for an answer to its first few bytes.
    first = await _read(connection, 1)
    if first != SIGNATURE[:1]:
        raise BadHeader("it sent no header of version 2 of the PROXY protocol")
    fixed = first + await _read(connection, FIXED_BYTES - 1)
    return read_client(fixed, await _read(connection, read_length(fixed)))


async def _read(connection: socket.socket, count: int) -> bytes:
    """So many bytes and no more. Raises: BadHeader, OSError."""
    loop = asyncio.get_running_loop()
    found = b""
    while len(found) < count:
        part = await loop.sock_recv(connection, count - len(found))
        if not part:
            raise BadHeader("the connection ended before its header did")
        found += part
    return found
