"""Sockets at which callers arrive: bound by this process, or given to it by the one that started
it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tidegate.config.addresses import http_address
from tidegate.edges.accepting import ConnectionCounts
from tidegate.edges.passed_on import PassedOn
from tidegate.errors import Code, TidegateError

if TYPE_CHECKING:
    from tidegate.edges.http.worker_relay import WorkerWay

_OTHER_PORT = "Choose another port; 0 takes a free one."
_OWN_ADDRESS = "Choose an address of this machine, such as 127.0.0.1; 0.0.0.0 is all of them."
_HINTS: dict[int | None, str] = {
    errno.EADDRNOTAVAIL: _OWN_ADDRESS,
    errno.EACCES: "Choose a port from 1024 on: this account may not take a lower one.",
    socket.EAI_NONAME: _OWN_ADDRESS,
    socket.EAI_AGAIN: _OWN_ADDRESS,
}
"""What to do about an address that cannot be taken, by the number of the error."""

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


class Listening(NamedTuple):
    """A bound socket, and, where other processes take connections from it as well, how many
    connections each of them has. With `passed_on` balancers name their clients there."""

    socket: socket.socket
    counts: ConnectionCounts | None = None
    passed_on: PassedOn | None = None

    @property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        host, port = self.socket.getsockname()[:2]
        return host, port


class Sockets:
    """The sockets that this process was given, by the name of what listens there; what it was not
    given, it binds. `counts` are there for those that other processes have as well."""

    def __init__(
        self,
        given: Mapping[str, socket.socket] | None = None,
        counts: Mapping[str, ConnectionCounts] | None = None,
    ) -> None:
        self.way: WorkerWay | None = None
        """The way between workers, if there are several."""
        self._given = dict(given or {})
        self._counts = dict(counts or {})

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

    def take(self, name: str, host: str, port: int) -> Listening:
        """What to listen at, bound now unless it was given. Raises: TidegateError
        CONFIG_INVALID."""
        given = self._given.get(name)
        return Listening(bind(host, port) if given is None else given, self._counts.get(name))


def _unasked(place: str) -> TidegateError:
    return TidegateError(
        Code.CONFIG_INVALID,
        f"The service manager gave a socket at {place}, for which nothing is set.",
        hint="Name the address in the settings, as `http`, or name the socket after the setting: "
        "FileDescriptorName=http.",
    )
