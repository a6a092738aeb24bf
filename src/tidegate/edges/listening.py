"""Sockets at which callers arrive: bound by this process, or given to it by the one that started
it; and how connections are taken from a socket that several processes share.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tidegate.config.addresses import http_address
from tidegate.errors import Code, TidegateError

logger = logging.getLogger("tidegate.listening")

_OTHER_PORT = "Choose another port; 0 takes a free one."
_OWN_ADDRESS = "Choose an address of this machine, such as 127.0.0.1; 0.0.0.0 is all of them."
_HINTS: dict[int | None, str] = {
    errno.EADDRNOTAVAIL: _OWN_ADDRESS,
    errno.EACCES: "Choose a port from 1024 on: this account may not take a lower one.",
    socket.EAI_NONAME: _OWN_ADDRESS,
    socket.EAI_AGAIN: _OWN_ADDRESS,
}
"""What to do about an address that cannot be taken, by the number of the error."""
_REST_S = 0.5
"""How long no connection is taken after one could not be, as without a free descriptor."""

Addresses = Mapping[str, str]
"""HOST:PORT by the name of what listens there: `http`, or the section of the settings."""


def bind(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises: TidegateError CONFIG_INVALID."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TidegateError(
            Code.CONFIG_INVALID, f"Cannot listen on {host}:{port}: {reason}",
            hint=_HINTS.get(getattr(error, "errno", None), _OTHER_PORT),
        ) from None  # fmt: skip
    listener.setblocking(False)
    return listener


class Sockets:
    """The sockets that this process was given, by the name of what listens there; what it was not
    given, it binds. `shared`: other processes take connections from the same ones."""

    def __init__(self, given: Mapping[str, socket.socket] | None = None, *, shared: bool = False):
        self._given = dict(given or {})
        self.shared = shared

    @classmethod
    def match(cls, given: Iterable[tuple[str, socket.socket]], addresses: Addresses) -> Sockets:
        """Those of a service manager: each is for the listener of its name, else for the one at
        its address. Raises: TidegateError CONFIG_INVALID for one that no setting asks for."""
        matched: dict[str, socket.socket] = {}
        for name, each in given:
            place = each.getsockname()
            if each.family not in (socket.AF_INET, socket.AF_INET6):
                raise _unasked(str(place))
            wanted = name if name in addresses else ""
            for other, address in addresses.items():
                if not wanted and other not in matched and http_address(address) == place[:2]:
                    wanted = other
            if not wanted or wanted in matched:
                raise _unasked(f"{place[0]}:{place[1]}")
            each.setblocking(False)
            matched[wanted] = each
        return cls(matched)

    def take(self, name: str, host: str, port: int) -> socket.socket:
        """The socket of a listener, bound now unless it was given. Raises: TidegateError
        CONFIG_INVALID."""
        given = self._given.get(name)
        return bind(host, port) if given is None else given


def _unasked(place: str) -> TidegateError:
    return TidegateError(
        Code.CONFIG_INVALID,
        f"The service manager gave a socket at {place}, for which nothing is set.",
        hint="Name the address in the settings, as `http`, or name the socket after the setting: "
        "FileDescriptorName=http.",
    )


class Secured(NamedTuple):
    """TLS of what listens, and how many seconds a client may take for its handshake."""

    context: ssl.SSLContext
    handshake_s: float


class SharedAcceptor:
    """Takes connections from a socket from which other processes take them as well: one for each
    turn of the event loop, so that a process that has work leaves the next one to the others. The
    loop's own server takes all that wait at once."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        secured: Secured | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._make_protocol = make_protocol
        self._secured = secured
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Take no more. The socket stays open: others take from it."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._listener)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another process was quicker, or the client has gone
        except OSError as error:
            logger.error("no connection can be taken: %s", error.strerror)
            self._loop.remove_reader(self._listener)
            self._loop.call_later(_REST_S, self._go_on)
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._open(connection))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _go_on(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener, self._accept)

    async def _open(self, connection: socket.socket) -> None:
        secured = self._secured
        try:
            await self._loop.connect_accepted_socket(
                self._make_protocol,
                connection,
                ssl=None if secured is None else secured.context,
                ssl_handshake_timeout=None if secured is None else secured.handshake_s,
            )
        except (OSError, ssl.SSLError):  # as a client that speaks no TLS
            connection.close()


Acceptor = SharedAcceptor | asyncio.Server


async def accept_connections(
    listener: socket.socket,
    make_protocol: Callable[[], asyncio.Protocol],
    backlog: int,
    *,
    shared: bool = False,
    secured: Secured | None = None,
) -> Acceptor:
    """Take connections from a bound socket until what is returned is closed."""
    if shared:
        return SharedAcceptor(listener, make_protocol, secured)
    return await asyncio.get_running_loop().create_server(
        make_protocol,
        sock=listener,
        backlog=backlog,
        ssl=None if secured is None else secured.context,
        ssl_handshake_timeout=None if secured is None else secured.handshake_s,
    )
